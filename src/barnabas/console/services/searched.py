"""Records as filter expressions see them during a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Message

from barnabas.console.services.decoding import MASK, Decoded, Decoder, Headers, masked, plain
from barnabas.console.services.needles import Needles, finder

_UNREAD: Final[Any] = object()
_QUOTES: Final = frozenset(
    f"__connect.errors.exception.{name}" for name in ("message", "stacktrace")
)
"""Headers of dead letters whose texts may quote any field of the record. Source: KIP-298."""


class Searched:
    """A record, as expressions see it; keys and values are decoded when they are needed.

    One object serves a whole search: `at` moves it to the next record.
    """

    __slots__ = ("_decoder", "_headers", "_hidden", "_key", "_message", "_shown", "_value")

    def __init__(self, decoder: Decoder, hidden: Sequence[str]) -> None:
        self._decoder, self._hidden = decoder, hidden
        self._message: Any = None
        self._key: Any = _UNREAD
        self._value: Any = _UNREAD
        self._headers: Headers = _UNREAD
        self._shown: Mapping[str, Any] = _UNREAD

    def at(self, message: Message) -> Searched:
        """Be this record."""
        self._message = message
        self._key = self._value = self._headers = self._shown = _UNREAD
        return self

    @property
    def key(self) -> Any:
        if self._key is _UNREAD:
            self._key = self._seen(self._message.key(), is_key=True)
        return self._key

    @property
    def value(self) -> Any:
        if self._value is _UNREAD:
            message = self._message
            if self._hidden or message.headers():
                self._value = self._seen(message.value(), is_key=False)
            else:
                self._value = self._decoder.value(message.value(), (), is_key=False)
        return self._value

    @property
    def headers(self) -> Mapping[str, Any]:
        if self._shown is _UNREAD:
            found = {
                name: shown_header(name, data, self._hidden).value for name, data in self._read()
            }
            self._shown = masked(found, self._hidden) if self._hidden else found
        return self._shown

    @property
    def offset(self) -> int:
        return int(self._message.offset() or 0)

    @property
    def partition(self) -> int:
        return int(self._message.partition() or 0)

    @property
    def timestamp(self) -> int:
        return int(self._message.timestamp()[1])

    def _read(self) -> Headers:
        if self._headers is _UNREAD:
            self._headers = headers_of(self._message)
        return self._headers

    def _seen(self, data: Any, *, is_key: bool) -> Any:
        """Fields that are masked for the reader are masked for the search, too."""
        headers = self._read()
        if self._hidden:
            return hide(self._decoder.decode(data, headers, is_key=is_key), self._hidden).value
        return self._decoder.value(data, headers, is_key=is_key)


def may_match(
    needles: Needles | None, decoder: Decoder, hidden: Sequence[str]
) -> Callable[[Any], bool] | None:
    """Return a function that decides whether a record may match; None if every record may.

    Records with headers, which may name a schema, always may. So do all records where fields are
    masked, since a filter also sees the mask.
    """
    if needles is None or hidden:
        return None
    in_key, in_value = (
        finder([one.text for one in needles if one.root == root], decoder.names)
        for root in ("key", "value")
    )
    has_keys = any(one.root == "key" for one in needles)
    has_values = any(one.root == "value" for one in needles)

    def may(message: Any) -> bool:
        return (
            (has_values and in_value(message.value()))
            or (has_keys and in_key(message.key()))
            or bool(message.headers())
        )

    return may


def headers_of(message: Message) -> Headers:
    """A message's headers."""
    found: Any = message.headers()
    if not found:
        return ()
    return [(str(name), data.encode() if isinstance(data, str) else data) for name, data in found]


def shown_header(name: str, data: bytes | None, fields: Sequence[str]) -> Decoded:
    """A header in which fields are masked; whole, if it has the name of one or may quote one."""
    if name in fields or (fields and name in _QUOTES):
        return Decoded("text", MASK, 0)
    return Decoded("null", None, 0) if data is None else hide(plain(data), fields)


def hide(decoded: Decoded, fields: Sequence[str]) -> Decoded:
    """A key or value in which fields are masked; whole, where its fields are not known."""
    if not fields:
        return decoded
    is_opaque = decoded.form == "bytes" or (
        decoded.form == "text" and str(decoded.value).lstrip()[:1] in ("{", "[")
    )
    value = MASK if is_opaque else masked(decoded.value, fields)
    return replace(decoded, value=value)

"""Needles: texts that the bytes of a record must contain for a filter to match it.

A search looks for needles before it decodes a record. Most records contain none, and this check
costs a hundredth of decoding JSON. `finder` never rejects data that could match:

- JSON contains its texts unchanged, unless a backslash escapes characters;
- Avro does too, if its schema has only types that are shown as they are encoded;
- numbers, `true`, `null` and hexadecimal digits are shown with letters of their own, so a needle
  contains other letters;
- an object as a whole is searched as JSON, so a needle contains none of JSON's punctuation and does
  not begin like the rest of an escape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.schemas.wire_format import GUID_MAGIC, PREFIX_BYTES

_SIGNS: Final = frozenset('"\\,:[]{}')
_LETTERS: Final = frozenset("".join(("abcdef", "true", "false", "null", "NaN", "Infinity")))
"""The letters of numbers, constants and hexadecimal digits, which are not texts."""
_ESCAPES: Final = frozenset("nrtfbu0123456789abcdef")
"""Characters that can follow the backslash of an escape, up to its end."""
_PLAIN_TYPES: Final = ("null", "boolean", "int", "long", "float", "double", "string")
_NAMED: Final = ("record", "error")


@dataclass(frozen=True, slots=True)
class Needle:
    """A text in a `root` of a record: `key`, `value` or `headers`."""

    root: str
    text: bytes


Needles = frozenset[Needle]
"""A record that matches contains at least one of these."""


def needle_of(root: str, text: Any, *, is_whole: bool = False) -> Needles | None:
    """The needle for a text; None if the bytes of a match need not contain the text.

    `is_whole`: a filter compares the text with a whole text; otherwise it may be part of an object.
    """
    if not isinstance(text, str) or not text or set(text) <= _LETTERS | set(" 0123456789+-."):
        return None
    if any(one in '"\\' or not one.isprintable() for one in text):
        return None
    if not is_whole and (text[0] in _ESCAPES or not _SIGNS.isdisjoint(text)):
        return None
    try:
        return frozenset({Needle(root, text.encode())})
    except UnicodeEncodeError:
        return None


def either(found: Iterable[Needles | None]) -> Needles | None:
    """The needles of something that is true if one of its parts is."""
    needles: Needles = frozenset()
    for one in found:
        if one is None:
            return None
        needles |= one
    return needles or None


def both(found: Iterable[Needles | None]) -> Needles | None:
    """The needles of something that is true if all of its parts are: of the rarest part."""
    return min((one for one in found if one is not None), key=len, default=None)


def finder(
    texts: Sequence[bytes], names: Callable[[bytes], tuple[bytes, ...] | None]
) -> Callable[[bytes | None], bool]:
    """Return a function that decides whether a key or value may contain one of the texts.

    `names` returns the field names of data with a schema, which are shown but not encoded; None if
    the data may be shown with texts that its bytes do not contain.
    """
    named: dict[bytes, bool] = {}
    """By the prefix of data: whether a field name of its schema contains a text."""

    def may_have(data: bytes | None) -> bool:
        if not data:
            return False
        for text in texts:
            if text in data:
                return True
        if data[0] > GUID_MAGIC:  # it names no schema
            return b"\\" in data
        prefix = data[:PREFIX_BYTES]
        found = named.get(prefix)
        if found is None:
            known = names(data)
            if known is None:
                return True
            found = named[prefix] = any(text in name for name in known for text in texts)
        return found

    return may_have


def names_of(schema: Any) -> tuple[bytes, ...] | None:
    """The field names of an Avro schema (parsed JSON); None if not all its types are plain.

    Plain types are shown as they are encoded: not enums, bytes or logical types.
    """
    names: set[bytes] = set()
    return tuple(sorted(names)) if _is_plain(schema, names, set()) else None


def _is_plain(schema: Any, names: set[bytes], known: set[str]) -> bool:
    if isinstance(schema, list):
        return all(_is_plain(one, names, known) for one in schema)
    if isinstance(schema, str):
        return schema in _PLAIN_TYPES or schema in known
    if not isinstance(schema, Mapping) or "logicalType" in schema:
        return False
    kind = schema.get("type")
    if kind in ("array", "map"):
        return _is_plain(schema.get("items" if kind == "array" else "values"), names, known)
    if kind not in _NAMED:
        return isinstance(kind, str | list | Mapping) and _is_plain(kind, names, known)
    name = str(schema.get("name"))
    known.add(name)
    known.add(f"{schema['namespace']}.{name}" if schema.get("namespace") else name)
    for one in schema.get("fields", ()):
        names.add(str(one.get("name")).encode())
        if not _is_plain(one.get("type"), names, known):
            return False
    return True

"""Answers: a status and the bytes of a body, nearly always JSON."""

import asyncio
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from barnabas.registry.errors import RegistryError


@dataclass(slots=True)
class Answer:
    """An answer to a client. With `content_type` None it has the type that the client accepts."""

    body: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()
    content_type: bytes | None = None


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:  # half a surrogate pair: JSON can say it, UTF-8 cannot
        return json.dumps(value, separators=(",", ":")).encode()


def json_answer(value: Any) -> Answer:
    """A value as an answer."""
    return Answer(json_bytes(value))


def refusal(fault: RegistryError) -> Answer:
    """An error as Confluent writes it."""
    return Answer(json_bytes({"error_code": fault.code, "message": fault.message}), fault.status)


def plain_fault(status: HTTPStatus, detail: str = "") -> RegistryError:
    """An error of HTTP itself, whose code is the status."""
    message = f"HTTP {status.value} {status.phrase}"
    return RegistryError(status.value, f"{message}: {detail}" if detail else message)


# -- compressed answers, for clients that take gzip: those that are often asked for are kept


COMPRESSED_FROM = 1024
"""A shorter body goes as it is: it fits one packet either way."""
LEVEL = 4
"""As small as with 6, by a tenth, and up to twice as fast."""
THREAD_FROM = 128 * 1024
"""A longer body takes milliseconds: it is compressed in a thread."""
KEPT_SIZE_MAX = 32 * 1024
"""A longer body is not kept."""
KEPT_BYTES_MAX = 4 << 20
"""Of all bodies that are kept, both forms; what was put in first goes first."""

_GZIP = 16 + zlib.MAX_WBITS
_KNOWN_MAX = 256
_known: dict[bytes, bool] = {b"": False, b"gzip, deflate": True, b"gzip, deflate, br": True}
"""Accept-Encoding headers that were read already."""


def takes_gzip(accept_encoding: bytes) -> bool:
    """Return whether a client with this Accept-Encoding takes gzip."""
    is_taken = _known.get(accept_encoding)
    if is_taken is None:
        is_taken = _read(accept_encoding)
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        _known[accept_encoding] = is_taken
    return is_taken


def _read(accept_encoding: bytes) -> bool:
    taken: dict[bytes, bool] = {}
    for item in accept_encoding.lower().split(b","):
        name, _, weight = item.partition(b";")
        _, _, value = weight.partition(b"=")
        taken[name.strip()] = not value.strip() or bool(value.strip().strip(b"0."))
    return taken.get(b"gzip", taken.get(b"x-gzip", taken.get(b"*", False)))


class Compressor:
    """Compresses bodies; a body that is asked for again is found."""

    __slots__ = ("_bytes", "_kept")

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}
        """By the body itself: a read of a stored schema answers the same object each time."""
        self._bytes = 0

    async def gzip(self, body: bytes) -> bytes:
        """The body, compressed."""
        if len(body) >= THREAD_FROM:
            return await asyncio.to_thread(_compressed, body)
        compressed = self._kept.get(body)
        if compressed is None:
            compressed = _compressed(body)
            if len(body) <= KEPT_SIZE_MAX:
                self._keep(body, compressed)
        return compressed

    def _keep(self, body: bytes, packed: bytes) -> None:
        self._kept[body] = packed
        self._bytes += len(body) + len(packed)
        while self._bytes > KEPT_BYTES_MAX:
            oldest = next(iter(self._kept))
            self._bytes -= len(oldest) + len(self._kept.pop(oldest))


def _compressed(body: bytes) -> bytes:
    return zlib.compress(body, LEVEL, wbits=_GZIP)

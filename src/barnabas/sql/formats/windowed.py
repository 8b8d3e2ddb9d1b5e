"""Keys of windowed results: the key's bytes, then the window's bounds, as Kafka Streams has them.

    time window   key, start (8 bytes)           the end is known from the window's size
    session       key, end (8), start (8)        the end belongs to the session

Both are milliseconds, big endian. ksqlDB's hopping and tumbling windows are time windows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from barnabas.java.numbers import LONG_MAX
from barnabas.schemas.errors import FormatError
from barnabas.sql.formats.format import Deserializer, Serializer
from barnabas.sql.runtime.records import Row, WindowBounds

_START = struct.Struct(">q")
_END_START = struct.Struct(">qq")

WindowedSerializer = Callable[[Row | None, WindowBounds], bytes]
WindowedDeserializer = Callable[[bytes | None], tuple[Row | None, WindowBounds] | None]


def windowed_serializer(inner: Serializer, *, session: bool) -> WindowedSerializer:
    """Keys with windows to bytes."""

    def serialize_time(key: Row | None, window: WindowBounds) -> bytes:
        return (inner(key) or b"") + _START.pack(window.start_ms)

    def serialize_session(key: Row | None, window: WindowBounds) -> bytes:
        return (inner(key) or b"") + _END_START.pack(window.end_ms, window.start_ms)

    return serialize_session if session else serialize_time


def windowed_deserializer(
    inner: Deserializer, *, size_ms: int | None, session: bool
) -> WindowedDeserializer:
    """Bytes to keys with windows.

    `size_ms`: of time windows; where it is not known they have no end, as in Kafka Streams.
    Raises FormatError for bytes without bounds.
    """

    def deserialize_time(data: bytes | None) -> tuple[Row | None, WindowBounds] | None:
        if not data:
            return None
        key, (start_ms,) = _cut(data, _START)
        end_ms = LONG_MAX if size_ms is None else min(start_ms + size_ms, LONG_MAX)
        return inner(key), WindowBounds(start_ms, end_ms)

    def deserialize_session(data: bytes | None) -> tuple[Row | None, WindowBounds] | None:
        if not data:
            return None
        key, (end_ms, start_ms) = _cut(data, _END_START)
        return inner(key), WindowBounds(start_ms, end_ms)

    return deserialize_session if session else deserialize_time


def _cut(data: bytes, bounds: struct.Struct) -> tuple[bytes, tuple[int, ...]]:
    if len(data) < bounds.size:
        raise FormatError(
            f"The key has {len(data)} bytes, too few for the bounds of a window ({bounds.size})"
        )
    return data[: -bounds.size], bounds.unpack(data[-bounds.size :])

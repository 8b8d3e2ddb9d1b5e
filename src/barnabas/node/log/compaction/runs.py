"""Records of one layout that follow each other: read by columns instead of one by one.

What a producer sends is often of one size, with keys of one size: then the bytes at one place of
each record are one strided slice, and it takes a comparison in C, for each byte of a record's
structure, to know that the layout goes on. The parts that differ (timestamp and offset deltas) need
only be as wide. Unlike in a batch as it was produced, offset deltas may have gaps here: what a
former round left is read again by each later one.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.records.walk import NULL

RUN_LENGTH_MIN: Final = 6
"""A shorter run is not worth its set-up."""
KEYS_AT_ONCE: Final = 32
KEY_READERS_MAX: Final = 256
_ASCII: Final = bytes(range(0x80))
"""Last bytes of varints."""
_CONTINUED: Final = bytes(range(0x80, 0x100))
"""Bytes after which a varint goes on."""
_EVEN: Final = bytes(range(0, 0x100, 2))
"""First bytes of varints that are not negative."""
_LOW: Final = bytes((byte & 0x7F) >> 1 for byte in range(0x100))
_HIGH: Final = tuple(byte << 6 for byte in range(0x80))
_DENSE: Final = (
    (bytes(range(0, 0x80, 2)),),
    (
        bytes(delta << 1 & 0x7F | 0x80 for delta in range(8192)),
        bytes(delta >> 6 for delta in range(8192)),
    ),
)
"""Offset deltas 0, 1, 2 … in one byte; in two, the low bytes and the high bytes."""


class Run(NamedTuple):
    """`length` records of `stride` bytes, from record `first` on, at `position`.

    `*_at` are places of varints' first bytes, but for the key's, from the start of a record.
    """

    first: int
    length: int
    position: int
    stride: int
    timestamp_at: int
    timestamp_width: int
    delta_at: int
    delta_width: int
    key_at: int
    key_size: int
    """-1: no keys."""
    value_at: int
    is_dense: bool
    """True if offset deltas are the records' indexes."""

    @property
    def end(self) -> int:
        """The position after the last record."""
        return self.position + self.length * self.stride

    def column(self, data: bytes, at: int) -> bytes:
        """The bytes at one place of each record."""
        return data[self.position + at : self.end : self.stride]

    def keys(self, data: bytes) -> list[bytes | None]:
        """Of each record."""
        position, size, stride = self.position, self.key_size, self.stride
        if size < 0:
            return [None] * self.length
        many = self.length // KEYS_AT_ONCE
        if not many:
            places = range(position + self.key_at, self.end, stride)
            return [data[place : place + size] for place in places]
        read = _key_reader(self.key_at, size, stride)
        step = KEYS_AT_ONCE * stride
        middle = position + many * step
        keys: list[bytes | None] = list(
            chain.from_iterable([read(data, place) for place in range(position, middle, step)])
        )
        places = range(middle + self.key_at, self.end, stride)
        keys += [data[place : place + size] for place in places]
        return keys

    def deltas(self, data: bytes) -> list[int]:
        """The offset delta of each record."""
        low = self.column(data, self.delta_at).translate(_LOW)
        if self.delta_width == 1:
            return list(low)
        high = self.column(data, self.delta_at + 1)
        return [part + _HIGH[byte] for part, byte in zip(low, high, strict=True)]

    def tombstones(self, data: bytes) -> list[int]:
        """Indexes of the records without a value."""
        column = self.column(data, self.value_at)
        if NULL not in column:
            return []
        return [index for index, byte in enumerate(column, self.first) if byte == NULL]


def find_run(data: bytes, position: int, end: int, index: int, count: int) -> Run | None:
    """The run of record `index` at `position`; `count` are to come, until `end`.

    None if it is shorter than RUN_LENGTH_MIN, or has a layout that is not recognized. Raises
    IndexError where `data` ends within the first record.
    """
    length_end = _past_varint(data, position)
    timestamp_end = _past_varint(data, length_end + 1)
    delta_end = _past_varint(data, timestamp_end)
    key_start = _past_varint(data, delta_end)
    length_width = length_end - position
    if length_width > 3 or delta_end - timestamp_end > 2 or key_start - delta_end > 2:
        return None
    stride = length_width + _decode(data, position, length_end)
    key_size = _decode(data, delta_end, key_start)
    value_at = key_start - position + max(key_size, 0)
    count = min(count, (end - position) // stride) if value_at < stride else 0
    following = data[position + stride : position + stride + length_width]
    if count < RUN_LENGTH_MIN or key_size < -1 or following != data[position:length_end]:
        return None
    for place in [*range(position, length_end), *range(delta_end, key_start)]:
        column = data[place : place + count * stride : stride]
        same = data[place : place + 1]
        if column != same * count:
            count = _prefix(column, same)
    count = _varints(data, length_end + 1, timestamp_end, stride, count)
    dense = _dense_prefix(data, timestamp_end, delta_end, stride, index, count)
    if dense:
        count = dense
    else:
        count = _varints(data, timestamp_end, delta_end, stride, count)
        count = _prefix(data[timestamp_end : timestamp_end + count * stride : stride], _EVEN)
    if count < RUN_LENGTH_MIN:
        return None
    return Run(
        index,
        count,
        position,
        stride,
        length_end + 1 - position,
        timestamp_end - length_end - 1,
        timestamp_end - position,
        delta_end - timestamp_end,
        key_start - position,
        key_size,
        value_at,
        dense > 0,
    )


def _varints(data: bytes, start: int, end: int, stride: int, count: int) -> int:
    """Count the records from `start` to `end` whose varint is as wide as the first one's."""
    for place in range(start, end - 1):
        count = _prefix(data[place : place + count * stride : stride], _CONTINUED)
    column = data[end - 1 : end - 1 + count * stride : stride]
    return count if column.isascii() else _prefix(column, _ASCII)


def _dense_prefix(data: bytes, start: int, end: int, stride: int, index: int, count: int) -> int:
    """Count the leading records whose offset deltas can be their indexes, if all of them can.

    The first one's is from `start` to `end`. 0: not all of them.
    """
    columns = _DENSE[end - start - 1]
    count = min(count, len(columns[0]) - index)
    for place, column in enumerate(columns, start):
        if data[place : place + count * stride : stride] != column[index : index + count]:
            return 0
    return max(0, count)


def _past_varint(data: bytes, at: int) -> int:
    while data[at] >= 0x80:
        at += 1
    return at + 1


def _decode(data: bytes, start: int, end: int) -> int:
    """The zigzag varint from `start` to `end`."""
    raw = data[end - 1]
    for place in range(end - 2, start - 1, -1):
        raw = raw << 7 | data[place] & 0x7F
    return (raw >> 1) ^ -(raw & 1)


def _prefix(column: bytes, allowed: bytes) -> int:
    """Count the bytes before the first that is not in `allowed`."""
    if not column.translate(None, allowed):
        return len(column)
    return len(column) - len(column.lstrip(allowed))


@lru_cache(KEY_READERS_MAX)
def _key_reader(key_at: int, size: int, stride: int) -> Callable[[bytes, int], tuple[bytes, ...]]:
    """A compiled reader of the keys of KEYS_AT_ONCE records."""
    return Struct(f"{key_at}x{size}s{stride - key_at - size}x" * KEYS_AT_ONCE).unpack_from

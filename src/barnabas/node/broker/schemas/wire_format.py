"""The schema that a record names, by the wire format of Confluent's serialisers.

A key or value begins with 0 and the schema's id in four bytes, or with 1 and its GUID in sixteen.
Newer serialisers put the same bytes into a header of the record instead; a header comes first, as
in the deserialisers. Here such bytes are an *identity*; no schema is looked at.

The records of a batch mostly name very few schemas, so `scan_batch` collects the distinct ones, and
which record named what is asked (`identities_of`) only where one of them is to be refused.

`scan_batch` is a loop over records in plain Python, so it has two gears: `_follow_shape` takes
records whose varints have the widths of most, with one `unpack_from` each, and `_scan_record` the
rest. `python -m bench.schema_validation` measures it.
"""

import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.records.records import Record
from barnabas.protocol.records.walk import NULL, VARINT_BYTES_MAX, BadRecordError, read_varint

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
HEADERS_MARK: Final = b"_schema_id"
"""In both names. If a batch does not contain it, none of its records has such a header."""
ID_MAGIC: Final = 0
GUID_MAGIC: Final = 1
ID_SIZE_BYTES: Final = 5
GUID_SIZE_BYTES: Final = 17
ID_LENGTH_VARINT: Final = 2 * ID_SIZE_BYTES
DELTAS_SHORT_MAX: Final = 64
"""Offset deltas below this are one byte; below DELTAS_LONG_MAX, two."""
DELTAS_LONG_MAX: Final = 8192
NO_IDENTITY: Final = b""


class Identities(NamedTuple):
    """The distinct beginnings of keys and values that are not null, five bytes at most."""

    keys: set[bytes]
    values: set[bytes]


def schema_of(identity: bytes) -> int | UUID | None:
    """The id or GUID that an identity holds, or None. Ids begin at 1."""
    if len(identity) == ID_SIZE_BYTES and identity[0] == ID_MAGIC:
        schema_id = int.from_bytes(identity[1:], "big", signed=True)
        return schema_id if schema_id > 0 else None
    if len(identity) == GUID_SIZE_BYTES and identity[0] == GUID_MAGIC:
        return UUID(bytes=identity[1:])
    return None


def identities_of(record: Record) -> tuple[bytes | None, bytes | None]:
    """The identities of key and value; None for a null, NO_IDENTITY for data without one."""
    return (
        _identity(record.key, record, KEY_HEADER),
        _identity(record.value, record, VALUE_HEADER),
    )


def _identity(payload: bytes | None, record: Record, header_name: str) -> bytes | None:
    if payload is None:
        return None
    header = next((value for name, value in reversed(record.headers) if name == header_name), None)
    source = payload if header is None else header
    size = GUID_SIZE_BYTES if source[:1] == b"\x01" else ID_SIZE_BYTES
    identity = source[:size]
    return identity if schema_of(identity) is not None else NO_IDENTITY


def scan_batch(data: bytes, count: int, *, keys: bool, values: bool) -> Identities | None:
    """The distinct identities of keys and values, of those that are asked for.

    `data` is what follows a batch's header, uncompressed. None: the records must be decoded,
    because some name a schema in a header or by its GUID. `data` need not be well-formed: what
    `check_structure` accepts is read as that reads it, anything else in any way. Raises
    BadRecordError or IndexError.
    """
    if not _SHAPES:
        _fill_tables()
    identities = _Found(set(), set())
    at = index = 0
    while index < count:
        start = index
        shape = _shape_of(data, at, index)
        if shape is not None:
            index, at = _follow_shape(data, at, index, count, shape, keys, values, identities)
        if index == start:
            at = _scan_record(data, at, index, keys, values, identities)
            index += 1
    if identities.has_headers and HEADERS_MARK in data:
        return None
    for identity in (*identities.keys, *identities.values):
        if identity[:1] == b"\x01":
            return None
    return Identities(identities.keys, identities.values)


class _Found:
    """The result so far."""

    __slots__ = ("has_headers", "keys", "values")

    def __init__(self, keys: set[bytes], values: set[bytes]) -> None:
        self.keys = keys
        self.values = values
        self.has_headers = False


class _Shape(NamedTuple):
    """Widths of a record's first varints, and what reads and judges them."""

    unpack: Callable[[bytes, int], tuple[int, int, int, int, bytes]]
    """(length, timestamp delta, key length, value length if there is no key, what follows it)."""
    strides: Sequence[int]
    """From the length varint as `unpack` gives it to the record's size; 0: not of this width."""
    timestamp_mask: int
    timestamp_flags: int
    key_at: int
    index_end: int
    """The first offset delta that is too wide."""


_SHAPES: Final[dict[tuple[int, int, int], _Shape]] = {}
"""By the widths of length, timestamp delta and offset delta."""


def _fill_tables() -> None:
    """Make the tables. They take 200 KB: who never validates has none of them."""
    short = array("H", bytes(2 * 0x100))
    long = array("H", bytes(2 * 0x10000))
    for length in range(DELTAS_SHORT_MAX):
        short[length << 1] = length + 1
    for length in range(DELTAS_SHORT_MAX, DELTAS_LONG_MAX):
        raw = length << 1
        long[raw & 0x7F | 0x80 | raw >> 7 << 8] = length + 2
    for width in ((a, b, c) for a in (1, 2) for b in (1, 2) for c in (1, 2)):
        length_width, timestamp_width, delta_width = width
        code = {1: "B", 2: "H"}
        layout = struct.Struct(
            f"<{code[length_width]}x{code[timestamp_width]}{delta_width}xB{code[length_width]}5s"
        )
        _SHAPES[width] = _Shape(
            unpack=layout.unpack_from,
            strides=short if length_width == 1 else long,
            timestamp_mask=0x80 if timestamp_width == 1 else 0x8080,
            timestamp_flags=0 if timestamp_width == 1 else 0x80,
            key_at=length_width + 1 + timestamp_width + delta_width,
            index_end=DELTAS_SHORT_MAX if delta_width == 1 else DELTAS_LONG_MAX,
        )


def _shape_of(data: bytes, position: int, index: int) -> _Shape | None:
    """The shape that the record at `position` seems to have; None: its varints are wider."""
    if index >= DELTAS_LONG_MAX or position + ID_SIZE_BYTES > len(data):
        return None
    length_width = 1 if data[position] < 0x80 else 2
    timestamp_width = 1 if data[position + length_width + 1] < 0x80 else 2
    return _SHAPES[length_width, timestamp_width, 1 if index < DELTAS_SHORT_MAX else 2]


def _follow_shape(
    data: bytes,
    at: int,
    index: int,
    count: int,
    shape: _Shape,
    keys: bool,
    values: bool,
    identities: _Found,
) -> tuple[int, int]:
    """Scan records from `at` on up to the first that has not `shape`; returns (index, position)."""
    unpack, strides, timestamp_mask, timestamp_flags, key_at, index_end = shape
    overhead = key_at + 2  # the key's length and the count of headers
    last_key = last_value = None
    has_headers = False
    end = min(count, index_end)
    try:
        while index < end:
            length, timestamp, key_size, value_size, value = unpack(data, at)
            stride = strides[length]
            rest = stride - overhead
            if rest < 0 or timestamp & timestamp_mask != timestamp_flags:
                break
            if key_size != NULL or rest <= ID_SIZE_BYTES or strides[value_size] != rest:
                value_at = at + key_at + 1
                if key_size != NULL:
                    if key_size < ID_LENGTH_VARINT or key_size & 0x81:
                        break
                    key = data[value_at : value_at + ID_SIZE_BYTES]
                    if keys and key != last_key:
                        identities.keys.add(key)
                        last_key = key
                    value_at += key_size >> 1
                value_size = data[value_at]
                value_at += 1
                if value_size >= 0x80:
                    more = data[value_at]
                    if more >= 0x80:
                        break
                    value_size = value_size & 0x7F | more << 7
                    value_at += 1
                if value_size < ID_LENGTH_VARINT or value_size & 1:
                    break
                if value_at + (value_size >> 1) + 1 != at + stride:
                    has_headers = True
                value = data[value_at : value_at + ID_SIZE_BYTES]
            if values and value != last_value:
                identities.values.add(value)
                last_value = value
            at += stride
            index += 1
    except (IndexError, struct.error):
        pass  # few bytes are left
    if has_headers:
        identities.has_headers = True
    return index, at


def _scan_record(data: bytes, at: int, index: int, keys: bool, values: bool, seen: _Found) -> int:
    """Scan any record; returns where it ends."""
    size, at = _read_raw(data, at, index)
    end = at + (size >> 1)
    at += 1  # attributes
    while data[at] >= 0x80:
        at += 1  # timestamp delta
    at += 1
    while data[at] >= 0x80:
        at += 1  # offset delta
    at += 1
    for is_wanted, identities in ((keys, seen.keys), (values, seen.values)):
        size, at = (NULL, at + 1) if data[at] == NULL else _read_raw(data, at, index)
        if size == NULL:
            continue
        if is_wanted:
            identities.add(data[at : at + min(size >> 1, ID_SIZE_BYTES)])
        at += size >> 1
    if data[at]:
        seen.has_headers = True
    return end


def _read_raw(data: bytes, position: int, index: int) -> tuple[int, int]:
    """A length as its varint has it, and the position after it."""
    value, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    if value < 0:
        raise BadRecordError(index, f"has a length of {value}")
    return value << 1, position

"""The structural walk over a batch's records: what a broker checks before it stores them.

A record is `length varint | attributes i8 | timestamp delta varlong | offset delta varint |
key length varint, key | value length varint, value | header count varint, headers`; varints are
zigzag, lengths below 0 mean null. The walk holds every length against its record, every record
against the batch, and offset deltas against 0, 1, 2 … Nothing is copied or decoded.

This is the broker's most often executed loop, in plain Python, so it has three gears:

* `_verify_run` takes records of one length and layout (fixed-size payloads, as sensors and
  benchmarks send). The bytes at one place in each record are one strided slice, and whole such
  columns are compared in C: some 30 ns a record.
* `_follow_shape` takes records of any length that share a *shape*, the widths of their length,
  timestamp delta and offset delta. One `unpack_from` reads all the varints of a record at once,
  and tables say what they must be: some 110 ns without keys, 200 with.
  Offset deltas of three bytes and more differ only in their first two within a block of
  DELTAS_TABLE_MAX, so that one table serves all blocks.
* `_verify_record` takes the rest: longer varints, long keys, headers, tombstones.

`bench/records.py` measures it.
"""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError

DELTAS_SHORT_MAX: Final = 64
"""Offset deltas below this are one byte; below DELTAS_TABLE_MAX, two."""
DELTAS_TABLE_MAX: Final = 8192
"""Also the size of a block: larger deltas that only differ in their lowest 13 bits."""
DELTAS_SHAPED_MAX: Final = DELTAS_TABLE_MAX << 14
"""Offset deltas below this have at most four bytes."""
LENGTH_TABLE_MAX: Final = DELTAS_TABLE_MAX
RUN_LENGTH_MIN: Final = 6
"""A shorter run is not worth its set-up."""
RUN_ATTEMPTS_MAX: Final = 8
"""Searches in a row that find no long run, before a walk searches no more."""
RUN_LONG_MIN: Final = 64
"""A run that pays for the search many times over."""
IRREGULAR_RECORDS_MAX: Final = 3
"""Records in a row that do not have the shape, before another shape is looked for."""
TIMESTAMP_WIDTH_MAX: Final = 4
"""Bytes of a timestamp delta that shapes have: 37 hours from the batch's first timestamp."""
VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10
NULL: Final = 1
"""The varint of -1."""


class BadRecordError(DecodeError):
    """A record that breaks the format; `index` is its place in the batch."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(f"record {index}: {problem}")
        self.index = index


class MissingKeyError(BadRecordError):
    """A record without a key where one is required."""

    def __init__(self, index: int) -> None:
        super().__init__(index, "has no key")


class CutOffError(BadRecordError):
    """The data ends within a record, which begins at `position`."""

    def __init__(self, index: int, position: int, problem: str) -> None:
        super().__init__(index, problem)
        self.position = position


def walk_records(data: bytes, count: int, *, keys_required: bool) -> None:
    """Check that `data` is exactly `count` well-formed records with offset deltas 0, 1, 2 …

    `data` is the part of a batch after its header, uncompressed. Raises BadRecordError at the
    first that is not, MissingKeyError for a null key when `keys_required`.
    """
    position = Walk(keys_required=keys_required).walk(data, 0, 0, count)
    if position != len(data):
        raise BadRecordError(count, f"{len(data) - position} bytes follow the last record")


class Walk:
    """The walk over one batch, perhaps in parts; it remembers whether looking for runs pays."""

    __slots__ = ("_attempts", "_keys_required")

    def __init__(self, *, keys_required: bool) -> None:
        self._keys_required = keys_required
        self._attempts = 0
        if not _SHAPES:
            _fill_tables()

    def walk(self, data: bytes, position: int, index: int, end: int) -> int:
        """Check records `index` to before `end`, the first at `position`; returns where they end.

        Raises BadRecordError for the first bad one; CutOffError, after those before it have
        been checked, for one that `data` does not hold to its end.
        """
        keys_required = self._keys_required
        while index < end:
            if end - index > RUN_LENGTH_MIN and self._attempts < RUN_ATTEMPTS_MAX:
                start = position
                position = _verify_record(data, position, index, keys_required)
                index += 1
                shape = _shape_of(data, start, index)
                run_length = _verify_run(data, start, position, index, end, shape) if shape else 0
                self._attempts = 0 if run_length >= RUN_LONG_MIN else self._attempts + 1
                if run_length:
                    index += run_length
                    position += run_length * (position - start)
                    continue
            else:
                shape = _shape_of(data, position, index)
            if shape is not None:
                index, position = _follow_shape(data, position, index, end, shape, keys_required)
            else:
                position = _verify_record(data, position, index, keys_required)
                index += 1
        return position


class _Shape(NamedTuple):
    """Widths of a record's first varints, and what reads and judges them."""

    unpack: Callable[[bytes, int], tuple[int, int, int, int, int]]
    """(length, timestamp delta, first two bytes of the offset delta, key length, value length if
    there is no key)."""
    deltas: list[int]
    """Each offset delta of a block as `unpack` gives it; those of another width never match."""
    strides: list[int]
    """From the length varint as `unpack` gives it to the record's size; 0: not of this width."""
    timestamp_mask: int
    timestamp_flags: int
    key_at: int
    """The position of the key's length, from the start of the record."""
    width: tuple[int, int, int]


def _varint(value: int) -> int:
    """The zigzag varint of a value from 0 to 8191, its first byte lowest."""
    raw = value << 1
    return raw if raw < 0x80 else raw & 0x7F | 0x80 | raw >> 7 << 8


_SHORT: Final = bytes(range(0, 2 * DELTAS_SHORT_MAX, 2))
_LOW: Final = bytes(_varint(delta) & 0xFF for delta in range(DELTAS_TABLE_MAX))
_HIGH: Final = bytes(_varint(delta) >> 8 for delta in range(DELTAS_TABLE_MAX))
_LOW_WIDE: Final = bytes(low | 0x80 for low in _LOW)
_HIGH_WIDE: Final = bytes(high | 0x80 for high in _HIGH)
"""The first two bytes of offset deltas that have more, by their lowest 13 bits."""
_CONTINUED: Final = bytes(range(0x80, 0x100))
"""Bytes after which a varint goes on."""

_DELTAS: Final[list[int]] = []
_DELTAS_WIDE: Final[list[int]] = []
_STRIDES_SHORT: Final[list[int]] = []
_STRIDES_LONG: Final[list[int]] = []
_VALUES: Final[list[int]] = []
"""From the bytes that value length and value take together to that length's varint. The end
stays -1, so that negative indexes find nothing there."""
_SHAPES: Final[dict[tuple[int, int, int], "_Shape"]] = {}


def _fill_tables() -> None:
    """Make the tables, `_SHAPES` last. They take a megabyte: who never walks has none of them."""
    deltas = [_varint(delta) for delta in range(DELTAS_TABLE_MAX)]
    strides_short, strides_long = [0] * 0x100, [0] * 0x10000
    values = [-1] * (LENGTH_TABLE_MAX + 256)
    for length in range(LENGTH_TABLE_MAX):
        strides, width = (strides_short, 1) if length < 64 else (strides_long, 2)
        strides[deltas[length]] = length + width
        values[length + width] = deltas[length]
    _DELTAS[:] = deltas
    _DELTAS_WIDE[:] = [delta | 0x8080 for delta in deltas]
    _STRIDES_SHORT[:] = strides_short
    _STRIDES_LONG[:] = strides_long
    _VALUES[:] = values
    shapes = {
        (length, timestamp, delta): _make_shape(length, timestamp, delta)
        for length in (1, 2)
        for timestamp in range(1, TIMESTAMP_WIDTH_MAX + 1)
        for delta in (1, 2, 3, 4)
    }
    _SHAPES.update(shapes)  # at once: another thread may be about to walk


def _make_shape(length_width: int, timestamp_width: int, delta_width: int) -> _Shape:
    code = {1: "B", 2: "H"}
    # Three bytes have no code of their own: they are read with the attributes before them.
    timestamp_code = {1: "xB", 2: "xH", 3: "I", 4: "xI"}[timestamp_width]
    goes_on = ~(-1 << 8 * (timestamp_width - 1)) & 0x808080
    before = 8 if timestamp_width == 3 else 0
    delta_code = f"{code[min(delta_width, 2)]}{'x' * (delta_width - 2)}"
    layout = struct.Struct(
        f"<{code[length_width]}{timestamp_code}{delta_code}B{code[length_width]}"
    )
    return _Shape(
        unpack=layout.unpack_from,
        deltas=_DELTAS if delta_width <= 2 else _DELTAS_WIDE,
        strides=_STRIDES_SHORT if length_width == 1 else _STRIDES_LONG,
        timestamp_mask=(goes_on | 0x80 << 8 * (timestamp_width - 1)) << before,
        timestamp_flags=goes_on << before,
        key_at=length_width + 1 + timestamp_width + delta_width,
        width=(length_width, timestamp_width, delta_width),
    )


def _delta_width(index: int) -> int:
    """The size of the varint of an offset delta below DELTAS_SHAPED_MAX."""
    if index < DELTAS_SHORT_MAX:
        return 1
    if index < DELTAS_TABLE_MAX:
        return 2
    return 3 if index < DELTAS_TABLE_MAX << 7 else 4


def _block_of(index: int) -> tuple[int, bytes]:
    """The first offset delta after `index` that differs in more than two bytes, or in its width,
    and the bytes beyond the second that all before it have."""
    if index < DELTAS_TABLE_MAX:
        return DELTAS_SHORT_MAX if index < DELTAS_SHORT_MAX else DELTAS_TABLE_MAX, b""
    block = index // DELTAS_TABLE_MAX
    beyond = bytes([block]) if block < 0x80 else bytes([block & 0x7F | 0x80, block >> 7])
    return (block + 1) * DELTAS_TABLE_MAX, beyond


def _shape_of(data: bytes, position: int, index: int) -> _Shape | None:
    """The shape that the record at `position` seems to have; `index` says its delta's width.

    None if its varints are wider than shapes go, or `data` ends.
    """
    if index >= DELTAS_SHAPED_MAX or position + 7 > len(data):
        return None
    length_width = 1 if data[position] < 0x80 else 2
    at = position + length_width + 1
    timestamp_width = 1
    while data[at] >= 0x80:
        at += 1
        timestamp_width += 1
        if timestamp_width > TIMESTAMP_WIDTH_MAX:
            return None
    if data[position + length_width - 1] >= 0x80:
        return None
    return _SHAPES[length_width, timestamp_width, _delta_width(index)]


def _follow_shape(
    data: bytes, position: int, index: int, count: int, shape: _Shape, keys_required: bool
) -> tuple[int, int]:
    """Check records from `position` on while most have `shape`; returns (index, position)."""
    unpack, deltas, strides, timestamp_mask, timestamp_flags, key_at, _ = shape
    overhead = key_at + 2  # the key's length and the count of headers
    values = _VALUES
    irregular = 0
    index_end, beyond = _block_of(index)
    is_narrow = not beyond
    beyond_at = key_at - len(beyond)
    first = index % DELTAS_TABLE_MAX
    try:
        for delta in deltas[first : first + min(count, index_end) - index]:
            length, timestamp, offset_delta, key, value = unpack(data, position)
            stride = strides[length]
            rest = stride - overhead
            if key != NULL:
                key_size = key >> 1
                rest -= key_size
                at = position + key_at + 1 + key_size
                value = data[at]
                if value >= 0x80:
                    value |= data[at + 1] << 8
            if (
                stride
                and offset_delta == delta
                and (is_narrow or data[position + beyond_at : position + key_at] == beyond)
                and timestamp & timestamp_mask == timestamp_flags
                and ((key == NULL and not keys_required) or not key & 0x81)
            ):
                if value == values[rest] and not data[position + stride - 1]:
                    position += stride
                elif position + stride <= len(data):
                    at = position + key_at + 1 + (0 if key == NULL else key >> 1)
                    _verify_value_and_headers(data, at, position + stride, index)
                    position += stride
                else:
                    position = _verify_record(data, position, index, keys_required)
                irregular = 0
            else:
                position = _verify_record(data, position, index, keys_required)
                irregular += 1
                if irregular == IRREGULAR_RECORDS_MAX:
                    return index + 1, position
            index += 1
    except (IndexError, struct.error):
        # Few bytes are left, or a long key was taken for what it is not: the slow way knows.
        position = _verify_record(data, position, index, keys_required)
        index += 1
    return index, position


def _verify_run(
    data: bytes, start: int, position: int, index: int, count: int, shape: _Shape
) -> int:
    """Count the records from `position` on that have the layout of the one from `start` to it.

    That one is well-formed and seems to have `shape`. Returns 0 if fewer than RUN_LENGTH_MIN
    have, or any of those of equal length differs otherwise. Record `index` is at `position`.
    """
    stride = position - start
    key_at = shape.key_at
    length_width, timestamp_width, delta_width = shape.width
    key = data[start + key_at]
    if key & 0x81 and key != NULL:
        return 0
    # Lengths: as many records as have the same bytes.
    block = index // DELTAS_TABLE_MAX
    if (index - 1) // DELTAS_TABLE_MAX != block:
        return 0
    index_end = DELTAS_SHORT_MAX if delta_width == 1 else (block + 1) * DELTAS_TABLE_MAX
    length = min(min(count, index_end) - index, (len(data) - position) // stride)
    for place in range(start, start + length_width):
        column = data[place + stride : position + length * stride : stride]
        length -= len(column.lstrip(data[place : place + 1]))
        if length < RUN_LENGTH_MIN:
            return 0
    # Key length, value length and header count: the same. They fill the first record.
    value_at = start + key_at + 1 + (0 if key == NULL else key >> 1)
    if value_at >= position:
        return 0
    value = data[value_at]
    places = [start + key_at, value_at, position - 1]
    if value >= 0x80:
        value |= data[value_at + 1] << 8
        places.append(value_at + 1)
    if _VALUES[position - 1 - value_at] != value:
        return 0
    end = position + length * stride
    for place in places:
        if data[place + stride : end : stride] != data[place : place + 1] * length:
            return 0
    # Timestamp deltas: any, of the same width.
    at = start + length_width + 1
    for _ in range(timestamp_width - 1):
        if data[at:end:stride].translate(None, _CONTINUED):
            return 0
        at += 1
    if not data[at:end:stride].isascii():
        return 0
    columns = slice(at + 1, end, stride)
    return length if _are_next_deltas(data, columns, index - 1, length + 1, delta_width) else 0


def _are_next_deltas(data: bytes, columns: slice, index: int, length: int, width: int) -> bool:
    """Return whether `length` offset deltas from `index` on, all in one block and of that width,
    are in `data`; `columns` says where the first bytes of each are."""
    at, end, stride = columns.start, columns.stop, columns.step
    first = index % DELTAS_TABLE_MAX
    deltas = slice(first, first + length)
    if width == 1:
        return data[columns] == _SHORT[deltas]
    low, high = (_LOW, _HIGH) if width == 2 else (_LOW_WIDE, _HIGH_WIDE)
    if data[columns] != low[deltas] or data[at + 1 : end : stride] != high[deltas]:
        return False
    _, beyond = _block_of(index)
    for place, byte in enumerate(beyond, at + 2):
        if data[place:end:stride] != bytes((byte,)) * length:
            return False
    return True


def _verify_record(data: bytes, position: int, index: int, keys_required: bool) -> int:
    """Check any record, with varints of all widths and headers; returns where it ends."""
    start = position
    try:
        body_size, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    except IndexError:
        raise CutOffError(index, start, "ends after the batch") from None
    end = position + body_size
    if body_size < 0:
        raise BadRecordError(index, f"has length {body_size}")
    if end > len(data):
        raise CutOffError(index, start, f"has length {body_size}")
    try:
        _, position = read_varint(data, position + 1, index, VARLONG_BYTES_MAX)
        delta, position = read_varint(data, position, index, VARINT_BYTES_MAX)
        if delta != index:
            raise BadRecordError(index, f"has offset delta {delta}")
        key_size, position = read_varint(data, position, index, VARINT_BYTES_MAX)
        if key_size >= 0:
            position += key_size
        elif keys_required:
            raise MissingKeyError(index)
        _verify_value_and_headers(data, position, end, index)
    except IndexError:
        raise BadRecordError(index, "ends after the batch") from None
    return end


def _verify_value_and_headers(data: bytes, position: int, end: int, index: int) -> None:
    """Check that a record's value, whose length is at `position`, and headers reach `end`.

    Raises BadRecordError, or IndexError where `data` ends first.
    """
    value_size = data[position]
    position += 1
    if value_size >= 0x80:
        value_size, position = read_varint(data, position - 1, index, VARINT_BYTES_MAX)
        if value_size > 0:
            position += value_size
    elif not value_size & 1:
        position += value_size >> 1
    header_count, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    if header_count:
        position = _verify_headers(data, position, end, index, header_count)
    if position != end:
        raise BadRecordError(index, f"ends {end - position} bytes after its last part")


def _verify_headers(data: bytes, position: int, end: int, index: int, count: int) -> int:
    if not 0 <= count <= end - position:
        raise BadRecordError(index, f"has {count} headers")
    for _ in range(count):
        name_size = data[position]
        position += 1
        if name_size >= 0x80:
            name_size, position = read_varint(data, position - 1, index, VARINT_BYTES_MAX)
            name_size <<= 1
        if name_size & 1 or name_size < 0:
            raise BadRecordError(index, "has a header without a name")
        position += name_size >> 1
        value_size = data[position]
        position += 1
        if value_size >= 0x80:
            value_size, position = read_varint(data, position - 1, index, VARINT_BYTES_MAX)
            if value_size > 0:
                position += value_size
        elif not value_size & 1:
            position += value_size >> 1
        if position > end:
            raise BadRecordError(index, "ends before its headers")
    return position


def read_varint(data: bytes, position: int, index: int, bytes_max: int) -> tuple[int, int]:
    """A zigzag varint of at most `bytes_max` bytes: (value, position after it)."""
    raw = data[position]
    if raw < 0x80:
        return (raw >> 1) ^ -(raw & 1), position + 1
    raw &= 0x7F
    shift = 7
    for place in range(position + 1, position + bytes_max):
        byte = data[place]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), place + 1
        shift += 7
    raise BadRecordError(index, f"has a varint of more than {bytes_max} bytes")

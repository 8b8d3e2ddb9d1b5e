"""Reading of a batch's records what compaction asks for, and nothing else.

A record is `length varint | attributes i8 | timestamp delta varlong | offset delta varint | key
length varint, key | value length varint, value | headers`. Kept records are copied as they lie, so
only where they begin, their keys and offsets, and which are tombstones is found out.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.base.disk import Buffer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    CorruptBatchError,
)
from barnabas.protocol.records.compression import decompress
from barnabas.protocol.records.uniform import is_uniform
from barnabas.protocol.records.walk import (
    DELTAS_SHORT_MAX,
    NULL,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    BadRecordError,
    read_varint,
)


class Scan(NamedTuple):
    """The records of a batch."""

    data: bytes
    """All of them, uncompressed."""
    starts: Sequence[int]
    """Where each begins in `data`, and where the last ends."""
    keys: list[bytes | None]
    deltas: Sequence[int]
    """Their offsets, from the batch's base offset."""
    tombstones: Sequence[int]
    """Indexes of those without a value."""


RECORD_SIZE_BYTES_MIN: Final = 7


def unfold(buffer: Buffer, position: int, header: BatchHeader) -> bytes:
    """The records of the batch at `position`, uncompressed. Raises CorruptBatchError."""
    body = memoryview(buffer)[position + HEADER_SIZE_BYTES : position + header.size_bytes]
    return decompress(header.codec, body) if body else b""


def scan_records(data: bytes, count: int) -> Scan:
    """Walk `count` records that fill `data`. Raises CorruptBatchError where they do not."""
    if not 0 <= count <= len(data) // RECORD_SIZE_BYTES_MIN:
        raise CorruptBatchError(f"{count} records do not fit in {len(data)} bytes")
    if count > 1 and is_uniform(data, count, keys_required=True):
        return _scan_uniform(data, count)
    return _walk(data, count)


def _scan_uniform(data: bytes, count: int) -> Scan:
    """The same for records of one size, found to be so: a sixth of the time."""
    narrow = min(count, DELTAS_SHORT_MAX)
    stride = (len(data) - (count - narrow)) // count
    middle = narrow * stride
    # Length, attributes, timestamp delta, offset delta: one byte each but for the length.
    key_at = next(at for at, byte in enumerate(data) if byte < 0x80) + 4
    size = data[key_at] >> 1
    keys: list[bytes | None] = [
        data[start : start + size] for start in range(key_at + 1, middle, stride)
    ]
    # The length varint has the same width: the check knows each by its own plan.
    keys += [
        data[start : start + size] for start in range(middle + key_at + 2, len(data), stride + 1)
    ]
    starts = [*range(0, middle, stride), *range(middle, len(data), stride + 1), len(data)]
    return Scan(data, starts, keys, range(count), ())


def _walk(data: bytes, count: int) -> Scan:
    """The same for any records."""
    starts = [0]
    keys: list[bytes | None] = []
    deltas: list[int] = []
    tombstones: list[int] = []
    position = 0
    try:
        for index in range(count):
            byte = data[position]
            if byte < 0x80 and not byte & 1:
                end = position + 1 + (byte >> 1)
                position += 2
            else:
                length, position = read_varint(data, position, index, VARINT_BYTES_MAX)
                end = position + length
                position += 1
            while data[position] >= 0x80:
                position += 1
            byte = data[position + 1]
            if byte < 0x80 and not byte & 1:
                delta = byte >> 1
                position += 2
            else:
                delta, position = read_varint(data, position + 1, index, VARINT_BYTES_MAX)
            byte = data[position]
            if byte < 0x80 and not byte & 1:
                start = position + 1
                position = start + (byte >> 1)
                keys.append(data[start:position])
            else:
                size, start = read_varint(data, position, index, VARINT_BYTES_MAX)
                position = start + max(size, 0)
                keys.append(None if size < 0 else data[start:position])
            if data[position] == NULL:
                tombstones.append(index)
            if position >= end:
                raise BadRecordError(index, "ends before its value")
            deltas.append(delta)
            starts.append(end)
            position = end
    except BadRecordError as error:
        raise CorruptBatchError(str(error), ErrorCode.INVALID_RECORD) from error
    except IndexError:
        raise CorruptBatchError(f"record {len(deltas)} ends after the batch") from None
    if position != len(data):
        raise CorruptBatchError(f"the records end at {position}, the batch at {len(data)}")
    return Scan(data, starts, keys, deltas, tombstones)


def timestamp_delta(data: bytes, start: int) -> tuple[int, int, int]:
    """Of the record at `start`: (timestamp delta, where it begins, where it ends)."""
    _, position = read_varint(data, start, 0, VARINT_BYTES_MAX)
    delta, end = read_varint(data, position + 1, 0, VARLONG_BYTES_MAX)
    return delta, position + 1, end

"""Reading of a batch's records what compaction asks for, and nothing else.

A record is `length varint | attributes i8 | timestamp delta varlong | offset delta varint | key
length varint, key | value length varint, value | headers`. Kept records are copied as they lie, so
only where they begin, their keys and offsets, and which are tombstones is found out: by columns
where many of one layout follow each other (`runs`), and by a walk elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from barnabas.node.log.compaction.runs import RUN_LENGTH_MIN, Run, find_run
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    CorruptBatchError,
    check_crc,
)
from barnabas.protocol.records.compression import decompress
from barnabas.protocol.records.uniform import RECORD_SIZE_BYTES_MIN
from barnabas.protocol.records.walk import (
    NULL,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    BadRecordError,
    read_varint,
)

WALKS: Final = (1, 7, 56)
"""Records that are walked after each vain search for a run; then, all that are left are."""


@dataclass(slots=True)
class Scan:
    """The records of a batch."""

    data: bytes
    """Has them uncompressed, beside other things."""
    end: int
    """The position after the last record."""
    deltas: Sequence[int] = ()
    """Their offsets, from the batch's base offset: a range if there are no gaps."""
    tombstones: list[int] = field(default_factory=list)
    """Indexes of those without a value."""
    runs: list[Run] = field(default_factory=list)
    key_parts: list[Run | list[bytes | None]] = field(default_factory=list)
    """The runs that contain the keys, or the keys themselves."""
    places: list[Sequence[int]] = field(default_factory=list)
    """The positions of the records, piece by piece."""
    key_size_max: int = 0
    """Bytes."""
    is_keyless: bool = False
    """True if a record has no key."""

    @property
    def keys(self) -> list[bytes | None]:
        """Of each record."""
        keys: list[bytes | None] = []
        for part in self.key_parts:
            keys += part.keys(self.data) if isinstance(part, Run) else part
        return keys

    @property
    def starts(self) -> list[int]:
        """The position of each record in `data`, and the position after the last."""
        return [*chain.from_iterable(self.places), self.end]


def require_crc(buffer: bytes, position: int, header: BatchHeader) -> None:
    """Raise CorruptBatchError for a batch whose damage a new CRC would hide."""
    if not check_crc(buffer, position, header):
        raise CorruptBatchError(f"the batch at offset {header.base_offset} fails its CRC")


def decompress_batch(buffer: bytes, position: int, header: BatchHeader) -> tuple[bytes, int, int]:
    """The records of the batch at `position`, uncompressed: (data, their start, their end).

    Raises CorruptBatchError.
    """
    start, end = position + HEADER_SIZE_BYTES, position + header.size_bytes
    if not header.is_compressed or start == end:
        return buffer, start, end
    data = decompress(header.codec, memoryview(buffer)[start:end])
    return data, 0, len(data)


def scan_records(data: bytes, start: int, end: int, count: int) -> Scan:
    """Read `count` records that fill `data` from `start` to `end`.

    Raises CorruptBatchError where they do not.
    """
    if not 0 <= count <= (end - start) // RECORD_SIZE_BYTES_MIN:
        raise CorruptBatchError(f"{count} records do not fit in {end - start} bytes")
    scan = Scan(data, end)
    deltas: list[int] = []
    index = searches = 0
    position, is_dense = start, True
    try:
        if count < RUN_LENGTH_MIN:
            position = _walk(scan, deltas, position, 0, count)
            index, is_dense = count, not count
        while index < count:
            stop = count
            if searches < len(WALKS) and count - index >= RUN_LENGTH_MIN:
                run = find_run(data, position, end, index, count - index)
                if run is not None:
                    is_dense = is_dense and run.is_dense
                    if not is_dense:
                        deltas += [*range(len(deltas), index), *run.deltas(data)]
                    _take(scan, run)
                    position, index = run.end, index + run.length
                    continue
                stop = min(count, index + WALKS[searches])
                searches += 1
            if is_dense:
                is_dense = False
                deltas += range(index)
            position = _walk(scan, deltas, position, index, stop)
            index = stop
    except BadRecordError as error:
        raise CorruptBatchError(str(error), ErrorCode.INVALID_RECORD) from error
    except IndexError:
        raise CorruptBatchError(f"a record after the {index}th ends after the batch") from None
    if position != end:
        raise CorruptBatchError(f"the records end at {position}, the batch at {end}")
    if not is_dense and deltas[-1] == count - 1:
        is_dense = deltas == list(range(count))
    scan.deltas = range(count) if is_dense else deltas
    return scan


def offsets_of(scan: Scan, base_offset: int) -> Sequence[int]:
    """Of each record."""
    deltas = scan.deltas
    if isinstance(deltas, range):
        return range(base_offset, base_offset + len(deltas))
    return [base_offset + delta for delta in deltas]


def _take(scan: Scan, run: Run) -> None:
    data = scan.data
    scan.runs.append(run)
    scan.places.append(range(run.position, run.end, run.stride))
    scan.key_parts.append(run)
    scan.tombstones += run.tombstones(data)
    if run.key_size < 0:
        scan.is_keyless = True
    elif run.key_size > scan.key_size_max:
        scan.key_size_max = run.key_size


def _walk(scan: Scan, deltas: list[int], position: int, index: int, stop: int) -> int:
    """Read any records, from `index` to `stop`; returns where they end."""
    data = scan.data
    key_size_max = scan.key_size_max
    keys: list[bytes | None] = []
    starts = []
    for number in range(index, stop):
        starts.append(position)
        byte = data[position]
        second = data[position + 1]
        if byte < 0x80 and not byte & 1:
            end = position + 1 + (byte >> 1)
            position += 2
        elif second < 0x80 and not byte & 1:
            end = position + 2 + (second << 6 | byte >> 1 & 0x3F)
            position += 3
        else:
            length, position = read_varint(data, position, number, VARINT_BYTES_MAX)
            end = position + length
            position += 1
        while data[position] >= 0x80:
            position += 1
        byte = data[position + 1]
        second = data[position + 2]
        if byte < 0x80 and not byte & 1:
            deltas.append(byte >> 1)
            position += 2
        elif second < 0x80 and not byte & 1:
            deltas.append(second << 6 | byte >> 1 & 0x3F)
            position += 3
        else:
            delta, position = read_varint(data, position + 1, number, VARINT_BYTES_MAX)
            deltas.append(delta)
        byte = data[position]
        if byte < 0x80 and not byte & 1:
            start = position + 1
            size = byte >> 1
        else:
            size, start = read_varint(data, position, number, VARINT_BYTES_MAX)
        position = start + size
        if size > key_size_max:
            key_size_max = size
        if size >= 0:
            keys.append(data[start:position])
        else:
            position = start
            keys.append(None)
            scan.is_keyless = True
        if data[position] == NULL:
            scan.tombstones.append(number)
        if position >= end:
            raise BadRecordError(number, "ends before its value")
        position = end
    scan.places.append(starts)
    scan.key_parts.append(keys)
    scan.key_size_max = key_size_max
    return position


def timestamp_delta(data: bytes, start: int) -> tuple[int, int, int]:
    """Of the record at `start`: (timestamp delta, where it begins, where it ends)."""
    position = start
    while data[position] >= 0x80:
        position += 1
    position += 2
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position, position + 1
    second = data[position + 1]
    if second < 0x80:
        raw = second << 7 | byte & 0x7F
        return (raw >> 1) ^ -(raw & 1), position, position + 2
    delta, end = read_varint(data, position, 0, VARLONG_BYTES_MAX)
    return delta, position, end

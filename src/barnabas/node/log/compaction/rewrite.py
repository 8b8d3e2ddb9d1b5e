"""Rewriting a batch with fewer records or with a delete horizon.

Base offset, last offset, producer, sequence and leader epoch stay, so that offsets and sequence
numbers go on as before. Source: Kafka's MemoryRecords.buildRetainedRecordsInto, KIP-534.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.node.log.compaction.scan import Scan, timestamp_delta
from barnabas.protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_MASK,
    HEADER,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    set_crc,
)
from barnabas.protocol.records.compression import compress
from barnabas.protocol.records.uniform import encode_varint

_ODD: Final = bytes(range(1, 0x100, 2))


def keep_header(header: BatchHeader) -> bytearray:
    """The batch without any record."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_MASK)
    return _assemble(header, b"", 0, attributes, NO_TIMESTAMP, header.max_timestamp)


def keep_records(
    header: BatchHeader, scan: Scan, kept: Sequence[int], new_horizon_ms: int | None
) -> bytearray:
    """The batch with the records of indexes `kept` (one at least).

    `new_horizon_ms`: when the tombstones among them may go. It takes the base timestamp's place;
    without it, that of an earlier round stays. Raises CorruptBatchError.
    """
    data, starts = scan.data, scan.starts
    base_timestamp = header.base_timestamp
    attributes = header.attributes
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp = header.max_timestamp
    else:
        max_timestamp = base_timestamp + _timestamp_delta_max(scan, starts, kept)
    if new_horizon_ms is None:
        records = b"".join([data[start:end] for start, end in _stretches(starts, kept)])
    else:
        shift = base_timestamp - new_horizon_ms
        records = b"".join([_shifted(data, starts[i], starts[i + 1], shift) for i in kept])
        attributes |= DELETE_HORIZON_MASK
        base_timestamp = new_horizon_ms
    if header.is_compressed:
        records = compress(header.codec, records)
    return _assemble(header, records, len(kept), attributes, base_timestamp, max_timestamp)


def _stretches(starts: Sequence[int], kept: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return where the records with indexes `kept` are, as (start, end); neighbours are joined."""
    first = following = kept[0]
    if kept[-1] - first == len(kept) - 1:
        yield starts[first], starts[kept[-1] + 1]
        return
    for index in kept:
        if index != following:
            yield starts[first], starts[following]
            first = index
        following = index + 1
    yield starts[first], starts[following]


def _timestamp_delta_max(scan: Scan, starts: Sequence[int], kept: Sequence[int]) -> int:
    """The greatest timestamp delta of the records of indexes `kept`."""
    data = scan.data
    deltas: list[int] = []
    done = 0
    for run in scan.runs:
        if run.timestamp_width > 1:
            continue
        start = bisect_left(kept, run.first, done)
        end = bisect_left(kept, run.first + run.length, start)
        if end == start:
            continue
        deltas += [timestamp_delta(data, starts[i])[0] for i in kept[done:start]]
        column = run.column(data, run.timestamp_at)
        if end - start < run.length:
            column = bytes([column[i - run.first] for i in kept[start:end]])
        deltas.append(_greatest(column))
        done = end
    deltas += [timestamp_delta(data, starts[i])[0] for i in kept[done:]]
    return max(deltas)


def _greatest(column: bytes) -> int:
    """The greatest of these varints of one byte; those that are odd are negative."""
    positive = column.translate(None, _ODD)
    return max(positive) >> 1 if positive else -1 - (min(column) >> 1)


def _shifted(data: bytes, start: int, end: int, shift: int) -> bytes:
    """The record from `start` to `end` with another timestamp delta."""
    delta, at, rest = timestamp_delta(data, start)
    body = data[at - 1 : at] + _encode_signed(delta + shift) + data[rest:end]
    return encode_varint(len(body)) + body


def _encode_signed(value: int) -> bytes:
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _assemble(
    header: BatchHeader,
    records: bytes,
    count: int,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
) -> bytearray:
    batch = bytearray(HEADER_SIZE_BYTES)
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES + len(records),
        header.partition_leader_epoch,
        header.magic,
        0,
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        count,
    )
    batch += records
    set_crc(batch, 0)
    return batch

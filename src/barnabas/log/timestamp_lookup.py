"""Finding offsets by time, exact to the record.

The time index gives a place from which on to look; batches there are skipped by the greatest
timestamp in their header, and the first that reaches far enough is decoded. Source: Kafka's
UnifiedLog.fetchOffsetByTimestamp; KIP-33, 79, 734.
"""

import logging
from typing import NamedTuple

from barnabas.log.batch_walk import read_batch
from barnabas.log.errors import CorruptIndexError
from barnabas.log.log_state import LogState
from barnabas.log.segment import Segment
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    check_crc,
    patch,
)
from barnabas.protocol.records.records import decode_records

telemetry = logging.getLogger(__name__)


class FoundOffset(NamedTuple):
    """A record: its timestamp (ms), its offset, and the epoch of the leader that took it."""

    timestamp: int
    offset: int
    leader_epoch: int


LookedUp = FoundOffset | ErrorCode | None
"""What a look-up ends with: a record, None where there is none, or why it cannot be told."""


def find_by_timestamp(log: LogState, timestamp: int, end_offset: int) -> FoundOffset | None:
    """The first record before `end_offset` whose timestamp is at or after `timestamp`."""
    for segment in log.segments:
        if segment.base_offset >= end_offset:
            return None
        if segment.size_bytes and segment.load_max_timestamp() >= timestamp:
            found = _find_in(log, segment, timestamp)
            if found is not None:
                return found if found.offset < end_offset else None
    return None


def _find_in(log: LogState, segment: Segment, timestamp: int) -> FoundOffset | None:
    try:
        return _look_up(log, segment, timestamp)
    except DecodeError as error:
        telemetry.error("%s is damaged: %s", segment.files.log_path, error)
        return None


def _look_up(log: LogState, segment: Segment, timestamp: int) -> FoundOffset | None:
    try:
        segment.check_indexes()
        indexed_offset = segment.files.time_index.lookup(timestamp - 1)[1]
        return _scan(log, segment, max(indexed_offset, log.log_start_offset), timestamp)
    except (CorruptIndexError, CorruptBatchError):
        segment.rebuild_indexes()
        return _scan(log, segment, segment.base_offset, timestamp)


def _scan(log: LogState, segment: Segment, from_offset: int, timestamp: int) -> FoundOffset | None:
    start_offset, end_offset = log.log_start_offset, log.end_offset_of(segment)
    before: tuple[int, BatchHeader] | None = None
    for place, header, is_placed in segment.walk_from(from_offset):
        if header.max_timestamp < timestamp or header.last_offset < start_offset:
            before = place, header
            continue
        batch = bytearray(read_batch(segment.file(), place, header))
        if not check_crc(batch, 0, header) or header.next_offset > end_offset:
            raise CorruptBatchError(f"the batch at {place} fails its CRC, or is misplaced")
        # It is the batch before that is wrong about its end if that fails its CRC.
        if not is_placed and (before is None or _is_intact(segment, *before)):
            patch(batch, 0, header.base_offset, header.partition_leader_epoch)
        for record in decode_records(batch):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return FoundOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def _is_intact(segment: Segment, place: int, header: BatchHeader) -> bool:
    return check_crc(read_batch(segment.file(), place, header), 0, header)


def find_max_timestamp(log: LogState, end_offset: int) -> FoundOffset | None:
    """The first record with the greatest timestamp of the log (KIP-734).

    None if the log is empty, has no timestamps, or that record is not before `end_offset`.
    """
    greatest = NO_TIMESTAMP
    where: Segment | None = None
    for segment in log.segments:
        if segment.size_bytes and segment.load_max_timestamp() > greatest:
            greatest = segment.load_max_timestamp()
            where = segment
    if where is None:
        return None
    found = _find_in(log, where, greatest)
    return found if found is not None and found.offset < end_offset else None

"""Finding offsets by time, exact to the record.

The time index gives a place from which on to look; batches there are skipped by the greatest
timestamp in their header, and those that reach far enough are looked through. A batch of a few
kilobytes may decompress to 128 MB, and headers may lie, so a look-up is a generator of steps.
Between two of them the log may change: no file is held over a pause, and segments that were
replaced or truncated during a pause are read again. Small look-ups end at once, others later, in
the node's turns. Source: Kafka's
UnifiedLog.fetchOffsetByTimestamp; KIP-33, 79, 734.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.node.log.batch_walk import read_batch
from barnabas.node.log.errors import CorruptIndexError, LogDirFailure
from barnabas.node.log.log_state import LogState
from barnabas.node.log.results import FoundOffset, LookedUp
from barnabas.node.log.segment import Segment
from barnabas.node.log.turns import Begun, Steps
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    TimestampType,
    check_crc,
    codec_of,
    read_header,
)
from barnabas.protocol.records.compression import DECOMPRESSED_SIZE_BYTES_MAX
from barnabas.protocol.records.decompressing import (
    PIECE_SIZE_BYTES,
    Aside,
    Budget,
    decompress_in_pieces,
)
from barnabas.protocol.records.record_finder import RecordFinder

STEP_SIZE_BYTES: Final = PIECE_SIZE_BYTES
"""Looked at between two pauses, with what pieces, records and headers cost besides."""
FEED_SIZE_BYTES: Final = 8 * 1024
PIECE_COST_BYTES: Final = 1024
RECORD_COST_BYTES: Final = 32
HEADER_COST_BYTES: Final = 64

IsWanted = Callable[[], bool]

telemetry = logging.getLogger(__name__)


class _ReplacedError(Exception):
    """The segment is no part of the log any more, or the log is truncated."""


class _Effort:
    """The work that a look-up has done since its last pause."""

    __slots__ = ("_size_bytes", "pauses")

    def __init__(self) -> None:
        self._size_bytes = 0
        self.pauses = 0

    def add(self, size_bytes: int) -> bool:
        """Return whether it is time for a pause; then the caller makes one."""
        self._size_bytes += size_bytes
        if self._size_bytes < STEP_SIZE_BYTES:
            return False
        self.note_pause()
        return True

    def note_pause(self) -> None:
        """The caller makes a pause."""
        self._size_bytes = 0
        self.pauses += 1


class _Wanted(NamedTuple):
    timestamp: int
    end_offset: int


def find_by_timestamp(log: LogState, timestamp: int, end_offset: int) -> Steps[FoundOffset | None]:
    """The first record before `end_offset` whose timestamp is at or after `timestamp`.

    Raises LogDirFailure if the log is closed during the look-up.
    """
    effort, wanted = _Effort(), _Wanted(timestamp, end_offset)
    seen_offset = 0
    truncation_count = log.truncation_count
    while True:
        if log.truncation_count != truncation_count:
            truncation_count, seen_offset = log.truncation_count, 0
        segment = _reaching(log, wanted, seen_offset)
        if segment is None:
            return None
        segment_end = log.end_offset_of(segment)
        try:
            result = yield from _find_in(log, segment, wanted, effort)
        except _ReplacedError:
            continue
        if result is None:
            seen_offset = segment_end
        elif result.offset >= log.log_start_offset:  # else it was deleted during a pause
            return result if result.offset < end_offset else None


def find_max_timestamp(log: LogState, end_offset: int) -> Steps[FoundOffset | None]:
    """The first record with the greatest timestamp of the log (KIP-734).

    None if the log is empty, has no timestamps, or that record is not before `end_offset`. Raises
    LogDirFailure if the log is closed during the look-up.
    """
    effort = _Effort()
    while True:
        greatest = NO_TIMESTAMP
        where: Segment | None = None
        for segment in log.segments:
            if segment.size_bytes and segment.load_max_timestamp() > greatest:
                greatest = segment.load_max_timestamp()
                where = segment
        if where is None:
            return None
        try:
            result = yield from _find_in(log, where, _Wanted(greatest, end_offset), effort)
        except _ReplacedError:
            continue
        if result is None or result.offset >= end_offset:
            return None
        if result.offset >= log.log_start_offset:  # else it was deleted during a pause
            return result


def _reaching(log: LogState, wanted: _Wanted, seen_offset: int) -> Segment | None:
    """The first segment with a timestamp that is late enough, and offsets from `seen_offset` on."""
    for segment in log.segments:
        if segment.base_offset >= wanted.end_offset:
            return None
        if (
            segment.size_bytes
            and (seen_offset == 0 or log.end_offset_of(segment) > seen_offset)
            and segment.load_max_timestamp() >= wanted.timestamp
        ):
            return segment
    return None


def _find_in(
    log: LogState, segment: Segment, wanted: _Wanted, effort: _Effort
) -> Steps[FoundOffset | None]:
    try:
        return (yield from _look_up(log, segment, wanted, effort))
    except DecodeError as error:
        telemetry.error("%s is damaged: %s", segment.files.log_path, error)
        return None


def _look_up(
    log: LogState, segment: Segment, wanted: _Wanted, effort: _Effort
) -> Steps[FoundOffset | None]:
    try:
        segment.check_indexes()
        indexed_offset = segment.files.time_index.lookup(wanted.timestamp - 1)[1]
        from_offset = max(indexed_offset, log.log_start_offset)
        return (yield from _scan(log, segment, from_offset, wanted, effort))
    except (CorruptIndexError, CorruptBatchError):
        segment.rebuild_indexes()
        return (yield from _scan(log, segment, segment.base_offset, wanted, effort))


def _scan(
    log: LogState, segment: Segment, from_offset: int, wanted: _Wanted, effort: _Effort
) -> Steps[FoundOffset | None]:
    """Look at the batches from `from_offset` on. Raises CorruptBatchError and _ReplacedError."""
    seen_offset = 0
    while True:
        start_offset, next_offset = max(log.log_start_offset, seen_offset), 0
        before: tuple[int, BatchHeader] | None = None
        for place, header, is_placed in segment.walk_from(from_offset):
            next_offset = header.next_offset
            if header.max_timestamp < wanted.timestamp or header.last_offset < start_offset:
                if effort.add(HEADER_COST_BYTES):
                    yield from _pause(log, segment)
                    break
                before = place, header
                continue
            batch = read_batch(segment.file(), place, header)
            if not check_crc(batch, 0, header) or next_offset > log.end_offset_of(segment):
                raise CorruptBatchError(f"the batch at {place} fails its CRC, or is misplaced")
            # It is the batch before that is wrong about its end if that fails its CRC.
            if is_placed or not (before is None or _is_intact(segment, *before)):
                header = header._replace(base_offset=read_header(batch).base_offset)
            pauses = effort.pauses
            result = yield from _search(
                log, segment, batch, header, wanted.timestamp, start_offset, effort
            )
            if result is not None:
                return result
            if effort.pauses != pauses:
                break
            before = place, header
        else:
            return None
        # The walk is over with the pause: what is left is looked for in the log as it is now.
        if next_offset <= seen_offset or next_offset >= wanted.end_offset:
            return None
        from_offset = seen_offset = next_offset


def _search(
    log: LogState,
    segment: Segment,
    batch: bytes,
    header: BatchHeader,
    timestamp: int,
    start_offset: int,
    effort: _Effort,
) -> Steps[FoundOffset | None]:
    """Look through one batch, which is in memory. Raises as `_scan` does."""
    is_by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    finder = RecordFinder(
        header.record_count,
        timestamp_min=None if is_by_broker else timestamp - header.base_timestamp,
        offset_min=start_offset - header.base_offset,
    )
    body, budget = memoryview(batch)[HEADER_SIZE_BYTES:], Budget(DECOMPRESSED_SIZE_BYTES_MAX)
    for step in decompress_in_pieces(codec_of(header.attributes), body, budget):
        piece: bytes | None
        if isinstance(step, bytes):
            piece = step
        else:
            effort.note_pause()
            piece = yield from _aside(log, segment, step)
        if effort.add(PIECE_COST_BYTES):
            yield from _pause(log, segment)
        for start in range(0, len(piece), FEED_SIZE_BYTES):
            index = finder.index
            result = finder.feed(piece[start : start + FEED_SIZE_BYTES])
            if result is not None:
                return FoundOffset(
                    header.max_timestamp
                    if is_by_broker
                    else header.base_timestamp + result.timestamp_delta,
                    header.base_offset + result.offset_delta,
                    header.partition_leader_epoch,
                )
            if effort.add(FEED_SIZE_BYTES + (finder.index - index) * RECORD_COST_BYTES):
                yield from _pause(log, segment)
    finder.finish()
    return None


def _pause(log: LogState, segment: Segment) -> Steps[None]:
    """Raises LogDirFailure and _ReplacedError if the log changed during the pause."""
    truncation_count = log.truncation_count
    yield None
    _check_unchanged(log, segment, truncation_count)


def _aside(log: LogState, segment: Segment, aside: Aside) -> Steps[bytes]:
    truncation_count = log.truncation_count
    try:
        piece = yield aside
    except CorruptBatchError:
        _check_unchanged(log, segment, truncation_count)
        raise
    _check_unchanged(log, segment, truncation_count)
    assert piece is not None
    return piece


def _check_unchanged(log: LogState, segment: Segment, truncation_count: int) -> None:
    log.check_online()
    if (
        log.truncation_count != truncation_count
        or log.segments[log.segment_index(segment.base_offset)] is not segment
    ):
        raise _ReplacedError


def _is_intact(segment: Segment, place: int, header: BatchHeader) -> bool:
    return check_crc(read_batch(segment.file(), place, header), 0, header)


def always() -> bool:
    """The caller waits, however long it takes."""
    return True


def look_up(
    log: LogState, steps: Steps[FoundOffset | None], is_wanted: IsWanted
) -> LookedUp | Promise[LookedUp]:
    """Return the result of `steps`, or a promise if they do not fit into this turn of the event
    loop.

    Raises LogDirFailure; a promise has KAFKA_STORAGE_ERROR instead.
    """
    guarded = _guarded(log, steps)
    begun = log.log_directory.turns.begin(guarded)
    if not isinstance(begun, Begun):
        return begun
    promise: Promise[LookedUp] = Promise()
    log.log_directory.turns.keep(
        asyncio.ensure_future(_look_up_later(log, guarded, begun, is_wanted, promise))
    )
    return promise


async def _look_up_later(
    log: LogState,
    steps: Steps[FoundOffset | None],
    begun: Begun,
    is_wanted: IsWanted,
    promise: Promise[LookedUp],
) -> None:
    directory = log.log_directory
    result: LookedUp
    try:
        result = await directory.turns.run(steps, directory.clock, is_wanted, begun.aside)
    except LogDirFailure:
        result = ErrorCode.KAFKA_STORAGE_ERROR
    except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
        telemetry.exception("a look-up by time in %s failed", log.topic_partition)
        result = ErrorCode.UNKNOWN_SERVER_ERROR
    promise.settle(result)


def _guarded(log: LogState, steps: Steps[FoundOffset | None]) -> Steps[FoundOffset | None]:
    try:
        return (yield from steps)
    except OSError as error:
        raise log.fail(error) from error

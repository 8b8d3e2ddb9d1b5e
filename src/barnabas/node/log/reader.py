"""Reading a log for a fetch: from memory at its end, else as a range of a segment's file.

A read begins at the batch that holds the asked offset, ends at a batch, and never leaves a
segment. Where it ended is remembered for a few readers, so that one who goes on from there costs
no look-up in the index.
"""

import logging

from barnabas.base.disk import Buffer, FileRange
from barnabas.node.log.batch_walk import MisplacedBatchError, RangeEnd, walk_headers
from barnabas.node.log.log_state import LogState
from barnabas.node.log.results import ReadResult
from barnabas.node.log.segment import Segment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import CorruptBatchError

telemetry = logging.getLogger(__name__)

HINTS_MAX = 8
SMALL_READ_BYTES = 4096
"""Up to here one read into memory is cheaper than what a file range costs the sender."""


def read_segments(
    log: LogState, offset: int, max_bytes: int, max_offset: int, min_one_batch: bool
) -> ReadResult:
    """Read what is not in memory (any more); CORRUPT_MESSAGE where no batch can be found.

    Raises OSError.
    """
    try:
        return _read(log, offset, max_bytes, max_offset, min_one_batch)
    except CorruptBatchError as error:
        telemetry.error("%s: offset %d cannot be read: %s", log.topic_partition, offset, error)
        return ReadResult(ErrorCode.CORRUPT_MESSAGE, [], 0, offset)


def _read(
    log: LogState, offset: int, max_bytes: int, max_offset: int, min_one_batch: bool
) -> ReadResult:
    hint = log.read_hints.pop(offset, None)
    if hint is not None and hint[0] in log.segments:
        segment, position = hint
        first_size = None
    else:
        start = _find(log, offset)
        if start is None:
            return ReadResult(ErrorCode.NONE, [], 0, offset)
        segment, position, first_size = start
    end = segment.size_bytes
    if max_offset < log.end_offset_of(segment):
        located = segment.locate(max_offset)
        end = located[0] if located is not None else end
    limit = min(end, position + max_bytes)
    last: RangeEnd | None
    if limit < segment.size_bytes:
        last = segment.last_whole_batch(position, limit)
    elif segment is log.active or segment.is_end_sound(log.end_offset_of(segment)):
        last = RangeEnd(limit, log.end_offset_of(segment), False)
    else:
        last = segment.last_whole_batch(position, limit - 1)
    if last is None or last.position <= position:
        if not min_one_batch:
            return ReadResult(ErrorCode.NONE, [], 0, offset)
        if first_size is None:
            first_size = _size_at(segment, position)
        last = segment.last_whole_batch(position, min(end, position + first_size))
        if last is None or last.position <= position:
            return ReadResult(ErrorCode.NONE, [], 0, offset)
    stop, next_offset, is_followed = last
    size = stop - position
    if is_followed and stop < segment.size_bytes:
        if len(log.read_hints) >= HINTS_MAX:
            log.read_hints.clear()
        log.read_hints[next_offset] = (segment, stop)
    part: Buffer | FileRange
    file = segment.file()
    if size <= SMALL_READ_BYTES:
        part = file.pread(size, position)
        if len(part) != size:
            raise CorruptBatchError(f"{segment.files.log_path} ends before {stop}")
    else:
        part = FileRange(file, position, size)
    return ReadResult(ErrorCode.NONE, [part], size, next_offset)


def _find(log: LogState, offset: int) -> tuple[Segment, int, int] | None:
    """Segment, position and size of the first batch that ends at or after `offset`.

    Compaction may have left the rest of a segment, or whole segments, without it.
    """
    segments = log.segments
    for index in range(log.segment_index(offset), len(segments)):
        location = segments[index].locate(offset)
        if location is not None:
            position, header = location
            if header.next_offset > log.end_offset_of(segments[index]):
                raise MisplacedBatchError(offset, location)  # no batch comes after it to tell
            return segments[index], position, header.size_bytes
    return None


def _size_at(segment: Segment, position: int) -> int:
    for _, header in walk_headers(segment.file(), position, segment.size_bytes):
        return header.size_bytes
    return 0

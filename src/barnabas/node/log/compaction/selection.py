"""Selection of the log to clean next, and of its range.

Only sealed segments that are on the medium, below the last stable offset (hence the high
watermark), and whose records are all older than `min.compaction.lag.ms`. A log is worth it when
more than `min.cleanable.dirty.ratio` of its bytes are dirty, or something in it is older than
`max.compaction.lag.ms`. Source: Kafka's LogCleanerManager and LogToClean.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from barnabas.node.log.compaction.job import Source
from barnabas.node.log.config import LONG_MAX, LogConfig
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.segment import RELATIVE_OFFSET_MAX, Segment, size_without_full_indexes

telemetry = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogToClean:
    """A log with dirty bytes: [start_offset, end_offset) is to be read into the map."""

    log: PartitionLog
    start_offset: int
    end_offset: int
    """Base offset of the first segment that is left alone."""
    segments: list[Segment]
    """All that lie before it."""
    clean_bytes: int
    dirty_bytes: int
    delay_ms: int
    """How late the log is by `max.compaction.lag.ms`; 0 if it is in time."""

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes)

    @property
    def is_worth_it(self) -> bool:
        if self.delay_ms > 0 and self.dirty_bytes > 0:
            return True
        return self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def measure(log: PartitionLog, now_ms: int) -> LogToClean | None:
    """Measure the part of a log that can be cleaned now; None if it is empty. Raises OSError."""
    start_offset = first_dirty_offset(log)
    segments = log.segments
    if len(segments) == 1:  # as most logs of a node with many; the active one is left alone
        return None
    limit = max(start_offset, _first_uncleanable_offset(log, start_offset, now_ms))
    end = log.segment_index(limit)
    end_offset = segments[end].base_offset
    start = min(log.segment_index(start_offset), end)
    clean_bytes = sum(
        segment.size_bytes for segment in segments if segment.base_offset < start_offset
    )
    dirty_bytes = sum(segment.size_bytes for segment in segments[start:end])
    if not clean_bytes + dirty_bytes:
        return None
    return LogToClean(
        log,
        start_offset,
        end_offset,
        segments[:end],
        clean_bytes,
        dirty_bytes,
        _delay_ms(log, segments[start:-1], now_ms),
    )


def first_dirty_offset(log: PartitionLog) -> int:
    """The end of the last round, or the log start if that offset is no longer valid."""
    start_offset = log.log_start_offset
    checkpoint = log.cleaned_offset
    if checkpoint is None:
        return start_offset
    if checkpoint > log.log_end_offset:
        telemetry.warning(
            "%s: the cleaner's checkpoint %d is beyond the log's end %d: cleaning starts at %d",
            log.topic_partition,
            checkpoint,
            log.log_end_offset,
            start_offset,
        )
        return start_offset
    return max(checkpoint, start_offset)


def _first_uncleanable_offset(log: PartitionLog, start_offset: int, now_ms: int) -> int:
    limit = min(log.last_stable_offset, log.active.base_offset, log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments[log.segment_index(start_offset) : -1]:
            if segment.load_max_timestamp() > now_ms - lag_ms:
                return min(limit, segment.base_offset)
    return limit


def _delay_ms(log: PartitionLog, dirty: Iterable[Segment], now_ms: int) -> int:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == LONG_MAX:
        return 0
    timestamps = [segment.load_first_timestamp() for segment in dirty]
    earliest = min((stamp for stamp in timestamps if stamp > 0), default=LONG_MAX)
    return max(0, now_ms - lag_ms - earliest)


def group_segments(
    segments: Sequence[Segment], end_offset: int, config: LogConfig
) -> list[list[Segment]]:
    """Segments that follow each other, by groups that one segment can hold.

    Bounds are its size, that of its indexes, and the range of 32-bit relative offsets;
    `end_offset` is where the last of `segments` ends.
    """
    size_max = min(
        config.segment_bytes,
        size_without_full_indexes(config.index_entries_max, config.index_interval_bytes),
    )
    groups: list[list[Segment]] = []
    size = 0
    ends = [following.base_offset for _, following in pairwise(segments)] + [end_offset]
    for segment, end in zip(segments, ends, strict=True):
        size += segment.size_bytes
        if (
            groups
            and size <= size_max
            and end - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size_bytes
    return groups


def sources_of(segments: Iterable[Segment]) -> list[Source]:
    """The segments as the worker knows them."""
    return [Source(segment.base_offset, segment.size_bytes) for segment in segments]

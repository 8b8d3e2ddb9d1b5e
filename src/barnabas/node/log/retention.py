"""Removal of data from a log: old segments, deleted records, truncated ends.

Files are renamed to `.deleted` first and removed after `file.delete.delay.ms`, as Kafka does.
Source: Kafka's UnifiedLog.deleteOldSegments, truncateTo and truncateFullyAndStartAt.
"""

import logging
from collections.abc import Sequence

from barnabas.node.log.index.txn_index import truncate_aborted
from barnabas.node.log.log_state import LogState
from barnabas.node.log.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, offset_file, parse_offset
from barnabas.node.log.producers.loading import load_producers
from barnabas.node.log.segment import Segment

telemetry = logging.getLogger(__name__)


def apply(log: LogState, now_ms: int, high_watermark: int) -> int:
    """Drop segments below the log start, over `retention.bytes`, older than `retention.ms`."""
    config = log.config
    count = _drop_first(log, _count_below_start(log, high_watermark), "below the log start offset")
    if config.is_deleted:
        if config.retention_bytes >= 0:
            count += _drop_first(
                log, _count_over_size(log, high_watermark), "retention.bytes is exceeded"
            )
        if config.retention_ms >= 0:
            count += _drop_first(
                log, _count_over_age(log, now_ms, high_watermark), "retention.ms is over"
            )
    return count


def _count_below_start(log: LogState, high_watermark: int) -> int:
    limit = min(log.log_start_offset, high_watermark)
    return sum(segment.base_offset <= limit for segment in log.segments[1:])


def _count_over_size(log: LogState, high_watermark: int) -> int:
    excess = log.size_bytes - log.config.retention_bytes
    count = 0
    for segment in log.segments:
        if excess < segment.size_bytes or not _may_go(log, segment, high_watermark):
            break
        excess -= segment.size_bytes
        count += 1
    return count


def _count_over_age(log: LogState, now_ms: int, high_watermark: int) -> int:
    count = 0
    for segment in log.segments:
        if not _may_go(log, segment, high_watermark):
            break
        newest = segment.load_max_timestamp()
        if newest < 0:
            newest = log.log_directory.disk.modified_ms(segment.files.log_path)
        if now_ms - newest <= log.config.retention_ms:
            break
        count += 1
    return count


def _may_go(log: LogState, segment: Segment, high_watermark: int) -> bool:
    return segment.size_bytes > 0 and log.end_offset_of(segment) <= high_watermark


def _drop_first(log: LogState, count: int, reason: str) -> int:
    """Drop the first `count` segments; the last of all is replaced by an empty one."""
    if not count:
        return 0
    if count == len(log.segments):
        log.roll()
    dropped = log.segments[:count]
    del log.segments[:count]
    telemetry.info(
        "%s: dropping %d segments up to offset %d: %s",
        log.topic_partition,
        count,
        log.segments[0].base_offset,
        reason,
    )
    raise_log_start(log, log.segments[0].base_offset)
    remove_segments(log, dropped)
    return count


def raise_log_start(log: LogState, offset: int) -> None:
    """Let the log start at `offset`, if it does not start later already."""
    if offset > log.log_start_offset:
        log.log_start_offset = offset
        log.epochs.truncate_from_start(offset)


def remove_segments(log: LogState, segments: Sequence[Segment]) -> None:
    """Rename the files of segments that are out of the log already, and remove them later."""
    disk = log.log_directory.disk
    log.read_hints.clear()
    for segment in segments:
        segment.files.release()
        for path in (
            segment.files.log_path,
            segment.files.offset_index.path,
            segment.files.time_index.path,
            segment.files.txn_index_path,
            offset_file(log.directory, segment.base_offset, SNAPSHOT_SUFFIX),
        ):
            log.flusher.forget(path)
            if disk.exists(path):
                disk.rename(path, path + DELETED_SUFFIX)
                log.log_directory.delete_later(
                    path + DELETED_SUFFIX, log.config.file_delete_delay_ms
                )
    log.flusher.unsynced_dirs.add(log.directory)


def truncate_to(log: LogState, offset: int) -> None:
    """Drop `offset` and all after it."""
    if log.gap_offset is not None and offset <= log.gap_offset:
        log.gap_offset = None
    if offset >= log.log_end_offset:
        log.epochs.truncate_from_end(log.log_end_offset)
        return
    if offset < log.segments[0].base_offset:
        truncate_fully_and_start_at(log, offset)
        return
    telemetry.info("%s: truncating from %d to %d", log.topic_partition, log.log_end_offset, offset)
    log.truncation_count += 1
    log.tail.clear(offset)
    _lower_recovery_point(log, offset)
    keep = log.segment_index(offset) + 1
    dropped = log.segments[keep:]
    del log.segments[keep:]
    remove_segments(log, dropped)
    log.active = log.segments[-1]
    end_offset = log.active.truncate_to(offset)
    if end_offset < offset:
        offset = end_offset
        log.tail.clear(offset)
        _lower_recovery_point(log, offset)
    directory = log.log_directory
    truncate_aborted(directory.disk, directory.files, log.active.files.txn_index_path, offset)
    _end_at(log, offset)
    log.epochs.truncate_from_end(offset)
    rebuild_producers(log)


def truncate_fully_and_start_at(log: LogState, offset: int) -> None:
    """Drop everything and start an empty log at `offset`."""
    log.gap_offset = None
    telemetry.info("%s: restarting the log at offset %d", log.topic_partition, offset)
    log.truncation_count += 1
    log.tail.clear(offset)
    _lower_recovery_point(log, offset)
    dropped, log.segments = log.segments, []
    remove_segments(log, dropped)
    drop_snapshots(log, -1)
    directory = log.log_directory
    log.active = Segment.create(directory.files, log.directory, offset, directory.clock.now_ms())
    log.segments.append(log.active)
    log.log_start_offset = offset
    _end_at(log, offset)
    log.recovery_point = offset
    log.high_watermark = offset
    log.epochs.clear()
    log.producers.clear()
    log.producers.snapshot_offset = 0


def _lower_recovery_point(log: LogState, offset: int) -> None:
    """Write the checkpoints before anything else is written at `offset`.

    Recovery would otherwise trust what is appended there and never reached the medium, and
    compaction take it for clean. Clean records lie before the recovery point.
    """
    if offset < log.recovery_point:
        log.recovery_point = offset
        if log.cleaned_offset is not None:
            log.cleaned_offset = min(log.cleaned_offset, offset)
        log.log_directory.renew_checkpoint()


def _end_at(log: LogState, offset: int) -> None:
    log.log_end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.high_watermark = min(log.high_watermark, offset)


def drop_snapshots(log: LogState, above: int) -> None:
    """Remove the producer snapshots of offsets above `above`."""
    disk = log.log_directory.disk
    for name in disk.list(log.directory):
        offset = parse_offset(name, SNAPSHOT_SUFFIX)
        if offset is not None and offset > above:
            path = f"{log.directory}/{name}"
            disk.remove(path)
            log.log_directory.files.forget(path)
            log.flusher.forget(path)


def rebuild_producers(log: LogState) -> None:
    """Bring the producers' state to what the log holds now."""
    drop_snapshots(log, log.log_end_offset)
    load_producers(log, log.log_end_offset)

"""Opening a log: a new one, one that was closed cleanly, or one to be recovered.

Source: Kafka's LogLoader.
"""

import logging
from collections.abc import Iterable
from itertools import pairwise

from barnabas.base.disk import Disk
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.node.log.batch_walk import walk_headers
from barnabas.node.log.checkpoints import read_epochs, read_topic_id
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import CorruptCheckpointError
from barnabas.node.log.leader_epochs import LeaderEpochs
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    KRAFT_SNAPSHOT_DELETED_SUFFIX,
    LEADER_EPOCH_FILE,
    LOG_SUFFIX,
    PARTITION_METADATA_FILE,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    directory_name,
    parse_offset,
)
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.producers.loading import drop_stray_snapshots, load_producers
from barnabas.node.log.recovery import RecoveryReport, first_damaged_txn_index, recover
from barnabas.node.log.retention import remove_segments
from barnabas.node.log.segment import Segment
from barnabas.protocol.records.batch import CorruptBatchError

telemetry = logging.getLogger(__name__)

PRODUCER_ID_EXPIRATION_MS_DEFAULT = 86_400_000
UNINDEXED_BYTES_MAX = 1 << 20
"""A segment that was never flushed may be without indexes; about here the first is written."""


def create_log(
    log_directory: LogDirectory,
    topic_partition: TopicPartition,
    topic_id: Uuid,
    config: LogConfig,
    *,
    start_offset: int = 0,
    name: str | None = None,
) -> PartitionLog:
    """A new, empty log. Durable with its first flush. Raises LogDirFailure.

    `name` is that of its directory, where it is not `<topic>-<partition>` (yet).
    """
    log_directory.check_online()
    directory = f"{log_directory.path}/{name or directory_name(topic_partition)}"
    log = PartitionLog(log_directory, directory, topic_partition, topic_id, config)
    try:
        is_anew = log_directory.disk.exists(directory)
        log_directory.disk.make_dirs(directory)
        _start_empty(log, start_offset, is_anew=is_anew)
    except OSError as error:
        raise log_directory.fail(error) from error
    log.flusher.is_new = True
    log.assign_topic_id(topic_id)
    log.epochs.is_dirty = True
    return log


def open_log(
    log_directory: LogDirectory,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    is_clean: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = 0,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS_DEFAULT,
    may_have_gaps: bool = True,
    name: str | None = None,
) -> tuple[PartitionLog, RecoveryReport]:
    """Open the log in `<log dir>/<topic>-<partition>` or `name`, recovering it unless `is_clean`.

    The three offsets come from the checkpoints. A log without partition.metadata has the zero
    topic id. Recovery cuts a log that has a gap where it may have none. Raises LogDirFailure.
    """
    log_directory.check_online()
    try:
        return _open(
            log_directory,
            topic_partition,
            config,
            is_clean,
            recovery_point,
            log_start_offset,
            high_watermark,
            producer_id_expiration_ms,
            may_have_gaps,
            name or directory_name(topic_partition),
        )
    except OSError as error:
        raise log_directory.fail(error) from error


def _open(
    log_directory: LogDirectory,
    topic_partition: TopicPartition,
    config: LogConfig,
    is_clean: bool,
    recovery_point: int,
    log_start_offset: int,
    high_watermark: int,
    producer_id_expiration_ms: int,
    may_have_gaps: bool,
    name: str,
) -> tuple[PartitionLog, RecoveryReport]:
    disk = log_directory.disk
    directory = f"{log_directory.path}/{name}"
    report = RecoveryReport(topic_partition, directory, may_have_gaps=may_have_gaps)
    closed_at = report.closed_at = recovery_point if is_clean else 0
    try:
        topic_id = read_topic_id(disk, directory) or ZERO_UUID
    except CorruptCheckpointError:
        topic_id = ZERO_UUID
    log = PartitionLog(log_directory, directory, topic_partition, topic_id, config)
    finish_swaps(log_directory, directory, report)
    damaged = _load_segments(log, report)
    log.log_start_offset = max(log_start_offset, log.segments[0].base_offset if log.segments else 0)
    try:
        log.epochs = LeaderEpochs(read_epochs(disk, directory))
    except CorruptCheckpointError:
        log.epochs = LeaderEpochs()
        is_clean, recovery_point = False, 0  # the batches know their epochs
    if not log.segments:
        _start_empty(log, log.log_start_offset)
    if damaged is None:
        _find_gap(log, log.segments if is_clean else _synced(log, recovery_point), report)
        damaged = first_damaged_txn_index(log)
    if damaged is not None:
        is_clean, recovery_point = False, min(recovery_point, damaged)
    if is_clean:
        end_offset, doubtful_from = _end_of_closed(log, closed_at)
        if doubtful_from is not None:
            is_clean, recovery_point = False, doubtful_from
    if not is_clean:
        end_offset = recover(log, recovery_point, report)
    if end_offset < log.log_start_offset and not _is_start_doubtful(log, closed_at, end_offset):
        # Segments were lost; the start that was checkpointed must not go back.
        report.segments_dropped += len(log.segments)
        dropped, log.segments = log.segments, []
        remove_segments(log, dropped)
        log.epochs.clear()
        end_offset = log.log_start_offset
        _start_empty(log, end_offset, is_anew=True)
        log.flusher.unsynced_dirs.add(directory)
    log.active = log.segments[-1]
    log.log_end_offset = end_offset
    report.flushed_lost = max(report.flushed_lost, closed_at - end_offset)
    log.recovery_point = end_offset if is_clean else min(recovery_point, end_offset)
    log.high_watermark = min(max(high_watermark, log.log_start_offset), end_offset)
    log.tail.clear(end_offset)
    log.epochs.truncate_from_end(end_offset)
    log.epochs.truncate_from_start(log.log_start_offset)
    drop_stray_snapshots(log)
    if is_clean:
        log.flusher.is_new = end_offset == 0  # a clean end syncs no log that never held a record
        load_producers(log, end_offset, is_clean=True)
    else:
        log.take_snapshot(end_offset)
        # The previous process may not have synced the directory's names.
        log.flusher.unsynced_dirs.update((directory, log_directory.path))
        for name in (PARTITION_METADATA_FILE, LEADER_EPOCH_FILE):
            if disk.exists(f"{directory}/{name}"):
                log.flusher.unsynced_paths.add(f"{directory}/{name}")
    log.producers.expire(log_directory.clock.now_ms(), producer_id_expiration_ms)
    report.tell()
    return log, report


def _end_of_closed(log: PartitionLog, closed_at: int) -> tuple[int, int | None]:
    """The end of a log that was closed cleanly, and from where on it is to be scanned after all."""
    last = log.segments[-1]
    try:
        end_offset, epoch = last.end()
    except CorruptBatchError:
        return last.base_offset, last.base_offset
    log.epochs.truncate_from_end(end_offset)
    if epoch >= 0 and not 0 <= log.epochs.latest_epoch <= epoch:
        telemetry.error("%s: %s does not match its batches", log.directory, LEADER_EPOCH_FILE)
        log.epochs.clear()
        return end_offset, 0
    # It has not grown since. Without a checkpoint `closed_at` is 0.
    return end_offset, last.base_offset if 0 < closed_at < end_offset else None


def _is_start_doubtful(log: PartitionLog, closed_at: int, end_offset: int) -> bool:
    """Whether a start beyond the end is damage of the checkpoint: nothing is missing at the end.

    The log starts with its first segment then.
    """
    if not 0 < closed_at <= end_offset:
        return False
    telemetry.error(
        "%s: it cannot start at offset %d, since it ends at %d: that checkpoint is damaged",
        log.directory,
        log.log_start_offset,
        end_offset,
    )
    log.log_start_offset = log.segments[0].base_offset
    return True


def _start_empty(log: PartitionLog, offset: int, *, is_anew: bool = False) -> None:
    """Begin with an empty segment; `is_anew`: the directory may hold files of before."""
    log_directory = log.log_directory
    make = Segment.create if is_anew else Segment.begin
    log.active = make(log_directory.files, log.directory, offset, log_directory.clock.now_ms())
    log.segments.append(log.active)
    log.log_start_offset = log.log_end_offset = log.recovery_point = log.high_watermark = offset
    log.tail.clear(offset)
    log.producers.snapshot_offset = offset


def _load_segments(log: PartitionLog, report: RecoveryReport) -> int | None:
    """Make a segment of every `.log` file; rebuild its indexes if one of them is missing.

    Returns the base offset of the first that cannot even be walked, None if all can.
    """
    log_directory = log.log_directory
    disk, files = log_directory.disk, log_directory.files
    names = set(disk.list(log.directory))
    now_ms = log_directory.clock.now_ms()
    damaged = None
    for name in sorted(names):
        base_offset = parse_offset(name, LOG_SUFFIX)
        if base_offset is None:
            for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
                orphan = parse_offset(name, suffix)
                if orphan is not None and f"{orphan:020d}{LOG_SUFFIX}" not in names:
                    disk.remove(f"{log.directory}/{name}")
                    report.files_removed.append(name)
            continue
        path = f"{log.directory}/{name}"
        size_bytes = files.get(path).size()
        segment = Segment(
            files, log.directory, base_offset, size_bytes=size_bytes, created_ms=now_ms
        )
        log.segments.append(segment)
        stem = name.removesuffix(LOG_SUFFIX)
        has_indexes = (stem + INDEX_SUFFIX in names, stem + TIME_INDEX_SUFFIX in names)
        if not all(has_indexes):
            if any(has_indexes) or size_bytes > UNINDEXED_BYTES_MAX:
                report.indexes_rebuilt.append(base_offset)
            try:
                segment.rebuild_indexes(log.config.index_interval_bytes)
            except CorruptBatchError:
                damaged = base_offset if damaged is None else damaged
    return damaged


def _synced(log: PartitionLog, recovery_point: int) -> list[Segment]:
    """The segments that recovery leaves alone, and the one after them."""
    return log.segments[: log.segment_index(recovery_point) + 1] if log.segments else []


def _find_gap(log: PartitionLog, segments: list[Segment], report: RecoveryReport) -> None:
    """Look for the first segment that ends before the next begins: it was cut short.

    What lies behind is good, and perhaps all there is; so it stays until there is a leader to
    get everything from. The walk begins at the last entry of each segment's index: a short one.
    """
    for segment, following in pairwise(segments):
        try:
            end_offset = segment.next_offset()
        except CorruptBatchError:
            end_offset = _cut_torn_end(log, segment, report)
        if end_offset < following.base_offset and not log.config.is_compacted:
            log.gap_offset = end_offset
            report.flushed_lost = following.base_offset - end_offset
            telemetry.error(
                "%s: the records from offset %d to %d are gone",
                log.directory,
                end_offset,
                following.base_offset - 1,
            )
            return


def _cut_torn_end(log: PartitionLog, segment: Segment, report: RecoveryReport) -> int:
    """Let a segment end with its last whole batch; returns the offset after it."""
    end_offset, position = segment.base_offset, 0
    try:
        for place, header in walk_headers(segment.file(), 0, segment.size_bytes):
            position = place + header.size_bytes
            end_offset = header.next_offset
    except CorruptBatchError as error:
        report.cut_reason = str(error)
    report.bytes_cut += segment.size_bytes - position
    segment.file().truncate(position)
    segment.size_bytes = position
    segment.rebuild_indexes(log.config.index_interval_bytes)
    return end_offset


def finish_swaps(log_directory: LogDirectory, directory: str, report: RecoveryReport) -> None:
    """Remove temporary files, and complete a replacement of segments that a crash cut short.

    Compaction writes `.cleaned` files, renames them to `.swap`, then removes the segments that
    they replace and drops the suffix. Once all are `.swap` it is to be completed.
    """
    disk = log_directory.disk
    names = disk.list(directory)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    first_cleaned = min((_offset_of(name) for name in cleaned), default=None)
    swaps = []
    removed = list(cleaned)
    for name in names:
        if name.endswith(DELETED_SUFFIX) and not name.endswith(KRAFT_SNAPSHOT_DELETED_SUFFIX):
            removed.append(name)
        elif name.endswith(SWAP_SUFFIX):
            if first_cleaned is not None and _offset_of(name) >= first_cleaned:
                removed.append(name)
            else:
                swaps.append(name)
    _remove(disk, directory, removed, report)
    if not swaps:
        return
    start = min(map(_offset_of, swaps))
    end = max(_end_of_swap(log_directory, f"{directory}/{name}") for name in swaps)
    replaced = [
        name
        for name in disk.list(directory)
        if name.endswith(SEGMENT_SUFFIXES) and start <= _offset_of(name) < end
    ]
    _remove(disk, directory, replaced, report)
    for name in swaps:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")


def _end_of_swap(log_directory: LogDirectory, path: str) -> int:
    """The end offset of the segments that a `.log.swap` replaces (at least one); -1 for its
    indexes.
    """
    if not path.endswith(LOG_SUFFIX + SWAP_SUFFIX):
        return -1
    end = _offset_of(path.rpartition("/")[2]) + 1
    file = log_directory.disk.open(path)
    try:
        for _, header in walk_headers(file, 0, file.size()):
            end = header.next_offset
    except CorruptBatchError:
        return end
    finally:
        file.close()
    return end


def _offset_of(name: str) -> int:
    digits = name.partition(".")[0].partition("-")[0]
    return int(digits) if digits.isdigit() else -1


def _remove(disk: Disk, directory: str, names: Iterable[str], report: RecoveryReport) -> None:
    for name in names:
        disk.remove(f"{directory}/{name}")
        report.files_removed.append(name)

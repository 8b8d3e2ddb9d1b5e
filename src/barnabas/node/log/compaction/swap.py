"""Putting a cleaned segment in the place of those it was made of, on the event loop.

Only names change, in an order that lets a crash at any point be seen through at the next start:
`.cleaned` files are named `.swap`, then the old ones `.deleted`, and the suffix `.swap` is
dropped. As long as a `.cleaned` file is left nothing has happened; from then on the loader
finishes it (`log.loader.finish_swaps`). Open reads of an old file continue: its
descriptor stays until the last reader is done. Source: Kafka's LocalLog.replaceSegments.
"""

from collections.abc import Sequence

from barnabas.node.log.compaction.cleaned_segment import cleaned_path, remove_cleaned
from barnabas.node.log.compaction.job import GroupCleaned
from barnabas.node.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    offset_file,
)
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.segment import Segment


def is_still_there(log: PartitionLog, group: Sequence[Segment]) -> bool:
    """Return whether the log still has these segments, as it had when they were read."""
    if log.is_offline:
        return False
    start = log.segment_index(group[0].base_offset)
    there = log.segments[start : start + len(group)]
    return len(there) == len(group) and all(map(_is, there, group)) and group[-1] is not log.active


def _is(one: Segment, other: Segment) -> bool:
    return one is other


def discard(log: PartitionLog, cleaned: GroupCleaned) -> None:
    """Remove files that nobody will need. Raises OSError."""
    if cleaned.is_changed:
        remove_cleaned(log.log_directory.disk, log.directory, cleaned.base_offset)


def swap_in(log: PartitionLog, group: Sequence[Segment], cleaned: GroupCleaned) -> None:
    """Let the cleaned segment take the place of `group`. Raises OSError.

    On the medium once the log's directory is synced.
    """
    assert is_still_there(log, group)
    disk, directory = log.log_directory.disk, log.directory
    swaps = []
    for suffix in SEGMENT_SUFFIXES:
        path = cleaned_path(directory, cleaned.base_offset, suffix)
        if disk.exists(path):
            swap = path.removesuffix(CLEANED_SUFFIX) + SWAP_SUFFIX
            disk.rename(path, swap)
            swaps.append(swap)
    # Readers must not go on with what is in memory: the index of aborted transactions, which
    # tells them what to skip, is that of the cleaned files from now on.
    log.read_hints.clear()
    log.tail.drop_before(log.end_offset_of(group[-1]))
    for segment in group:
        _take_away(log, segment, is_snapshot_kept=segment is group[0])
    for swap in swaps:
        disk.rename(swap, swap.removesuffix(SWAP_SUFFIX))
    start = log.segment_index(cleaned.base_offset)
    log.segments[start : start + len(group)] = [
        Segment(
            log.log_directory.files,
            directory,
            cleaned.base_offset,
            size_bytes=cleaned.size_bytes,
            created_ms=group[0].created_ms,
        )
    ]
    log.flusher.unsynced_dirs.add(directory)


def _take_away(log: PartitionLog, segment: Segment, *, is_snapshot_kept: bool) -> None:
    """Rename a segment's files, to be removed later.

    The snapshot at the beginning of the group is still at the beginning of a segment.
    """
    disk = log.log_directory.disk
    segment.files.release()
    suffixes = SEGMENT_SUFFIXES if is_snapshot_kept else (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX)
    for suffix in suffixes:
        path = offset_file(log.directory, segment.base_offset, suffix)
        if disk.exists(path):
            if suffix == SNAPSHOT_SUFFIX:
                log.log_directory.files.forget(path)
            log.flusher.forget(path)
            disk.rename(path, path + DELETED_SUFFIX)
            log.log_directory.delete_later(path + DELETED_SUFFIX, log.config.file_delete_delay_ms)

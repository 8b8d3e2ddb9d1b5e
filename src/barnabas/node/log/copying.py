"""Filling a future log: the copy of a log that is to take its place from another directory.

What is copied is whole batches, with their offsets and epochs, as a follower takes them from its
leader. The source log keeps changing: its start moves, and it may be truncated. Of two
copies of a partition all is the same up to where the last epoch that both know ends in either, so
that is where the copy goes on from, also after a crash.
Source: Kafka's ReplicaAlterLogDirsThread; KIP-101, KIP-113.
"""

from barnabas.base.disk import FileRange
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.retention import raise_log_start
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_LEADER_EPOCH


class CopyError(Exception):
    """The log cannot be copied because it is damaged."""


def copy_some(current: PartitionLog, future: PartitionLog, max_bytes: int) -> int:
    """Bring `future` closer to `current` by a read; returns the bytes that were copied.

    At most `max_bytes`, but at least one batch. Raises LogDirFailure, and CopyError.
    """
    future.config = current.config
    _follow_truncation(current, future)
    _follow_start(current, future)
    copied = 0
    offset = future.log_end_offset
    if offset < current.log_end_offset:
        max_bytes = min(max_bytes, current.config.segment_bytes)
        result = current.read_local(offset, max_bytes, max_offset=current.log_end_offset)
        if result.error:
            raise CopyError(f"offset {offset} cannot be read: {result.error.name}")
        try:
            data = b"".join(
                part.read() if isinstance(part, FileRange) else part for part in result.parts
            )
        except OSError as error:
            raise current.fail(error) from error
        _append(future, data)
        copied = len(data)
    future.high_watermark = min(
        max(current.high_watermark, future.log_start_offset), future.log_end_offset
    )
    return copied


def is_caught_up(current: PartitionLog, future: PartitionLog) -> bool:
    """Return whether the copy holds all that there is."""
    return future.log_end_offset == current.log_end_offset


def _append(future: PartitionLog, data: bytes) -> None:
    offset = future.log_end_offset
    result = future.append_as_follower(data)
    if result.error is not ErrorCode.NONE:
        raise CopyError(result.message or result.error.name)
    if future.log_end_offset == offset:
        raise CopyError(f"there is no whole batch at or after offset {offset}")


def _follow_truncation(current: PartitionLog, future: PartitionLog) -> None:
    """Drop what `current` does not have (any more)."""
    while (epoch := future.epochs.latest_epoch) != NO_LEADER_EPOCH:
        known, end_offset = current.end_offset_for_epoch(epoch)
        if known == epoch:
            break
        _, start_offset = future.epochs.entries[-1]
        _truncate(future, start_offset)  # nothing of that epoch was written, or all is gone
    else:
        end_offset = current.log_end_offset
    _truncate(future, min(end_offset, current.log_end_offset))


def _truncate(future: PartitionLog, offset: int) -> None:
    if offset < future.log_start_offset:
        future.truncate_fully_and_start_at(offset)
    elif offset < future.log_end_offset:
        future.truncate_to(offset)
    else:
        future.epochs.truncate_from_end(offset)


def _follow_start(current: PartitionLog, future: PartitionLog) -> None:
    """Let the copy start where `current` starts now, if it does not start later."""
    start_offset = current.log_start_offset
    if future.log_end_offset < start_offset:
        future.truncate_fully_and_start_at(start_offset)
    elif future.log_start_offset < start_offset:
        raise_log_start(future, start_offset)

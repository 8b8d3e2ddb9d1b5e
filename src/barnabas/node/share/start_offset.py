"""Start offset of a share group in a partition, by `share.auto.offset.reset`."""

from barnabas.node.loop.promise import Promise
from barnabas.node.replication.partition import Partition
from barnabas.node.share.settings import OffsetReset, ResetStrategy
from barnabas.protocol.errors import ErrorCode


async def first_offset(partition: Partition, reset: OffsetReset, now_ms: int) -> int | ErrorCode:
    """The offset, or OFFSET_NOT_AVAILABLE while it cannot be said. Raises LogDirFailure.

    A new leader does not know yet how far the log is committed, and there may be no record as
    young as a duration asks for.
    """
    if reset.strategy is ResetStrategy.EARLIEST:
        return partition.log.log_start_offset
    if partition.is_catching_up:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    if reset.strategy is ResetStrategy.LATEST:
        return partition.high_watermark
    later = partition.log.offset_for_timestamp(now_ms - reset.back_ms, partition.high_watermark)
    found = await later if isinstance(later, Promise) else later
    if isinstance(found, ErrorCode):
        return found
    return ErrorCode.OFFSET_NOT_AVAILABLE if found is None else found.offset

"""Truncation point: where a follower's log diverges from its leader's.

The leader says the greatest epoch it knows that is not after the follower's last, and where that
epoch ends in its log. Both logs agree up to the smaller end of that epoch, if the follower knows
it too; if not, the follower goes back to the end of its epoch before and asks again.

Source: Kafka's AbstractFetcherThread.getOffsetTruncationState; KIP-101, 279, 595.
"""

from barnabas.node.log.partition_log import PartitionLog
from barnabas.protocol.records.batch import NO_LEADER_EPOCH, NO_OFFSET


def truncation_offset(
    log: PartitionLog, high_watermark: int, leader_epoch: int, leader_end_offset: int
) -> int:
    """The offset to truncate `log` to, given what the leader said of an epoch and its end.

    A leader that knows nothing (-1) leaves the follower with what is committed for sure.
    """
    log_end_offset = log.log_end_offset
    if leader_end_offset == NO_OFFSET:
        return min(high_watermark, log_end_offset)
    if leader_epoch == NO_LEADER_EPOCH:
        return min(leader_end_offset, log_end_offset)
    epoch, end_offset = log.end_offset_for_epoch(leader_epoch)
    if epoch == NO_LEADER_EPOCH:
        # Nothing here is as old as that epoch, so all that the leader has counts.
        return min(leader_end_offset, log_end_offset)
    if epoch != leader_epoch:
        return min(end_offset, log_end_offset)
    return min(end_offset, leader_end_offset, log_end_offset)

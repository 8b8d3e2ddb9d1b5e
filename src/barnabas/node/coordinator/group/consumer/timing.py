"""Timers that only members of consumer groups have."""

from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.modern.timing import heartbeat_interval_ms
from barnabas.node.coordinator.group.step import Step, TimerKey, TimerKind

REBALANCE_INTERVAL_MS = 1_000
"""Between heartbeats of a member that does not have yet what it shall have."""


def next_heartbeat_ms(step: Step, group: ConsumerGroup, *, is_settled: bool) -> int:
    """When a member shall be heard again.

    One for which an assignment is still to be made, or which waits for others to give partitions
    up, asks more often than those that only show that they live. (Kafka gives it the same
    interval, and so a joining group takes two of them.)
    """
    interval_ms = heartbeat_interval_ms(
        step.config, step.metadata, group.group_type, group.group_id
    )
    return interval_ms if is_settled else min(interval_ms, REBALANCE_INTERVAL_MS)


def schedule_once(step: Step, kind: TimerKind, group_id: str, member: ConsumerMember) -> None:
    """Start a timer of the member's rebalance time-out unless it runs."""
    key = TimerKey(kind, group_id, member.member_id)
    if key not in step.timers:
        step.schedule(key, member.rebalance_timeout_ms)

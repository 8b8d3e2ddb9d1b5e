"""Timers of members of consumer groups, and the settings behind them."""

from barnabas.coordinator.group.consumer.group import ConsumerGroup
from barnabas.coordinator.group.consumer.member import ConsumerMember, MemberState
from barnabas.coordinator.group.step import Step, TimerKey, TimerKind

SESSION_KEY = "consumer.session.timeout.ms"
HEARTBEAT_KEY = "consumer.heartbeat.interval.ms"
REBALANCE_INTERVAL_MS = 1_000
"""Between heartbeats of a member that does not have yet what it shall have."""


def session_timeout_ms(step: Step, group_id: str) -> int:
    """How long members of the group may be silent, within the broker's limits."""
    value = step.metadata.group_setting(group_id, SESSION_KEY)
    if value is None:
        return step.config.consumer_session_timeout_ms
    low, high = step.config.consumer_session_timeout_limits_ms
    return min(max(value, low), high)


def next_heartbeat_ms(step: Step, group_id: str, *, is_settled: bool) -> int:
    """When a member shall be heard again.

    One for which an assignment is still to be made, or which waits for others to give partitions
    up, asks more often than those that only show that they live. (Kafka gives it the same
    interval, and so a joining group takes two of them.)
    """
    interval_ms = heartbeat_interval_ms(step, group_id)
    return interval_ms if is_settled else min(interval_ms, REBALANCE_INTERVAL_MS)


def heartbeat_interval_ms(step: Step, group_id: str) -> int:
    """How often members of the group shall be heard, within the broker's limits."""
    value = step.metadata.group_setting(group_id, HEARTBEAT_KEY)
    if value is None:
        return step.config.consumer_heartbeat_interval_ms
    low, high = step.config.consumer_heartbeat_interval_limits_ms
    return min(max(value, low), high)


def reset_member_session(step: Step, group_id: str, member: ConsumerMember) -> None:
    """A member was heard. A classic one keeps the session time-out of its own."""
    timeout_ms = (
        session_timeout_ms(step, group_id)
        if member.classic is None
        else member.classic.session_timeout_ms
    )
    step.schedule(TimerKey(TimerKind.MEMBER_SESSION, group_id, member.member_id), timeout_ms)


def schedule_revocation(step: Step, group_id: str, member: ConsumerMember) -> None:
    """Give a member its rebalance time-out to give partitions up, or end that time.

    Classic members have others: they are told to join again, and to ask for their assignment.
    """
    if member.is_classic:
        return
    key = TimerKey(TimerKind.REVOCATION, group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        step.schedule(key, member.rebalance_timeout_ms)
    else:
        step.timers.cancel(key)


def schedule_once(step: Step, kind: TimerKind, group_id: str, member: ConsumerMember) -> None:
    """Start a timer of the member's rebalance time-out unless it runs."""
    key = TimerKey(kind, group_id, member.member_id)
    if key not in step.timers:
        step.schedule(key, member.rebalance_timeout_ms)


def start_timers(step: Step, group: ConsumerGroup) -> None:
    """The group was loaded: nobody knows when its members were last heard."""
    for member in group.members.values():
        reset_member_session(step, group.group_id, member)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            schedule_revocation(step, group.group_id, member)

"""Timers of members, and settings: the group's own within the broker's limits, or the broker's."""

from typing import Any

from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.group import ModernGroup
from barnabas.node.coordinator.group.modern.member import ModernMember
from barnabas.node.coordinator.group.step import Step, TimerKey, TimerKind
from barnabas.node.coordinator.group.view import GroupMetadata

AnyGroup = ModernGroup[Any, Any]


def heartbeat_interval_ms(
    config: GroupConfig, metadata: GroupMetadata, group_type: GroupType, group_id: str
) -> int:
    """The interval between heartbeats of the group's members."""
    of_kind = config.of(group_type)
    value = metadata.group_setting(group_id, f"{group_type}.heartbeat.interval.ms")
    if value is None:
        return of_kind.heartbeat_interval_ms
    return _within(value, of_kind.heartbeat_interval_limits_ms)


def session_timeout_ms(step: Step, group: AnyGroup) -> int:
    """The time without heartbeats after which a member is removed."""
    of_kind = step.config.of(group.group_type)
    value = step.metadata.group_setting(group.group_id, f"{group.group_type}.session.timeout.ms")
    if value is None:
        return of_kind.session_timeout_ms
    return _within(value, of_kind.session_timeout_limits_ms)


def assigns_in_ms(step: Step, group: AnyGroup) -> int:
    """The delay after which the group may be assigned again; 0 if now.

    A group that was assigned a moment ago keeps its assignment for a while, so that many who join
    at once cost few assignments; the next heartbeat after that makes the new one.
    """
    if not group.assignment_timestamp_ms:
        return 0
    of_kind = step.config.of(group.group_type)
    interval_ms = step.metadata.group_setting(
        group.group_id, f"{group.group_type}.assignment.interval.ms"
    )
    if interval_ms is None:
        interval_ms = of_kind.assignment_interval_ms
    else:
        interval_ms = _within(interval_ms, of_kind.assignment_interval_limits_ms)
    return max(group.assignment_timestamp_ms + interval_ms - step.now.wall_ms, 0)


def reset_session(step: Step, group: AnyGroup, member: ModernMember) -> None:
    """A member was heard. A classic member keeps its own session time-out."""
    timeout_ms = member.own_session_timeout_ms
    if timeout_ms is None:
        timeout_ms = session_timeout_ms(step, group)
    step.schedule(TimerKey(TimerKind.MODERN_SESSION, group.group_id, member.member_id), timeout_ms)


def schedule_revocation(step: Step, group: AnyGroup, member: ModernMember) -> None:
    """Give a member its rebalance time-out to give up what it must, or end that time.

    Classic members have others: they are told to join again, and to ask for their assignment.
    """
    if member.is_classic:
        return
    key = TimerKey(TimerKind.REVOCATION, group.group_id, member.member_id)
    if member.must_give_up:
        step.schedule(key, member.rebalance_timeout_ms)
    else:
        step.timers.cancel(key)


def start_timers(step: Step, group: AnyGroup) -> None:
    """The group was loaded: nobody knows when its members were last heard."""
    for member in group.members.values():
        reset_session(step, group, member)
        if member.must_give_up:
            schedule_revocation(step, group, member)


def _within(value: int, limits: tuple[int, int]) -> int:
    low, high = limits
    return min(max(value, low), high)

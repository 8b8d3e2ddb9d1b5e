"""How members leave: by themselves, by silence, or because they did not give tasks up.

Source: Kafka's GroupMetadataManager (streamsGroupFenceMember and what calls it).
"""

import logging

from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.step import Step, TimerKey, TimerKind
from barnabas.coordinator.group.streams.group import StreamsGroup
from barnabas.coordinator.group.streams.member import MemberState, StreamsMember
from barnabas.coordinator.group.streams.records import epoch_record, member_tombstones
from barnabas.coordinator.group.streams.settings import session_timeout_ms
from barnabas.coordinator.group.streams.target import Draft, update_target

telemetry = logging.getLogger(__name__)


def fence(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Take a member out, and raise the group epoch."""
    step.records += member_tombstones(group.group_id, member.member_id)
    step.records.append(
        epoch_record(
            group.group_id,
            group.epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        )
    )


def timer_is_up(step: Step, groups: GroupRegistry, key: TimerKey) -> None:
    """A timer of a group or of one of its members is due."""
    group = groups.get(key.group_id)
    if not isinstance(group, StreamsGroup):
        return
    if key.kind is TimerKind.INITIAL_DELAY:
        _assign_delayed(step, group)
        return
    member = group.members.get(key.member_id)
    if member is None:
        return
    if key.kind is TimerKind.REVOCATION and member.state is not MemberState.UNREVOKED_TASKS:
        return
    reason = (
        "it did not give its tasks up in time"
        if key.kind is TimerKind.REVOCATION
        else "it was silent for its session time-out"
    )
    telemetry.info("group %s: %s is fenced: %s", key.group_id, key.member_id, reason)
    fence(step, group, member)


def reset_session(step: Step, group_id: str, member_id: str) -> None:
    """A member was heard."""
    key = TimerKey(TimerKind.MEMBER_SESSION, group_id, member_id)
    step.schedule(key, session_timeout_ms(step, group_id))


def schedule_revocation(step: Step, group_id: str, member: StreamsMember) -> None:
    """Give a member its rebalance time-out to give tasks up, or end that time."""
    key = TimerKey(TimerKind.REVOCATION, group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_TASKS:
        step.schedule(key, member.rebalance_timeout_ms)
    else:
        step.timers.cancel(key)


def start_timers(step: Step, group: StreamsGroup) -> None:
    """The group was loaded: nobody knows when its members were last heard."""
    for member in group.members.values():
        reset_session(step, group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_TASKS:
            schedule_revocation(step, group.group_id, member)


def _assign_delayed(step: Step, group: StreamsGroup) -> None:
    """The time for members to join is up. What cannot be assigned now is by a next heartbeat."""
    if group.is_empty or group.configured is None or group.epoch <= group.assignment_epoch:
        return
    configs = group.assignment_configs
    update_target(step, Draft(group, None, group.epoch, group.configured, configs))

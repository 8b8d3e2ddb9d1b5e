"""The course of a rebalance: prepare, wait for the members to join, begin a generation.

A rebalance of a group that has members waits for all of them, up to the longest rebalance
time-out among them; members that have not joined by then are removed, unless they are static
(KIP-345).
The first rebalance of an empty group waits `group.initial.rebalance.delay.ms`, again for each
new member, but no longer than the rebalance time-out (KIP-134). A generation then waits for its
leader's assignment, and removes members that do not ask for theirs in time.

Source: Kafka's GroupMetadataManager, from prepareRebalance to expirePendingSync.
"""

import logging

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.member import Member
from barnabas.node.coordinator.group.classic.records import group_record
from barnabas.node.coordinator.group.classic.responses import join_error
from barnabas.node.coordinator.group.classic.states import GroupEvent, GroupState
from barnabas.node.coordinator.group.step import Step, TimerKey, TimerKind
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)

ABSENT_RETRY_MS_MIN = 1_000
"""Between looks at a group whose static members are all absent, however short their time-out."""

telemetry = logging.getLogger(__name__)


def rebalance_or_complete(step: Step, group: ClassicGroup, reason: str) -> None:
    """Begin a rebalance, or take the one that is being prepared a step further."""
    if group.can_rebalance:
        prepare_rebalance(step, group, reason)
    else:
        complete_if_joined(step, group)


def prepare_rebalance(step: Step, group: ClassicGroup, reason: str) -> None:
    """Begin a rebalance; members that wait for an assignment are sent back to join."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        propagate_assignments(step, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    step.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))
    is_initial = group.state is GroupState.EMPTY
    group.move(GroupEvent.REBALANCE_CAUSED, step.now.wall_ms)
    telemetry.info(
        "group %s rebalances after generation %d: %s", group.group_id, group.generation_id, reason
    )
    if is_initial:
        delay_ms = step.config.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        step.schedule(TimerKey(TimerKind.JOIN, group.group_id), delay_ms)
    elif group.have_all_joined:
        complete_join(step, group)
    else:
        step.schedule(TimerKey(TimerKind.JOIN, group.group_id), group.rebalance_timeout_ms)


def complete_if_joined(step: Step, group: ClassicGroup) -> None:
    """End the join phase if nobody is missing; the first one always takes its time."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.previous_state is not GroupState.EMPTY
        and group.have_all_joined
    ):
        complete_join(step, group)


def join_time_is_up(step: Step, group: ClassicGroup) -> None:
    """The join timer is due: extend the first rebalance for new members, or end the phase."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if (
        group.previous_state is GroupState.EMPTY
        and group.has_new_member
        and group.initial_delay_left_ms
    ):
        group.has_new_member = False
        waited_ms, left_ms = group.initial_delay_ms, group.initial_delay_left_ms
        group.initial_delay_ms = min(step.config.initial_rebalance_delay_ms, left_ms)
        group.initial_delay_left_ms = max(left_ms - waited_ms, 0)
        step.schedule(TimerKey(TimerKind.JOIN, group.group_id), group.initial_delay_ms)
    else:
        complete_join(step, group)


def complete_join(step: Step, group: ClassicGroup) -> None:
    """End the join phase: drop who is missing, begin a generation, answer the joins."""
    join_timer = TimerKey(TimerKind.JOIN, group.group_id)
    step.timers.cancel(join_timer)
    missing = [m for m in group.members.values() if m.join_waiter is None and not m.is_static]
    for member in missing:
        telemetry.info(
            "group %s removes %s, which did not join in time", group.group_id, member.member_id
        )
        remove_member(step, group, member.member_id)
    if group.members and not group.elect_joined_leader():
        # Only static members, none of which has joined: their sessions decide.
        step.schedule(join_timer, max(group.rebalance_timeout_ms, ABSENT_RETRY_MS_MIN))
        return
    group.has_new_member = False
    group.begin_generation(step.now.wall_ms)
    if group.is_empty:
        step.records.append(group_record(group, {}))
        return
    for member in group.members.values():
        _answer_join(step, group, member)
        reset_session(step, group, member)
        member.is_new = False
        group.pending_syncs.add(member.member_id)
    step.schedule(TimerKey(TimerKind.SYNC, group.group_id), group.rebalance_timeout_ms)


def sync_time_is_up(step: Step, group: ClassicGroup) -> None:
    """The sync timer is due: remove who has not asked for its assignment."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    late = [member_id for member_id in group.members if member_id in group.pending_syncs]
    if not late:
        return
    for member_id in late:
        remove_member(step, group, member_id)
    prepare_rebalance(step, group, f"{len(late)} members did not ask for their assignments")


def propagate_assignments(step: Step, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer every member that waits for its assignment; an error takes assignments away."""
    assert group.state is GroupState.COMPLETING_REBALANCE
    is_good = error is ErrorCode.NONE
    for member in group.members.values():
        if not is_good:
            member.assignment = b""
        if member.sync_waiter is None:
            continue
        response = SyncGroupResponse(error_code=error, assignment=member.assignment)
        if is_good:
            response.protocol_type = group.protocol_type
            response.protocol_name = group.protocol_name
        step.answer(member.sync_waiter, response)
        member.sync_waiter = None
        # Its session was not counted while it waited.
        reset_session(step, group, member)


def remove_member(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Take a member or a pending one out.

    Its parked requests get UNKNOWN_MEMBER_ID, so that it can join again.
    """
    step.timers.cancel(TimerKey(TimerKind.CLASSIC_SESSION, group.group_id, member_id))
    member = group.members.get(member_id)
    if member is not None:
        gone = ErrorCode.UNKNOWN_MEMBER_ID
        step.answer(member.join_waiter, join_error(gone, ""))
        step.answer(member.sync_waiter, SyncGroupResponse(error_code=gone))
        group.set_join_waiter(member, None)
        member.sync_waiter = None
    group.remove(member_id)


def reset_session(
    step: Step, group: ClassicGroup, member: Member, timeout_ms: int | None = None
) -> None:
    """A member has given a sign of life: its session counts from now."""
    step.schedule(
        TimerKey(TimerKind.CLASSIC_SESSION, group.group_id, member.member_id),
        member.session_timeout_ms if timeout_ms is None else timeout_ms,
    )


def join_response(
    group: ClassicGroup, member_id: str, *, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The answer to a member's JoinGroup. The leader's contains all members' metadata."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=member_list(group) if member_id == group.leader_id else [],
    )


def member_list(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """All members with their metadata, for the leader to assign."""
    assert group.protocol_name is not None
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol_name) or b"",
        )
        for member in group.members.values()
    ]


def _answer_join(step: Step, group: ClassicGroup, member: Member) -> None:
    if member.join_waiter is not None:
        step.answer(member.join_waiter, join_response(group, member.member_id))
        group.set_join_waiter(member, None)

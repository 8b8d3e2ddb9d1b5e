"""Requests and timers of the classic groups of one shard.

A classic group's own state runs ahead of its records, because only the outcome of a rebalance is
ever written; its decisions say so (`replays=False`), and a continuation tells the group how its
record fared.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.node.coordinator.decision import Answer, Decision, Moment, Waiter
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.join import Join, join
from barnabas.node.coordinator.group.classic.rebalance import (
    complete_if_joined,
    complete_join,
    join_time_is_up,
    prepare_rebalance,
    propagate_assignments,
    rebalance_or_complete,
    remove_member,
    reset_session,
    sync_time_is_up,
)
from barnabas.node.coordinator.group.classic.records import group_record, new_group_record
from barnabas.node.coordinator.group.classic.responses import join_error
from barnabas.node.coordinator.group.classic.states import GroupEvent, GroupState
from barnabas.node.coordinator.group.group import Group
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.requests import GroupRequests
from barnabas.node.coordinator.group.step import Refusal, Step, TimerKey, TimerKind
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class GroupCreated:
    """Continuation: the first record of a group that a JoinGroup created."""

    group: ClassicGroup
    replaced: Group | None

    def stored(
        self, step: Step, groups: GroupRegistry, error: ErrorCode, is_appended: bool
    ) -> None:
        """Forget the group again where the log will never have it."""
        group_id = self.group.group_id
        if error and not is_appended and groups.get(group_id) is self.group:
            groups.drop(group_id)
            if self.replaced is not None:
                groups.put(self.replaced)


class ClassicGroupRequests(GroupRequests):
    """The door to the classic groups of a shard."""

    __slots__ = ()

    def describe(self, group_id: str, version: int) -> Decision:
        """DescribeGroups of one group."""
        group = self._groups.find(ClassicGroup, group_id)
        return Decision(response=described(group_id, group, version))

    def create(self, request: Join, now: Moment, replaced: Group | None = None) -> Decision:
        """JoinGroup where there is no group yet, or one without members that makes way."""
        message = request.request
        if message.member_id:
            return Decision(response=join_error(ErrorCode.UNKNOWN_MEMBER_ID, message.member_id))
        step = self.step(now)
        if replaced is not None:
            step.records += replaced.tombstones()
        created = ClassicGroup(message.group_id, state_timestamp_ms=now.wall_ms)
        answer = join(step, created, request)
        if answer is not None and answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            return Decision(response=answer)
        self._groups.put(created)
        step.records.append(new_group_record(created))
        step.continuation = GroupCreated(created, replaced)
        return step.decide(answer)

    def join(self, group: ClassicGroup, request: Join, now: Moment) -> Decision:
        """JoinGroup."""
        step = self.step(now)
        answer = join(step, group, request)
        needs_id = answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return step.decide(answer, is_soft=needs_id)

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, waiter: Waiter, now: Moment
    ) -> Decision:
        """SyncGroup."""
        step = self.step(now)
        return step.decide(sync(step, group, request, waiter))

    def classic_heartbeat(
        self, group: ClassicGroup, request: HeartbeatRequest, now: Moment
    ) -> Decision:
        """Heartbeat."""
        step = self.step(now)
        return step.decide(heartbeat(step, group, request), is_soft=True)

    def leave(self, group: ClassicGroup, leaving: list[MemberIdentity], now: Moment) -> Decision:
        """LeaveGroup."""
        step = self.step(now)
        return step.decide(leave(step, group, leaving), is_soft=True)

    # Events

    def committed(self, group: ClassicGroup, member_id: str, now: Moment) -> None:
        """A member commits offsets: its session counts from now."""
        member = group.members.get(member_id)
        if member is not None:
            reset_session(self.step(now), group, member)

    def loaded(self, group: ClassicGroup, step: Step) -> None:
        """The group was read from the log: every member has a whole session from now."""
        for member in group.members.values():
            reset_session(step, group, member)
        if len(group.members) > self._config.size_max:
            prepare_rebalance(step, group, "it is larger than group.max.size")

    def unloaded(self, group: ClassicGroup, error: ErrorCode) -> list[Answer]:
        """The group has left this node: answer all who wait in it."""
        answers = []
        for member in group.members.values():
            if member.join_waiter is not None:
                answers.append(Answer(member.join_waiter, join_error(error, member.member_id)))
            if member.sync_waiter is not None:
                answers.append(Answer(member.sync_waiter, SyncGroupResponse(error_code=error)))
        return answers

    def timer_is_up(self, group: ClassicGroup, key: TimerKey, now: Moment) -> Decision:
        """A timer of the group or of a member is due."""
        step = self.step(now)
        expired = _EXPIRED.get(key.kind)
        if expired is not None:
            expired(step, group, key.member_id)
        return step.decide()


# DescribeGroups: a classic group as administrators see it.


ERROR_MESSAGE_FROM_VERSION = 6


def described(group_id: str, group: ClassicGroup | Refusal, version: int) -> DescribedGroup:
    """A classic group; any other is not found, which older versions hear as Dead (KIP-1043)."""
    if isinstance(group, Refusal):
        response = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD)
        if version >= ERROR_MESSAGE_FROM_VERSION:
            response.error_code = group.error
            response.error_message = group.message
        return response
    protocol = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol) or b"",
                member_assignment=b"" if protocol is None else member.assignment,
            )
            for member in group.members.values()
        ],
    )


# SyncGroup: the leader brings the assignment of a generation, everyone gets their part.
#
# The assignment is written before anyone sees it: the group is stable once the record is
# committed. Another rebalance may begin before that and make the record void.
# Source: Kafka's GroupMetadataManager.classicGroupSyncToClassicGroup.


@dataclass(slots=True)
class AssignmentStored:
    """Continuation: the record that holds a generation's assignment."""

    group_id: str
    generation_id: int
    assignments: dict[str, bytes]

    def stored(
        self, step: Step, groups: GroupRegistry, error: ErrorCode, is_appended: bool
    ) -> None:
        """Give the assignment to the group's members."""
        group = groups.get_of(ClassicGroup, self.group_id)
        if group is not None:
            _assignment_stored(step, group, self, error)


def sync(
    step: Step, group: ClassicGroup, request: SyncGroupRequest, waiter: Waiter
) -> SyncGroupResponse | None:
    """Handle a SyncGroup; None where the answer comes with the leader's assignment."""
    error = _check(group, request)
    if error:
        return SyncGroupResponse(error_code=error)
    member = group.members[request.member_id]
    if group.state is GroupState.PREPARING_REBALANCE:
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.discard(request.member_id)
    if not group.pending_syncs:
        step.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))
    if group.state is GroupState.STABLE:
        # Kafka does not count this as a sign of life: a member that was slow to ask could lose
        # its session before its first heartbeat of the generation is due.
        reset_session(step, group, member)
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
    assert group.state is GroupState.COMPLETING_REBALANCE
    # An earlier SyncGroup of the same member came on a connection it has given up.
    step.answer(member.sync_waiter, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_waiter = waiter
    if request.member_id == group.leader_id:
        given = {part.member_id: part.assignment for part in request.assignments}
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        step.records.append(group_record(group, assignments))
        step.continuation = AssignmentStored(group.group_id, group.generation_id, assignments)
    return None


def _assignment_stored(
    step: Step, group: ClassicGroup, stored: AssignmentStored, error: ErrorCode
) -> None:
    """The assignment is committed, or could not be; in the latter case all join again."""
    if (
        group.state is not GroupState.COMPLETING_REBALANCE
        or group.generation_id != stored.generation_id
    ):
        return
    if error:
        propagate_assignments(step, group, error)
        rebalance_or_complete(step, group, f"{error.name} when the assignment was stored")
        return
    for member in group.members.values():
        member.assignment = stored.assignments.get(member.member_id, b"")
    propagate_assignments(step, group, ErrorCode.NONE)
    group.move(GroupEvent.ASSIGNMENT_STORED, step.now.wall_ms)


def _check(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _differs(given: str | None, known: str | None) -> bool:
    """Old versions name neither (KIP-559)."""
    return given is not None and known is not None and given != known


# Heartbeat, LeaveGroup and the end of a session.
#
# Source: Kafka's GroupMetadataManager (classicGroupHeartbeat, classicGroupLeave,
# expireClassicGroupMemberHeartbeat).


def heartbeat(step: Step, group: ClassicGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    """A sign of life; the answer tells a member to join again where a rebalance waits for it."""
    error = group.check_member(request.member_id, request.group_instance_id)
    if error:
        return HeartbeatResponse(error_code=error)
    if request.generation_id != group.generation_id:
        return HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
    reset_session(step, group, group.members[request.member_id])
    if group.state is GroupState.PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def leave(step: Step, group: ClassicGroup, leaving: list[MemberIdentity]) -> LeaveGroupResponse:
    """Take members out: themselves, or static ones by an administrator (no member id)."""
    response = LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=_leave_one(step, group, member),
            )
            for member in leaving
        ]
    )
    left = [
        member.member_id or f"the member with instance id {member.group_instance_id}"
        for member in response.members
        if not member.error_code
    ]
    if left:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            rebalance_or_complete(step, group, f"{', '.join(left)} left")
        else:
            complete_if_joined(step, group)
    return response


def _leave_one(step: Step, group: ClassicGroup, leaving: MemberIdentity) -> ErrorCode:
    member_id = leaving.member_id
    if not member_id:
        instance_id = leaving.group_instance_id
        static_id = None if instance_id is None else group.static_member_id(instance_id)
        if static_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = static_id
    elif member_id in group.pending_joins:
        remove_member(step, group, member_id)
        return ErrorCode.NONE
    else:
        error = group.check_member(member_id, leaving.group_instance_id)
        if error:
            return error
    telemetry.info(
        "group %s: %s leaves: %s", group.group_id, member_id, leaving.reason or "not provided"
    )
    remove_member(step, group, member_id)
    return ErrorCode.NONE


def session_ended(step: Step, group: ClassicGroup, member_id: str) -> None:
    """A member was silent too long, or never came back with the id that it was given."""
    if member_id in group.pending_joins:
        remove_member(step, group, member_id)
        _complete_if_waiting(step, group)
        return
    member = group.members.get(member_id)
    if member is None or member.is_exempt_from_session:
        return
    remove_member(step, group, member_id)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        rebalance_or_complete(step, group, f"{member_id} was silent for its session time-out")
    else:
        _complete_if_waiting(step, group)


def _complete_if_waiting(step: Step, group: ClassicGroup) -> None:
    """As `complete_if_joined`, and the first rebalance too: nobody else is about to join."""
    if group.state is GroupState.PREPARING_REBALANCE and group.have_all_joined:
        complete_join(step, group)


_EXPIRED: dict[TimerKind, Callable[[Step, ClassicGroup, str], None]] = {
    TimerKind.CLASSIC_SESSION: session_ended,
    TimerKind.JOIN: lambda step, group, _: join_time_is_up(step, group),
    TimerKind.SYNC: lambda step, group, _: sync_time_is_up(step, group),
}

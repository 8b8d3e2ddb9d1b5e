"""Requests and timers of the classic groups of one shard.

A classic group's own state runs ahead of its records, because only the outcome of a rebalance is
ever written; its decisions say so (`replays=False`), and a continuation tells the group how its
record fared.
"""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.node.coordinator.decision import Answer, Decision, Moment, Waiter
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.join import Join, join
from barnabas.node.coordinator.group.classic.membership import heartbeat, leave, session_ended
from barnabas.node.coordinator.group.classic.rebalance import (
    join_time_is_up,
    prepare_rebalance,
    reset_session,
    sync_time_is_up,
)
from barnabas.node.coordinator.group.classic.records import new_group_record
from barnabas.node.coordinator.group.classic.responses import join_error
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.classic.sync import sync
from barnabas.node.coordinator.group.group import Group
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.requests import GroupRequests
from barnabas.node.coordinator.group.step import Refusal, Step, TimerKey, TimerKind
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    HeartbeatRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)


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


_EXPIRED: dict[TimerKind, Callable[[Step, ClassicGroup, str], None]] = {
    TimerKind.CLASSIC_SESSION: session_ended,
    TimerKind.JOIN: lambda step, group, _: join_time_is_up(step, group),
    TimerKind.SYNC: lambda step, group, _: sync_time_is_up(step, group),
}


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

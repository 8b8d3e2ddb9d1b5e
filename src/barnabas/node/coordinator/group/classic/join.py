"""JoinGroup: how a member enters a group, comes back to it, or takes another's place.

A dynamic member without an id is given one and must come back with it (KIP-394, version 4): were
it added at once, each retry of a lost answer would leave a ghost in the group. A static member
(KIP-345) is known by its group.instance.id: when it comes back without its member id it replaces
its former self, which is fenced; in a stable group it keeps the assignment without a rebalance.

A member that joins a stable group with an unchanged subscription gets the current generation back,
except the leader: its join means that the assignment must be computed again.
Source: Kafka's GroupMetadataManager.classicGroupJoinToClassicGroup and what it calls.
"""

from dataclasses import dataclass

from barnabas.node.coordinator.decision import Waiter
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.member import Member, Protocols
from barnabas.node.coordinator.group.classic.rebalance import (
    complete_if_joined,
    join_response,
    prepare_rebalance,
    rebalance_or_complete,
    remove_member,
    reset_session,
)
from barnabas.node.coordinator.group.classic.records import group_record
from barnabas.node.coordinator.group.classic.responses import join_error
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.config import NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_JOINS_MAX
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Client, Step, TimerKey, TimerKind
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse

MEMBER_ID_REQUIRED_FROM_VERSION = 4
SKIP_ASSIGNMENT_FROM_VERSION = 9


@dataclass(slots=True)
class StaticMemberStored:
    """Continuation: the record that names a static member's new id."""

    group_id: str
    new_member_id: str
    old_member_id: str
    old_protocols: Protocols
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
    old_leader_id: str | None
    api_version: int

    def stored(
        self, step: Step, groups: GroupRegistry, error: ErrorCode, is_appended: bool
    ) -> None:
        """Answer the member, and give its former self its place back if the record is lost."""
        group = groups.get_of(ClassicGroup, self.group_id)
        if group is not None:
            _static_member_stored(step, group, self, error, is_appended)


@dataclass(slots=True)
class Join:
    """One JoinGroup with all that its handling needs."""

    request: JoinGroupRequest
    client: Client
    waiter: Waiter
    id_suffix: str
    """Makes the id of a member that has none (a random UUID)."""

    @property
    def protocols(self) -> Protocols:
        """Names and metadata; the first of a repeated name counts."""
        first: dict[str, bytes] = {}
        for protocol in self.request.protocols:
            first.setdefault(protocol.name, protocol.metadata)
        return list(first.items())

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has no separate rebalance time-out."""
        request = self.request
        return (
            request.session_timeout_ms
            if self.client.api_version == 0
            else request.rebalance_timeout_ms
        )

    @property
    def reason(self) -> str:
        """Why the client says it joins (KIP-800)."""
        return self.request.reason or "not provided"


def join(step: Step, group: ClassicGroup, request: Join) -> JoinGroupResponse | None:
    """Handle a JoinGroup; None where the answer comes with the next generation."""
    member_id = request.request.member_id
    if not _accepts(step, group, member_id):
        if member_id in group.members or member_id in group.pending_joins:
            remove_member(step, group, member_id)
            complete_if_joined(step, group)
        return join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    names = [protocol.name for protocol in request.request.protocols]
    if not group.supports(request.request.protocol_type, names):
        return join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
    if member_id:
        return _join_with_id(step, group, request)
    return _join_without_id(step, group, request)


def _accepts(step: Step, group: ClassicGroup, member_id: str) -> bool:
    """Return whether the group has room.

    While a rebalance is prepared those count who wait to join, so that in a group above a
    lowered limit the last to come back are the ones who leave.
    """
    size_max = step.config.size_max
    if not member_id and len(group.pending_joins) >= PENDING_JOINS_MAX:
        return False
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        is_waiting = member is not None and member.join_waiter is not None
        return is_waiting or group.awaiting_join_count < size_max
    return member is not None or len(group.members) < size_max


def _join_without_id(step: Step, group: ClassicGroup, request: Join) -> JoinGroupResponse | None:
    instance_id = request.request.group_instance_id
    if instance_id is not None:
        new_id = f"{instance_id}-{request.id_suffix}"
        current_id = group.static_member_id(instance_id)
        if current_id is not None:
            _replace_static_member(step, group, request, current_id, new_id)
        else:
            _add_member(step, group, request, new_id)
        return None
    new_id = f"{request.client.client_id}-{request.id_suffix}"
    if request.client.api_version >= MEMBER_ID_REQUIRED_FROM_VERSION:
        group.pending_joins.add(new_id)
        step.schedule(
            TimerKey(TimerKind.CLASSIC_SESSION, group.group_id, new_id),
            request.request.session_timeout_ms,
        )
        return join_error(ErrorCode.MEMBER_ID_REQUIRED, new_id)
    _add_member(step, group, request, new_id)
    return None


def _join_with_id(step: Step, group: ClassicGroup, request: Join) -> JoinGroupResponse | None:
    message = request.request
    member_id = message.member_id
    if member_id in group.pending_joins:
        if message.group_instance_id is not None:
            # The id belongs to a dynamic member: a sender with an instance id is another member.
            return join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
        _add_member(step, group, request, member_id)
        return None
    error = group.check_member(member_id, message.group_instance_id)
    if error:
        return join_error(error, member_id)
    member = group.members[member_id]
    has_changed = member.protocols != request.protocols
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            must_rebalance = True
        case GroupState.COMPLETING_REBALANCE:
            must_rebalance = has_changed
        case GroupState.STABLE:
            must_rebalance = has_changed or member_id == group.leader_id
        case _:
            return join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
    if not must_rebalance:
        return join_response(group, member_id)
    _update_member(step, group, member, request)
    rebalance_or_complete(step, group, f"{member_id} joins again: {request.reason}")
    return None


def _add_member(step: Step, group: ClassicGroup, request: Join, member_id: str) -> None:
    message = request.request
    member = Member(
        member_id=member_id,
        instance_id=message.group_instance_id,
        client_id=request.client.client_id,
        client_host=request.client.host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=message.session_timeout_ms,
        protocol_type=message.protocol_type,
        protocols=request.protocols,
        join_waiter=request.waiter,
        is_new=True,
    )
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.has_new_member = True
    group.add(member)
    # It cannot send heartbeats yet, and a parked request hides a broken connection: if it gives
    # up and tries again under another id, this bounds how long the ghost stays.
    reset_session(step, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(step, group, f"{member_id} joins: {request.reason}")


def _update_member(step: Step, group: ClassicGroup, member: Member, request: Join) -> None:
    group.update(
        member,
        request.protocols,
        request.rebalance_timeout_ms,
        request.request.session_timeout_ms,
    )
    if member.join_waiter is not None:
        # The same member asked before, on a connection it has given up: that request is void.
        step.answer(
            member.join_waiter, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        )
    group.set_join_waiter(member, request.waiter)


def _replace_static_member(
    step: Step, group: ClassicGroup, request: Join, old_id: str, new_id: str
) -> None:
    member = group.members[old_id]
    stored = StaticMemberStored(
        group_id=group.group_id,
        new_member_id=new_id,
        old_member_id=old_id,
        old_protocols=member.protocols,
        old_rebalance_timeout_ms=member.rebalance_timeout_ms,
        old_session_timeout_ms=member.session_timeout_ms,
        old_leader_id=group.leader_id,
        api_version=request.client.api_version,
    )
    step.answer(member.join_waiter, join_error(ErrorCode.FENCED_INSTANCE_ID, old_id))
    group.set_join_waiter(member, None)
    step.answer(member.sync_waiter, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    member.sync_waiter = None
    group.rename_static(old_id, new_id)
    member.is_new = False
    step.timers.cancel(TimerKey(TimerKind.CLASSIC_SESSION, group.group_id, old_id))
    _update_member(step, group, member, request)
    reset_session(step, group, member)
    reason = f"static member {new_id} takes the place of {old_id}: {request.reason}"
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id at this moment.
        prepare_rebalance(step, group, reason)
    elif group.state is GroupState.STABLE:
        if group.select_protocol() != group.protocol_name:
            rebalance_or_complete(step, group, reason)
            return
        group.refresh_subscribed_topics()
        assignments = {m.member_id: m.assignment for m in group.members.values()}
        step.records.append(group_record(group, assignments))
        step.continuation = stored
    else:
        complete_if_joined(step, group)


def _static_member_stored(
    step: Step,
    group: ClassicGroup,
    stored: StaticMemberStored,
    error: ErrorCode,
    is_appended: bool,
) -> None:
    """The new id of a static member is committed, or could not be.

    Once the record is appended the new id stays, even if the record is lost: memory must not
    fall behind a log that may yet be committed.
    """
    member = group.members.get(stored.new_member_id)
    if member is None:
        return
    waiter = member.join_waiter
    if error and is_appended:
        if group.state is not GroupState.PREPARING_REBALANCE:
            group.set_join_waiter(member, None)
            step.answer(waiter, join_error(error, ""))
        return
    if error:
        group.update(
            member,
            stored.old_protocols,
            stored.old_rebalance_timeout_ms,
            stored.old_session_timeout_ms,
        )
        group.set_join_waiter(member, None)
        step.timers.cancel(TimerKey(TimerKind.CLASSIC_SESSION, group.group_id, member.member_id))
        group.rename_static(stored.new_member_id, stored.old_member_id)
        reset_session(step, group, member)
        step.answer(waiter, join_error(error, ""))
        return
    if waiter is None or group.state is GroupState.PREPARING_REBALANCE:
        return  # another rebalance has begun and will answer
    response = join_response(
        group, member.member_id, skip_assignment=member.member_id == group.leader_id
    )
    if stored.api_version < SKIP_ASSIGNMENT_FROM_VERSION:
        # A client that cannot skip the assignment must not believe that it leads: it would
        # assign again, and the group would rebalance needlessly (KIP-814).
        response.leader = stored.old_leader_id or ""
        response.skip_assignment = False
        response.members = []
    step.answer(waiter, response)
    group.set_join_waiter(member, None)

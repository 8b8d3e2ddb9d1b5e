"""Heartbeat, LeaveGroup and the end of a session.

Source: Kafka's GroupMetadataManager (classicGroupHeartbeat, classicGroupLeave,
expireClassicGroupMemberHeartbeat).
"""

import logging

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.rebalance import (
    complete_if_joined,
    complete_join,
    rebalance_or_complete,
    remove_member,
    reset_session,
)
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.step import Step
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

telemetry = logging.getLogger(__name__)


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

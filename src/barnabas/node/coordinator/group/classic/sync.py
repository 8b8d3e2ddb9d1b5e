"""SyncGroup: the leader brings the assignment of a generation, everyone gets their part.

The assignment is written before anyone sees it: the group is stable once the record is
committed. Another rebalance may begin before that and make the record void.
Source: Kafka's GroupMetadataManager.classicGroupSyncToClassicGroup.
"""

from dataclasses import dataclass

from barnabas.node.coordinator.decision import Waiter
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.rebalance import (
    propagate_assignments,
    rebalance_or_complete,
    reset_session,
)
from barnabas.node.coordinator.group.classic.records import group_record
from barnabas.node.coordinator.group.classic.states import GroupEvent, GroupState
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Step, TimerKey, TimerKind
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import SyncGroupRequest, SyncGroupResponse


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

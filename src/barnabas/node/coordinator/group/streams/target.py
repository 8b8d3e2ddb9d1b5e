"""The target assignment of a group epoch: which member shall run which task.

It changes when members leave, and when the time for members to join is over.
Source: Kafka's TargetAssignmentBuilder, and maybeUpdateStreamsTargetAssignment and
streamsGroupFenceMember of its GroupMetadataManager.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.node.coordinator.group.modern.heartbeat import write_target
from barnabas.node.coordinator.group.modern.timing import assigns_in_ms
from barnabas.node.coordinator.group.step import Step, TimerKey, TimerKind
from barnabas.node.coordinator.group.streams.assignor import (
    NUM_STANDBY_REPLICAS,
    MemberSpec,
    assign,
)
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.member import StreamsMember
from barnabas.node.coordinator.group.streams.records import epoch_record, target_record
from barnabas.node.coordinator.group.streams.tasks import Tasks
from barnabas.node.coordinator.group.streams.topology import ConfiguredTopology, Notice, Status

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class Draft:
    """A group as it is about to be, and what its member is about to hear."""

    group: StreamsGroup
    member: StreamsMember | None
    """The member that is new or has changed; None where nobody asks."""
    epoch: int
    configured: ConfiguredTopology
    assignment_configs: Mapping[str, str]
    statuses: list[Notice] = field(default_factory=list)

    def members(self) -> dict[str, StreamsMember]:
        """All members by id."""
        members = dict(self.group.members)
        if self.member is not None:
            members[self.member.member_id] = self.member
        return members


def delay_key(group_id: str) -> TimerKey:
    """The timer during which a group that was empty waits for more members."""
    return TimerKey(TimerKind.INITIAL_DELAY, group_id)


def update_target(step: Step, draft: Draft) -> tuple[int, Tasks]:
    """The member's target and its epoch, recomputed when due.

    A group that was empty waits for `group.streams.initial.rebalance.delay.ms`, and one that was
    assigned a moment ago for `group.streams.assignment.interval.ms`.
    """
    group = draft.group
    if delay_key(group.group_id) in step.timers:
        draft.statuses.append(
            _delayed("Assignment delayed due to the configured initial rebalance delay.")
        )
        return group.assignment_epoch, Tasks()
    if draft.epoch <= group.assignment_epoch:
        return group.assignment_epoch, _known_target(draft)
    if assigns_in_ms(step, group):
        draft.statuses.append(
            _delayed("Assignment delayed due to the configured assignment interval.")
        )
        return group.assignment_epoch, _known_target(draft)
    targets = _assign(draft)
    write_target(step, group, draft.epoch, targets, target_record)
    own = Tasks() if draft.member is None else targets[draft.member.member_id]
    return draft.epoch, own


def _known_target(draft: Draft) -> Tasks:
    member = draft.member
    return Tasks() if member is None else draft.group.target.get(member.member_id, Tasks())


def _delayed(detail: str) -> Notice:
    return Notice(Status.ASSIGNMENT_DELAYED, detail)


def _assign(draft: Draft) -> dict[str, Tasks]:
    group, configured, members = draft.group, draft.configured, draft.members()
    if not configured.is_ready:
        return dict.fromkeys(members, Tasks())
    assert configured.subtopologies is not None
    specs = {
        member_id: MemberSpec(member.process_id, group.target.get(member_id, Tasks()))
        for member_id, member in members.items()
    }
    standby_replicas = int(draft.assignment_configs.get(NUM_STANDBY_REPLICAS, "0"))
    assignment = assign(specs, configured.subtopologies, standby_replicas)
    telemetry.info("group %s: tasks are assigned for epoch %d", group.group_id, draft.epoch)
    if assignment.unplaced_standby_count:
        telemetry.warning(
            "group %s: no process has room for %d standby tasks; start more instances",
            group.group_id,
            assignment.unplaced_standby_count,
        )
    return assignment.targets


def fence(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Remove a member, and raise the group epoch."""
    step.records += group.records.member_tombstones(group.group_id, member.member_id)
    step.records.append(
        epoch_record(
            group.group_id,
            group.epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        )
    )


def assign_delayed(step: Step, group: StreamsGroup) -> None:
    """Assign tasks now that the time for members to join is over.

    A later heartbeat assigns those that cannot be assigned now.
    """
    if group.is_empty or group.configured is None or group.epoch <= group.assignment_epoch:
        return
    configs = group.assignment_configs
    update_target(step, Draft(group, None, group.epoch, group.configured, configs))

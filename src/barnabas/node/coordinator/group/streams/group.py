"""A streams group: all that its records say, and what follows from it.

What it has as other groups do is in its base; the group epoch rises when members, topology, topics
or settings of the assignment change.

Not in the log, and lost when the group moves: the topology as it was put on the topics that
exist, the epoch of endpoint information, and who asked for the application to be shut down.
Source: Kafka's StreamsGroup.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.group import (
    CommittedPartition,
    ModernGroup,
    ModernGroupState,
    common_replays,
)
from barnabas.node.coordinator.group.modern.records import ModernRecords
from barnabas.node.coordinator.group.streams import records
from barnabas.node.coordinator.group.streams.member import Endpoint, MemberState, StreamsMember
from barnabas.node.coordinator.group.streams.tasks import AssignedTasks, TaskId, Tasks, task_set
from barnabas.node.coordinator.group.streams.topology import ConfiguredTopology, Topology
from barnabas.protocol.messages import group_records as messages
from barnabas.protocol.schema import Message

UNVALIDATED = -1


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """One group of the streams protocol."""

    __slots__ = (
        "_active_processes",
        "_keepers",
        "assignment_configs",
        "configured",
        "endpoint_epoch",
        "shutdown_member_id",
        "topology",
        "validated_topology_epoch",
    )

    group_type: ClassVar[GroupType] = GroupType.STREAMS
    protocol_type: ClassVar[str] = GroupType.STREAMS
    records: ClassVar[ModernRecords] = records.RECORDS

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        """The settings that the last assignment was made with."""
        self.topology: Topology | None = None
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None
        self._active_processes: dict[TaskId, str] = {}
        self._keepers: dict[TaskId, dict[str, int]] = {}
        """Processes with a task as standby or warm-up, and how often."""

    # What follows from the records

    @property
    def state(self) -> ModernGroupState:
        """The state of the group."""
        is_valid = (
            self.topology is not None and self.topology.epoch == self.validated_topology_epoch
        )
        return super().state if is_valid or not self.members else ModernGroupState.NOT_READY

    def is_subscribed(self, topic: str) -> bool:
        """Return whether the group's members read `topic`, for which its offsets are kept."""
        return (
            bool(self.members)
            and self.topology is not None
            and topic in self.topology.subtopology_of_topic
        )

    def active_process(self, task: TaskId) -> str | None:
        """The process that has a task as active; None where it is free."""
        return self._active_processes.get(task)

    def is_kept_by(self, process_id: str, task: TaskId) -> bool:
        """Return whether a process has a task as standby or warm-up."""
        return process_id in self._keepers.get(task, ())

    def held_since(self, member: StreamsMember, partition: CommittedPartition) -> int | None:
        """Since which epoch the member has the active task that reads a partition."""
        if self.topology is None:
            return None
        subtopology_id = self.topology.subtopology_of_topic.get(partition.topic)
        if subtopology_id is None:
            return None
        task = TaskId(subtopology_id, partition.partition)
        since = member.assigned.active.get(task)
        return member.pending_revocation.active.get(task) if since is None else since

    # Records

    def _last_tombstones(self) -> list[CoordinatorRecord]:
        return [
            self.records.epoch_tombstone(self.group_id),
            records.topology_tombstone(self.group_id),
        ]

    def _member_changed(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        if not self.members:
            self.shutdown_member_id = None

    def _take(self, member: StreamsMember) -> None:
        process_id = member.process_id
        for tasks in (member.assigned, member.pending_revocation):
            for task in tasks.active:
                self._active_processes[task] = process_id
            for task in sorted(tasks.standby) + sorted(tasks.warmup):
                keepers = self._keepers.setdefault(task, {})
                keepers[process_id] = keepers.get(process_id, 0) + 1

    def _release(self, member: StreamsMember) -> None:
        process_id = member.process_id
        for tasks in (member.assigned, member.pending_revocation):
            for task in tasks.active:
                # If another process has it by then, it belongs to that process.
                if self._active_processes.get(task) == process_id:
                    del self._active_processes[task]
            for task in sorted(tasks.standby) + sorted(tasks.warmup):
                keepers = self._keepers[task]
                keepers[process_id] -= 1
                if not keepers[process_id]:
                    del keepers[process_id]
                if not keepers:
                    del self._keepers[task]

    def _new_member(self, member_id: str) -> StreamsMember:
        return StreamsMember(member_id)

    def _described(
        self, member: StreamsMember, value: messages.StreamsGroupMemberMetadataValue
    ) -> StreamsMember:
        endpoint = value.user_endpoint
        return replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        )

    def _assigned(
        self,
        member: StreamsMember,
        value: messages.StreamsGroupCurrentMemberAssignmentValue | None,
    ) -> StreamsMember:
        if value is None:
            return replace(member, assigned=AssignedTasks(), pending_revocation=AssignedTasks())
        epoch = value.member_epoch
        return replace(
            member,
            state=_member_state(value.state),
            assigned=AssignedTasks(
                _active_tasks(value.active_tasks, epoch),
                task_set(value.standby_tasks),
                task_set(value.warmup_tasks),
            ),
            pending_revocation=AssignedTasks(
                _active_tasks(value.active_tasks_pending_revocation, epoch),
                task_set(value.standby_tasks_pending_revocation),
                task_set(value.warmup_tasks_pending_revocation),
            ),
        )

    def _target_of(self, value: messages.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
        return Tasks(
            task_set(value.active_tasks),
            task_set(value.standby_tasks),
            task_set(value.warmup_tasks),
        )

    def _replay_epoch(self, key: Message, value: messages.StreamsGroupMetadataValue | None) -> None:
        super()._replay_epoch(key, value)
        assert value is not None
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = {
            config.key: config.value for config in value.last_assignment_configs or ()
        }

    def _replay_topology(
        self, key: Message, value: messages.StreamsGroupTopologyValue | None
    ) -> None:
        self.topology = None if value is None else Topology(value)


StreamsGroup.replays = {
    **common_replays(StreamsGroup),
    messages.StreamsGroupTopologyKey: StreamsGroup._replay_topology,
}


def _member_state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _active_tasks(
    topologies: list[messages.StreamsGroupCurrentMemberAssignmentValueTaskIds], member_epoch: int
) -> Mapping[TaskId, int]:
    """Tasks with assignment epochs; records of Kafka before 4.3 have none."""
    owned: dict[TaskId, int] = {}
    for tasks in topologies:
        epochs = tasks.assignment_epochs
        if epochs is None or len(epochs) != len(tasks.partitions):
            epochs = [member_epoch] * len(tasks.partitions)
        for number, epoch in zip(tasks.partitions, epochs, strict=True):
            owned[TaskId(tasks.subtopology_id, number)] = epoch
    return owned

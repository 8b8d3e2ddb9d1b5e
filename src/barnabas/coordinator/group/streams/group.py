"""A streams group: all that its records say, and what follows from it.

Nothing here decides. Handlers read a group and make records; `replay` alone changes it, live and
at load. As in consumer groups, the *group epoch* rises whenever members, topology, topics or
settings of the assignment change, the *assignment epoch* is the group epoch for which the target
was made, and each *member epoch* is the assignment epoch that the member has come to.

Not in the log, and lost when the group moves: the topology as it was put on the topics that
exist, the epoch of endpoint information, and who asked for the application to be shut down.
Replay takes what it finds, as that of consumer groups does.
Source: Kafka's StreamsGroup.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.streams import records
from barnabas.coordinator.group.streams.member import (
    LEAVING_EPOCH,
    Endpoint,
    MemberState,
    StreamsMember,
)
from barnabas.coordinator.group.streams.tasks import AssignedTasks, TaskId, Tasks, TaskSet
from barnabas.coordinator.group.streams.topology import ConfiguredTopology, Topology
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import streams_group_records as messages
from barnabas.protocol.schema import Message

FIRST_EPOCH = 1
NO_ASSIGNMENT_EPOCH = -1
UNVALIDATED = -1
MEMBER_EPOCH_FROM_VERSION: Final = 9
"""OffsetCommit knows member epochs from this version on (KIP-848)."""


class StreamsGroupState(StrEnum):
    """Where a streams group stands; the values are what clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics that the topology needs are missing or do not fit."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup:
    """One group of the streams protocol."""

    __slots__ = (
        "_active_processes",
        "_keepers",
        "assignment_configs",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "checked_topics",
        "configured",
        "endpoint_epoch",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "shutdown_member_id",
        "target",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        """The settings that the last assignment was made with."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """Wall time of the last assignment; 0 before the first."""
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, Tasks] = {}
        self.topology: Topology | None = None
        self.configured: ConfiguredTopology | None = None
        self.checked_topics: tuple[object, int] | None = None
        """The topics that a handler has looked at last, and the group epoch that came of it. If
        the group has not reached that epoch, the look was in vain."""
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None
        self._active_processes: dict[TaskId, str] = {}
        self._keepers: dict[TaskId, dict[str, int]] = {}
        """Processes with a task as standby or warm-up, and how often."""

    # What follows from the records

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def state(self) -> StreamsGroupState:
        """Where the group stands."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def is_subscribed(self, topic: str) -> bool:
        """Whether the group's members read `topic`, for which its offsets are kept."""
        return (
            bool(self.members)
            and self.topology is not None
            and topic in self.topology.subtopology_of_topic
        )

    def active_process(self, task: TaskId) -> str | None:
        """The process that has a task as active; None where it is free."""
        return self._active_processes.get(task)

    def is_kept_by(self, process_id: str, task: TaskId) -> bool:
        """Whether a process has a task as standby or warm-up."""
        return process_id in self._keepers.get(task, ())

    # Offsets

    def check_commit(
        self, member_id: str, epoch: int, partitions: Iterable[tuple[str, int]], version: int
    ) -> ErrorCode:
        """Whether a member may commit `partitions`, given by topic name.

        A member that is behind may commit what it has had since the epoch that it names.
        """
        if epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        if member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if version < MEMBER_EPOCH_FROM_VERSION:
            return ErrorCode.UNSUPPORTED_VERSION
        return self._check_epoch(self.members[member_id], epoch, partitions)

    def check_transactional_commit(
        self, member_id: str, epoch: int, partitions: Iterable[tuple[str, int]]
    ) -> ErrorCode:
        """As `check_commit`; producers of before KIP-447 name no member, and are not checked."""
        if epoch < 0 and (self.is_empty or not member_id):
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._check_epoch(member, epoch, partitions)

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether offsets may be read; without member id and epoch anyone may."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.member_epoch else ErrorCode.STALE_MEMBER_EPOCH

    def _check_epoch(
        self, member: StreamsMember, epoch: int, partitions: Iterable[tuple[str, int]]
    ) -> ErrorCode:
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        if epoch > member.member_epoch or self.topology is None:
            return ErrorCode.STALE_MEMBER_EPOCH
        for topic, partition in partitions:
            subtopology_id = self.topology.subtopology_of_topic.get(topic)
            if subtopology_id is None:
                return ErrorCode.STALE_MEMBER_EPOCH
            task = TaskId(subtopology_id, partition)
            since = member.assigned.active.get(task)
            if since is None:
                since = member.pending_revocation.active.get(task)
            if since is None or epoch < since:
                return ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.NONE

    # Records

    def tombstones(self) -> list[CoordinatorRecord]:
        """What deletes the group."""
        return records.group_tombstones(self.group_id, list(self.members))

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a record of the group, but for the tombstone that ends it."""
        _REPLAY[type(record.key)](self, record.key, record.value)

    def put_member(self, member: StreamsMember) -> None:
        """Take a member in as it is now."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self._take(member)
        self.members[member.member_id] = member

    def remove_member(self, member_id: str) -> None:
        """Forget a member."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
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
                # Where another process has it meanwhile, it is that one's.
                if self._active_processes.get(task) == process_id:
                    del self._active_processes[task]
            for task in sorted(tasks.standby) + sorted(tasks.warmup):
                keepers = self._keepers[task]
                keepers[process_id] -= 1
                if not keepers[process_id]:
                    del keepers[process_id]
                if not keepers:
                    del self._keepers[task]

    def _replay_epoch(self, key: Message, value: messages.StreamsGroupMetadataValue | None) -> None:
        assert value is not None, "the end of a group is its registry's business"
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = {
            config.key: config.value for config in value.last_assignment_configs or ()
        }

    def _replay_topology(
        self, key: Message, value: messages.StreamsGroupTopologyValue | None
    ) -> None:
        self.topology = None if value is None else Topology(value)

    def _replay_member(
        self,
        key: messages.StreamsGroupMemberMetadataKey,
        value: messages.StreamsGroupMemberMetadataValue | None,
    ) -> None:
        if value is None:
            self.remove_member(key.member_id)
            return
        endpoint = value.user_endpoint
        self.put_member(
            replace(
                self.members.get(key.member_id) or StreamsMember(key.member_id),
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
        )

    def _replay_target_epoch(
        self, key: Message, value: messages.StreamsGroupTargetAssignmentMetadataValue | None
    ) -> None:
        self.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_target(
        self,
        key: messages.StreamsGroupTargetAssignmentMemberKey,
        value: messages.StreamsGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = Tasks(
                _task_set(value.active_tasks),
                _task_set(value.standby_tasks),
                _task_set(value.warmup_tasks),
            )

    def _replay_current(
        self,
        key: messages.StreamsGroupCurrentMemberAssignmentKey,
        value: messages.StreamsGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        old = self.members.get(key.member_id)
        if value is None:
            if old is not None:
                self.put_member(
                    replace(
                        old,
                        member_epoch=LEAVING_EPOCH,
                        previous_member_epoch=LEAVING_EPOCH,
                        assigned=AssignedTasks(),
                        pending_revocation=AssignedTasks(),
                    )
                )
            return
        epoch = value.member_epoch
        self.put_member(
            replace(
                old or StreamsMember(key.member_id),
                member_epoch=epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=_member_state(value.state),
                assigned=AssignedTasks(
                    _active_tasks(value.active_tasks, epoch),
                    _task_set(value.standby_tasks),
                    _task_set(value.warmup_tasks),
                ),
                pending_revocation=AssignedTasks(
                    _active_tasks(value.active_tasks_pending_revocation, epoch),
                    _task_set(value.standby_tasks_pending_revocation),
                    _task_set(value.warmup_tasks_pending_revocation),
                ),
            )
        )


def _member_state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN


def _task_set(topologies: Iterable[Any]) -> TaskSet:
    return frozenset(
        TaskId(tasks.subtopology_id, number) for tasks in topologies for number in tasks.partitions
    )


def _active_tasks(
    topologies: list[messages.StreamsGroupCurrentMemberAssignmentValueTaskIds], member_epoch: int
) -> Mapping[TaskId, int]:
    """Tasks with assignment epochs; records of Kafka before 4.3 have none."""
    found: dict[TaskId, int] = {}
    for tasks in topologies:
        epochs = tasks.assignment_epochs
        if epochs is None or len(epochs) != len(tasks.partitions):
            epochs = [member_epoch] * len(tasks.partitions)
        for number, epoch in zip(tasks.partitions, epochs, strict=True):
            found[TaskId(tasks.subtopology_id, number)] = epoch
    return found


_REPLAY: Final[dict[type[Message], Callable[[StreamsGroup, Any, Any], None]]] = {
    messages.StreamsGroupMetadataKey: StreamsGroup._replay_epoch,
    messages.StreamsGroupTopologyKey: StreamsGroup._replay_topology,
    messages.StreamsGroupMemberMetadataKey: StreamsGroup._replay_member,
    messages.StreamsGroupTargetAssignmentMetadataKey: StreamsGroup._replay_target_epoch,
    messages.StreamsGroupTargetAssignmentMemberKey: StreamsGroup._replay_target,
    messages.StreamsGroupCurrentMemberAssignmentKey: StreamsGroup._replay_current,
}
"""How each record changes a group, by the type of its key."""

"""The records of streams groups, as Kafka 4.3 writes them.

Source: Kafka's StreamsCoordinatorRecordHelpers.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.modern.records import ModernRecords
from barnabas.node.coordinator.group.streams.member import StreamsMember
from barnabas.node.coordinator.group.streams.tasks import TaskId as Task
from barnabas.node.coordinator.group.streams.tasks import Tasks, TaskSet, by_subtopology, task_ids
from barnabas.protocol.messages.group_records import (
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from barnabas.protocol.messages.group_records import (
    StreamsGroupCurrentMemberAssignmentValueTaskIds as CurrentTasks,
)
from barnabas.protocol.messages.streams_groups import Endpoint, KeyValue

RECORDS: Final = ModernRecords(
    epoch_key=StreamsGroupMetadataKey,
    member_key=StreamsGroupMemberMetadataKey,
    target_epoch_key=StreamsGroupTargetAssignmentMetadataKey,
    target_epoch_value=StreamsGroupTargetAssignmentMetadataValue,
    target_key=StreamsGroupTargetAssignmentMemberKey,
    current_key=StreamsGroupCurrentMemberAssignmentKey,
)
"""The records that streams groups share with other kinds."""


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """The record that describes a member."""
    endpoint = member.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            KeyValue(key=key, value=value) for key, value in sorted(member.client_tags.items())
        ],
    )
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def epoch_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> CoordinatorRecord:
    """The group's epoch, and what it was raised for."""
    return CoordinatorRecord(
        StreamsGroupMetadataKey(group_id=group_id),
        StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[
                LastAssignmentConfig(key=key, value=value)
                for key, value in assignment_configs.items()
            ],
        ),
    )


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> CoordinatorRecord:
    """The topology that the group runs."""
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Tasks) -> CoordinatorRecord:
    """The target assignment of a member."""
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        StreamsGroupTargetAssignmentMemberValue(
            active_tasks=task_ids(target.active),
            standby_tasks=task_ids(target.standby),
            warmup_tasks=task_ids(target.warmup),
        ),
    )


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """A member's current assignment and its epoch."""
    assigned, pending = member.assigned, member.pending_revocation
    return CoordinatorRecord(
        StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            active_tasks=_active_tasks(assigned.active),
            standby_tasks=_current_tasks(assigned.standby),
            warmup_tasks=_current_tasks(assigned.warmup),
            active_tasks_pending_revocation=_active_tasks(pending.active),
            standby_tasks_pending_revocation=_current_tasks(pending.standby),
            warmup_tasks_pending_revocation=_current_tasks(pending.warmup),
        ),
    )


def topology_tombstone(group_id: str) -> CoordinatorRecord:
    """The group runs no topology any more."""
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), None)


def _current_tasks(tasks: TaskSet) -> list[CurrentTasks]:
    return [
        CurrentTasks(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in by_subtopology(tasks)
    ]


def _active_tasks(tasks: Mapping[Task, int]) -> list[CurrentTasks]:
    return [
        CurrentTasks(
            subtopology_id=subtopology_id,
            partitions=partitions,
            assignment_epochs=[tasks[Task(subtopology_id, number)] for number in partitions],
        )
        for subtopology_id, partitions in by_subtopology(tasks)
    ]

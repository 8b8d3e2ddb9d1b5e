"""The records of streams groups, as Kafka 4.3 writes them.

Source: Kafka's StreamsCoordinatorRecordHelpers.
"""

from collections.abc import Mapping

from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.streams.member import StreamsMember
from barnabas.coordinator.group.streams.tasks import TaskId as Task
from barnabas.coordinator.group.streams.tasks import Tasks, TaskSet, by_subtopology
from barnabas.protocol.messages.streams_group_records import (
    Endpoint,
    KeyValue,
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
from barnabas.protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentValueTaskIds as CurrentTasks,
)
from barnabas.protocol.messages.streams_group_records import (
    StreamsGroupTargetAssignmentMemberValueTaskIds as TargetTasks,
)


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Who a member is."""
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
    """What a member shall have."""
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_target_tasks(target.active),
            standby_tasks=_target_tasks(target.standby),
            warmup_tasks=_target_tasks(target.warmup),
        ),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The group epoch for which the assignment was made, and when."""
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """What a member has, in which epoch."""
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


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """A member is gone. Kafka's replay needs them in this order."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]


def current_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """A member has nothing any more."""
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, None)


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """A member shall have nothing any more."""
    key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, None)


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """A member does not take part any more."""
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, None)


def group_tombstones(group_id: str, member_ids: list[str]) -> list[CoordinatorRecord]:
    """The group is gone: members' parts first, as Kafka's own replay demands."""
    return [
        *(current_tombstone(group_id, member_id) for member_id in member_ids),
        *(target_tombstone(group_id, member_id) for member_id in member_ids),
        CoordinatorRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(member_tombstone(group_id, member_id) for member_id in member_ids),
        CoordinatorRecord(StreamsGroupMetadataKey(group_id=group_id), None),
        CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), None),
    ]


def _target_tasks(tasks: TaskSet) -> list[TargetTasks]:
    return [
        TargetTasks(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in by_subtopology(tasks)
    ]


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

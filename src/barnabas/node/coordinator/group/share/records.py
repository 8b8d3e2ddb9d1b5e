"""The records of share groups, as Kafka 4.3 writes them.

Source: Kafka's GroupCoordinatorRecordHelpers.
"""

from typing import Final

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.modern.records import ModernRecords
from barnabas.node.coordinator.group.share.member import ShareMember, Target
from barnabas.node.coordinator.group.share.state import StateMetadata
from barnabas.protocol.messages import group_records as messages

RECORDS: Final = ModernRecords(
    epoch_key=messages.ShareGroupMetadataKey,
    member_key=messages.ShareGroupMemberMetadataKey,
    target_epoch_key=messages.ShareGroupTargetAssignmentMetadataKey,
    target_epoch_value=messages.ShareGroupTargetAssignmentMetadataValue,
    target_key=messages.ShareGroupTargetAssignmentMemberKey,
    current_key=messages.ShareGroupCurrentMemberAssignmentKey,
)
"""The records that share groups share with other kinds."""
STABLE = 0
"""The one state of members; consumer groups have more."""


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """A member's identity and subscription."""
    return CoordinatorRecord(
        messages.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        messages.ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group's epoch, and the metadata that it was raised for."""
    return CoordinatorRecord(
        messages.ShareGroupMetadataKey(group_id=group_id),
        messages.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    """The target assignment of a member."""
    return CoordinatorRecord(
        messages.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        messages.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                messages.TopicPartition(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in target.items()
            ]
        ),
    )


def current_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """A member's current assignment and its epoch."""
    return CoordinatorRecord(
        messages.ShareGroupCurrentMemberAssignmentKey(
            group_id=group_id, member_id=member.member_id
        ),
        messages.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=STABLE,
            assigned_partitions=[
                messages.ShareGroupCurrentMemberAssignmentTopicPartitions(
                    topic_id=topic_id, partitions=list(partitions)
                )
                for topic_id, partitions in member.assigned.items()
            ],
        ),
    )


def state_record(group_id: str, state: StateMetadata) -> CoordinatorRecord:
    """The record of the partitions whose share states are initialised."""
    return CoordinatorRecord(
        messages.ShareGroupStatePartitionMetadataKey(group_id=group_id), state.to_value()
    )


def state_tombstone(group_id: str) -> CoordinatorRecord:
    """No states are known any more."""
    return CoordinatorRecord(messages.ShareGroupStatePartitionMetadataKey(group_id=group_id), None)


def target_of(
    topics: list[messages.TopicPartition]
    | list[messages.ShareGroupCurrentMemberAssignmentTopicPartitions],
) -> Target:
    """Partitions by topic, as records hold them."""
    target: dict[Uuid, tuple[int, ...]] = {}
    for topic in topics:
        target[topic.topic_id] = tuple(sorted(topic.partitions))
    return target

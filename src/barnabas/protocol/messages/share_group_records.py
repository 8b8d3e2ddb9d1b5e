"""Records of `__consumer_offsets` for share groups (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int8, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0", api_key=14)
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class TopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=14)
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array_of(TopicPartitions, "0+")


@message(versions="0", api_key=10)
class ShareGroupMemberMetadataKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@message(versions="0", flexible="0+", api_key=10)
class ShareGroupMemberMetadataValue(Message):
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array_of(string, "0+")


@message(versions="0", api_key=11)
class ShareGroupMetadataKey(Message):
    group_id: str = string("0")


@message(versions="0", flexible="0+", api_key=11)
class ShareGroupMetadataValue(Message):
    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")


@message(versions="0", api_key=15)
class ShareGroupStatePartitionMetadataKey(Message):
    group_id: str = string("0")


@struct
class TopicPartitionsInfo(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class TopicInfo(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")


@message(versions="0", flexible="0+", api_key=15)
class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = array_of(TopicPartitionsInfo, "0+")
    initialized_topics: list[TopicPartitionsInfo] = array_of(TopicPartitionsInfo, "0+")
    deleting_topics: list[TopicInfo] = array_of(TopicInfo, "0+")


@message(versions="0", api_key=13)
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class TopicPartition(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=13)
class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = array_of(TopicPartition, "0+")


@message(versions="0", api_key=12)
class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: str = string("0")


@message(versions="0", flexible="0+", api_key=12)
class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tagged="0+", tag=0, ignorable=True)


SHARE_GROUP_RECORDS: dict[int, tuple[type[Message], type[Message]]] = {
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
}
"""Record type to its key and value."""

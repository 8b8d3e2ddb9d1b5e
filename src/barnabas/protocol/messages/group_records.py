"""Records of `__consumer_offsets` for classic and consumer groups (KIP-848).

`api_key` is the record's type, which precedes the key as its version (int16). Share and Streams
groups have modules of their own.
"""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, binary, int8, int32, int64, nested, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0", api_key=8)
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class TopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")
    assignment_epochs: list[int] | None = array_of(int32, "0+", nullable="0+", tagged="0+", tag=0)


@message(versions="0", flexible="0+", api_key=8)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array_of(TopicPartitions, "0+")
    partitions_pending_revocation: list[TopicPartitions] = array_of(TopicPartitions, "0+")


@message(versions="0", api_key=5)
class ConsumerGroupMemberMetadataKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ClassicProtocol(Struct):
    name: str = string("0+")
    metadata: bytes = binary("0+")


@struct
class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = int32("0+")
    supported_protocols: list[ClassicProtocol] = array_of(ClassicProtocol, "0+")


@message(versions="0", flexible="0+", api_key=5)
class ConsumerGroupMemberMetadataValue(Message):
    instance_id: str | None = string("0+", nullable="0+")
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array_of(string, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    server_assignor: str | None = string("0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, "0+", nullable="0+", tagged="0+", tag=0
    )


@message(versions="0", api_key=3)
class ConsumerGroupMetadataKey(Message):
    group_id: str = string("0")


@message(versions="0", flexible="0+", api_key=3)
class ConsumerGroupMetadataValue(Message):
    epoch: int = int32("0+")
    metadata_hash: int = int64("0+", tagged="0+", tag=0)


@message(versions="0", api_key=4)
class ConsumerGroupPartitionMetadataKey(Message):
    group_id: str = string("0")


@struct
class PartitionMetadata(Struct):
    partition: int = int32("0+")
    racks: list[str] = array_of(string, "0+")


@struct
class TopicMetadata(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")
    num_partitions: int = int32("0+")
    partition_metadata: list[PartitionMetadata] = array_of(PartitionMetadata, "0+")


@message(versions="0", flexible="0+", api_key=4)
class ConsumerGroupPartitionMetadataValue(Message):
    topics: list[TopicMetadata] = array_of(TopicMetadata, "0+")


@message(versions="0", api_key=16)
class ConsumerGroupRegularExpressionKey(Message):
    group_id: str = string("0")
    regular_expression: str = string("0")


@message(versions="0", flexible="0+", api_key=16)
class ConsumerGroupRegularExpressionValue(Message):
    topics: list[str] = array_of(string, "0+")
    version: int = int64("0+")
    timestamp: int = int64("0+")


@message(versions="0", api_key=7)
class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class TopicPartition(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=7)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = array_of(TopicPartition, "0+")


@message(versions="0", api_key=6)
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: str = string("0")


@message(versions="0", flexible="0+", api_key=6)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tagged="0+", tag=0, ignorable=True)


@message(versions="0", api_key=2)
class GroupMetadataKey(Message):
    group: str = string("0")


@struct
class MemberMetadata(Struct):
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32("0+")
    subscription: bytes = binary("0+")
    assignment: bytes = binary("0+")


@message(versions="0-4", flexible="4+", api_key=2)
class GroupMetadataValue(Message):
    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable="0+")
    leader: str | None = string("0+", nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array_of(MemberMetadata, "0+")


@message(versions="0", api_key=0)
class LegacyOffsetCommitKey(Message):
    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


@message(versions="0", api_key=0)
class LegacyOffsetCommitValue(Message):
    offset: int = int64("0")
    metadata: str = string("0")
    commit_timestamp: int = int64("0")


@message(versions="0", api_key=1)
class OffsetCommitKey(Message):
    group: str = string("0")
    topic: str = string("0")
    partition: int = int32("0")


@message(versions="0-4", flexible="4+", api_key=1)
class OffsetCommitValue(Message):
    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: Uuid = uuid("4+", tagged="4+", tag=0, ignorable=True)


GROUP_RECORDS: dict[int, tuple[type[Message], type[Message]]] = {
    0: (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""Record type to its key and value."""

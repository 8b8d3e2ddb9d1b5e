"""Records of `__consumer_offsets`, by the kind of group."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    binary,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uuid,
)
from barnabas.protocol.messages.streams_groups import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    TaskIds,
)
from barnabas.protocol.schema import Message, Struct, message, struct

# Records of `__consumer_offsets` for classic and consumer groups (KIP-848).
#
# `api_key` is the record's type, which precedes the key as its version (int16). Share and Streams
# groups have modules of their own.


@message(versions="0", api_key=8)
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ConsumerGroupCurrentMemberAssignmentTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")
    assignment_epochs: list[int] | None = array_of(int32, "0+", nullable="0+", tagged="0+", tag=0)


@message(versions="0", flexible="0+", api_key=8)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = array_of(
        ConsumerGroupCurrentMemberAssignmentTopicPartitions, "0+"
    )
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = (
        array_of(ConsumerGroupCurrentMemberAssignmentTopicPartitions, "0+")
    )


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


# Records of `__consumer_offsets` for share groups (KIP-932).


@message(versions="0", api_key=14)
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class ShareGroupCurrentMemberAssignmentTopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=14)
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentTopicPartitions] = array_of(
        ShareGroupCurrentMemberAssignmentTopicPartitions, "0+"
    )


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
class ShareGroupStatePartitionMetadataTopicInfo(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")


@message(versions="0", flexible="0+", api_key=15)
class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = array_of(TopicPartitionsInfo, "0+")
    initialized_topics: list[TopicPartitionsInfo] = array_of(TopicPartitionsInfo, "0+")
    deleting_topics: list[ShareGroupStatePartitionMetadataTopicInfo] = array_of(
        ShareGroupStatePartitionMetadataTopicInfo, "0+"
    )


@message(versions="0", api_key=13)
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


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


# Records of `__consumer_offsets` for Streams groups (KIP-1071).


@message(versions="0", api_key=22)
class StreamsGroupCurrentMemberAssignmentKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@struct
class StreamsGroupCurrentMemberAssignmentValueTaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")
    assignment_epochs: list[int] | None = array_of(int32, "0+", nullable="0+", tagged="0+", tag=0)


@message(versions="0", flexible="0+", api_key=22)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array_of(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array_of(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = array_of(
        StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+"
    )
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = (
        array_of(StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+")
    )
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = (
        array_of(StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+")
    )
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = (
        array_of(StreamsGroupCurrentMemberAssignmentValueTaskIds, "0+")
    )


@message(versions="0", api_key=19)
class StreamsGroupMemberMetadataKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@message(versions="0", flexible="0+", api_key=19)
class StreamsGroupMemberMetadataValue(Message):
    instance_id: str | None = string("0+", nullable="0+")
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    topology_epoch: int = int32("0+")
    process_id: str = string("0+")
    user_endpoint: Endpoint | None = nested(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] = array_of(KeyValue, "0+")


@message(versions="0", api_key=17)
class StreamsGroupMetadataKey(Message):
    group_id: str = string("0")


@struct
class LastAssignmentConfig(Struct):
    key: str = string("0+")
    value: str = string("0+")


@message(versions="0", flexible="0+", api_key=17)
class StreamsGroupMetadataValue(Message):
    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")
    validated_topology_epoch: int = int32("0+", default=-1, tagged="0+", tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array_of(
        LastAssignmentConfig, "0+", nullable="0+", tagged="0+", tag=1
    )


@message(versions="0", api_key=21)
class StreamsGroupTargetAssignmentMemberKey(Message):
    group_id: str = string("0")
    member_id: str = string("0")


@message(versions="0", flexible="0+", api_key=21)
class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: list[TaskIds] = array_of(TaskIds, "0+")
    standby_tasks: list[TaskIds] = array_of(TaskIds, "0+")
    warmup_tasks: list[TaskIds] = array_of(TaskIds, "0+")


@message(versions="0", api_key=20)
class StreamsGroupTargetAssignmentMetadataKey(Message):
    group_id: str = string("0")


@message(versions="0", flexible="0+", api_key=20)
class StreamsGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tagged="0+", tag=0, ignorable=True)


@message(versions="0", api_key=23)
class StreamsGroupTopologyKey(Message):
    group_id: str = string("0")


@struct
class TopicConfig(Struct):
    key: str = string("0+")
    value: str = string("0+")


@struct
class StreamsGroupTopologyTopicInfo(Struct):
    name: str = string("0+")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[TopicConfig] = array_of(TopicConfig, "0+")


@struct
class Subtopology(Struct):
    subtopology_id: str = string("0+")
    source_topics: list[str] = array_of(string, "0+")
    source_topic_regex: list[str] = array_of(string, "0+")
    state_changelog_topics: list[StreamsGroupTopologyTopicInfo] = array_of(
        StreamsGroupTopologyTopicInfo, "0+"
    )
    repartition_sink_topics: list[str] = array_of(string, "0+")
    repartition_source_topics: list[StreamsGroupTopologyTopicInfo] = array_of(
        StreamsGroupTopologyTopicInfo, "0+"
    )
    copartition_groups: list[CopartitionGroup] = array_of(CopartitionGroup, "0+")


@message(versions="0", flexible="0+", api_key=23)
class StreamsGroupTopologyValue(Message):
    epoch: int = int32("0+")
    subtopologies: list[Subtopology] = array_of(Subtopology, "0+")


STREAMS_GROUP_RECORDS: dict[int, tuple[type[Message], type[Message]]] = {
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
"""Record type to its key and value."""

"""Records of `__consumer_offsets` for Streams groups (KIP-1071)."""

from barnabas.protocol.fields import array_of, int8, int16, int32, int64, nested, string, uint16
from barnabas.protocol.schema import Message, Struct, message, struct


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


@struct
class Endpoint(Struct):
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class KeyValue(Struct):
    key: str = string("0+")
    value: str = string("0+")


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


@struct
class StreamsGroupTargetAssignmentMemberValueTaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=21)
class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array_of(
        StreamsGroupTargetAssignmentMemberValueTaskIds, "0+"
    )
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array_of(
        StreamsGroupTargetAssignmentMemberValueTaskIds, "0+"
    )
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = array_of(
        StreamsGroupTargetAssignmentMemberValueTaskIds, "0+"
    )


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
class TopicInfo(Struct):
    name: str = string("0+")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[TopicConfig] = array_of(TopicConfig, "0+")


@struct
class CopartitionGroup(Struct):
    source_topics: list[int] = array_of(int16, "0+")
    source_topic_regex: list[int] = array_of(int16, "0+")
    repartition_source_topics: list[int] = array_of(int16, "0+")


@struct
class Subtopology(Struct):
    subtopology_id: str = string("0+")
    source_topics: list[str] = array_of(string, "0+")
    source_topic_regex: list[str] = array_of(string, "0+")
    state_changelog_topics: list[TopicInfo] = array_of(TopicInfo, "0+")
    repartition_sink_topics: list[str] = array_of(string, "0+")
    repartition_source_topics: list[TopicInfo] = array_of(TopicInfo, "0+")
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

"""Streams groups: StreamsGroupHeartbeat, StreamsGroupDescribe."""

from barnabas.protocol.fields import (
    array_of,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
)
from barnabas.protocol.schema import Message, Struct, message, struct

# StreamsGroupHeartbeat: the one request by which a Streams client takes part in its group.
#
# Source: KIP-1071.


@struct
class KeyValue(Struct):
    key: str = string("0+")
    value: str = string("0+")


@struct
class TopicInfo(Struct):
    name: str = string("0+")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[KeyValue] = array_of(KeyValue, "0+")


@struct
class CopartitionGroup(Struct):
    source_topics: list[int] = array_of(int16, "0+")
    source_topic_regex: list[int] = array_of(int16, "0+")
    repartition_source_topics: list[int] = array_of(int16, "0+")


@struct
class StreamsGroupHeartbeatSubtopology(Struct):
    subtopology_id: str = string("0+")
    source_topics: list[str] = array_of(string, "0+")
    source_topic_regex: list[str] = array_of(string, "0+")
    state_changelog_topics: list[TopicInfo] = array_of(TopicInfo, "0+")
    repartition_sink_topics: list[str] = array_of(string, "0+")
    repartition_source_topics: list[TopicInfo] = array_of(TopicInfo, "0+")
    copartition_groups: list[CopartitionGroup] = array_of(CopartitionGroup, "0+")


@struct
class StreamsGroupHeartbeatTopology(Struct):
    epoch: int = int32("0+")
    subtopologies: list[StreamsGroupHeartbeatSubtopology] = array_of(
        StreamsGroupHeartbeatSubtopology, "0+"
    )


@struct
class TaskIds(Struct):
    subtopology_id: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class Endpoint(Struct):
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class TaskOffset(Struct):
    subtopology_id: str = string("0+")
    partition: int = int32("0+")
    offset: int = int64("0+")


@message(versions="0", flexible="0+", api_key=88, listeners=("broker",))
class StreamsGroupHeartbeatRequest(Message):
    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    endpoint_information_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    topology: StreamsGroupHeartbeatTopology | None = nested(
        StreamsGroupHeartbeatTopology, "0+", nullable="0+", default=None
    )
    active_tasks: list[TaskIds] | None = array_of(TaskIds, "0+", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array_of(TaskIds, "0+", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array_of(TaskIds, "0+", nullable="0+", default=None)
    process_id: str | None = string("0+", nullable="0+", default=None)
    user_endpoint: Endpoint | None = nested(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] | None = array_of(KeyValue, "0+", nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = array_of(TaskOffset, "0+", nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = array_of(
        TaskOffset, "0+", nullable="0+", default=None
    )
    shutdown_application: bool = boolean("0+")


@struct
class Status(Struct):
    status_code: int = int8("0+")
    status_detail: str = string("0+")


@struct
class TopicPartition(Struct):
    topic: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = nested(Endpoint, "0+")
    active_partitions: list[TopicPartition] = array_of(TopicPartition, "0+")
    standby_partitions: list[TopicPartition] = array_of(TopicPartition, "0+")


@message(versions="0", flexible="0+", api_key=88)
class StreamsGroupHeartbeatResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    acceptable_recovery_lag: int = int32("0+")
    task_offset_interval_ms: int = int32("0+")
    status: list[Status] | None = array_of(Status, "0+", nullable="0+")
    active_tasks: list[TaskIds] | None = array_of(TaskIds, "0+", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array_of(TaskIds, "0+", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array_of(TaskIds, "0+", nullable="0+", default=None)
    endpoint_information_epoch: int = int32("0+")
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array_of(
        EndpointToPartitions, "0+", nullable="0+", default=None
    )


# StreamsGroupDescribe: the state of Kafka Streams groups (KIP-1071).


@message(versions="0", flexible="0+", api_key=89, listeners=("broker",))
class StreamsGroupDescribeRequest(Message):
    group_ids: list[str] = array_of(string, "0+")
    include_authorized_operations: bool = boolean("0+")


@struct
class StreamsGroupDescribeSubtopology(Struct):
    subtopology_id: str = string("0+")
    source_topics: list[str] = array_of(string, "0+")
    repartition_sink_topics: list[str] = array_of(string, "0+")
    state_changelog_topics: list[TopicInfo] = array_of(TopicInfo, "0+")
    repartition_source_topics: list[TopicInfo] = array_of(TopicInfo, "0+")


@struct
class StreamsGroupDescribeTopology(Struct):
    epoch: int = int32("0+")
    subtopologies: list[StreamsGroupDescribeSubtopology] | None = array_of(
        StreamsGroupDescribeSubtopology, "0+", nullable="0+", default=None
    )


@struct
class Assignment(Struct):
    active_tasks: list[TaskIds] = array_of(TaskIds, "0+")
    standby_tasks: list[TaskIds] = array_of(TaskIds, "0+")
    warmup_tasks: list[TaskIds] = array_of(TaskIds, "0+")


@struct
class Member(Struct):
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    client_id: str = string("0+")
    client_host: str = string("0+")
    topology_epoch: int = int32("0+")
    process_id: str = string("0+")
    user_endpoint: Endpoint | None = nested(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] = array_of(KeyValue, "0+")
    task_offsets: list[TaskOffset] = array_of(TaskOffset, "0+")
    task_end_offsets: list[TaskOffset] = array_of(TaskOffset, "0+")
    assignment: Assignment = nested(Assignment, "0+")
    target_assignment: Assignment = nested(Assignment, "0+")
    is_classic: bool = boolean("0+")


@struct
class DescribedGroup(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    group_epoch: int = int32("0+")
    assignment_epoch: int = int32("0+")
    topology: StreamsGroupDescribeTopology | None = nested(
        StreamsGroupDescribeTopology, "0+", nullable="0+", default=None
    )
    members: list[Member] = array_of(Member, "0+")
    authorized_operations: int = int32("0+", default=-(2**31))


@message(versions="0", flexible="0+", api_key=89)
class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[DescribedGroup] = array_of(DescribedGroup, "0+")

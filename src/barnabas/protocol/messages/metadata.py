"""The cluster as clients see it: Metadata, DescribeCluster, DescribeTopicPartitions."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, nested, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct

# Metadata: brokers, topics, partitions and their leaders.
#
# Source: KIP-4, KIP-112, KIP-430, KIP-516, KIP-1102.


@struct
class MetadataRequestTopic(Struct):
    topic_id: Uuid = uuid("10+", ignorable=True)
    name: str | None = string("0+", nullable="10+")


@message(versions="0-13", flexible="9+", api_key=3, listeners=("broker",))
class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = array_of(MetadataRequestTopic, "0+", nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@struct
class MetadataResponseBroker(Struct):
    node_id: int = int32("0+", map_key=True)
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition(Struct):
    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array_of(int32, "0+")
    isr_nodes: list[int] = array_of(int32, "0+")
    offline_replicas: list[int] = array_of(int32, "5+", ignorable=True)


@struct
class MetadataResponseTopic(Struct):
    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="12+", map_key=True)
    topic_id: Uuid = uuid("10+", ignorable=True)
    is_internal: bool = boolean("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array_of(MetadataResponsePartition, "0+")
    topic_authorized_operations: int = int32("8+", default=-(2**31))


@message(versions="0-13", flexible="9+", api_key=3)
class MetadataResponse(Message):
    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array_of(MetadataResponseBroker, "0+")
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array_of(MetadataResponseTopic, "0+")
    cluster_authorized_operations: int = int32("8-10", default=-(2**31))
    error_code: int = int16("13+", ignorable=True)


# DescribeCluster: the nodes behind an endpoint, brokers or controllers (KIP-700, KIP-919).


@message(versions="0-2", flexible="0+", api_key=60, listeners=("broker", "controller"))
class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = boolean("0+")
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


@struct
class DescribeClusterBroker(Struct):
    broker_id: int = int32("0+", map_key=True)
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable="0+", default=None)
    is_fenced: bool = boolean("2+")


@message(versions="0-2", flexible="0+", api_key=60)
class DescribeClusterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string("0+")
    controller_id: int = int32("0+", default=-1)
    brokers: list[DescribeClusterBroker] = array_of(DescribeClusterBroker, "0+")
    cluster_authorized_operations: int = int32("0+", default=-(2**31))


# DescribeTopicPartitions: partitions of topics, page by page (KIP-966).


@struct
class TopicRequest(Struct):
    name: str = string("0+")


@struct
class Cursor(Struct):
    topic_name: str = string("0+")
    partition_index: int = int32("0+")


@message(versions="0", flexible="0+", api_key=75, listeners=("broker",))
class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = array_of(TopicRequest, "0+")
    response_partition_limit: int = int32("0+", default=2000)
    cursor: Cursor | None = nested(Cursor, "0+", nullable="0+", default=None)


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+", default=-1, ignorable=True)
    replica_nodes: list[int] = array_of(int32, "0+")
    isr_nodes: list[int] = array_of(int32, "0+")
    eligible_leader_replicas: list[int] | None = array_of(int32, "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = array_of(int32, "0+", nullable="0+", default=None)
    offline_replicas: list[int] = array_of(int32, "0+", ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="0+", map_key=True)
    topic_id: Uuid = uuid("0+", ignorable=True)
    is_internal: bool = boolean("0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array_of(
        DescribeTopicPartitionsResponsePartition, "0+"
    )
    topic_authorized_operations: int = int32("0+", default=-(2**31))


@message(versions="0", flexible="0+", api_key=75)
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array_of(
        DescribeTopicPartitionsResponseTopic, "0+"
    )
    next_cursor: Cursor | None = nested(Cursor, "0+", nullable="0+", default=None)

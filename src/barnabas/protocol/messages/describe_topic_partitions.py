"""DescribeTopicPartitions: partitions of topics, page by page (KIP-966)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, nested, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class TopicRequest(Struct):
    name: str = string("0+")


@struct
class DescribeTopicPartitionsRequestCursor(Struct):
    topic_name: str = string("0+")
    partition_index: int = int32("0+")


@message(versions="0", flexible="0+", api_key=75, listeners=("broker",))
class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = array_of(TopicRequest, "0+")
    response_partition_limit: int = int32("0+", default=2000)
    cursor: DescribeTopicPartitionsRequestCursor | None = nested(
        DescribeTopicPartitionsRequestCursor, "0+", nullable="0+", default=None
    )


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


@struct
class DescribeTopicPartitionsResponseCursor(Struct):
    topic_name: str = string("0+")
    partition_index: int = int32("0+")


@message(versions="0", flexible="0+", api_key=75)
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array_of(
        DescribeTopicPartitionsResponseTopic, "0+"
    )
    next_cursor: DescribeTopicPartitionsResponseCursor | None = nested(
        DescribeTopicPartitionsResponseCursor, "0+", nullable="0+", default=None
    )

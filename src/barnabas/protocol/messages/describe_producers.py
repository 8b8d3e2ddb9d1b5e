"""DescribeProducers: the producers that are active in partitions (KIP-664)."""

from barnabas.protocol.fields import array_of, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class TopicRequest(Struct):
    name: str = string("0+")
    partition_indexes: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=61, listeners=("broker",))
class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = array_of(TopicRequest, "0+")


@struct
class ProducerState(Struct):
    producer_id: int = int64("0+")
    producer_epoch: int = int32("0+")
    last_sequence: int = int32("0+", default=-1)
    last_timestamp: int = int64("0+", default=-1)
    coordinator_epoch: int = int32("0+")
    current_txn_start_offset: int = int64("0+", default=-1)


@struct
class PartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = array_of(ProducerState, "0+")


@struct
class TopicResponse(Struct):
    name: str = string("0+")
    partitions: list[PartitionResponse] = array_of(PartitionResponse, "0+")


@message(versions="0", flexible="0+", api_key=61)
class DescribeProducersResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[TopicResponse] = array_of(TopicResponse, "0+")

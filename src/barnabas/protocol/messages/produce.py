"""Produce: append record batches (KIP-98, KIP-467, KIP-951, KIP-516)."""

from barnabas.base.disk import Buffer
from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    int16,
    int32,
    int64,
    nested,
    record_batches,
    string,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class PartitionProduceData(Struct):
    index: int = int32("0+")
    records: Buffer | None = record_batches("0+", nullable="0+")


@struct
class TopicProduceData(Struct):
    name: str = string("0-12", ignorable=True, map_key=True)
    topic_id: Uuid = uuid("13+", ignorable=True, map_key=True)
    partition_data: list[PartitionProduceData] = array_of(PartitionProduceData, "0+")


@message(versions="3-13", flexible="9+", api_key=0, listeners=("broker",))
class ProduceRequest(Message):
    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16("0+")
    timeout_ms: int = int32("0+")
    topic_data: list[TopicProduceData] = array_of(TopicProduceData, "0+")


@struct
class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


@struct
class PartitionProduceResponse(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    base_offset: int = int64("0+")
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array_of(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "10+", tagged="10+", tag=0)


@struct
class TopicProduceResponse(Struct):
    name: str = string("0-12", ignorable=True, map_key=True)
    topic_id: Uuid = uuid("13+", ignorable=True, map_key=True)
    partition_responses: list[PartitionProduceResponse] = array_of(PartitionProduceResponse, "0+")


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("10+", map_key=True)
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


@message(versions="3-13", flexible="9+", api_key=0)
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = array_of(TopicProduceResponse, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "10+", tagged="10+", tag=0)

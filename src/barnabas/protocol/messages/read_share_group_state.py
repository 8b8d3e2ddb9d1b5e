"""ReadShareGroupState: read the kept state of share partitions (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class PartitionData(Struct):
    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class ReadStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionData] = array_of(PartitionData, "0+")


@message(versions="0", flexible="0+", api_key=84, listeners=("broker",))
class ReadShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[ReadStateData] = array_of(ReadStateData, "0+")


@struct
class StateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


@struct
class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    state_batches: list[StateBatch] = array_of(StateBatch, "0+")


@struct
class ReadStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0", flexible="0+", api_key=84)
class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = array_of(ReadStateResult, "0+")

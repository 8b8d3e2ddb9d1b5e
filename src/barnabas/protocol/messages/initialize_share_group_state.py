"""InitializeShareGroupState: begin to keep the state of share partitions (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class PartitionData(Struct):
    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")


@struct
class InitializeStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionData] = array_of(PartitionData, "0+")


@message(versions="0", flexible="0+", api_key=83, listeners=("broker",))
class InitializeShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[InitializeStateData] = array_of(InitializeStateData, "0+")


@struct
class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class InitializeStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0", flexible="0+", api_key=83)
class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = array_of(InitializeStateResult, "0+")

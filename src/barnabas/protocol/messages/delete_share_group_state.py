"""DeleteShareGroupState: delete what the share coordinator keeps of partitions (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class PartitionData(Struct):
    partition: int = int32("0+")


@struct
class DeleteStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionData] = array_of(PartitionData, "0+")


@message(versions="0", flexible="0+", api_key=86, listeners=("broker",))
class DeleteShareGroupStateRequest(Message):
    group_id: str = string("0+")
    topics: list[DeleteStateData] = array_of(DeleteStateData, "0+")


@struct
class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class DeleteStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0", flexible="0+", api_key=86)
class DeleteShareGroupStateResponse(Message):
    results: list[DeleteStateResult] = array_of(DeleteStateResult, "0+")

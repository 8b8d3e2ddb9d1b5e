"""ReadShareGroupStateSummary: read the kept state of share partitions without batches (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class PartitionData(Struct):
    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class ReadStateSummaryData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionData] = array_of(PartitionData, "0+")


@message(versions="0-1", flexible="0+", api_key=87, listeners=("broker",))
class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = string("0+")
    topics: list[ReadStateSummaryData] = array_of(ReadStateSummaryData, "0+")


@struct
class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0-1", flexible="0+", api_key=87)
class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = array_of(ReadStateSummaryResult, "0+")

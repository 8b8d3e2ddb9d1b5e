"""DeleteRecords: raise the log start offset of partitions (KIP-107)."""

from barnabas.protocol.fields import array_of, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class DeleteRecordsPartition(Struct):
    partition_index: int = int32("0+")
    offset: int = int64("0+")


@struct
class DeleteRecordsTopic(Struct):
    name: str = string("0+")
    partitions: list[DeleteRecordsPartition] = array_of(DeleteRecordsPartition, "0+")


@message(versions="0-2", flexible="2+", api_key=21, listeners=("broker",))
class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = array_of(DeleteRecordsTopic, "0+")
    timeout_ms: int = int32("0+")


@struct
class DeleteRecordsPartitionResult(Struct):
    partition_index: int = int32("0+", map_key=True)
    low_watermark: int = int64("0+")
    error_code: int = int16("0+")


@struct
class DeleteRecordsTopicResult(Struct):
    name: str = string("0+", map_key=True)
    partitions: list[DeleteRecordsPartitionResult] = array_of(DeleteRecordsPartitionResult, "0+")


@message(versions="0-2", flexible="2+", api_key=21)
class DeleteRecordsResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[DeleteRecordsTopicResult] = array_of(DeleteRecordsTopicResult, "0+")

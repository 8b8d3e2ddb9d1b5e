"""ListOffsets: the offset at a timestamp or at an end of a partition.

Source: KIP-79, KIP-207, KIP-405, KIP-734.
"""

from barnabas.protocol.fields import array_of, int8, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class ListOffsetsPartition(Struct):
    partition_index: int = int32("0+")
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64("0+")


@struct
class ListOffsetsTopic(Struct):
    name: str = string("0+")
    partitions: list[ListOffsetsPartition] = array_of(ListOffsetsPartition, "0+")


@message(versions="1-11", flexible="6+", api_key=2, listeners=("broker",))
class ListOffsetsRequest(Message):
    replica_id: int = int32("0+")
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array_of(ListOffsetsTopic, "0+")
    timeout_ms: int = int32("10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@struct
class ListOffsetsTopicResponse(Struct):
    name: str = string("0+")
    partitions: list[ListOffsetsPartitionResponse] = array_of(ListOffsetsPartitionResponse, "0+")


@message(versions="1-11", flexible="6+", api_key=2)
class ListOffsetsResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array_of(ListOffsetsTopicResponse, "0+")

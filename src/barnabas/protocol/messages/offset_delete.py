"""OffsetDelete: forget the offsets of a group (KIP-496)."""

from barnabas.protocol.fields import array_of, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class OffsetDeleteRequestPartition(Struct):
    partition_index: int = int32("0+")


@struct
class OffsetDeleteRequestTopic(Struct):
    name: str = string("0+", map_key=True)
    partitions: list[OffsetDeleteRequestPartition] = array_of(OffsetDeleteRequestPartition, "0+")


@message(versions="0", api_key=47, listeners=("broker",))
class OffsetDeleteRequest(Message):
    group_id: str = string("0+")
    topics: list[OffsetDeleteRequestTopic] = array_of(OffsetDeleteRequestTopic, "0+")


@struct
class OffsetDeleteResponsePartition(Struct):
    partition_index: int = int32("0+", map_key=True)
    error_code: int = int16("0+")


@struct
class OffsetDeleteResponseTopic(Struct):
    name: str = string("0+", map_key=True)
    partitions: list[OffsetDeleteResponsePartition] = array_of(OffsetDeleteResponsePartition, "0+")


@message(versions="0", api_key=47)
class OffsetDeleteResponse(Message):
    error_code: int = int16("0+")
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array_of(OffsetDeleteResponseTopic, "0+")

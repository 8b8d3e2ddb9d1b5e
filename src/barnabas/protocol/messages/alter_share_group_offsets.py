"""AlterShareGroupOffsets: reset where a share group starts (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = int32("0+")
    start_offset: int = int64("0+")


@struct
class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+", map_key=True)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array_of(
        AlterShareGroupOffsetsRequestPartition, "0+"
    )


@message(versions="0", flexible="0+", api_key=91, listeners=("broker",))
class AlterShareGroupOffsetsRequest(Message):
    group_id: str = string("0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = array_of(
        AlterShareGroupOffsetsRequestTopic, "0+"
    )


@struct
class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+", map_key=True)
    topic_id: Uuid = uuid("0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array_of(
        AlterShareGroupOffsetsResponsePartition, "0+"
    )


@message(versions="0", flexible="0+", api_key=91)
class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array_of(
        AlterShareGroupOffsetsResponseTopic, "0+"
    )

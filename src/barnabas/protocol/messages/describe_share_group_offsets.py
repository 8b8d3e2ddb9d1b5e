"""DescribeShareGroupOffsets: where a share group starts, and how far it lags (KIP-932)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = string("0+")
    partitions: list[int] = array_of(int32, "0+")


@struct
class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = string("0+")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array_of(
        DescribeShareGroupOffsetsRequestTopic, "0+", nullable="0+"
    )


@message(versions="0-1", flexible="0+", api_key=90, listeners=("broker",))
class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = array_of(
        DescribeShareGroupOffsetsRequestGroup, "0+"
    )


@struct
class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = int32("0+")
    start_offset: int = int64("0+")
    leader_epoch: int = int32("0+")
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = string("0+")
    topic_id: Uuid = uuid("0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array_of(
        DescribeShareGroupOffsetsResponsePartition, "0+"
    )


@struct
class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = string("0+")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array_of(
        DescribeShareGroupOffsetsResponseTopic, "0+"
    )
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message(versions="0-1", flexible="0+", api_key=90)
class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int = int32("0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array_of(
        DescribeShareGroupOffsetsResponseGroup, "0+"
    )

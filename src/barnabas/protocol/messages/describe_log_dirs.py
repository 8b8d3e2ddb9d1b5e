"""DescribeLogDirs: what lies in the directories of a broker (KIP-113, KIP-827)."""

from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class DescribableLogDirTopic(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@message(versions="1-5", flexible="2+", api_key=35, listeners=("broker",))
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = array_of(
        DescribableLogDirTopic, "0+", nullable="0+"
    )


@struct
class DescribeLogDirsPartition(Struct):
    partition_index: int = int32("0+")
    partition_size: int = int64("0+")
    offset_lag: int = int64("0+")
    is_future_key: bool = boolean("0+")


@struct
class DescribeLogDirsTopic(Struct):
    name: str = string("0+")
    partitions: list[DescribeLogDirsPartition] = array_of(DescribeLogDirsPartition, "0+")


@struct
class DescribeLogDirsResult(Struct):
    error_code: int = int16("0+")
    log_dir: str = string("0+")
    topics: list[DescribeLogDirsTopic] = array_of(DescribeLogDirsTopic, "0+")
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


@message(versions="1-5", flexible="2+", api_key=35)
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array_of(DescribeLogDirsResult, "0+")

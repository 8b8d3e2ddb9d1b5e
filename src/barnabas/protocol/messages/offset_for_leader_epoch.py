"""OffsetForLeaderEpoch: where a leader epoch ended, so that a log can be truncated.

Source: KIP-101, KIP-279, KIP-320.
"""

from barnabas.protocol.fields import array_of, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class OffsetForLeaderPartition(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32("0+")


@struct
class OffsetForLeaderTopic(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[OffsetForLeaderPartition] = array_of(OffsetForLeaderPartition, "0+")


@message(versions="2-4", flexible="4+", api_key=23, listeners=("broker",))
class OffsetForLeaderEpochRequest(Message):
    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array_of(OffsetForLeaderTopic, "0+")


@struct
class EpochEndOffset(Struct):
    error_code: int = int16("0+")
    partition: int = int32("0+")
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64("0+", default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[EpochEndOffset] = array_of(EpochEndOffset, "0+")


@message(versions="2-4", flexible="4+", api_key=23)
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array_of(OffsetForLeaderTopicResult, "0+")

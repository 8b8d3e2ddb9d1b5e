"""OffsetCommit: store the offsets of a group (KIP-211, KIP-320, KIP-345, KIP-848, KIP-516)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class OffsetCommitRequestPartition(Struct):
    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable="0+")


@struct
class OffsetCommitRequestTopic(Struct):
    name: str = string("0-9", ignorable=True)
    topic_id: Uuid = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array_of(OffsetCommitRequestPartition, "0+")


@message(versions="2-10", flexible="8+", api_key=8, listeners=("broker",))
class OffsetCommitRequest(Message):
    group_id: str = string("0+")
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array_of(OffsetCommitRequestTopic, "0+")


@struct
class OffsetCommitResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class OffsetCommitResponseTopic(Struct):
    name: str = string("0-9", ignorable=True)
    topic_id: Uuid = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array_of(OffsetCommitResponsePartition, "0+")


@message(versions="2-10", flexible="8+", api_key=8)
class OffsetCommitResponse(Message):
    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array_of(OffsetCommitResponseTopic, "0+")

"""TxnOffsetCommit: store offsets of a group when a transaction commits.

Source: KIP-98, KIP-447, KIP-890.
"""

from barnabas.protocol.fields import array_of, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable="0+")


@struct
class TxnOffsetCommitRequestTopic(Struct):
    name: str = string("0+")
    partitions: list[TxnOffsetCommitRequestPartition] = array_of(
        TxnOffsetCommitRequestPartition, "0+"
    )


@message(versions="0-5", flexible="3+", api_key=28, listeners=("broker",))
class TxnOffsetCommitRequest(Message):
    transactional_id: str = string("0+")
    group_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array_of(TxnOffsetCommitRequestTopic, "0+")


@struct
class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class TxnOffsetCommitResponseTopic(Struct):
    name: str = string("0+")
    partitions: list[TxnOffsetCommitResponsePartition] = array_of(
        TxnOffsetCommitResponsePartition, "0+"
    )


@message(versions="0-5", flexible="3+", api_key=28)
class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[TxnOffsetCommitResponseTopic] = array_of(TxnOffsetCommitResponseTopic, "0+")

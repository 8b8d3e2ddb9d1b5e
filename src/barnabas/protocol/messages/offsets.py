"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct

# OffsetCommit: store the offsets of a group (KIP-211, KIP-320, KIP-345, KIP-848, KIP-516).


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


# OffsetFetch: read the offsets of groups (KIP-447, KIP-709, KIP-848, KIP-516).


@struct
class OffsetFetchRequestTopic(Struct):
    name: str = string("0-7")
    partition_indexes: list[int] = array_of(int32, "0-7")


@struct
class OffsetFetchRequestTopics(Struct):
    name: str = string("8-9", ignorable=True)
    topic_id: Uuid = uuid("10+", ignorable=True)
    partition_indexes: list[int] = array_of(int32, "8+")


@struct
class OffsetFetchRequestGroup(Struct):
    group_id: str = string("8+")
    member_id: str | None = string("9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array_of(
        OffsetFetchRequestTopics, "8+", nullable="8+"
    )


@message(versions="1-10", flexible="6+", api_key=9, listeners=("broker",))
class OffsetFetchRequest(Message):
    group_id: str = string("0-7")
    topics: list[OffsetFetchRequestTopic] | None = array_of(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array_of(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@struct
class OffsetFetchResponsePartition(Struct):
    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


@struct
class OffsetFetchResponseTopic(Struct):
    name: str = string("0-7")
    partitions: list[OffsetFetchResponsePartition] = array_of(OffsetFetchResponsePartition, "0-7")


@struct
class OffsetFetchResponsePartitions(Struct):
    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


@struct
class OffsetFetchResponseTopics(Struct):
    name: str = string("8-9", ignorable=True)
    topic_id: Uuid = uuid("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array_of(OffsetFetchResponsePartitions, "8+")


@struct
class OffsetFetchResponseGroup(Struct):
    group_id: str = string("8+")
    topics: list[OffsetFetchResponseTopics] = array_of(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


@message(versions="1-10", flexible="6+", api_key=9)
class OffsetFetchResponse(Message):
    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array_of(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array_of(OffsetFetchResponseGroup, "8+")


# OffsetDelete: forget the offsets of a group (KIP-496).


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

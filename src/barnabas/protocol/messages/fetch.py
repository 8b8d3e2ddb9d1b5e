"""Reading a partition: Fetch, ListOffsets, OffsetForLeaderEpoch."""

from barnabas.base.disk import Buffer
from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    int8,
    int16,
    int32,
    int64,
    nested,
    record_batches,
    string,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct

# Fetch: read record batches; clients, followers and the quorum all use it.
#
# KIP-74 bounds the response, KIP-227 brings sessions, KIP-320 epochs, KIP-392 preferred replicas,
# KIP-516 topic ids, KIP-595 the quorum's fields, KIP-903 the replica's state.


@struct
class ReplicaState(Struct):
    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


@struct
class FetchPartition(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64("0+")
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32("0+")
    replica_directory_id: Uuid = uuid("17+", tagged="17+", tag=0, ignorable=True)
    high_watermark: int = int64("18+", default=2**63 - 1, tagged="18+", tag=1, ignorable=True)


@struct
class FetchTopic(Struct):
    topic: str = string("0-12", ignorable=True)
    topic_id: Uuid = uuid("13+", ignorable=True)
    partitions: list[FetchPartition] = array_of(FetchPartition, "0+")


@struct
class ForgottenTopic(Struct):
    topic: str = string("7-12", ignorable=True)
    topic_id: Uuid = uuid("13+", ignorable=True)
    partitions: list[int] = array_of(int32, "7+")


@message(versions="4-18", flexible="12+", api_key=1, listeners=("broker", "controller"))
class FetchRequest(Message):
    cluster_id: str | None = string(
        "12+", nullable="12+", default=None, tagged="12+", tag=0, ignorable=True
    )
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = nested(ReplicaState, "15+", tagged="15+", tag=1)
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("3+", default=2**31 - 1, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array_of(FetchTopic, "0+")
    forgotten_topics_data: list[ForgottenTopic] = array_of(ForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)


@struct
class FetchEpochEndOffset(Struct):
    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


@struct
class SnapshotId(Struct):
    end_offset: int = int64("0+", default=-1)
    epoch: int = int32("0+", default=-1)


@struct
class AbortedTransaction(Struct):
    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


@struct
class PartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    high_watermark: int = int64("0+")
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    diverging_epoch: FetchEpochEndOffset = nested(FetchEpochEndOffset, "12+", tagged="12+", tag=0)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "12+", tagged="12+", tag=1)
    snapshot_id: SnapshotId = nested(SnapshotId, "12+", tagged="12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array_of(
        AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: Buffer | None = record_batches("0+", nullable="0+")


@struct
class FetchableTopicResponse(Struct):
    topic: str = string("0-12", ignorable=True)
    topic_id: Uuid = uuid("13+", ignorable=True)
    partitions: list[PartitionData] = array_of(PartitionData, "0+")


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("16+", map_key=True)
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="16+", default=None)


@message(versions="4-18", flexible="12+", api_key=1)
class FetchResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: list[FetchableTopicResponse] = array_of(FetchableTopicResponse, "0+")
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "16+", tagged="16+", tag=0)


# ListOffsets: the offset at a timestamp or at an end of a partition.
#
# Source: KIP-79, KIP-207, KIP-405, KIP-734.


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


# OffsetForLeaderEpoch: where a leader epoch ended, so that a log can be truncated.
#
# Source: KIP-101, KIP-279, KIP-320.


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
class OffsetForLeaderEpochEpochEndOffset(Struct):
    error_code: int = int16("0+")
    partition: int = int32("0+")
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64("0+", default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[OffsetForLeaderEpochEpochEndOffset] = array_of(
        OffsetForLeaderEpochEpochEndOffset, "0+"
    )


@message(versions="2-4", flexible="4+", api_key=23)
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array_of(OffsetForLeaderTopicResult, "0+")

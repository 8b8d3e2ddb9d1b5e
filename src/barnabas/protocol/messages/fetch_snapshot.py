"""FetchSnapshot: read a snapshot of the metadata log piece by piece (KIP-630, KIP-853)."""

from barnabas.base.disk import Buffer
from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    int16,
    int32,
    int64,
    nested,
    record_batches,
    string,
    uint16,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class FetchSnapshotRequestSnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


@struct
class FetchSnapshotRequestPartitionSnapshot(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("0+")
    snapshot_id: FetchSnapshotRequestSnapshotId = nested(FetchSnapshotRequestSnapshotId, "0+")
    position: int = int64("0+")
    replica_directory_id: Uuid = uuid("1+", tagged="1+", tag=0, ignorable=True)


@struct
class FetchSnapshotRequestTopicSnapshot(Struct):
    name: str = string("0+")
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = array_of(
        FetchSnapshotRequestPartitionSnapshot, "0+"
    )


@message(versions="0-1", flexible="0+", api_key=59, listeners=("controller",))
class FetchSnapshotRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", default=None, tagged="0+", tag=0)
    replica_id: int = int32("0+", default=-1)
    max_bytes: int = int32("0+", default=2**31 - 1)
    topics: list[FetchSnapshotRequestTopicSnapshot] = array_of(
        FetchSnapshotRequestTopicSnapshot, "0+"
    )


@struct
class FetchSnapshotResponseSnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class FetchSnapshotResponsePartitionSnapshot(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    snapshot_id: FetchSnapshotResponseSnapshotId = nested(FetchSnapshotResponseSnapshotId, "0+")
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "0+", tagged="0+", tag=0)
    size: int = int64("0+")
    position: int = int64("0+")
    unaligned_records: Buffer = record_batches("0+")


@struct
class FetchSnapshotResponseTopicSnapshot(Struct):
    name: str = string("0+")
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = array_of(
        FetchSnapshotResponsePartitionSnapshot, "0+"
    )


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


@message(versions="0-1", flexible="0+", api_key=59)
class FetchSnapshotResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    topics: list[FetchSnapshotResponseTopicSnapshot] = array_of(
        FetchSnapshotResponseTopicSnapshot, "0+"
    )
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "1+", tagged="1+", tag=0)

"""The quorum: elections, snapshots, and the records that only it writes."""

from barnabas.base.disk import Buffer
from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    boolean,
    int16,
    int32,
    int64,
    nested,
    record_batches,
    string,
    uint16,
    uuid,
)
from barnabas.protocol.messages.voters import KRaftVersionFeature
from barnabas.protocol.schema import Message, Struct, message, struct

# Vote: a candidate asks for votes, or first whether it would get them.
#
# Source: KIP-595, KIP-853, KIP-996.


@struct
class VoteRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    replica_epoch: int = int32("0+")
    replica_id: int = int32("0+")
    replica_directory_id: Uuid = uuid("1+", ignorable=True)
    voter_directory_id: Uuid = uuid("1+", ignorable=True)
    last_offset_epoch: int = int32("0+")
    last_offset: int = int64("0+")
    pre_vote: bool = boolean("2+")


@struct
class VoteRequestTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[VoteRequestPartitionData] = array_of(VoteRequestPartitionData, "0+")


@message(versions="0-2", flexible="0+", api_key=52, listeners=("controller",))
class VoteRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[VoteRequestTopicData] = array_of(VoteRequestTopicData, "0+")


@struct
class VoteResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    vote_granted: bool = boolean("0+")


@struct
class VoteResponseTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[VoteResponsePartitionData] = array_of(VoteResponsePartitionData, "0+")


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


@message(versions="0-2", flexible="0+", api_key=52)
class VoteResponse(Message):
    error_code: int = int16("0+")
    topics: list[VoteResponseTopicData] = array_of(VoteResponseTopicData, "0+")
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "1+", tagged="1+", tag=0)


# BeginQuorumEpoch: a new leader of the quorum makes itself known (KIP-595, KIP-853).


@struct
class BeginQuorumEpochRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    voter_directory_id: Uuid = uuid("1+", ignorable=True)
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class BeginQuorumEpochRequestTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[BeginQuorumEpochRequestPartitionData] = array_of(
        BeginQuorumEpochRequestPartitionData, "0+"
    )


@struct
class LeaderEndpoint(Struct):
    name: str = string("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


@message(versions="0-1", flexible="1+", api_key=53, listeners=("controller",))
class BeginQuorumEpochRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochRequestTopicData] = array_of(
        BeginQuorumEpochRequestTopicData, "0+"
    )
    leader_endpoints: list[LeaderEndpoint] = array_of(LeaderEndpoint, "1+", ignorable=True)


@struct
class BeginQuorumEpochResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class BeginQuorumEpochResponseTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[BeginQuorumEpochResponsePartitionData] = array_of(
        BeginQuorumEpochResponsePartitionData, "0+"
    )


@message(versions="0-1", flexible="1+", api_key=53)
class BeginQuorumEpochResponse(Message):
    error_code: int = int16("0+")
    topics: list[BeginQuorumEpochResponseTopicData] = array_of(
        BeginQuorumEpochResponseTopicData, "0+"
    )
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "1+", tagged="1+", tag=0)


# EndQuorumEpoch: a leader of the quorum resigns and names preferred successors.
#
# Source: KIP-595, KIP-853.


@struct
class ReplicaInfo(Struct):
    candidate_id: int = int32("1+")
    candidate_directory_id: Uuid = uuid("1+")


@struct
class EndQuorumEpochRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    preferred_successors: list[int] = array_of(int32, "0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = array_of(ReplicaInfo, "1+", ignorable=True)


@struct
class EndQuorumEpochRequestTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[EndQuorumEpochRequestPartitionData] = array_of(
        EndQuorumEpochRequestPartitionData, "0+"
    )


@message(versions="0-1", flexible="1+", api_key=54, listeners=("controller",))
class EndQuorumEpochRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+", default=None)
    topics: list[EndQuorumEpochRequestTopicData] = array_of(EndQuorumEpochRequestTopicData, "0+")
    leader_endpoints: list[LeaderEndpoint] = array_of(LeaderEndpoint, "1+", ignorable=True)


@struct
class EndQuorumEpochResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class EndQuorumEpochResponseTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[EndQuorumEpochResponsePartitionData] = array_of(
        EndQuorumEpochResponsePartitionData, "0+"
    )


@message(versions="0-1", flexible="1+", api_key=54)
class EndQuorumEpochResponse(Message):
    error_code: int = int16("0+")
    topics: list[EndQuorumEpochResponseTopicData] = array_of(EndQuorumEpochResponseTopicData, "0+")
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "1+", tagged="1+", tag=0)


# FetchSnapshot: read a snapshot of the metadata log piece by piece (KIP-630, KIP-853).


@struct
class SnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


@struct
class FetchSnapshotRequestPartitionSnapshot(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("0+")
    snapshot_id: SnapshotId = nested(SnapshotId, "0+")
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
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


@struct
class FetchSnapshotResponsePartitionSnapshot(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    snapshot_id: SnapshotId = nested(SnapshotId, "0+")
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


@message(versions="0-1", flexible="0+", api_key=59)
class FetchSnapshotResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    topics: list[FetchSnapshotResponseTopicSnapshot] = array_of(
        FetchSnapshotResponseTopicSnapshot, "0+"
    )
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "1+", tagged="1+", tag=0)


# Control records of the metadata log, and the quorum-state file (KIP-595, KIP-630, KIP-853).


@struct
class LeaderChangeMessageVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("1+")


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    version: int = int16("0+")
    leader_id: int = int32("0+")
    voters: list[LeaderChangeMessageVoter] = array_of(LeaderChangeMessageVoter, "0+")
    granting_voters: list[LeaderChangeMessageVoter] = array_of(LeaderChangeMessageVoter, "0+")


@struct
class Endpoint(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")


@struct
class VotersRecordVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    endpoints: list[Endpoint] = array_of(Endpoint, "0+")
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature, "0+")


@message(versions="0", flexible="0+")
class VotersRecord(Message):
    version: int = int16("0+")
    voters: list[VotersRecordVoter] = array_of(VotersRecordVoter, "0+")


@message(versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    version: int = int16("0+")
    k_raft_version: int = int16("0+")


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")


@message(versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    version: int = int16("0+")


@struct
class QuorumStateDataVoter(Struct):
    voter_id: int = int32("0")


@message(versions="0-1", flexible="0+")
class QuorumStateData(Message):
    cluster_id: str = string("0")
    leader_id: int = int32("0+", default=-1)
    leader_epoch: int = int32("0+", default=-1)
    voted_id: int = int32("0+", default=-1)
    voted_directory_id: Uuid = uuid("1+")
    applied_offset: int = int64("0")
    current_voters: list[QuorumStateDataVoter] | None = array_of(
        QuorumStateDataVoter, "0", nullable="0"
    )


# The key of a control record, and the value of one that ends a transaction (KIP-98).


@message(versions="0")
class ControlRecordTypeSchema(Message):
    type: int = int16("0+")


@message(versions="0")
class EndTxnMarker(Message):
    coordinator_epoch: int = int32("0+")

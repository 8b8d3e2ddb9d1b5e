"""Voters of the quorum: DescribeQuorum, AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import (
    array_of,
    boolean,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
    uuid,
)
from barnabas.protocol.schema import Message, Struct, message, struct

# DescribeQuorum: the state of the raft quorum (KIP-595, KIP-836, KIP-853).


@struct
class DescribeQuorumRequestPartitionData(Struct):
    partition_index: int = int32("0+")


@struct
class DescribeQuorumRequestTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[DescribeQuorumRequestPartitionData] = array_of(
        DescribeQuorumRequestPartitionData, "0+"
    )


@message(versions="0-2", flexible="0+", api_key=55, listeners=("broker", "controller"))
class DescribeQuorumRequest(Message):
    topics: list[DescribeQuorumRequestTopicData] = array_of(DescribeQuorumRequestTopicData, "0+")


@struct
class ReplicaState(Struct):
    replica_id: int = int32("0+")
    replica_directory_id: Uuid = uuid("2+")
    log_end_offset: int = int64("0+")
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


@struct
class DescribeQuorumResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    high_watermark: int = int64("0+")
    current_voters: list[ReplicaState] = array_of(ReplicaState, "0+")
    observers: list[ReplicaState] = array_of(ReplicaState, "0+")


@struct
class DescribeQuorumResponseTopicData(Struct):
    topic_name: str = string("0+")
    partitions: list[DescribeQuorumResponsePartitionData] = array_of(
        DescribeQuorumResponsePartitionData, "0+"
    )


@struct
class DescribeQuorumListener(Struct):
    name: str = string("2+", map_key=True)
    host: str = string("2+")
    port: int = uint16("2+")


@struct
class Node(Struct):
    node_id: int = int32("2+", map_key=True)
    listeners: list[DescribeQuorumListener] = array_of(DescribeQuorumListener, "2+")


@message(versions="0-2", flexible="0+", api_key=55)
class DescribeQuorumResponse(Message):
    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = array_of(DescribeQuorumResponseTopicData, "0+")
    nodes: list[Node] = array_of(Node, "2+")


# AddRaftVoter: add a voter to the quorum (KIP-853).


@struct
class Listener(Struct):
    name: str = string("0+", map_key=True)
    host: str = string("0+")
    port: int = uint16("0+")


@message(versions="0-1", flexible="0+", api_key=80, listeners=("controller", "broker"))
class AddRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    timeout_ms: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    listeners: list[Listener] = array_of(Listener, "0+")
    ack_when_committed: bool = boolean("1+", default=True)


@message(versions="0-1", flexible="0+", api_key=80)
class AddRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)


# RemoveRaftVoter: take a voter out of the quorum (KIP-853).


@message(versions="0", flexible="0+", api_key=81, listeners=("controller", "broker"))
class RemoveRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")


@message(versions="0", flexible="0+", api_key=81)
class RemoveRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)


# UpdateRaftVoter: a voter corrects its endpoints and supported versions (KIP-853).


@struct
class KRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


@message(versions="0", flexible="0+", api_key=82, listeners=("controller",))
class UpdateRaftVoterRequest(Message):
    cluster_id: str | None = string("0+", nullable="0+")
    current_leader_epoch: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    listeners: list[Listener] = array_of(Listener, "0+")
    k_raft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature, "0+")


@struct
class CurrentLeader(Struct):
    leader_id: int = int32("0+", default=-1)
    leader_epoch: int = int32("0+", default=-1)
    host: str = string("0+")
    port: int = int32("0+")


@message(versions="0", flexible="0+", api_key=82)
class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    current_leader: CurrentLeader = nested(CurrentLeader, "0+", tagged="0+", tag=0)

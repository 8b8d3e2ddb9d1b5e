"""EndQuorumEpoch: a leader of the quorum resigns and names preferred successors.

Source: KIP-595, KIP-853.
"""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, string, uint16, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


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


@struct
class LeaderEndpoint(Struct):
    name: str = string("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


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


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


@message(versions="0-1", flexible="1+", api_key=54)
class EndQuorumEpochResponse(Message):
    error_code: int = int16("0+")
    topics: list[EndQuorumEpochResponseTopicData] = array_of(EndQuorumEpochResponseTopicData, "0+")
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "1+", tagged="1+", tag=0)

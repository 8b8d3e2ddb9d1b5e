"""BeginQuorumEpoch: a new leader of the quorum makes itself known (KIP-595, KIP-853)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, string, uint16, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


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


@struct
class NodeEndpoint(Struct):
    node_id: int = int32("1+", map_key=True)
    host: str = string("1+")
    port: int = uint16("1+")


@message(versions="0-1", flexible="1+", api_key=53)
class BeginQuorumEpochResponse(Message):
    error_code: int = int16("0+")
    topics: list[BeginQuorumEpochResponseTopicData] = array_of(
        BeginQuorumEpochResponseTopicData, "0+"
    )
    node_endpoints: list[NodeEndpoint] = array_of(NodeEndpoint, "1+", tagged="1+", tag=0)

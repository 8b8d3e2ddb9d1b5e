"""Vote: a candidate asks for votes, or first whether it would get them.

Source: KIP-595, KIP-853, KIP-996.
"""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, string, uint16, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


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

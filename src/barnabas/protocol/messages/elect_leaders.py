"""ElectLeaders: elect preferred or unclean leaders (KIP-183, KIP-460)."""

from barnabas.protocol.fields import array_of, int8, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class TopicPartitions(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@message(versions="0-2", flexible="2+", api_key=43, listeners=("broker", "controller"))
class ElectLeadersRequest(Message):
    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array_of(TopicPartitions, "0+", nullable="0+")
    timeout_ms: int = int32("0+", default=60000)


@struct
class PartitionResult(Struct):
    partition_id: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@struct
class ReplicaElectionResult(Struct):
    topic: str = string("0+")
    partition_result: list[PartitionResult] = array_of(PartitionResult, "0+")


@message(versions="0-2", flexible="2+", api_key=43)
class ElectLeadersResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array_of(ReplicaElectionResult, "0+")

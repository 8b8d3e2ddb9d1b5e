"""AlterPartitionReassignments: start and cancel moves of replicas (KIP-455, KIP-860)."""

from barnabas.protocol.fields import array_of, boolean, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class ReassignablePartition(Struct):
    partition_index: int = int32("0+")
    replicas: list[int] | None = array_of(int32, "0+", nullable="0+", default=None)


@struct
class ReassignableTopic(Struct):
    name: str = string("0+")
    partitions: list[ReassignablePartition] = array_of(ReassignablePartition, "0+")


@message(versions="0-1", flexible="0+", api_key=45, listeners=("broker", "controller"))
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int = int32("0+", default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array_of(ReassignableTopic, "0+")


@struct
class ReassignablePartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@struct
class ReassignableTopicResponse(Struct):
    name: str = string("0+")
    partitions: list[ReassignablePartitionResponse] = array_of(ReassignablePartitionResponse, "0+")


@message(versions="0-1", flexible="0+", api_key=45)
class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = int32("0+")
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = array_of(ReassignableTopicResponse, "0+")

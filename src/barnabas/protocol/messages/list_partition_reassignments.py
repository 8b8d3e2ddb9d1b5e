"""ListPartitionReassignments: which replicas are being moved (KIP-455)."""

from barnabas.protocol.fields import array_of, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class ListPartitionReassignmentsTopics(Struct):
    name: str = string("0+")
    partition_indexes: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=46, listeners=("broker", "controller"))
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int = int32("0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array_of(
        ListPartitionReassignmentsTopics, "0+", nullable="0+", default=None
    )


@struct
class OngoingPartitionReassignment(Struct):
    partition_index: int = int32("0+")
    replicas: list[int] = array_of(int32, "0+")
    adding_replicas: list[int] = array_of(int32, "0+")
    removing_replicas: list[int] = array_of(int32, "0+")


@struct
class OngoingTopicReassignment(Struct):
    name: str = string("0+")
    partitions: list[OngoingPartitionReassignment] = array_of(OngoingPartitionReassignment, "0+")


@message(versions="0", flexible="0+", api_key=46)
class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = array_of(OngoingTopicReassignment, "0+")

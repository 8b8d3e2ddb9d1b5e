"""CreatePartitions: give topics more partitions (KIP-195, KIP-599)."""

from barnabas.protocol.fields import array_of, boolean, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = array_of(int32, "0+")


@struct
class CreatePartitionsTopic(Struct):
    name: str = string("0+", map_key=True)
    count: int = int32("0+")
    assignments: list[CreatePartitionsAssignment] | None = array_of(
        CreatePartitionsAssignment, "0+", nullable="0+"
    )


@message(versions="0-3", flexible="2+", api_key=37, listeners=("broker", "controller"))
class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = array_of(CreatePartitionsTopic, "0+")
    timeout_ms: int = int32("0+")
    validate_only: bool = boolean("0+")


@struct
class CreatePartitionsTopicResult(Struct):
    name: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)


@message(versions="0-3", flexible="2+", api_key=37)
class CreatePartitionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[CreatePartitionsTopicResult] = array_of(CreatePartitionsTopicResult, "0+")

"""Topics: CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct

# CreateTopics: create topics, or only check whether they could be (KIP-4, KIP-525, KIP-599).


@struct
class CreatableReplicaAssignment(Struct):
    partition_index: int = int32("0+", map_key=True)
    broker_ids: list[int] = array_of(int32, "0+")


@struct
class CreatableTopicConfig(Struct):
    name: str = string("0+", map_key=True)
    value: str | None = string("0+", nullable="0+")


@struct
class CreatableTopic(Struct):
    name: str = string("0+", map_key=True)
    num_partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    assignments: list[CreatableReplicaAssignment] = array_of(CreatableReplicaAssignment, "0+")
    configs: list[CreatableTopicConfig] = array_of(CreatableTopicConfig, "0+")


@message(versions="2-7", flexible="5+", api_key=19, listeners=("broker", "controller"))
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = array_of(CreatableTopic, "0+")
    timeout_ms: int = int32("0+", default=60000)
    validate_only: bool = boolean("1+")


@struct
class CreatableTopicConfigs(Struct):
    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


@struct
class CreatableTopicResult(Struct):
    name: str = string("0+", map_key=True)
    topic_id: Uuid = uuid("7+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", tagged="5+", tag=0, ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array_of(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


@message(versions="2-7", flexible="5+", api_key=19)
class CreateTopicsResponse(Message):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array_of(CreatableTopicResult, "0+")


# DeleteTopics: delete topics by name or by id (KIP-4, KIP-516).


@struct
class DeleteTopicState(Struct):
    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: Uuid = uuid("6+")


@message(versions="1-6", flexible="4+", api_key=20, listeners=("broker", "controller"))
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = array_of(DeleteTopicState, "6+")
    topic_names: list[str] = array_of(string, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


@struct
class DeletableTopicResult(Struct):
    name: str | None = string("0+", nullable="6+", map_key=True)
    topic_id: Uuid = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message(versions="1-6", flexible="4+", api_key=20)
class DeleteTopicsResponse(Message):
    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array_of(DeletableTopicResult, "0+")


# CreatePartitions: give topics more partitions (KIP-195, KIP-599).


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


# DeleteRecords: raise the log start offset of partitions (KIP-107).


@struct
class DeleteRecordsPartition(Struct):
    partition_index: int = int32("0+")
    offset: int = int64("0+")


@struct
class DeleteRecordsTopic(Struct):
    name: str = string("0+")
    partitions: list[DeleteRecordsPartition] = array_of(DeleteRecordsPartition, "0+")


@message(versions="0-2", flexible="2+", api_key=21, listeners=("broker",))
class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = array_of(DeleteRecordsTopic, "0+")
    timeout_ms: int = int32("0+")


@struct
class DeleteRecordsPartitionResult(Struct):
    partition_index: int = int32("0+", map_key=True)
    low_watermark: int = int64("0+")
    error_code: int = int16("0+")


@struct
class DeleteRecordsTopicResult(Struct):
    name: str = string("0+", map_key=True)
    partitions: list[DeleteRecordsPartitionResult] = array_of(DeleteRecordsPartitionResult, "0+")


@message(versions="0-2", flexible="2+", api_key=21)
class DeleteRecordsResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[DeleteRecordsTopicResult] = array_of(DeleteRecordsTopicResult, "0+")

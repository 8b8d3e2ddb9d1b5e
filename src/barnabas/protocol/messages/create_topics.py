"""CreateTopics: create topics, or only check whether they could be (KIP-4, KIP-525, KIP-599)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


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

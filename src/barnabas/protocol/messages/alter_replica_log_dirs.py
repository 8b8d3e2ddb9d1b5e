"""AlterReplicaLogDirs: move replicas between the directories of one broker (KIP-113)."""

from barnabas.protocol.fields import array_of, int16, int32, string
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AlterReplicaLogDirTopic(Struct):
    name: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@struct
class AlterReplicaLogDir(Struct):
    path: str = string("0+", map_key=True)
    topics: list[AlterReplicaLogDirTopic] = array_of(AlterReplicaLogDirTopic, "0+")


@message(versions="1-2", flexible="2+", api_key=34, listeners=("broker",))
class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = array_of(AlterReplicaLogDir, "0+")


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = string("0+")
    partitions: list[AlterReplicaLogDirPartitionResult] = array_of(
        AlterReplicaLogDirPartitionResult, "0+"
    )


@message(versions="1-2", flexible="2+", api_key=34)
class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int = int32("0+")
    results: list[AlterReplicaLogDirTopicResult] = array_of(AlterReplicaLogDirTopicResult, "0+")

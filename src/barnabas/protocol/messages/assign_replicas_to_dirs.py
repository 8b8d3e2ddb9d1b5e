"""AssignReplicasToDirs: a broker tells the controller which directory holds which replica.

Source: KIP-858.
"""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, int16, int32, int64, uuid
from barnabas.protocol.schema import Message, Struct, message, struct


@struct
class AssignReplicasToDirsRequestPartitionData(Struct):
    partition_index: int = int32("0+")


@struct
class AssignReplicasToDirsRequestTopicData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[AssignReplicasToDirsRequestPartitionData] = array_of(
        AssignReplicasToDirsRequestPartitionData, "0+"
    )


@struct
class AssignReplicasToDirsRequestDirectoryData(Struct):
    id: Uuid = uuid("0+")
    topics: list[AssignReplicasToDirsRequestTopicData] = array_of(
        AssignReplicasToDirsRequestTopicData, "0+"
    )


@message(versions="0", flexible="0+", api_key=73, listeners=("controller",))
class AssignReplicasToDirsRequest(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    directories: list[AssignReplicasToDirsRequestDirectoryData] = array_of(
        AssignReplicasToDirsRequestDirectoryData, "0+"
    )


@struct
class AssignReplicasToDirsResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class AssignReplicasToDirsResponseTopicData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[AssignReplicasToDirsResponsePartitionData] = array_of(
        AssignReplicasToDirsResponsePartitionData, "0+"
    )


@struct
class AssignReplicasToDirsResponseDirectoryData(Struct):
    id: Uuid = uuid("0+")
    topics: list[AssignReplicasToDirsResponseTopicData] = array_of(
        AssignReplicasToDirsResponseTopicData, "0+"
    )


@message(versions="0", flexible="0+", api_key=73)
class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    directories: list[AssignReplicasToDirsResponseDirectoryData] = array_of(
        AssignReplicasToDirsResponseDirectoryData, "0+"
    )

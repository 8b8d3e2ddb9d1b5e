"""Replicas of partitions: ISR, leaders, reassignments, log directories."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, int64, string, uuid
from barnabas.protocol.schema import Message, Struct, message, struct

# AlterPartition: a leader proposes a new ISR to the controller (KIP-497, KIP-704, KIP-903).


@struct
class BrokerState(Struct):
    broker_id: int = int32("3+")
    broker_epoch: int = int64("3+", default=-1)


@struct
class AlterPartitionRequestPartitionData(Struct):
    partition_index: int = int32("0+")
    leader_epoch: int = int32("0+")
    new_isr: list[int] = array_of(int32, "0-2")
    new_isr_with_epochs: list[BrokerState] = array_of(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32("0+")


@struct
class AlterPartitionRequestTopicData(Struct):
    topic_id: Uuid = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = array_of(
        AlterPartitionRequestPartitionData, "0+"
    )


@message(versions="2-3", flexible="0+", api_key=56, listeners=("controller",))
class AlterPartitionRequest(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    topics: list[AlterPartitionRequestTopicData] = array_of(AlterPartitionRequestTopicData, "0+")


@struct
class AlterPartitionResponsePartitionData(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    isr: list[int] = array_of(int32, "0+")
    leader_recovery_state: int = int8("1+", ignorable=True)
    partition_epoch: int = int32("0+")


@struct
class AlterPartitionResponseTopicData(Struct):
    topic_id: Uuid = uuid("2+", ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = array_of(
        AlterPartitionResponsePartitionData, "0+"
    )


@message(versions="2-3", flexible="0+", api_key=56)
class AlterPartitionResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    topics: list[AlterPartitionResponseTopicData] = array_of(AlterPartitionResponseTopicData, "0+")


# ElectLeaders: elect preferred or unclean leaders (KIP-183, KIP-460).


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


# AlterPartitionReassignments: start and cancel moves of replicas (KIP-455, KIP-860).


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


# ListPartitionReassignments: which replicas are being moved (KIP-455).


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


# DescribeLogDirs: what lies in the directories of a broker (KIP-113, KIP-827).


@struct
class DescribableLogDirTopic(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@message(versions="1-5", flexible="2+", api_key=35, listeners=("broker",))
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = array_of(
        DescribableLogDirTopic, "0+", nullable="0+"
    )


@struct
class DescribeLogDirsPartition(Struct):
    partition_index: int = int32("0+")
    partition_size: int = int64("0+")
    offset_lag: int = int64("0+")
    is_future_key: bool = boolean("0+")


@struct
class DescribeLogDirsTopic(Struct):
    name: str = string("0+")
    partitions: list[DescribeLogDirsPartition] = array_of(DescribeLogDirsPartition, "0+")


@struct
class DescribeLogDirsResult(Struct):
    error_code: int = int16("0+")
    log_dir: str = string("0+")
    topics: list[DescribeLogDirsTopic] = array_of(DescribeLogDirsTopic, "0+")
    total_bytes: int = int64("4+", default=-1, ignorable=True)
    usable_bytes: int = int64("4+", default=-1, ignorable=True)
    is_cordoned: bool = boolean("5+", ignorable=True)


@message(versions="1-5", flexible="2+", api_key=35)
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array_of(DescribeLogDirsResult, "0+")


# AlterReplicaLogDirs: move replicas between the directories of one broker (KIP-113).


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


# AssignReplicasToDirs: a broker tells the controller which directory holds which replica.
#
# Source: KIP-858.


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

"""Replicas of partitions in log directories.

DescribeLogDirs (key 35), versions 1-5: KIP-113, 827, 1066. Needs DESCRIBE of the cluster.

AlterReplicaLogDirs (key 34), versions 1-2: KIP-113, 1066.

What is asked for is begun, or refused, at once; how far it is shows in DescribeLogDirs. A replica
that is not here yet is refused too, and its directory remembered for when it comes.
"""

from barnabas.base.ids import TopicPartition
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.names import NAME_LENGTH_MAX, future_directory_name
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN_LAG = -1


def handle_describe_log_dirs(
    services: BrokerServices, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """List what each log directory holds."""
    if not may(services, context, Operation.DESCRIBE, ResourceType.CLUSTER):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    logs = services.logs
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(log_dir=directory, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
            if directory in logs.offline_dirs
            else _describe(services, directory, wanted)
            for directory in logs.log_dirs
        ]
    )


def _describe(
    services: BrokerServices, directory: str, wanted: set[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in services.replicas:
        log = partition.log
        if log.log_dir != directory:
            continue
        if wanted is not None and partition.topic_partition not in wanted:
            continue
        topics.setdefault(partition.topic_partition.topic, []).append(
            DescribeLogDirsPartition(
                partition_index=partition.topic_partition.partition,
                partition_size=log.size_bytes,
                offset_lag=max(0, partition.high_watermark - log.log_end_offset),
            )
        )
    for future in services.logs.futures:
        name, index = future.topic_partition
        if future.log_dir == directory and (wanted is None or (name, index) in wanted):
            current = services.logs.get(future.topic_partition)
            topics.setdefault(name, []).append(
                DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=future.size_bytes,
                    offset_lag=(
                        UNKNOWN_LAG
                        if current is None
                        else current.log_end_offset - future.log_end_offset
                    ),
                    is_future_key=True,
                )
            )
    total_bytes, usable_bytes = services.logs.volume_bytes(directory)
    return DescribeLogDirsResult(
        log_dir=directory,
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in sorted(topics.items())
        ],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=(
            directory in services.logs.cordoned_dirs
            and services.image.metadata_version.has_cordoned_log_dirs
        ),
    )


UNIQUE_ID = "0" * 32


def handle_alter_replica_log_dirs(
    services: BrokerServices, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin, redirect or call off the move of each replica; of two directories the last counts."""
    wanted = {
        TopicPartition(topic.name, index): entry.path
        for entry in request.dirs
        for topic in entry.topics
        for index in topic.partitions
    }
    is_allowed = may(services, context, Operation.ALTER, ResourceType.CLUSTER)
    answers: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for topic_partition, path in wanted.items():
        answers.setdefault(topic_partition.topic, []).append(
            AlterReplicaLogDirPartitionResult(
                partition_index=topic_partition.partition,
                error_code=(
                    _alter(services, topic_partition, path)
                    if is_allowed
                    else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                ),
            )
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in answers.items()
        ]
    )


def _alter(services: BrokerServices, topic_partition: TopicPartition, path: str) -> ErrorCode:
    logs = services.logs
    if len(future_directory_name(topic_partition, UNIQUE_ID)) > NAME_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in logs.log_dirs:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if path in logs.offline_dirs:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if path in logs.cordoned_dirs:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    partition = services.replicas.find(*topic_partition)
    if partition is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        logs.prefer(topic_partition, path)
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if isinstance(partition, ErrorCode):
        if partition is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            logs.prefer(topic_partition, path)
        return partition
    try:
        services.replicas.moves.request(partition, path)
    except LogDirFailure:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE

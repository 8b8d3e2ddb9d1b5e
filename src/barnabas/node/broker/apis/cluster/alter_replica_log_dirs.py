"""AlterReplicaLogDirs (key 34), versions 1-2: KIP-113, 1066.

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
    found = services.replicas.find(*topic_partition)
    if found is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        logs.prefer(topic_partition, path)
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if isinstance(found, ErrorCode):
        if found is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            logs.prefer(topic_partition, path)
        return found
    try:
        services.replicas.moves.request(found, path)
    except LogDirFailure:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE

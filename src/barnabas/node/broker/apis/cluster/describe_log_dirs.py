"""DescribeLogDirs (key 35), versions 1-5: KIP-113, 827, 1066. Needs DESCRIBE of the cluster."""

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
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

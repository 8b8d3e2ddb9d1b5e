"""DeleteRecords (key 21), versions 0-2: KIP-107."""

from barnabas.broker.context import RequestContext
from barnabas.broker.produce import INTERNAL_TOPICS
from barnabas.broker.services import BrokerServices
from barnabas.log.errors import LogDirFailure
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.replication.partition import Partition

TO_HIGH_WATERMARK = -1


def handle(
    services: BrokerServices, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Raise the log start offset of each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(services, topic.name, entry) for entry in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(
    services: BrokerServices, topic: str, entry: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    def failure(error: ErrorCode) -> DeleteRecordsPartitionResult:
        return DeleteRecordsPartitionResult(
            partition_index=entry.partition_index, low_watermark=-1, error_code=error
        )

    if topic in INTERNAL_TOPICS:
        return failure(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = services.replicas.find(topic, entry.partition_index)
    if not isinstance(partition, Partition):
        return failure(partition)
    if not partition.is_leader:
        return failure(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if "delete" not in partition.log.config.cleanup_policy:
        return failure(ErrorCode.POLICY_VIOLATION)
    offset = entry.offset
    if offset == TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        return failure(ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        partition.log.delete_records_before(offset)
    except LogDirFailure:
        return failure(ErrorCode.KAFKA_STORAGE_ERROR)
    return DeleteRecordsPartitionResult(
        partition_index=entry.partition_index, low_watermark=partition.log.log_start_offset
    )

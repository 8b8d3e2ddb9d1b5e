"""DeleteRecords (key 21), versions 0-2: KIP-107.

The answer comes when every live replica has deleted them too.
"""

import asyncio

from barnabas.base.internal_topics import INTERNAL_TOPICS
from barnabas.node.broker.authorization import allowed_in_turns
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.replication.partition import Partition
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

TO_HIGH_WATERMARK = -1


async def handle_delete_records(
    services: BrokerServices, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Raise the log start offset of each partition, and wait until its replicas have too."""
    waits: list[_LowWatermarkWait] = []
    names = [topic.name for topic in request.topics]
    deletable = await allowed_in_turns(
        services, context, Operation.DELETE, ResourceType.TOPIC, names
    )
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(services, topic.name, entry, waits)
                    if topic.name in deletable
                    else _failure(entry, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    if not waits:
        return response
    return await _settle(services, response, waits, request.timeout_ms)


def _delete(
    services: BrokerServices,
    topic: str,
    entry: DeleteRecordsPartition,
    waits: "list[_LowWatermarkWait]",
) -> DeleteRecordsPartitionResult:
    if topic in INTERNAL_TOPICS:
        return _failure(entry, ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = services.replicas.find(topic, entry.partition_index)
    if not isinstance(partition, Partition):
        return _failure(entry, partition)
    if not partition.is_leader:
        return _failure(entry, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if "delete" not in partition.log.config.cleanup_policy:
        return _failure(entry, ErrorCode.POLICY_VIOLATION)
    offset = entry.offset
    if offset == TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        return _failure(entry, ErrorCode.OFFSET_OUT_OF_RANGE)
    try:
        partition.raise_log_start(offset)
    except LogDirFailure:
        return _failure(entry, ErrorCode.KAFKA_STORAGE_ERROR)
    result = DeleteRecordsPartitionResult(
        partition_index=entry.partition_index, low_watermark=partition.low_watermark
    )
    if partition.low_watermark < offset:
        waits.append(_LowWatermarkWait(partition, offset, result))
    return result


def _failure(entry: DeleteRecordsPartition, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=entry.partition_index, low_watermark=-1, error_code=error
    )


class _LowWatermarkWait:
    """One partition whose followers still have what is to be deleted."""

    def __init__(
        self, partition: Partition, offset: int, result: DeleteRecordsPartitionResult
    ) -> None:
        self.partition = partition
        self.result = result
        self.done = asyncio.get_running_loop().create_future()
        partition.when_low_watermark(offset, self)

    def __call__(self, error: ErrorCode) -> None:
        if self.done.done():
            return
        self.result.error_code = error
        self.result.low_watermark = -1 if error else self.partition.low_watermark
        self.done.set_result(None)


async def _settle(
    services: BrokerServices,
    response: DeleteRecordsResponse,
    waits: list[_LowWatermarkWait],
    timeout_ms: int,
) -> DeleteRecordsResponse:
    def expire() -> None:
        for wait in waits:
            wait.partition.forget_low_watermark_waiter(wait)
            wait(ErrorCode.REQUEST_TIMED_OUT)

    timer = services.clock.call_later(max(timeout_ms, 0), expire)
    try:
        for wait in waits:
            await wait.done
    finally:
        timer.cancel()
    return response

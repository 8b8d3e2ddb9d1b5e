"""Topics: their records, and those that are created on demand.

DeleteRecords (key 21), versions 0-2: KIP-107.

The answer comes when every live replica has deleted them too.

Metadata and coordinators create topics on demand: users' topics where
`auto.create.topics.enable` allows it, internal ones when the first client needs them, with the
partitions, replicas and configuration that Kafka gives them.
"""

import asyncio
from collections.abc import Iterable

from barnabas.base.peer_lines import repeating_logger
from barnabas.node.broker.apis.streams_topics import CREATION_TIMEOUT_MS, creatable
from barnabas.node.broker.authorization import allowed_in_turns
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.metadata.asker import Asker
from barnabas.node.replication.partition import Partition
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.well_known import (
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
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


VISIBILITY_TIMEOUT_MS = 1_000
FAILURES_NAMED_MAX = 10
"""Topics of one request: who asks for thousands fills no log."""

telemetry = repeating_logger(__name__)


async def create_topics(
    services: BrokerServices, names: Iterable[str], asker: Asker
) -> dict[str, ErrorCode]:
    """Create `names` for `asker`; each gets NONE, also when somebody was faster, or the reason.

    What the node needs itself (internal topics that a coordinator lacks) is not asked for in the
    name of the client that happens to come first. Source: Kafka's AutoTopicCreationManager.
    """
    request = CreateTopicsRequest(
        topics=[_description(services, name) for name in names], timeout_ms=CREATION_TIMEOUT_MS
    )
    response = await services.metadata.handle(request, asker=asker, timeout_ms=CREATION_TIMEOUT_MS)
    assert isinstance(response, CreateTopicsResponse)
    outcome: dict[str, ErrorCode] = {}
    failed = 0
    for result in response.topics:
        code = ErrorCode.of(result.error_code)
        if code is ErrorCode.TOPIC_ALREADY_EXISTS:
            code = ErrorCode.NONE
        elif code is not ErrorCode.NONE:
            failed += 1
            if failed <= FAILURES_NAMED_MAX:
                telemetry.warning(
                    "topic %s cannot be created: %s", result.name, result.error_message
                )
        outcome[result.name] = code
    if failed > FAILURES_NAMED_MAX:
        telemetry.warning("%d more topics cannot be created", failed - FAILURES_NAMED_MAX)
    created = [name for name, code in outcome.items() if code is ErrorCode.NONE]
    await _see(services, created)
    return outcome


async def _see(services: BrokerServices, names: list[str]) -> None:
    """Wait until this broker knows the topics and can describe them; not for long."""
    try:
        async with asyncio.timeout(VISIBILITY_TIMEOUT_MS / 1000):
            await services.metadata.wait_for(
                lambda image: all(name in image.topics.by_name for name in names)
            )
    except TimeoutError:
        telemetry.debug("%s are created, but not yet known here", names)


def _description(services: BrokerServices, name: str) -> CreatableTopic:
    """Describe a topic for CreateTopics.

    With fewer live brokers than replicas an internal one waits until there are enough, as in
    Kafka: a topic of fewer replicas would stay that way.
    """
    number = services.config.get_int
    if name == CONSUMER_OFFSETS:
        return creatable(
            name,
            number("offsets.topic.num.partitions"),
            number("offsets.topic.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": number("offsets.topic.segment.bytes"),
            },
        )
    if name == TRANSACTION_STATE:
        return creatable(
            name,
            number("transaction.state.log.num.partitions"),
            number("transaction.state.log.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": number("transaction.state.log.min.isr"),
                "segment.bytes": number("transaction.state.log.segment.bytes"),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_GROUP_STATE:
        return creatable(
            name,
            number("share.coordinator.state.topic.num.partitions"),
            number("share.coordinator.state.topic.replication.factor"),
            {
                # Its coordinator deletes what newer snapshots make redundant; nothing else may.
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": number("share.coordinator.state.topic.segment.bytes"),
                "min.insync.replicas": number("share.coordinator.state.topic.min.isr"),
                "retention.ms": -1,
            },
        )
    return creatable(name, -1, -1, {})

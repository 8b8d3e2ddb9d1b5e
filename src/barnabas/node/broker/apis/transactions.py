"""Producers and their transactions.

InitProducerId (key 22), versions 0-5: KIP-98, 360, 890.

Gives an idempotent producer its id (ids come from the controller in blocks and are never given
twice), and makes a transactional one the owner of its transactional id. Two-phase commit
(KIP-939) is of version 6, which is not stable.

AddPartitionsToTxn (key 24), versions 0-5: KIP-98, 890.

Up to version 3 producers ask; from version 4 on brokers do, for several transactions at once,
and perhaps only to verify. If one partition does not exist or is not the producer's to write to,
none is added.

AddOffsetsToTxn (key 25), versions 0-4: KIP-98.

Makes the partition of `__consumer_offsets` that holds a group's offsets part of a transaction.
With transaction.version 2 clients leave it out: TxnOffsetCommit sees to it (KIP-890).

EndTxn (key 26), versions 0-5: KIP-98, 890.

Commits or aborts a transaction. The answer comes when the decision is in the log for good; the
markers follow. From version 5 on it names the producer id and epoch for the next transaction.

WriteTxnMarkers (key 27), versions 1-2: KIP-98, 664, 1228.

A transaction coordinator has this node end transactions in partitions that it leads. So do
administrators who abort a transaction that hangs.
"""

from collections.abc import Awaitable
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.node.broker.authorization import allowed, may, may_some
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.transaction.ending import EndRequest
from barnabas.node.coordinator.transaction.initializing import InitRequest
from barnabas.node.coordinator.transaction.service import client_version_of
from barnabas.node.loop.promise import Promise, gather, then
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.records.control import TRANSACTION_VERSION_2
from barnabas.protocol.well_known import CONSUMER_OFFSETS, INTERNAL_TOPICS


def fenced_as(context: RequestContext, error: int, from_version: int) -> ErrorCode:
    """The error as the client's version knows it: older ones do not know PRODUCER_FENCED."""
    code = ErrorCode.of(error)
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < from_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


INIT_FENCED_FROM_VERSION = 4


async def handle_init_producer_id(
    services: BrokerServices, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Give an id; without a transactional id a client always gets a new one."""
    error = _init_forbidden(services, context, request)
    if error:
        return _refuse_init(error)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refuse_init(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        producer_id = await services.allocate_producer_id()
        if isinstance(producer_id, ErrorCode):
            return _refuse_init(producer_id)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    response = await services.transactions.init_producer_id(
        request.transactional_id,
        InitRequest(request.transaction_timeout_ms, request.producer_id, request.producer_epoch),
    )
    response.error_code = fenced_as(context, response.error_code, INIT_FENCED_FROM_VERSION)
    return response


def _init_forbidden(
    services: BrokerServices, context: RequestContext, request: InitProducerIdRequest
) -> ErrorCode:
    """Why the sender gets no id: clients that may write to any topic get one."""
    transactional_id = request.transactional_id
    if transactional_id is not None:
        needed = [Operation.WRITE]
        if request.enable2_pc:
            needed.append(Operation.TWO_PHASE_COMMIT)
        if all(
            may(services, context, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)
            for operation in needed
        ):
            return ErrorCode.NONE
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if may(
        services, context, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, logs_denial=False
    ) or may_some(services, context, Operation.WRITE, ResourceType.TOPIC):
        return ErrorCode.NONE
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _refuse_init(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


PRODUCER_FENCED_FROM_VERSION = 2
BATCHED_FROM_VERSION = 4
VERSION_2_FROM_VERSION = 5

Outcome = dict[TopicPartition, ErrorCode]


def handle_add_partitions_to_txn(
    services: BrokerServices, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    """Add partitions to transactions, or verify that they are part of them."""
    if context.api_version >= BATCHED_FROM_VERSION:
        if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        parts: list[Any] = [_one(services, context, part) for part in request.transactions]
        return gather(
            parts,
            lambda outcomes: AddPartitionsToTxnResponse(
                results_by_transaction=[
                    AddPartitionsToTxnResult(
                        transactional_id=part.transactional_id, topic_results=_topics(outcome)
                    )
                    for part, outcome in zip(request.transactions, outcomes, strict=True)
                ]
            ),
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return then(
        _one(services, context, only),
        lambda outcome: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(outcome)),
    )


def _one(
    services: BrokerServices, context: RequestContext, request: AddPartitionsToTxnTransaction
) -> Outcome | Promise[Outcome]:
    partitions = [
        TopicPartition(topic.name, index) for topic in request.topics for index in topic.partitions
    ]
    errors: Outcome = {}
    if context.api_version < BATCHED_FROM_VERSION:
        failed = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        transactional_id = request.transactional_id
        if not may(
            services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            return dict.fromkeys(partitions, failed)
        names = {topic.name for topic in request.topics} - INTERNAL_TOPICS
        writable = allowed(services, context, Operation.WRITE, ResourceType.TOPIC, names)
        failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        errors = {partition: failed for partition in partitions if partition.topic not in writable}
    topics = services.image.topics
    for partition in partitions:
        if topics.partition(*partition) is None:
            errors.setdefault(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if errors:
        not_attempted = ErrorCode.OPERATION_NOT_ATTEMPTED
        return {partition: errors.get(partition, not_attempted) for partition in partitions}
    producer = request.producer_id, request.producer_epoch
    if request.verify_only:
        return services.transactions.verify(request.transactional_id, *producer, partitions)
    has_version_2 = context.api_version >= VERSION_2_FROM_VERSION
    added = services.transactions.add_partitions(
        request.transactional_id,
        *producer,
        partitions,
        TRANSACTION_VERSION_2 if has_version_2 else 0,
    )
    return then(
        added,
        lambda error: dict.fromkeys(
            partitions, fenced_as(context, error, PRODUCER_FENCED_FROM_VERSION)
        ),
    )


def _topics(outcome: Outcome) -> list[AddPartitionsToTxnTopicResult]:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, index), error in outcome.items():
        by_topic.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
        )
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)
        for name, results in by_topic.items()
    ]


def handle_add_offsets_to_txn(
    services: BrokerServices, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    """Add the group's partition to the transaction."""
    error = offsets_forbidden(services, context, request)
    if error:
        return AddOffsetsToTxnResponse(error_code=error)
    partition = services.groups.partition_for(request.group_id)
    added = services.transactions.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [TopicPartition(CONSUMER_OFFSETS, partition)],
        0,
    )
    return then(
        added,
        lambda error: AddOffsetsToTxnResponse(
            error_code=fenced_as(context, error, PRODUCER_FENCED_FROM_VERSION)
        ),
    )


def offsets_forbidden(
    services: BrokerServices,
    context: RequestContext,
    request: AddOffsetsToTxnRequest | TxnOffsetCommitRequest,
) -> ErrorCode:
    """Return why the sender may not commit the group's offsets in this transaction, or NONE."""
    transactional_id = request.transactional_id
    if not may(services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not may(services, context, Operation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def handle_end_txn(
    services: BrokerServices, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    """End a transaction."""
    if not may(
        services,
        context,
        Operation.WRITE,
        ResourceType.TRANSACTIONAL_ID,
        request.transactional_id,
    ):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    outcome = services.transactions.end(
        request.transactional_id,
        EndRequest(
            request.producer_id,
            request.producer_epoch,
            request.committed,
            client_version_of(context.api_version, VERSION_2_FROM_VERSION),
        ),
        context.trace,
    )
    if isinstance(outcome, EndTxnResponse):
        return _level(context, outcome)
    return _later(context, outcome)


async def _later(context: RequestContext, outcome: Awaitable[EndTxnResponse]) -> EndTxnResponse:
    return _level(context, await outcome)


def _level(context: RequestContext, response: EndTxnResponse) -> EndTxnResponse:
    response.error_code = fenced_as(context, response.error_code, PRODUCER_FENCED_FROM_VERSION)
    return response


def handle_write_txn_markers(
    services: BrokerServices, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
    """Write markers; the answer comes when they are committed."""
    cluster = ResourceType.CLUSTER
    if not (
        may(services, context, Operation.ALTER, cluster, logs_denial=False)
        or may(services, context, Operation.CLUSTER_ACTION, cluster)
    ):
        return _refuse_markers(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return services.marker_writer.write(request)


def _refuse_markers(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )

"""AddPartitionsToTxn (key 24), versions 0-5: KIP-98, 890.

Up to version 3 producers ask; from version 4 on brokers do, for several transactions at once,
and perhaps only to verify. If one partition does not exist or is not the producer's to write to,
none is added.
"""

from collections.abc import Awaitable
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.base.internal_topics import INTERNAL_TOPICS
from barnabas.node.broker.apis.transactions.requests import fenced_as
from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, gather, then
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.records.control import TRANSACTION_VERSION_2

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

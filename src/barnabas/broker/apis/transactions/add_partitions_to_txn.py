"""AddPartitionsToTxn (key 24), versions 0-5: KIP-98, 890.

Up to version 3 producers ask; from version 4 on brokers do, for several transactions at once,
and perhaps only to verify. If one partition does not exist, none is added.
"""

from collections.abc import Awaitable
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.base.promise import Promise, gather, then
from barnabas.broker.apis.transactions.requests import fenced_as
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
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
    topics = services.image.topics
    unknown = {partition for partition in partitions if topics.partition(*partition) is None}
    if unknown:
        return {
            partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if partition in unknown
            else ErrorCode.OPERATION_NOT_ATTEMPTED
            for partition in partitions
        }
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

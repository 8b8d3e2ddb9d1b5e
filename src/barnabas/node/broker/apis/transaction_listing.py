"""Producers and transactions, as tools list them.

DescribeProducers (key 61), version 0: KIP-664.

The producers that a partition's log knows: who has a transaction under way, and since which
offset. Any replica answers from its own log, as in Kafka.

DescribeTransactions (key 65), version 0: KIP-664.

ListTransactions (key 66), versions 0-2: KIP-664, 994, 1152.

The transactional ids that this node coordinates, filtered by state, producer, age and pattern.
Patterns are RE2's, whose time grows with the pattern and the id alone; Kafka's are Java's.
"""

from collections.abc import Awaitable
from operator import attrgetter
from typing import Any, Final

from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.consumer.regexes import compile_regex, matches
from barnabas.node.coordinator.group.step import Refusal
from barnabas.node.coordinator.transaction.shard import Listing
from barnabas.node.coordinator.transaction.states import TransactionState as State
from barnabas.node.coordinator.transaction.transaction import Transaction
from barnabas.node.loop.pauses import PART_MAX, in_turns
from barnabas.node.loop.promise import Promise, gather
from barnabas.node.replication.partition import Partition
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsTransactionState,
    PartitionResponse,
    ProducerState,
    TopicData,
    TopicRequest,
    TopicResponse,
)


def _ask_more(topic: TopicRequest, again: TopicRequest) -> None:
    topic.partition_indexes += again.partition_indexes


EACH_TOPIC = Each("topics", "topics", attrgetter("name"), _ask_more)


def handle_describe_producers(
    services: BrokerServices, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of partitions that have a replica here."""
    names = [topic.name for topic in request.topics]
    readable = allowed(services, context, Operation.READ, ResourceType.TOPIC, names)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(services, topic.name, index)
                    if topic.name in readable
                    else _failure(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    for index in dict.fromkeys(topic.partition_indexes)
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(services: BrokerServices, topic: str, index: int) -> PartitionResponse:
    partition = services.replicas.find(topic, index)
    if not isinstance(partition, Partition):
        return _failure(index, partition)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.txn_first_offset,
            )
            for entry in partition.log.producers.producers.values()
        ],
    )


def _failure(index: int, error: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error, error_message=error.message)


def handle_describe_transactions(
    services: BrokerServices, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Awaitable[DescribeTransactionsResponse]:
    """Describe transactional ids that this node coordinates."""
    parts: list[Any] = [
        services.transactions.describe(transactional_id)
        if may(
            services,
            context,
            Operation.DESCRIBE,
            ResourceType.TRANSACTIONAL_ID,
            transactional_id,
        )
        else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        for transactional_id in request.transactional_ids
    ]
    return gather(
        parts,
        lambda found: DescribeTransactionsResponse(
            transaction_states=[
                _state(services, context, transactional_id, outcome)
                for transactional_id, outcome in zip(request.transactional_ids, found, strict=True)
            ]
        ),
    )


def _state(
    services: BrokerServices,
    context: RequestContext,
    transactional_id: str,
    outcome: Transaction | ErrorCode,
) -> DescribeTransactionsTransactionState:
    if isinstance(outcome, ErrorCode):
        return DescribeTransactionsTransactionState(
            error_code=outcome, transactional_id=transactional_id
        )
    topics: dict[str, list[int]] = {}
    for topic, index in outcome.partitions:
        topics.setdefault(topic, []).append(index)
    visible = allowed(
        services, context, Operation.DESCRIBE, ResourceType.TOPIC, topics, logs_denial=False
    )
    return DescribeTransactionsTransactionState(
        transactional_id=transactional_id,
        transaction_state=outcome.state.label,
        transaction_timeout_ms=outcome.timeout_ms,
        transaction_start_time_ms=outcome.start_ms,
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
        topics=[
            TopicData(topic=name, partitions=indexes)
            for name, indexes in topics.items()
            if name in visible
        ],
    )


PROGRAM_BYTES_MAX: Final = 1 << 16
"""Of a compiled pattern: a long id is held against a larger one for a second and more."""
_STATES = {state.label: state for state in State}


async def handle_list_transactions(
    services: BrokerServices, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List transactions; others are served after each id that a pattern is held against."""
    unknown = [label for label in request.state_filters if label not in _STATES]
    pattern: Any = None
    if request.transactional_id_pattern:
        pattern = compile_regex(request.transactional_id_pattern, PROGRAM_BYTES_MAX)
        if isinstance(pattern, Refusal):
            return ListTransactionsResponse(error_code=pattern.error)
    listing = Listing(
        producer_ids=frozenset(request.producer_id_filters),
        states=frozenset(_STATES[label] for label in request.state_filters if label in _STATES),
        has_states=bool(request.state_filters),
        duration_ms=request.duration_filter,
    )
    listed: Any = services.transactions.list_transactions(listing)
    if isinstance(listed, Promise):
        listed = await listed
    if isinstance(listed, ErrorCode):
        return ListTransactionsResponse(error_code=listed)
    describe, kind = Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            ListTransactionsTransactionState(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.label,
            )
            async for transactional_id, transaction in in_turns(
                listed, PART_MAX if pattern is None else 1
            )
            if may(services, context, describe, kind, transactional_id, logs_denial=False)
            and (pattern is None or matches(pattern, transactional_id))
        ],
    )

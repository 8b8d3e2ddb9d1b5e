"""DescribeTransactions (key 65), version 0: KIP-664."""

from collections.abc import Awaitable
from typing import Any

from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.transaction.transaction import Transaction
from barnabas.node.loop.promise import gather
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsTransactionState,
    TopicData,
)


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

"""ListTransactions (key 66), versions 0-2: KIP-664, 994, 1152.

The transactional ids that this node coordinates, filtered by state, producer, age and pattern.
Patterns are RE2's, which no text can slow down; Kafka's are Java's.
"""

from collections.abc import Awaitable
from typing import Any

from barnabas.base.promise import then
from barnabas.broker.authorization import may
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.coordinator.transaction.shard import Listing
from barnabas.coordinator.transaction.states import TransactionState as State
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

_STATES = {state.label: state for state in State}


def handle_list_transactions(
    services: BrokerServices, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse | Awaitable[ListTransactionsResponse]:
    """List transactions."""
    unknown = [label for label in request.state_filters if label not in _STATES]
    pattern: Any = None
    if request.transactional_id_pattern:
        import re2  # type: ignore[import-untyped]  # no stubs; rarely needed

        options = re2.Options()
        options.log_errors = False
        try:
            pattern = re2.compile(request.transactional_id_pattern, options)
        except re2.error:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    listing = Listing(
        producer_ids=frozenset(request.producer_id_filters),
        states=frozenset(_STATES[label] for label in request.state_filters if label in _STATES),
        has_states=bool(request.state_filters),
        duration_ms=request.duration_filter,
        matches=lambda name: pattern is None or pattern.fullmatch(name) is not None,
    )

    def respond(found: Any) -> ListTransactionsResponse:
        if isinstance(found, ErrorCode):
            return ListTransactionsResponse(error_code=found)
        return ListTransactionsResponse(
            unknown_state_filters=unknown,
            transaction_states=[
                TransactionState(
                    transactional_id=transactional_id,
                    producer_id=transaction.producer_id,
                    transaction_state=transaction.state.label,
                )
                for transactional_id, transaction in found
                if may(
                    services,
                    context,
                    Operation.DESCRIBE,
                    ResourceType.TRANSACTIONAL_ID,
                    transactional_id,
                    logs_denial=False,
                )
            ],
        )

    outcome: Any = services.transactions.list_transactions(listing)
    return then(outcome, respond)

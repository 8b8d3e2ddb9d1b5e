"""ListTransactions (key 66), versions 0-2: KIP-664, 994, 1152.

The transactional ids that this node coordinates, filtered by state, producer, age and pattern.
Patterns are RE2's, whose time grows with the pattern and the id alone; Kafka's are Java's.
"""

from typing import Any, Final

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.consumer.regexes import compile_regex, matches
from barnabas.node.coordinator.group.refusal import Refusal
from barnabas.node.coordinator.transaction.shard import Listing
from barnabas.node.coordinator.transaction.states import TransactionState as State
from barnabas.node.loop.promise import Promise
from barnabas.node.loop.turns import PART_MAX, in_turns
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsTransactionState,
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
    found: Any = services.transactions.list_transactions(listing)
    if isinstance(found, Promise):
        found = await found
    if isinstance(found, ErrorCode):
        return ListTransactionsResponse(error_code=found)
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
                found, PART_MAX if pattern is None else 1
            )
            if may(services, context, describe, kind, transactional_id, logs_denial=False)
            and (pattern is None or matches(pattern, transactional_id))
        ],
    )

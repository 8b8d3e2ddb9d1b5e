"""ListTransactions by a pattern: what it matches, and that other clients are served."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from barnabas.node.broker.apis.transaction_listing import handle_list_transactions
from barnabas.node.coordinator.transaction.states import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

COUNT = 40
OWN = [f"own-{number}" for number in range(COUNT)]


async def listed(pattern: str) -> tuple[ListTransactionsResponse, int]:
    """Return the answer, and how many turns other tasks got before it."""
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    transaction = SimpleNamespace(producer_id=1, state=TransactionState.EMPTY)
    found = [(name, transaction) for name in ("another", *OWN)]
    services: Any = SimpleNamespace(
        transactions=SimpleNamespace(list_transactions=lambda listing: found),
        authorizer=SimpleNamespace(
            is_enabled=True, allows=lambda caller, operation, kind, name, **_: name in OWN
        ),
    )
    context = cast("Any", SimpleNamespace(caller=None))
    request = ListTransactionsRequest(transactional_id_pattern=pattern, duration_filter=-1)
    counting = asyncio.ensure_future(count_turns())
    await asyncio.sleep(0)
    try:
        return await handle_list_transactions(services, context, request), turns
    finally:
        counting.cancel()


async def test_others_are_served_between_two_ids() -> None:
    response, turns = await listed(".*")
    assert [state.transactional_id for state in response.transaction_states] == OWN
    assert turns >= COUNT


async def test_a_pattern_fits_the_whole_id() -> None:
    response, _ = await listed("own-1")
    assert [state.transactional_id for state in response.transaction_states] == ["own-1"]


async def test_patterns_that_take_long_or_make_no_sense_are_refused() -> None:
    for pattern in ("(y|.)*y(y|.){900}z?.*q", "("):
        response, _ = await listed(pattern)
        assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

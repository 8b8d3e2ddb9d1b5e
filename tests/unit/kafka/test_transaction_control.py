"""The driver commits and aborts transactions, by coordinators' answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import Access, Brokers, CoordinatorError, WireError
from barnabas.protocol.apis import (
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import Coordinator, FindCoordinatorResponse
from barnabas.protocol.messages.transactions import (
    DescribeTransactionsResponse,
    DescribeTransactionsTransactionState,
    EndTxnResponse,
    InitProducerIdResponse,
    ListTransactionsResponse,
)
from barnabas.protocol.messages.transactions import ListTransactionsTransactionState as Listed
from barnabas.spark.datasource.protocol import Prepared

ONE = Prepared(0, "x", 7, 3, 10, 99)
BROKEN = "broken"
Answer = ErrorCode | str


class Scripted(Brokers):
    """Two brokers, the one connection to both, and answers in their order.

    A text is a state of the transaction; BROKEN breaks the connection.
    """

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.finds = 0
        self.closed = 0

    def any(self) -> Any:
        return self

    def at(self, host: str, port: int) -> Any:
        return self

    def addresses(self) -> Sequence[tuple[str, int]]:
        return [("a", 1), ("b", 2)]

    def close(self) -> None:
        self.closed += 1

    def call(self, api: Any, request: Any, version_max: int | None = None) -> Any:
        if api is FIND_COORDINATOR:
            self.finds += 1
            return FindCoordinatorResponse(coordinators=[Coordinator(host="a", port=1)])
        answer = self.answers.pop(0)
        if answer == BROKEN:
            raise WireError("it broke")
        if api is END_TXN:
            assert version_max == 4
            assert (request.transactional_id, request.producer_id) == ("x", 7)
            assert (request.producer_epoch, request.committed) == (3, True)
            return EndTxnResponse(error_code=int(answer))
        if api is INIT_PRODUCER_ID:
            return InitProducerIdResponse(error_code=int(answer))
        if api is LIST_TRANSACTIONS:
            assert request.state_filters == ["Ongoing"]
            states = [Listed(transactional_id=str(answer)), Listed(transactional_id="other")]
            return ListTransactionsResponse(transaction_states=states)
        assert api is DESCRIBE_TRANSACTIONS
        error = answer if isinstance(answer, ErrorCode) else ErrorCode.NONE
        state = DescribeTransactionsTransactionState(
            error_code=int(error),
            transactional_id="x",
            transaction_state=str(answer),
            producer_id=7,
            producer_epoch=3,
        )
        return DescribeTransactionsResponse(transaction_states=[state])


def control(brokers: Scripted, patience_seconds: float = 60.0) -> TransactionControl:
    return TransactionControl(Access("a:1"), patience_seconds, brokers)


@pytest.mark.parametrize(
    ("answers", "is_committed"),
    [
        ([ErrorCode.NONE], True),
        ([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE], True),
        ([ErrorCode.NOT_COORDINATOR, ErrorCode.NONE], True),
        ([ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE], True),
        ([BROKEN, ErrorCode.NONE], True),
        ([ErrorCode.INVALID_PRODUCER_EPOCH, "CompleteCommit"], True),
        ([ErrorCode.PRODUCER_FENCED, "PrepareCommit"], True),
        ([ErrorCode.PRODUCER_FENCED, BROKEN, "CompleteAbort"], False),
        ([ErrorCode.INVALID_TXN_STATE, "Empty"], False),
        ([ErrorCode.INVALID_TXN_STATE, "PrepareEpochFence"], False),
    ],
)
def test_commit(answers: Sequence[Answer], is_committed: bool) -> None:
    brokers = Scripted(answers)
    assert control(brokers).commit(ONE) is is_committed
    assert not brokers.answers


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED], "cannot commit x: TRANSACTIONAL_ID"),
        (
            [ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND],
            "the brokers have forgotten x .*: whether it was committed is not known",
        ),
    ],
)
def test_a_commit_whose_outcome_is_not_known(answers: Sequence[Answer], message: str) -> None:
    with pytest.raises(CoordinatorError, match=message):
        control(Scripted(answers)).commit(ONE)


def test_patience_ends() -> None:
    brokers = Scripted([ErrorCode.COORDINATOR_NOT_AVAILABLE])
    with pytest.raises(CoordinatorError, match="gave up after 0 s"):
        control(brokers, patience_seconds=0).commit(ONE)


def test_a_coordinator_is_looked_for_again_when_it_has_moved() -> None:
    brokers = Scripted([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE])
    asked = control(brokers)
    asked.commit(ONE)
    asked.commit(ONE)
    assert brokers.finds == 1
    asked.commit(ONE)
    assert brokers.finds == 2
    assert brokers.closed == 0


@pytest.mark.parametrize(
    ("one", "state", "is_lost"),
    [
        (ONE, "Ongoing", False),
        (ONE, "CompleteAbort", True),
        (ONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, True),
        (Prepared(0, "x", 7, 2, 10, 99), "Ongoing", True),  # somebody else's by now
    ],
)
def test_lost(one: Prepared, state: Answer, is_lost: bool) -> None:
    assert control(Scripted([state])).lost([one]) == (frozenset({"x"}) if is_lost else frozenset())


def test_abort_waits_for_the_one_that_is_ending() -> None:
    brokers = Scripted([ErrorCode.CONCURRENT_TRANSACTIONS, BROKEN, ErrorCode.NONE])
    control(brokers).abort("x")
    assert not brokers.answers


def test_open_ids_are_those_of_brokers_that_answer() -> None:
    assert control(Scripted([BROKEN, "x.task.1"])).open_ids("x.") == ["x.task.1"]

"""How transactions end and ids are taken, as tables: what is there, what is asked, what comes."""

from __future__ import annotations

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.node.coordinator.decision import Moment
from barnabas.node.coordinator.transaction.ending import EndRequest, complete, end, fence
from barnabas.node.coordinator.transaction.initializing import InitRequest, initialize
from barnabas.node.coordinator.transaction.shard import TransactionShard
from barnabas.node.coordinator.transaction.states import (
    TRANSITIONS,
    TransactionEvent,
    TransactionState,
)
from barnabas.node.coordinator.transaction.transaction import Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import PRODUCER_EPOCH_MAX

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT
NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
CONCURRENT, INVALID = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
ID, EPOCH, NEW_ID, NOW_MS = 7, 5, 8, 1_000


def transaction(state: TransactionState, epoch: int = EPOCH, version: int = 2) -> Transaction:
    return Transaction(
        producer_id=ID,
        producer_epoch=epoch,
        timeout_ms=60_000,
        state=state,
        last_update_ms=0,
        start_ms=10,
        partitions={TopicPartition("t", 0): None} if state is ONGOING else {},
        last_producer_epoch=epoch - 1,
        previous_producer_id=ID,
        client_version=version,
    )


# -- EndTxn. State; the request's epoch relative to the transaction's; commit?; error; next state


VERSION_1 = [
    (ONGOING, 0, True, NONE, PREPARE_COMMIT),
    (ONGOING, 0, False, NONE, PREPARE_ABORT),
    (ONGOING, -1, True, FENCED, None),
    (ONGOING, 1, True, FENCED, None),
    (EMPTY, 0, True, INVALID, None),
    (EMPTY, 0, False, INVALID, None),
    (PREPARE_COMMIT, 0, True, CONCURRENT, None),
    (PREPARE_COMMIT, 0, False, CONCURRENT, None),
    (PREPARE_ABORT, 0, False, CONCURRENT, None),
    (PREPARE_ABORT, 0, True, CONCURRENT, None),
    (PREPARE_ABORT, -1, True, FENCED, None),  # the coordinator aborted, and raised the epoch
    (COMPLETE_COMMIT, 0, True, NONE, None),
    (COMPLETE_COMMIT, 0, False, INVALID, None),
    (COMPLETE_ABORT, 0, False, NONE, None),
    (COMPLETE_ABORT, -1, True, FENCED, None),
]


@pytest.mark.parametrize(("state", "epoch", "is_commit", "error", "after"), VERSION_1)
def test_version_1(
    state: TransactionState,
    epoch: int,
    is_commit: bool,
    error: ErrorCode,
    after: TransactionState | None,
) -> None:
    request = EndRequest(ID, EPOCH + epoch, is_commit, 0)
    ending = end(transaction(state, version=0), request, -1, NOW_MS)
    assert ending.error is error
    assert (ending.transaction and ending.transaction.state) == after
    if ending.transaction is not None:
        assert ending.transaction.producer_epoch == EPOCH


VERSION_2 = [
    (ONGOING, 0, True, NONE, PREPARE_COMMIT),
    (ONGOING, 0, False, NONE, PREPARE_ABORT),
    (ONGOING, -1, True, FENCED, None),
    (ONGOING, 1, True, FENCED, None),
    (EMPTY, 0, True, INVALID, None),
    (EMPTY, 0, False, NONE, PREPARE_ABORT),  # a batch may be under way
    (EMPTY, -1, False, FENCED, None),
    (COMPLETE_COMMIT, -1, True, NONE, None),
    (COMPLETE_COMMIT, -1, False, INVALID, None),
    (COMPLETE_COMMIT, 0, True, INVALID, None),
    (COMPLETE_COMMIT, 0, False, NONE, PREPARE_ABORT),
    (COMPLETE_COMMIT, -2, True, FENCED, None),
    (COMPLETE_ABORT, -1, False, NONE, None),
    (COMPLETE_ABORT, -1, True, FENCED, None),  # the coordinator was faster: not a fatal error
    (COMPLETE_ABORT, 0, True, INVALID, None),
    (COMPLETE_ABORT, 0, False, NONE, PREPARE_ABORT),
]


@pytest.mark.parametrize(("state", "epoch", "is_commit", "error", "after"), VERSION_2)
def test_version_2(
    state: TransactionState,
    epoch: int,
    is_commit: bool,
    error: ErrorCode,
    after: TransactionState | None,
) -> None:
    ending = end(transaction(state), EndRequest(ID, EPOCH + epoch, is_commit, 2), -1, NOW_MS)
    assert ending.error is error
    assert (ending.transaction and ending.transaction.state) == after
    if ending.transaction is not None:
        assert ending.transaction.producer_epoch == EPOCH + 1
        assert ending.transaction.last_producer_epoch == EPOCH
        assert ending.transaction.start_ms == (10 if state is ONGOING else NOW_MS)


# A client with version 1 has ended the last transaction, at the epoch that it took from the sender.
AFTER_VERSION_1 = [
    (COMPLETE_COMMIT, -1, True, FENCED, None),
    (COMPLETE_COMMIT, -1, False, FENCED, None),
    (COMPLETE_COMMIT, 0, True, INVALID, None),
    (COMPLETE_COMMIT, 0, False, NONE, PREPARE_ABORT),
    (COMPLETE_ABORT, -1, False, FENCED, None),
    (COMPLETE_ABORT, -1, True, FENCED, None),
    (COMPLETE_ABORT, 0, False, NONE, PREPARE_ABORT),
]


@pytest.mark.parametrize(("state", "epoch", "is_commit", "error", "after"), AFTER_VERSION_1)
def test_the_epoch_before_an_end_without_a_bump_is_that_of_another_client(
    state: TransactionState,
    epoch: int,
    is_commit: bool,
    error: ErrorCode,
    after: TransactionState | None,
) -> None:
    request = EndRequest(ID, EPOCH + epoch, is_commit, 2)
    for version in (0, 1):
        ending = end(transaction(state, version=version), request, -1, NOW_MS)
        assert ending.error is error
        assert (ending.transaction and ending.transaction.state) == after


def test_the_end_of_a_transaction_that_another_client_took_over_is_no_repeated_one() -> None:
    """Both share a transactional id; one ends with version 2, the other with version 1."""
    former = transaction(EMPTY)
    taken = initialize(former, InitRequest(1_000, -1, -1), -1, 2, NOW_MS).transaction
    assert taken is not None
    shard = TransactionShard(lambda: 2, lambda *_: None)
    shard.transactions["t"] = taken
    latter = (ID, taken.producer_epoch)
    added = shard.add_partitions("t", latter, [TopicPartition("t", 0)], 0, Moment(NOW_MS, 0))
    assert added.response is NONE
    for record in added.records:
        shard.replay(0, -1, record)
    begun = shard.transactions["t"]
    prepared = end(begun, EndRequest(*latter, True, 0), -1, NOW_MS).transaction
    assert prepared is not None
    done = complete(prepared, NOW_MS)
    for is_commit in (True, False):
        late = EndRequest(ID, former.producer_epoch, is_commit, 2)
        assert end(done, late, -1, NOW_MS).error is FENCED


# Apache Kafka 4.3.1 on three nodes: how a transaction ended, and the answer to the EndTxn after it
# (epoch relative to the next one; commit?) when its markers are written. Until then every request
# gets CONCURRENT_TRANSACTIONS.
FOLLOWING = [
    (True, 0, False, NONE),  # the next transaction, an empty one
    (True, 0, True, INVALID),
    (True, -1, True, NONE),  # repeated
    (True, -1, False, INVALID),
    (False, 0, False, NONE),
    (False, 0, True, INVALID),
    (False, -1, False, NONE),
    (False, -1, True, FENCED),  # INVALID_TXN_STATE in Kafka: see ending.py
]


@pytest.mark.parametrize(("was_commit", "epoch", "is_commit", "error"), FOLLOWING)
def test_who_ends_the_next_transaction_waits_for_the_markers(
    was_commit: bool, epoch: int, is_commit: bool, error: ErrorCode
) -> None:
    prepared = end(transaction(ONGOING), EndRequest(ID, EPOCH, was_commit, 2), -1, 0).transaction
    assert prepared is not None
    request = EndRequest(ID, EPOCH + 1 + epoch, is_commit, 2)
    assert end(prepared, request, -1, NOW_MS).error is CONCURRENT
    assert end(complete(prepared, NOW_MS), request, -1, NOW_MS).error is error


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", [EMPTY, ONGOING, COMPLETE_ABORT, COMPLETE_COMMIT])
def test_another_producer_id_is_unknown(state: TransactionState, version: int) -> None:
    ending = end(transaction(state), EndRequest(ID + 1, EPOCH, True, version), -1, NOW_MS)
    assert ending.error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_with_its_last_epoch_a_producer_goes_on_with_another_id() -> None:
    last = transaction(ONGOING, PRODUCER_EPOCH_MAX - 1)
    request = EndRequest(ID, PRODUCER_EPOCH_MAX - 1, True, 2)
    assert end(last, request, -1, NOW_MS).needs_producer_id
    prepared = end(last, request, NEW_ID, NOW_MS).transaction
    assert prepared is not None
    assert (prepared.producer_id, prepared.producer_epoch) == (ID, PRODUCER_EPOCH_MAX)
    following = EndRequest(NEW_ID, 0, False, 2)
    assert end(prepared, following, -1, NOW_MS).error is CONCURRENT  # it knows its new id already
    done = complete(prepared, NOW_MS)
    assert (done.producer_id, done.producer_epoch, done.state) == (NEW_ID, 0, COMPLETE_COMMIT)
    assert end(done, request, -1, NOW_MS).error is NONE  # asked again, by the old id
    assert end(done, request._replace(is_commit=False), -1, NOW_MS).error is INVALID
    assert end(done, following, -1, NOW_MS).error is NONE


def test_with_its_new_id_a_producer_waits_for_the_markers_of_the_old_one() -> None:
    last = transaction(ONGOING, PRODUCER_EPOCH_MAX - 1)
    prepared = end(last, EndRequest(ID, PRODUCER_EPOCH_MAX - 1, True, 2), NEW_ID, 0).transaction
    assert prepared is not None
    shard = TransactionShard(lambda: 2, lambda *_: None)
    for known, error in ((prepared, CONCURRENT), (complete(prepared, NOW_MS), NONE)):
        shard.transactions["t"] = known
        partitions = [TopicPartition("t", 0)]
        decision = shard.add_partitions("t", (NEW_ID, 0), partitions, 2, Moment(NOW_MS, 0))
        assert decision.response is error


@pytest.mark.parametrize(("version", "last_epoch"), [(0, -1), (1, -1), (2, EPOCH)])
def test_a_fenced_producer_is_passed_by(version: int, last_epoch: int) -> None:
    fenced = fence(transaction(ONGOING), version, -1, NOW_MS).transaction
    assert fenced is not None
    assert (fenced.state, fenced.producer_epoch) == (PREPARE_ABORT, EPOCH + 1)
    assert fenced.last_producer_epoch == last_epoch
    for client_version in (0, 2):
        late = EndRequest(ID, EPOCH, True, client_version)
        assert end(fenced, late, -1, NOW_MS).error is (CONCURRENT if client_version else FENCED)
        assert end(complete(fenced, NOW_MS), late, -1, NOW_MS).error is FENCED


def test_the_last_epoch_can_be_fenced_too() -> None:
    assert fence(transaction(ONGOING, PRODUCER_EPOCH_MAX - 1), 2, -1, NOW_MS).needs_producer_id
    fenced = fence(transaction(ONGOING, PRODUCER_EPOCH_MAX - 1), 0, -1, NOW_MS).transaction
    assert fenced is not None
    assert fenced.producer_epoch == PRODUCER_EPOCH_MAX


# -- InitProducerId. State; epoch; the producer named (id, epoch); error; the next id and epoch

TAKEN = [
    (EMPTY, EPOCH, None, NONE, (ID, EPOCH + 1)),
    (COMPLETE_COMMIT, EPOCH, None, NONE, (ID, EPOCH + 1)),
    (COMPLETE_ABORT, EPOCH, None, NONE, (ID, EPOCH + 1)),
    (EMPTY, EPOCH, (ID, EPOCH), NONE, (ID, EPOCH + 1)),
    (EMPTY, EPOCH, (ID, EPOCH - 1), NONE, (ID, EPOCH)),  # asked again
    (EMPTY, EPOCH, (ID, EPOCH - 2), FENCED, None),
    (EMPTY, EPOCH, (ID, EPOCH + 1), FENCED, None),
    (EMPTY, EPOCH, (ID + 1, EPOCH), FENCED, None),
    (PREPARE_COMMIT, EPOCH, None, CONCURRENT, None),
    (PREPARE_ABORT, EPOCH, None, CONCURRENT, None),
    (PREPARE_ABORT, EPOCH, (ID + 1, EPOCH), CONCURRENT, None),  # perhaps its id from now on
    (COMPLETE_ABORT, EPOCH, (ID + 1, EPOCH), FENCED, None),
    (EMPTY, PRODUCER_EPOCH_MAX - 1, None, NONE, (NEW_ID, 0)),
    (EMPTY, PRODUCER_EPOCH_MAX - 1, (ID, PRODUCER_EPOCH_MAX - 1), NONE, (NEW_ID, 0)),
    (COMPLETE_ABORT, PRODUCER_EPOCH_MAX, None, NONE, (NEW_ID, 0)),
]


@pytest.mark.parametrize(("state", "epoch", "producer", "error", "taken"), TAKEN)
def test_taking_an_id(
    state: TransactionState,
    epoch: int,
    producer: tuple[int, int] | None,
    error: ErrorCode,
    taken: tuple[int, int] | None,
) -> None:
    request = InitRequest(1_000, *(producer or (-1, -1)))
    outcome = initialize(transaction(state, epoch), request, -1, 2, NOW_MS)
    if outcome.needs_producer_id:
        outcome = initialize(transaction(state, epoch), request, NEW_ID, 2, NOW_MS)
    assert outcome.error is error
    after = outcome.transaction
    assert (after and (after.producer_id, after.producer_epoch)) == taken
    if after is not None:
        assert (after.state, after.partitions, after.timeout_ms) == (EMPTY, {}, 1_000)


def test_a_transaction_under_way_is_aborted_first() -> None:
    outcome = initialize(transaction(ONGOING), InitRequest(1_000, -1, -1), -1, 2, NOW_MS)
    assert outcome.error is CONCURRENT
    assert outcome.transaction is not None
    assert outcome.transaction.state is PREPARE_ABORT
    assert outcome.transaction.producer_epoch == EPOCH + 1


def test_who_asks_again_for_a_new_id_gets_it() -> None:
    taken = initialize(
        transaction(EMPTY, PRODUCER_EPOCH_MAX - 1),
        InitRequest(1, ID, PRODUCER_EPOCH_MAX - 1),
        NEW_ID,
        2,
        NOW_MS,
    ).transaction
    again = initialize(taken, InitRequest(1, ID, PRODUCER_EPOCH_MAX - 1), -1, 2, NOW_MS).transaction
    assert again is not None
    assert (again.producer_id, again.producer_epoch) == (NEW_ID, 0)


def test_the_table_of_transitions_is_closed() -> None:
    reached = {EMPTY, *TRANSITIONS.values()}
    assert reached == set(TransactionState) - {TransactionState.PREPARE_EPOCH_FENCE}
    decided = {state for state, event in TRANSITIONS if event is TransactionEvent.MARKERS_WRITTEN}
    assert decided == {PREPARE_COMMIT, PREPARE_ABORT}
    with pytest.raises(KeyError):
        transaction(EMPTY).after(TransactionEvent.COMMIT_DECIDED)

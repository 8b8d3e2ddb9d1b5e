"""The transactions of one partition of `__transaction_state`.

Every request is decided from what the log says, and changes it by one record, which holds the
whole of a transactional id. Once the record of a decided outcome is committed, `on_prepared` is
called: the markers may be written. When they are, `complete` makes the transaction a thing of the
past. A coordinator that loads the partition finds what was decided, and has it carried out.

Not as in Kafka: there the state changes when a record is committed, and requests before that get
CONCURRENT_TRANSACTIONS; here it changes with the append, and the answer waits for the commit.
Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.node.coordinator.decision import CoordinatorRecord, Decision, Moment, Shard
from barnabas.node.coordinator.transaction.ending import EndRequest, complete, end, fence
from barnabas.node.coordinator.transaction.initializing import InitRequest, initialize
from barnabas.node.coordinator.transaction.states import TransactionEvent, TransactionState
from barnabas.node.coordinator.transaction.transaction import (
    Transaction,
    TransactionRecord,
    from_value,
    to_record,
    tombstone,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    EndTxnResponse,
    InitProducerIdResponse,
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH
from barnabas.protocol.records.control import TRANSACTION_VERSION_2


class NeedsProducerId:
    """A response: ask again, with a new producer id."""


NEEDS_PRODUCER_ID = NeedsProducerId()


@dataclass(frozen=True, slots=True)
class Prepared:
    """Continuation: these transactions are decided, and their markers to be written."""

    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """The filters of a ListTransactions request; empty ones match everything."""

    producer_ids: frozenset[int]
    states: frozenset[TransactionState]
    has_states: bool
    duration_ms: int


class TransactionShard(Shard):
    """Transactions by transactional id. Pure, but for the call of `on_prepared`.

    It has no timers: Kafka looks for overdue transactions from time to time, and so do we.
    """

    def __init__(
        self,
        server_version: Callable[[], int],
        on_prepared: Callable[[str, Transaction], None],
    ) -> None:
        """`server_version` tells the cluster's transaction.version as it is now."""
        self.transactions: dict[str, Transaction] = {}
        self._server_version = server_version
        self._on_prepared = on_prepared

    # Requests

    def init_producer_id(
        self, transactional_id: str, request: InitRequest, new_producer_id: int, now: Moment
    ) -> Decision:
        """InitProducerId; NEEDS_PRODUCER_ID where it takes a new one."""
        known = self.transactions.get(transactional_id)
        outcome = initialize(known, request, new_producer_id, self._server_version(), now.wall_ms)
        if outcome.needs_producer_id:
            return Decision(response=NEEDS_PRODUCER_ID)
        transaction = outcome.transaction
        if outcome.error:
            response = InitProducerIdResponse(
                error_code=outcome.error, producer_id=-1, producer_epoch=-1
            )
            if transaction is None:
                return Decision(response=response)
            return self._decide(transactional_id, transaction, response)
        assert transaction is not None, "who takes an id has it"
        return self._decide(
            transactional_id,
            transaction,
            InitProducerIdResponse(
                producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch
            ),
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: Iterable[TopicPartition],
        client_version: int,
        now: Moment,
    ) -> Decision:
        """AddPartitionsToTxn and AddOffsetsToTxn; the response is an error code."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return Decision(response=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.state.is_prepared:
            # Before the producer is looked at: its next id is its own once the markers are written.
            return Decision(response=ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.producer_id != producer[0]:
            return Decision(response=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer[1]:
            return Decision(response=ErrorCode.PRODUCER_FENCED)
        is_ongoing = transaction.state is TransactionState.ONGOING
        added = {**transaction.partitions, **dict.fromkeys(partitions)}
        if is_ongoing and len(added) == len(transaction.partitions):
            return Decision(response=ErrorCode.NONE)
        changed = transaction.after(
            TransactionEvent.PARTITIONS_ADDED,
            partitions=added,
            start_ms=transaction.start_ms if is_ongoing else now.wall_ms,
            last_update_ms=now.wall_ms,
            client_version=client_version,
        )
        return self._decide(transactional_id, changed, ErrorCode.NONE)

    def verify(
        self, transactional_id: str, producer: tuple[int, int], partitions: Sequence[TopicPartition]
    ) -> Decision:
        """Check whether partitions are part of the transaction: an error code for each."""
        transaction = self.transactions.get(transactional_id)
        error = ErrorCode.NONE
        if transaction is None or transaction.producer_id != producer[0]:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        elif transaction.producer_epoch != producer[1]:
            error = ErrorCode.PRODUCER_FENCED
        elif transaction.state.is_prepared:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error or transaction is None:
            return Decision(response=dict.fromkeys(partitions, error))
        return Decision(
            response={
                partition: ErrorCode.NONE
                if partition in transaction.partitions
                else ErrorCode.TRANSACTION_ABORTABLE
                for partition in partitions
            }
        )

    def end(
        self, transactional_id: str, request: EndRequest, new_producer_id: int, now: Moment
    ) -> Decision:
        """EndTxn; NEEDS_PRODUCER_ID where the producer's epochs are used up."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return Decision(response=end_error(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        ending = end(transaction, request, new_producer_id, now.wall_ms)
        if ending.needs_producer_id:
            return Decision(response=NEEDS_PRODUCER_ID)
        if ending.error:
            return Decision(response=end_error(ending.error))
        has_version_2 = request.client_version >= TRANSACTION_VERSION_2
        changed = ending.transaction
        if changed is None:
            return Decision(response=_ended(transaction) if has_version_2 else end_error())
        response = _ended(complete(changed, now.wall_ms)) if has_version_2 else end_error()
        return self._decide(transactional_id, changed, response)

    def complete(
        self, transactional_id: str, producer_id: int, producer_epoch: int, now: Moment
    ) -> Decision:
        """Every partition has the marker of this producer id and epoch."""
        transaction = self.transactions.get(transactional_id)
        if (
            transaction is None
            or not transaction.state.is_prepared
            or (transaction.producer_id, transaction.producer_epoch)
            != (producer_id, producer_epoch)
        ):
            return Decision(response=ErrorCode.NONE)  # another coordinator was faster
        changed = complete(transaction, now.wall_ms)
        return self._decide(transactional_id, changed, ErrorCode.NONE)

    # What time brings

    def overdue(self, now: Moment) -> list[str]:
        """Transactions that have been open for longer than their producers allowed."""
        return [
            transactional_id
            for transactional_id, transaction in self.transactions.items()
            if transaction.state is TransactionState.ONGOING
            and transaction.start_ms + transaction.timeout_ms < now.wall_ms
        ]

    def abort_overdue(self, transactional_id: str, new_producer_id: int, now: Moment) -> Decision:
        """Abort an overdue transaction and fence its producer; the response is its outcome."""
        transaction = self.transactions.get(transactional_id)
        if (
            transaction is None
            or transaction.state is not TransactionState.ONGOING
            or transaction.start_ms + transaction.timeout_ms >= now.wall_ms
        ):
            return Decision(response=ErrorCode.INVALID_TXN_STATE)
        ending = fence(transaction, self._server_version(), new_producer_id, now.wall_ms)
        if ending.needs_producer_id or ending.transaction is None:
            return Decision(response=NEEDS_PRODUCER_ID)
        return self._decide(transactional_id, ending.transaction, ErrorCode.NONE)

    def expire_ids(self, expiration_ms: int, now: Moment) -> Decision:
        """Forget ids that nobody used for long; the response is how many."""
        records: list[CoordinatorRecord] = [
            tombstone(transactional_id)
            for transactional_id, transaction in self.transactions.items()
            if transaction.state.is_at_rest
            and transaction.last_update_ms <= now.wall_ms - expiration_ms
        ]
        return Decision(records, len(records), is_atomic=False)

    # Looking

    def list_transactions(self, listing: Listing, now: Moment) -> Decision:
        """The transactions that pass the filters, as (transactional id, transaction)."""
        return Decision(
            response=[
                (transactional_id, transaction)
                for transactional_id, transaction in self.transactions.items()
                if (not listing.producer_ids or transaction.producer_id in listing.producer_ids)
                and (not listing.has_states or transaction.state in listing.states)
                and (
                    listing.duration_ms < 0
                    or now.wall_ms - transaction.start_ms > listing.duration_ms
                )
            ]
        )

    def describe(self, transactional_id: str) -> Decision:
        """The transaction, or TRANSACTIONAL_ID_NOT_FOUND."""
        transaction = self.transactions.get(transactional_id)
        return Decision(response=transaction or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    # Records

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None:
        """Apply one record of the partition."""
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey)
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue)
        last_epoch = NO_PRODUCER_EPOCH
        if isinstance(record, TransactionRecord):
            if record.transaction is not None:
                self.transactions[key.transactional_id] = record.transaction
                return
            last_epoch = record.last_producer_epoch
        self.transactions[key.transactional_id] = from_value(value, last_epoch)

    def loaded(self, now: Moment) -> Decision:
        """Have the markers written that a coordinator before this one may not have written."""
        prepared = tuple(
            transactional_id
            for transactional_id, transaction in self.transactions.items()
            if transaction.state.is_prepared
        )
        return Decision(continuation=Prepared(prepared) if prepared else None)

    def stored(
        self, continuation: Any, error: ErrorCode, is_appended: bool, now: Moment
    ) -> Decision:
        """A decided outcome was committed, or is not yet."""
        assert isinstance(continuation, Prepared)
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE and is_appended:
            return Decision(continuation=continuation)  # it takes longer: wait on
        if not error:
            for transactional_id in continuation.transactional_ids:
                transaction = self.transactions.get(transactional_id)
                if transaction is not None and transaction.state.is_prepared:
                    self._on_prepared(transactional_id, transaction)
        return Decision()

    # Helpers

    def _decide(self, transactional_id: str, changed: Transaction, response: Any) -> Decision:
        version = min(self._server_version(), 1)
        return Decision(
            [to_record(transactional_id, changed, version)],
            response,
            continuation=Prepared((transactional_id,)) if changed.state.is_prepared else None,
        )


def end_error(error: ErrorCode = ErrorCode.NONE) -> EndTxnResponse:
    """An answer to EndTxn that names no producer."""
    return EndTxnResponse(error_code=error)


def _ended(transaction: Transaction) -> EndTxnResponse:
    return EndTxnResponse(
        producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch
    )

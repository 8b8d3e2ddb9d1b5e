"""InitProducerId: a producer takes a transactional id (KIP-98, KIP-360).

A request without a producer id fences all earlier producers. A request with a producer id and epoch
continues with the next epoch, or is fenced if another producer took over; it may ask again for what
it has
got already. Pure. Source: Kafka's TransactionCoordinator.prepareInitProducerIdTransit.
"""

from typing import NamedTuple

from barnabas.node.coordinator.transaction.ending import fence
from barnabas.node.coordinator.transaction.states import TransactionEvent, TransactionState
from barnabas.node.coordinator.transaction.transaction import Transaction, is_exhausted
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP


class InitRequest(NamedTuple):
    """The producer that initializes. Id and epoch are -1 for one that has none."""

    timeout_ms: int
    producer_id: int
    producer_epoch: int

    @property
    def has_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


class Initialized(NamedTuple):
    """The outcome. With CONCURRENT_TRANSACTIONS there may be a transaction to abort."""

    error: ErrorCode
    transaction: Transaction | None = None
    needs_producer_id: bool = False


def initialize(
    transaction: Transaction | None,
    request: InitRequest,
    new_producer_id: int,
    server_version: int,
    now_ms: int,
) -> Initialized:
    """Make the sender the producer; `new_producer_id` is -1 at the first attempt."""
    if transaction is None:
        if new_producer_id == NO_PRODUCER_ID:
            return Initialized(ErrorCode.NONE, needs_producer_id=True)
        return Initialized(
            ErrorCode.NONE,
            Transaction(
                producer_id=new_producer_id,
                producer_epoch=0,
                timeout_ms=request.timeout_ms,
                state=TransactionState.EMPTY,
                last_update_ms=now_ms,
                previous_producer_id=new_producer_id,
            ),
        )
    if transaction.state.is_prepared:
        return Initialized(ErrorCode.CONCURRENT_TRANSACTIONS)
    if request.has_producer and not _may_go_on(transaction, request):
        return Initialized(ErrorCode.PRODUCER_FENCED)
    if transaction.state is TransactionState.ONGOING:
        # Never given to anybody: who asks comes again, and gets the epoch after it.
        fenced = fence(transaction, server_version, new_producer_id, now_ms)
        return Initialized(
            ErrorCode.CONCURRENT_TRANSACTIONS, fenced.transaction, fenced.needs_producer_id
        )
    if transaction.is_exhausted and (
        not request.has_producer or request.producer_epoch == transaction.producer_epoch
    ):
        if new_producer_id == NO_PRODUCER_ID:
            return Initialized(ErrorCode.NONE, needs_producer_id=True)
        last_epoch = transaction.producer_epoch if request.has_producer else NO_PRODUCER_EPOCH
        return _taken(transaction, request, new_producer_id, 0, last_epoch, now_ms)
    return _next_epoch(transaction, request, now_ms)


def _may_go_on(transaction: Transaction, request: InitRequest) -> bool:
    return request.producer_id == transaction.producer_id or (
        # Its answer with the new id may have been lost.
        request.producer_id == transaction.previous_producer_id
        and is_exhausted(request.producer_epoch)
    )


def _next_epoch(transaction: Transaction, request: InitRequest, now_ms: int) -> Initialized:
    epoch = transaction.producer_epoch
    if not request.has_producer:
        next_epoch, last_epoch = epoch + 1, NO_PRODUCER_EPOCH
    elif request.producer_epoch == epoch:
        next_epoch, last_epoch = epoch + 1, epoch
    elif request.producer_epoch == transaction.last_producer_epoch:
        next_epoch, last_epoch = epoch, transaction.last_producer_epoch
    else:
        return Initialized(ErrorCode.PRODUCER_FENCED)
    producer_id = transaction.producer_id
    return _taken(transaction, request, producer_id, next_epoch, last_epoch, now_ms)


def _taken(
    transaction: Transaction,
    request: InitRequest,
    producer_id: int,
    epoch: int,
    last_epoch: int,
    now_ms: int,
) -> Initialized:
    return Initialized(
        ErrorCode.NONE,
        transaction.after(
            TransactionEvent.PRODUCER_INITIALIZED,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=NO_PRODUCER_ID,
            timeout_ms=request.timeout_ms,
            partitions={},
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        ),
    )

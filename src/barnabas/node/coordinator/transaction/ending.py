"""The end of a transaction, by its producer or by a coordinator that fences it.

With transaction.version 2 (EndTxn from version 5 on) each end raises the epoch, so that what a
producer sent before cannot land in its next transaction (KIP-890). A producer whose epochs are
used up goes on with another id. Since the epoch tells a repeated request from the next one, a
repeated one is answered as it was; with the older versions the state alone must tell.

While markers are being written every request gets CONCURRENT_TRANSACTIONS, which clients send
again, and the state after it decides. With version 2 that holds for any id and epoch: the producer
has been told its next epoch (or id) already, and may end its next transaction, an empty one, before
the markers of this one are written.

Pure: a transaction goes in, and what became of it comes out. Source: Kafka's
TransactionCoordinator.endTransaction and TransactionMetadata.

Not as there: a producer that commits a transaction which the coordinator has aborted (it took too
long) gets PRODUCER_FENCED. Kafka answers so with version 1, but INVALID_TXN_STATE with version 2,
where its epoch looks like that of a repeated request. Kafka Streams continues after
PRODUCER_FENCED (the task has moved) and stops its thread after INVALID_TXN_STATE.

Nor is the epoch before the current one that of a repeated request if the last transaction was ended
with version 1, which does not raise it: then another client took the transactional id in between,
and this one is fenced. Kafka does not look at that; it confirms the commit of a transaction that it
has aborted, and gives the id and epoch of the other client in its answer.
"""

from typing import NamedTuple

from barnabas.node.coordinator.transaction.states import TransactionEvent, TransactionState
from barnabas.node.coordinator.transaction.transaction import Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, PRODUCER_EPOCH_MAX
from barnabas.protocol.records.control import TRANSACTION_VERSION_2


class Ending(NamedTuple):
    """The outcome of a request to end a transaction."""

    error: ErrorCode
    transaction: Transaction | None = None
    """The transaction from now on; None if nothing changes."""
    needs_producer_id: bool = False
    """It must be asked again with a new producer id."""


class EndRequest(NamedTuple):
    """The producer that ends its transaction, and how."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int


def end(transaction: Transaction, request: EndRequest, new_producer_id: int, now_ms: int) -> Ending:
    """End a transaction as its producer wishes; `new_producer_id` is -1 at the first attempt."""
    if request.client_version < TRANSACTION_VERSION_2:
        return _end_with_version_1(transaction, request, now_ms)
    return _end_with_version_2(transaction, request, new_producer_id, now_ms)


def fence(
    transaction: Transaction, server_version: int, new_producer_id: int, now_ms: int
) -> Ending:
    """Abort a transaction under way and shut its producer out: its epoch is passed by."""
    if server_version >= TRANSACTION_VERSION_2:
        return _decide_with_bump(
            transaction,
            TransactionEvent.ABORT_DECIDED,
            new_producer_id,
            now_ms,
            start_ms=transaction.start_ms,
            client_version=server_version,
        )
    return Ending(
        ErrorCode.NONE,
        transaction.after(
            TransactionEvent.ABORT_DECIDED,
            producer_epoch=min(transaction.producer_epoch + 1, PRODUCER_EPOCH_MAX),
            last_producer_epoch=NO_PRODUCER_EPOCH,
            next_producer_id=NO_PRODUCER_ID,
            last_update_ms=now_ms,
            client_version=0,
        ),
    )


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """The transaction when all its markers are written."""
    takes_over = transaction.bumps_epochs and transaction.next_producer_id != NO_PRODUCER_ID
    return transaction.after(
        TransactionEvent.MARKERS_WRITTEN,
        producer_id=transaction.next_producer_id if takes_over else transaction.producer_id,
        producer_epoch=0 if takes_over else transaction.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions={},
        last_update_ms=now_ms,
    )


def _end_with_version_1(transaction: Transaction, request: EndRequest, now_ms: int) -> Ending:
    if transaction.producer_id != request.producer_id:
        return Ending(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        return Ending(ErrorCode.PRODUCER_FENCED)
    if transaction.state.is_prepared:
        return Ending(ErrorCode.CONCURRENT_TRANSACTIONS)
    match transaction.state:
        case TransactionState.ONGOING:
            return Ending(
                ErrorCode.NONE,
                transaction.after(
                    _decided(request),
                    next_producer_id=NO_PRODUCER_ID,
                    last_update_ms=now_ms,
                    client_version=request.client_version,
                ),
            )
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
            is_same = _ends_alike(transaction, request)
            return Ending(ErrorCode.NONE if is_same else ErrorCode.INVALID_TXN_STATE)
        case _:
            return Ending(ErrorCode.INVALID_TXN_STATE)


def _end_with_version_2(
    transaction: Transaction, request: EndRequest, new_producer_id: int, now_ms: int
) -> Ending:
    state = transaction.state
    if state.is_prepared:
        return Ending(ErrorCode.CONCURRENT_TRANSACTIONS)
    has_new_id = (
        transaction.previous_producer_id == request.producer_id
        and request.producer_epoch == PRODUCER_EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != request.producer_id and not has_new_id:
        return Ending(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    has_bumped = (
        transaction.bumps_epochs and transaction.producer_epoch == request.producer_epoch + 1
    )
    is_current = transaction.producer_epoch == request.producer_epoch
    is_repeated = has_bumped or has_new_id
    if state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        if not (is_repeated or is_current):
            return Ending(ErrorCode.PRODUCER_FENCED)
        if is_repeated:
            if _ends_alike(transaction, request):
                return Ending(ErrorCode.NONE)
            return Ending(_contradiction(transaction))
    elif not is_current:
        return Ending(ErrorCode.PRODUCER_FENCED)
    if state is TransactionState.ONGOING:
        event, start_ms = _decided(request), transaction.start_ms
    elif request.is_commit:
        return Ending(ErrorCode.INVALID_TXN_STATE)
    else:
        event, start_ms = TransactionEvent.ABORT_DECIDED, now_ms
    return _decide_with_bump(
        transaction,
        event,
        new_producer_id,
        now_ms,
        start_ms=start_ms,
        client_version=request.client_version,
    )


def _decide_with_bump(
    transaction: Transaction,
    event: TransactionEvent,
    new_producer_id: int,
    now_ms: int,
    *,
    start_ms: int,
    client_version: int,
) -> Ending:
    """The outcome is decided, and the epoch after it is the producer's next one."""
    if transaction.is_exhausted and new_producer_id == NO_PRODUCER_ID:
        return Ending(ErrorCode.NONE, needs_producer_id=True)
    return Ending(
        ErrorCode.NONE,
        transaction.after(
            event,
            producer_epoch=min(transaction.producer_epoch + 1, PRODUCER_EPOCH_MAX),
            last_producer_epoch=transaction.producer_epoch,
            next_producer_id=new_producer_id if transaction.is_exhausted else NO_PRODUCER_ID,
            start_ms=start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        ),
    )


def _decided(request: EndRequest) -> TransactionEvent:
    return TransactionEvent.COMMIT_DECIDED if request.is_commit else TransactionEvent.ABORT_DECIDED


def _ends_alike(transaction: Transaction, request: EndRequest) -> bool:
    return (transaction.state is TransactionState.COMPLETE_COMMIT) is request.is_commit


def _contradiction(transaction: Transaction) -> ErrorCode:
    """The epoch before wants the other outcome: was it shut out, or does it not know itself?"""
    if transaction.state is TransactionState.COMPLETE_COMMIT:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.PRODUCER_FENCED

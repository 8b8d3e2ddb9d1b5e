"""One transactional id: who produces with it, and how far its transaction is.

Source: Kafka's TransactionMetadata and TransactionLog.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.transaction.states import (
    TRANSITIONS,
    TransactionEvent,
    TransactionState,
)
from barnabas.protocol.messages.transactions import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_MAX,
)
from barnabas.protocol.records.control import TRANSACTION_VERSION_2


def is_exhausted(epoch: int) -> bool:
    """Return whether no producer may get a higher epoch: the last one is kept for fencing."""
    return epoch >= PRODUCER_EPOCH_MAX - 1


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state of one transactional id. Timestamps are wall time in ms."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_ms: int
    start_ms: int = NO_TIMESTAMP
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before, whose owner may ask again (KIP-360). It is not in the log."""
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The id that takes over when the transaction is complete: the epochs are used up."""
    client_version: int = 0
    """The transaction.version that the client ended or began its transaction with."""

    @property
    def is_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        """True if its client works with transaction.version 2."""
        return self.client_version >= TRANSACTION_VERSION_2

    def after(self, event: TransactionEvent, **changes: Any) -> "Transaction":
        """The transaction after `event`. Raises KeyError where it cannot happen."""
        return replace(
            self,
            state=TRANSITIONS[self.state, event],
            previous_producer_id=self.producer_id,
            **changes,
        )


@dataclass(slots=True)
class TransactionRecord(CoordinatorRecord):
    """A record, with what the coordinator that wrote it knows beside what the log says."""

    last_producer_epoch: int = NO_PRODUCER_EPOCH
    transaction: Transaction | None = None
    """The transaction that `from_value` would return; None if the log does not contain all of it.
    """


def to_record(
    transactional_id: str, transaction: Transaction, value_version: int
) -> TransactionRecord:
    """The record that makes a transaction what it is; `value_version` is 1 from version 1 on."""
    partitions = None
    if transaction.state is not TransactionState.EMPTY:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in transaction.partitions:
            by_topic.setdefault(topic, []).append(partition)
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()
        ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if value_version >= 1:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return TransactionRecord(
        TransactionLogKey(transactional_id=transactional_id),
        value,
        value_version,
        transaction.last_producer_epoch,
        transaction if value_version >= 1 else None,
    )


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """The record that forgets a transactional id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def from_value(value: TransactionLogValue, last_producer_epoch: int) -> Transaction:
    """The transaction that a record describes. Raises ValueError for an unknown state."""
    state = TransactionState(value.transaction_status)
    partitions = {
        TopicPartition(entry.topic, partition): None
        for entry in value.transaction_partitions or ()
        for partition in entry.partition_ids
    }
    return Transaction(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        partitions=partitions,
        last_producer_epoch=last_producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )

"""The producers of a log and their transactions, decided and replayed in memory.

An append is first checked, which changes nothing, and recorded once it is in the log. What is
recorded follows from the batches alone, so that recovery and followers reach the same state.

A transaction holds back the last stable offset while it is open, and after its end until its
marker is below the high watermark: before that it could still be cut off.

Source: Kafka's ProducerStateManager and ProducerAppendInfo; KIP-98, 360, 890.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.node.log.producers.entry import ProducedBatch, ProducerEntry
from barnabas.node.log.producers.verification import NOT_ASKED, AppendTerms, Verification
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    NO_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    PRODUCER_EPOCH_MAX,
    SEQUENCE_MAX,
    TRANSACTIONAL_MASK,
    BatchHeader,
)
from barnabas.protocol.records.control import TRANSACTION_VERSION_2, EndTxn

_new_tuple = tuple.__new__  # what a NamedTuple's own constructor does, at a third of its cost


class CompletedTransaction(NamedTuple):
    """A transaction whose marker has been recorded."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    is_aborted: bool


class ProducerState:
    """All producers of one log."""

    __slots__ = ("completed", "ongoing", "producers", "snapshot_offset", "verifications")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self.ongoing: dict[int, int] = {}
        """First offset → producer id of the transactions under way, ascending."""
        self.completed: dict[int, int] = {}
        """First → last offset of those that ended, at or above the high watermark."""
        self.verifications: dict[int, Verification] = {}
        """By producer: whose coordinator is asked, or has answered for a batch to come."""
        self.snapshot_offset = 0
        """Offset of the last snapshot taken or loaded."""

    def find_duplicate(self, header: BatchHeader) -> ProducedBatch | None:
        """The batch in the log that a client sends again, if it is one of its last five."""
        entry = self.producers.get(header.producer_id)
        return None if entry is None else entry.find_duplicate(header)

    def check(self, header: BatchHeader, *, with_sequence: bool) -> ErrorCode:
        """Check whether a data batch may follow the producer's last one.

        INVALID_PRODUCER_EPOCH from a fenced producer, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap,
        INVALID_TXN_STATE for plain data inside a transaction. A producer that is not known
        (any more) may start with any sequence.
        """
        entry = self.producers.get(header.producer_id)
        epoch = header.producer_epoch
        if entry is not None and epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        first = header.base_sequence
        verification = self.verifications.get(header.producer_id)
        if (
            with_sequence
            and verification is not None
            and (
                first > verification.lowest_sequence
                or (verification.is_version_2 and first and (entry is None or not entry.batches))
            )
        ):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry is None:
            return ErrorCode.NONE
        if with_sequence:
            if epoch != entry.epoch:
                if first != 0 and entry.epoch != NO_PRODUCER_EPOCH:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            else:
                last = entry.last_sequence
                if first != last + 1 and not (first == 0 and last == SEQUENCE_MAX):
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry.txn_first_offset >= 0 and not header.is_transactional:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.NONE

    def check_terms(self, header: BatchHeader, terms: AppendTerms | None) -> ErrorCode:
        """Check that the coordinator has confirmed a batch that begins a transaction."""
        if (
            terms is None
            or not header.is_transactional
            or self.is_open_in(header.producer_id, header.producer_epoch)
        ):
            return ErrorCode.NONE
        verification = terms.verification
        if verification is NOT_ASKED or (
            verification is not None and self.verifications.get(header.producer_id) is verification
        ):
            return ErrorCode.NONE
        return ErrorCode.INVALID_TXN_STATE

    def verify(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, is_version_2: bool
    ) -> Verification | None:
        """Begin to ask about a producer, or go on; None: its transaction is under way here."""
        if self.is_open_in(producer_id, epoch):
            return None
        verification = self.verifications.get(producer_id)
        if verification is None:
            verification = self.verifications[producer_id] = Verification(
                now_ms, sequence, epoch, is_version_2=is_version_2
            )
        else:
            verification.ask_again(sequence, epoch)
        return verification

    def check_marker(
        self, header: BatchHeader, marker: EndTxn, transaction_version: int = 0
    ) -> ErrorCode:
        """Check whether a transaction coordinator may write this marker.

        INVALID_PRODUCER_EPOCH, or TRANSACTION_COORDINATOR_FENCED from a coordinator that has
        been replaced. With transaction.version 2 the marker's epoch is a new one, but for a
        marker that is written again (KIP-1228).
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return ErrorCode.NONE
        epoch = header.producer_epoch
        if epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if (
            transaction_version >= TRANSACTION_VERSION_2
            and epoch == entry.epoch
            and entry.txn_first_offset >= 0
            and epoch != PRODUCER_EPOCH_MAX
        ):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < entry.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    def record_data(self, header: BatchHeader, first_offset: int, timestamp: int) -> None:
        """Take a data batch of a producer that is in the log at `first_offset`."""
        producer_id = header.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        if header.producer_epoch != entry.epoch:
            entry.set_epoch(header.producer_epoch)
        _, _, _, _, _, attributes, delta, _, _, _, _, sequence, _ = header
        last_sequence = NO_SEQUENCE if sequence < 0 else (sequence + delta) & SEQUENCE_MAX
        batch: ProducedBatch = _new_tuple(
            ProducedBatch, (last_sequence, first_offset + delta, delta, timestamp)
        )
        entry.add_batch(batch)
        if self.verifications:
            self.verifications.pop(producer_id, None)
        if attributes & TRANSACTIONAL_MASK and entry.txn_first_offset < 0:
            entry.txn_first_offset = first_offset
            self.ongoing[first_offset] = producer_id

    def record_marker(
        self, header: BatchHeader, marker: EndTxn, offset: int, timestamp: int
    ) -> CompletedTransaction | None:
        """Take the marker at `offset`; returns the transaction that it ends, if any data is."""
        producer_id = header.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        entry.set_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        self.verifications.pop(producer_id, None)
        first_offset = entry.txn_first_offset
        if first_offset < 0:
            return None
        entry.txn_first_offset = NO_OFFSET
        del self.ongoing[first_offset]
        self.completed[first_offset] = offset
        # A producer has one transaction at a time, so those left are of others.
        stable = next(iter(self.ongoing), offset + 1)
        return CompletedTransaction(producer_id, first_offset, offset, stable, not marker.is_commit)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The offset at which the first undecided transaction begins; None if all are decided."""
        first = next(iter(self.ongoing), None)
        completed = self.completed
        if completed:
            for start, end in list(completed.items()):
                if end < high_watermark:
                    del completed[start]
                elif first is None or start < first:
                    first = start
        return first

    def is_open_in(self, producer_id: int, epoch: int) -> bool:
        """Return whether the producer's transaction of this epoch is under way.

        One of an epoch before is decided, and waits for its marker: what has a later epoch
        belongs to the next transaction, which its coordinator must know.
        """
        entry = self.producers.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch

    def is_open(self, producer_id: int) -> bool:
        """Return whether that producer has a transaction under way here."""
        entry = self.producers.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0

    def load(self, entries: Iterable[ProducerEntry]) -> None:
        """Replace everything by what a snapshot holds."""
        self.clear()
        for entry in entries:
            self.producers[entry.producer_id] = entry
        self.ongoing.update(
            sorted(
                (entry.txn_first_offset, entry.producer_id)
                for entry in self.producers.values()
                if entry.txn_first_offset >= 0
            )
        )

    def clear(self) -> None:
        """Forget every producer."""
        self.producers.clear()
        self.ongoing.clear()
        self.completed.clear()
        self.verifications.clear()

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for `expiration_ms`, unless in a transaction."""
        expired = [
            entry.producer_id
            for entry in self.producers.values()
            if entry.txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        lingering = [
            producer_id
            for producer_id, verification in self.verifications.items()
            if now_ms - verification.asked_ms >= expiration_ms
        ]
        for producer_id in lingering:
            del self.verifications[producer_id]
        return len(expired)

"""State that a log keeps of one idempotent producer."""

from typing import NamedTuple

from barnabas.protocol.records.batch import (
    NO_OFFSET,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    add_to_sequence,
)

BATCHES_MAX = 5
"""Batches kept to recognise duplicates: as many as a producer may have in flight."""
NO_COORDINATOR_EPOCH = -1


class ProducedBatch(NamedTuple):
    """A batch in the log. `timestamp` is its greatest, in ms."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return add_to_sequence(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer: its epoch, last batches and open transaction. Source: ProducerStateEntry."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        txn_first_offset: int = NO_OFFSET,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        self.batches: list[ProducedBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(self, header: BatchHeader) -> ProducedBatch | None:
        """The batch in the log that has the sequences of `header`, if it is remembered."""
        if header.producer_epoch != self.epoch:
            return None
        first_sequence, last_sequence = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def set_epoch(self, epoch: int) -> None:
        """A new epoch starts with sequence 0 and nothing to be a duplicate of."""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    def add_batches(self, batches: list[ProducedBatch]) -> None:
        """As `add_batch` for one after the other; one at least."""
        known = self.batches
        known += batches
        if len(known) > BATCHES_MAX:
            del known[:-BATCHES_MAX]
        self.last_timestamp = batches[-1].timestamp

    def add_batch(self, batch: ProducedBatch) -> None:
        """Remember a batch, forgetting the oldest beyond BATCHES_MAX."""
        batches = self.batches
        if len(batches) == BATCHES_MAX:
            del batches[0]
        batches.append(batch)
        self.last_timestamp = batch.timestamp

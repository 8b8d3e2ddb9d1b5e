"""From records to images, transactions included.

Records between BeginTransaction and EndTransaction become visible together, at the end; an
AbortTransaction undoes them. A controller that failed half-way leaves an open transaction,
which its successor aborts (KIP-868). Source: Kafka's MetadataBatchLoader.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.replay import ImageDelta, ReplayError
from barnabas.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

NO_TRANSACTION = -1


class RecordBatch(NamedTuple):
    """Records as they are in the log: offset of the first, leader epoch, append time."""

    base_offset: int
    epoch: int
    timestamp_ms: int
    records: list[MetadataRecord]


class Published(NamedTuple):
    """A new image and what changed since the one before."""

    delta: ImageDelta
    image: MetadataImage


class ImageLoader:
    """Builds images from batches in log order; the same at load, on followers and live."""

    __slots__ = ("_delta", "image", "transaction_offset")

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        """The last image that was published."""
        self.transaction_offset = NO_TRANSACTION
        """The start offset of the open transaction, or -1."""
        self._delta = ImageDelta(image)

    def copy(self) -> "ImageLoader":
        """The loader as it is now, for as long as this one's open transaction gets no records."""
        other = ImageLoader(self.image)
        if self.transaction_offset != NO_TRANSACTION:
            other.transaction_offset = self.transaction_offset
            other._delta = self._delta
        return other

    def feed(self, batches: Iterable[RecordBatch]) -> list[Published]:
        """Replay batches; returns the images they lead to, oldest first.

        There is one image for all batches, and one more before each transaction; none for what
        stands inside a transaction that is still open. Raises ReplayError.
        """
        published: list[Published] = []
        offset, epoch, timestamp_ms = self.image.offset, self.image.epoch, self.image.timestamp_ms
        for batch in batches:
            for offset, record in enumerate(batch.records, batch.base_offset):
                message = record.message
                if isinstance(message, BeginTransactionRecord):
                    if self.transaction_offset != NO_TRANSACTION:
                        raise ReplayError("BeginTransactionRecord inside a transaction")
                    self._publish(published, offset - 1, epoch, timestamp_ms)
                    self.transaction_offset = offset
                elif isinstance(message, EndTransactionRecord | AbortTransactionRecord):
                    self._end_transaction(message)
                else:
                    self._delta.replay(message)
            epoch, timestamp_ms = batch.epoch, batch.timestamp_ms
        if self.transaction_offset == NO_TRANSACTION:
            self._publish(published, offset, epoch, timestamp_ms)
        return published

    def _end_transaction(self, message: EndTransactionRecord | AbortTransactionRecord) -> None:
        if self.transaction_offset == NO_TRANSACTION:
            raise ReplayError(f"{type(message).__name__} outside a transaction")
        self.transaction_offset = NO_TRANSACTION
        if isinstance(message, AbortTransactionRecord):
            self._delta = ImageDelta(self.image)

    def _publish(
        self, published: list[Published], offset: int, epoch: int, timestamp_ms: int
    ) -> None:
        if offset <= self.image.offset:
            return
        self.image = self._delta.image(offset, epoch, timestamp_ms)
        published.append(Published(self._delta, self.image))
        self._delta = ImageDelta(self.image)

"""Records that a `WireProducer` has queued, and the batches in which it sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from confluent_kafka import KafkaError, Message

from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record, encode_batch

OnDelivery = Callable[[KafkaError | None, Message], Any]


@dataclass(slots=True)
class Queued:
    """A record."""

    topic: str
    partition: int
    record: Record
    on_delivery: OnDelivery | None
    expires: float

    @property
    def size_bytes(self) -> int:
        """The room that it takes in the queue."""
        return len(self.record.key or b"") + len(self.record.value or b"") + 64


@dataclass(slots=True)
class Breaks:
    """How often, and since when, the leader closes the connection at each request with a batch."""

    count: int = 0
    since: float = 0.0
    size_bytes: int = 0


class Columns(Protocol):
    """Many records that become batches without work for each record."""

    def __len__(self) -> int:
        """Return the number of records."""

    def spread(self, partitions: int) -> Iterable[tuple[int, Columns]]:
        """Yield batches with their partitions; those of a partition are in order."""

    def halves(self) -> tuple[Columns, Columns]:
        """Split a batch into two."""

    def encoded(
        self,
        codec: Codec,
        compression_level: int | None,
        *,
        is_transactional: bool,
        **identity: int,
    ) -> bytearray:
        """One batch; `identity` as `encode_batch` has it."""


@dataclass(slots=True)
class QueuedColumns:
    """Columns of many records."""

    topic: str
    columns: Columns
    expires: float


@dataclass(slots=True)
class Batch:
    """Records of one partition that are sent together, until they are stored or have failed."""

    items: list[Queued]
    was_sent: bool = False
    breaks: Breaks = field(default_factory=Breaks)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def expires(self) -> float:
        """When it is given up, as `time.monotonic` counts."""
        return self.items[0].expires

    def halves(self) -> tuple[Batch, Batch]:
        """Split it into two."""
        half = len(self.items) // 2
        return Batch(self.items[:half]), Batch(self.items[half:])

    def encoded(self, codec: Codec, level: int | None, **more: Any) -> bytearray:
        """Return its bytes; `more` is as `encode_batch` has it."""
        records = [item.record for item in self.items]
        return encode_batch(records, codec=codec, compression_level=level, **more)


@dataclass(slots=True)
class ColumnBatch:
    """A batch of columns."""

    item: QueuedColumns
    was_sent: bool = False
    breaks: Breaks = field(default_factory=Breaks)

    def __len__(self) -> int:
        return len(self.item.columns)

    @property
    def expires(self) -> float:
        """When it is given up, as `time.monotonic` counts."""
        return self.item.expires

    def halves(self) -> tuple[ColumnBatch, ColumnBatch]:
        """Split it into two."""
        first, second = (
            ColumnBatch(replace(self.item, columns=half)) for half in self.item.columns.halves()
        )
        return first, second

    def encoded(self, codec: Codec, level: int | None, **more: Any) -> bytearray:
        """Return its bytes; `more` is as `encode_batch` has it."""
        return self.item.columns.encoded(codec, level, **more)


def why_broken_off(batch: Batch | ColumnBatch) -> str:
    """Return the reason if the leader closes the connection again and again."""
    count, breaks = len(batch), batch.breaks
    what = "a record" if count == 1 else f"a batch of {count} records"
    return (
        f"the partition's leader closed the connection at each of {breaks.count} requests with "
        f"{what} of {breaks.size_bytes} bytes; it does so if a request is larger than its "
        "socket.request.max.bytes"
    )


def items_of(batch: Batch | ColumnBatch) -> Sequence[Queued | QueuedColumns]:
    """Return what reports are about."""
    return batch.items if isinstance(batch, Batch) else [batch.item]

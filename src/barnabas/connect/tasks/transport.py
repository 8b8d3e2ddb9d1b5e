"""Where the records of tasks are: Kafka's topics, or those of the test kit's memory.

A Transport is pickled to executors; what it opens there stays open between micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event
from typing import Protocol

from barnabas.connect.connectors.base import SinkRange, TopicPartition
from barnabas.connect.record import JsonMap, RawColumn, RawRecord
from barnabas.schemas.data.errors import ConnectError

Offsets = Sequence[tuple[JsonMap, JsonMap]]
"""(source partition, offset) pairs."""


class BatchAbortedError(ConnectError):
    """A transaction was aborted: nothing of the micro-batch is written, to do it again is right."""


class Output(Protocol):
    """Writes the records of one task, at least once."""

    def heed(self, stopping: Event) -> None:
        """Wait no longer than a stopped task may, where `send` waits for room."""

    def send(self, record: RawRecord, on_written: Callable[[int], None] | None = None) -> None:
        """Queue a record, waiting where the queue is full. Raises ConnectError.

        `on_written` is called with the offset once it is written, by `flush` at the latest;
        a transaction may still be aborted then.
        """

    def send_values(
        self, topic: str, values: Sequence[bytes | None], timestamp_ms: int | None
    ) -> None:
        """Queue records that have nothing else, as `send` does. Raises ConnectError."""

    def flush(self, stopping: Event) -> Sequence[tuple[RawRecord, Exception]]:
        """Wait until all are written; returns those that cannot be. Raises ConnectError."""

    def close(self) -> None:
        """Give up what is not written."""


class TransactionalOutput(Output, Protocol):
    """Writes the records of one task and its offsets, each micro-batch as one transaction."""

    def commit(self, connector: str, offsets: Offsets) -> None:
        """Make what was sent visible, with offsets. Raises BatchAbortedError, ConnectError."""

    def abort(self) -> None:
        """Take back what was sent."""


class GroupListener(Protocol):
    """Hears of a sink's partitions, from within `poll` and `close`."""

    def assigned(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int] | None:
        """Partitions are ours; returns offsets that are to be used in place of the group's."""

    def revoked(self, partitions: Sequence[TopicPartition], *, is_lost: bool) -> None:
        """Partitions are to be given up; where lost, they are another's already."""


class Group(Protocol):
    """A sink task's membership in the group of its connector."""

    def poll(self, seconds: float) -> None:
        """Take part in the group for so long. Raises ConnectError."""

    def ranges(self) -> Sequence[SinkRange]:
        """Return what there is to read, of each partition with anything. Raises ConnectError."""

    def advance(self, ranges: Sequence[SinkRange]) -> None:
        """So much is written: go on behind it."""

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of the group. Raises ConnectError."""

    def close(self) -> None:
        """Leave the group."""


class Transport(Protocol):
    """Opens all of these."""

    def output(self) -> Output:
        """Return this process's output of the task."""

    def transactional_output(self) -> TransactionalOutput:
        """Return the task's output for exactly once; it ends what an earlier one left open."""

    def read(self, where: SinkRange) -> Iterator[RawRecord]:
        """Yield the records of a range. Raises RetriableError, ConnectError."""

    def read_columns(self, where: SinkRange) -> Iterator[RawColumn]:
        """Yield the records of a range, many at once. Raises RetriableError, ConnectError."""

    def group(self, listener: GroupListener) -> Group:
        """Join the group of the connector."""

    def dead_letters(self) -> Output:
        """Return the output of dead letters, whose topic is there then. Raises ConnectError."""

    def close(self) -> None:
        """Close what this process holds open for the task."""

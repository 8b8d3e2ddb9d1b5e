"""Records of micro-batches into topics.

At least once: each task of Spark's writes its part from where it runs, with an idempotent producer.
Exactly once: the driver writes each micro-batch in one transaction (pipeline/exactly_once.py).
Both give records their event time as timestamp, and the partition that Java's producers give a key.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from barnabas.spark.exactly_once import TransactionalWriter
from barnabas.spark.record_writer import KafkaRecord, RecordWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Settings = tuple[tuple[str, str], ...]
"""Of confluent-kafka's producers, `bootstrap.servers` among them."""


Letters = Callable[[], list[KafkaRecord]]
"""Dead letters of the micro-batch whose results have just been made."""


def no_letters() -> list[KafkaRecord]:
    """Return none."""
    return []


class StoppedError(Exception):
    """A micro-batch is not begun: the pipeline stops."""


class Sink(Protocol):
    """The sink of `foreachBatch`; columns are key, value, at, headers."""

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Return when all records are acknowledged."""

    def close(self) -> None:
        """Give up connections."""


class Gate:
    """Lets micro-batches through to a sink until the pipeline stops: each is whole or not begun."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._is_closed = threading.Event()

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch. Raises StoppedError after `close`."""
        if self._is_closed.is_set():
            raise StoppedError
        self._sink.write(frame, batch_id)

    def close(self) -> None:
        """Let no more through."""
        self._is_closed.set()

    def release(self) -> None:
        """Give up the sink's connections."""
        self._sink.close()


class AtLeastOnce:
    """Writes from Spark's tasks. A micro-batch that Spark runs again is written again."""

    def __init__(self, topic: str, settings: Settings, letters: Letters = no_letters) -> None:
        self._write = TaskWriter(topic, settings)
        self._letters = letters
        self._letter_writer = _writer(settings)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch, and its dead letters."""
        frame.mapInArrow(self._write, "records BIGINT").collect()
        letters = self._letters()
        if letters:
            self._letter_writer.write(batch_id, letters)

    def close(self) -> None:
        """Workers keep their producers for the next micro-batch."""
        self._letter_writer.close()


class ExactlyOnce:
    """Writes from the driver, in a transaction for each micro-batch."""

    def __init__(
        self, topic: str, writer: TransactionalWriter, letters: Letters = no_letters
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._letters = letters

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write a micro-batch and its dead letters, unless it was committed before."""
        table = frame.toArrow()
        records = [one for batch in table.to_batches() for one in records_of(self._topic, batch)]
        self._writer.write(batch_id, records + self._letters())

    def close(self) -> None:
        """Give up the connections."""
        self._writer.close()


_writers: dict[Settings, RecordWriter] = {}
"""Of this worker process: a connection outlives the tasks."""


@dataclass(frozen=True)
class TaskWriter:
    """For `mapInArrow`: writes records and tells how many."""

    topic: str
    settings: Settings = field(repr=False)
    """Passwords are among them."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from barnabas.spark.archives import keep_archives

        keep_archives()
        writer = _writers.get(self.settings)
        if writer is None:
            writer = _writers[self.settings] = _writer(self.settings)
        count = 0
        for batch in batches:
            records = list(records_of(self.topic, batch))
            writer.write(0, records)
            count += len(records)
        yield pa.RecordBatch.from_pydict({"records": [count]})


def _writer(settings: Settings) -> RecordWriter:
    others = dict(settings)
    return RecordWriter(others.pop("bootstrap.servers"), others)


def records_of(topic: str, batch: pa.RecordBatch) -> Iterator[KafkaRecord]:
    """Yield the records of an Arrow batch."""
    names = ("key", "value", "at", "headers")
    for key, value, at, headers in zip(
        *(batch.column(name).to_pylist() for name in names), strict=True
    ):
        yield KafkaRecord(topic, key, value, at, _headers(headers))


def _headers(headers: Any) -> list[tuple[str, bytes | None]]:
    return [(header["key"], header["value"]) for header in headers or ()]

"""Writes results of queries to their topic: from the tasks, or from Spark's driver.

At least once, each task writes what it has made, through one idempotent producer per worker
process: in parallel, and before the micro-batch is over. A task that runs again writes the same
again. Exactly once, parcels of results are collected on the driver, and they and the source's
offsets are one transaction.

Spark's own Kafka sink cannot set a record's timestamp, which is part of a result (ROWTIME).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from barnabas.java.hash import murmur2
from barnabas.spark.record_writer import KafkaRecord, RecordWriter
from barnabas.sql.spark.parcels import Note, Notes, Results, decode_parcel

METADATA_TIMEOUT_SECONDS = 30.0

OnNotes = Callable[[Sequence[Note], int], None]
"""Takes the notes for the processing log, and how many there were in all."""


class KafkaWriter(Protocol):
    """RecordWriter or TransactionalWriter."""

    def write(self, batch_id: int, records: Sequence[KafkaRecord]) -> object: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class ResultRecords:
    """Makes records of results. `window_bytes`: how many bytes of a key are its window's bounds."""

    topic: str
    window_bytes: int
    partitions: int

    def of(self, results: Results) -> Iterator[KafkaRecord]:
        headers = results.headers or ((),) * len(results.keys)
        columns = zip(results.keys, results.values, results.timestamps, headers, strict=True)
        for key, value, timestamp_ms, given in columns:
            yield KafkaRecord(self.topic, key, value, timestamp_ms, given, self._partition(key))

    def _partition(self, key: bytes | None) -> int | None:
        """Windows of a key are together: where the key alone would be. Source: Kafka Streams'
        WindowedStreamPartitioner."""
        if not self.window_bytes or key is None:
            return None
        return (murmur2(key[: -self.window_bytes]) & 0x7FFFFFFF) % self.partitions


_Clients = tuple[tuple[str, Any], ...]
_writers: dict[tuple[str, _Clients], RecordWriter] = {}


def write_from_task(servers: str, records: Iterable[KafkaRecord], clients: _Clients = ()) -> int:
    """Write, and wait until all has arrived: how many there were. Raises KafkaException.

    Tasks of one worker process run one after the other and share its connection, so records of one
    partition arrive in the order in which they were made.
    """
    writer = _writers.get((servers, clients))
    if writer is None:
        writer = _writers[servers, clients] = RecordWriter(servers, dict(clients))
    listed = list(records)
    writer.write(-1, listed)
    return len(listed)


@dataclass
class Figures:
    """What a query has done since it was started here."""

    batches: int = 0
    read: int = 0
    """Records that sources gave, the ones read twice counted twice."""
    written: int = 0
    failed: int = 0
    """Notes for the processing log."""
    state_calls: int = 0
    seconds: float = 0.0
    """Time in workers' Python code."""
    latest_ms: int = -1
    """The latest timestamp of the records that sources gave."""


class ResultSink:
    """For `foreachBatch`. Without a `writer` it only takes notes: tasks have written the rest."""

    def __init__(
        self, records: ResultRecords, writer: KafkaWriter | None, on_notes: OnNotes
    ) -> None:
        self._records = records
        self._writer = writer
        self._on_notes = on_notes
        self._lock = threading.Lock()
        self._figures = Figures()

    @property
    def figures(self) -> Figures:
        """A copy of what was counted so far."""
        with self._lock:
            return Figures(**vars(self._figures))

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write a micro-batch. Raises KafkaException where a record may not have arrived."""
        records: list[KafkaRecord] = []
        notes = Notes()
        for row in rows.collect():
            parcel = decode_parcel(bytes(row["parcel"]))
            if isinstance(parcel, Results):
                records += self._records.of(parcel)
            elif isinstance(parcel, Notes):
                notes.add(parcel)
        if self._writer is not None:
            self._writer.write(batch_id, records)
        with self._lock:
            figures = self._figures
            figures.batches += 1
            figures.read += notes.read
            figures.written += len(records) + notes.written
            figures.failed += notes.count
            figures.state_calls += notes.calls
            figures.seconds += notes.seconds
            figures.latest_ms = max(figures.latest_ms, notes.latest_ms)
        if notes.count:
            self._on_notes(notes.notes, notes.count)

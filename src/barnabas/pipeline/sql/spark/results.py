"""Writes the results of a query's micro-batches to its topic, from Spark's driver.

Spark's own Kafka sink cannot set a record's timestamp, which is part of a result (ROWTIME). So
parcels of results are collected, a few rows in all, and go through one idempotent producer: at
least once. With a TransactionalWriter they and the source's offsets are one transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame

from barnabas.pipeline.record_writer import KafkaRecord
from barnabas.pipeline.sql.runtime.rows_encoding import murmur2
from barnabas.pipeline.sql.spark.parcels import Note, Notes, Results, decode_parcel

METADATA_TIMEOUT_SECONDS = 30.0

OnNotes = Callable[[Sequence[Note], int], None]
"""Takes the notes for the processing log, and how many there were in all."""


class KafkaWriter(Protocol):
    """RecordWriter or TransactionalWriter."""

    def write(self, batch_id: int, records: Sequence[KafkaRecord]) -> object: ...

    def close(self) -> None: ...


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


class ResultSink:
    """For `foreachBatch`. `window_bytes`: how many bytes of a key are its window's bounds."""

    def __init__(
        self, topic: str, window_bytes: int, writer: KafkaWriter, on_notes: OnNotes, partitions: int
    ) -> None:
        self._topic = topic
        self._window_bytes = window_bytes
        self._writer = writer
        self._on_notes = on_notes
        self._partitions = partitions
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
                records += self._records(parcel)
            elif isinstance(parcel, Notes):
                notes.add(parcel)
        self._writer.write(batch_id, records)
        with self._lock:
            figures = self._figures
            figures.batches += 1
            figures.read += notes.read
            figures.written += len(records)
            figures.failed += notes.count
            figures.state_calls += notes.calls
            figures.seconds += notes.seconds
        if notes.count:
            self._on_notes(notes.notes, notes.count)

    def _records(self, results: Results) -> Iterator[KafkaRecord]:
        headers = results.headers or ((),) * len(results.keys)
        columns = zip(results.keys, results.values, results.timestamps, headers, strict=True)
        for key, value, timestamp_ms, given in columns:
            yield KafkaRecord(self._topic, key, value, timestamp_ms, given, self._partition(key))

    def _partition(self, key: bytes | None) -> int | None:
        """Windows of a key are together: where the key alone would be. Source: Kafka Streams'
        WindowedStreamPartitioner."""
        if not self._window_bytes or key is None:
            return None
        return (murmur2(key[: -self._window_bytes]) & 0x7FFFFFFF) % self._partitions


def partition_counts(admin: AdminClient, topics: Sequence[str]) -> dict[str, int]:
    """How many partitions each topic has; those that are not there are left out.

    Raises KafkaException if no broker answers.
    """
    found = admin.list_topics(timeout=METADATA_TIMEOUT_SECONDS).topics
    return {topic: len(found[topic].partitions) for topic in topics if topic in found}

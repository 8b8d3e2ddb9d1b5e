"""Writes results of queries to their topic, from Spark's tasks.

At least once, each task writes what it has made, through one idempotent producer per worker
process: in parallel, and before the micro-batch is over. A task that runs again writes the same
again. Exactly once, each task of the last stage writes in a transaction that it leaves open, and
the driver commits those of a micro-batch together: `barnabas.spark.datasource` has the protocol.

Spark's own Kafka sink cannot set a record's timestamp, which is part of a result (ROWTIME).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from barnabas.java.hash import murmur2
from barnabas.kafka.wire import CoordinatorError
from barnabas.spark.datasource.committer import Committer
from barnabas.spark.datasource.options import SinkOptions
from barnabas.spark.datasource.protocol import CheckpointBehindError, NotPreparedError, Prepared
from barnabas.spark.datasource.task import POOL, TaskPlace, Transaction
from barnabas.spark.exactly_once import BATCH_HEADER, QUERY_HEADER, RECORDS_HEADER
from barnabas.spark.record_columns import RecordColumns
from barnabas.spark.record_writer import KafkaRecord, RecordWriter
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.parcels import Header, Note, Notes, Results, Written, decode_parcel

_log = logging.getLogger(__name__)
_BY_KEY = -1
METADATA_TIMEOUT_SECONDS = 30.0
_BATCHES_KEPT = 100
"""Spark remembers the progress of as many micro-batches."""

OnNotes = Callable[[Sequence[Note], int], None]
"""Takes the notes for the processing log, and how many there were in all."""


@dataclass(frozen=True)
class ResultRecords:
    """Makes records of results. `window_bytes`: the size of the window's bounds in a key."""

    topic: str
    window_bytes: int
    partitions: int

    @classmethod
    def of_plan(cls, plan: HostedPlan) -> ResultRecords:
        """Those of a plan's sink."""
        return cls(plan.sink.topic, plan.window_bytes, plan.hosting.sink_partitions)

    def of(self, results: Results) -> Iterator[KafkaRecord]:
        lists = results.lists()
        headers = results.headers or ((),) * len(lists[0])
        for key, value, timestamp_ms, given in zip(*lists, headers, strict=True):
            yield KafkaRecord(self.topic, key, value, timestamp_ms, given, self._partition(key))

    def columns(self, results: Results, marks: Sequence[Header] = ()) -> RecordColumns | None:
        """The same as columns, with `marks` behind the headers of each; None for timestamps that
        only librdkafka refuses."""
        columns = RecordColumns.of(
            results.keys,
            results.values,
            results.timestamps,
            results.headers,
            marks=marks,
            suffix_bytes=self.window_bytes,
        )
        return columns if columns.earliest_ms >= 0 else None

    def _partition(self, key: bytes | None) -> int | None:
        """Windows of a key are together: where the key alone would be. Source: Kafka Streams'
        WindowedStreamPartitioner."""
        if not self.window_bytes or key is None:
            return None
        return (murmur2(key[: -self.window_bytes]) & 0x7FFFFFFF) % self.partitions


_Clients = tuple[tuple[str, Any], ...]
_writers: dict[tuple[str, _Clients], RecordWriter] = {}


def write_from_task(
    servers: str, to: ResultRecords, results: Results, clients: _Clients = ()
) -> int:
    """Write, and wait until all has arrived: how many there were. Raises KafkaException.

    Tasks of one worker process run one after the other and share its connection, so records of one
    partition arrive in the order in which they were made.
    """
    writer = _writers.get((servers, clients))
    if writer is None:
        writer = _writers[servers, clients] = RecordWriter(servers, dict(clients))
    if not len(results.keys):
        return 0
    columns = to.columns(results)
    if columns is None or not writer.write_columns(to.topic, columns):
        writer.write(-1, list(to.of(results)))
    return len(results.keys)


@dataclass
class Figures:
    """The counts of a query since it was started here."""

    batches: int = 0
    read: int = 0
    """Records that sources gave, the ones read twice counted twice."""
    written: int = 0
    failed: int = 0
    """Notes for the processing log."""
    by_columns: int = 0
    """Those that went through their first stage as columns."""
    state_calls: int = 0
    seconds: float = 0.0
    """Time in workers' Python code."""
    latest_ms: int = -1
    """The latest timestamp of the records that sources gave."""

    def counts(self) -> dict[str, int]:
        """The figures that add up, by the engine's names for them."""
        return {
            "rows_in": self.read,
            "rows_by_columns": self.by_columns,
            "rows_out": self.written,
            "errors": self.failed,
            "batches": self.batches,
        }


class Tally:
    """Counts what a query does, by its tasks' notes. Any thread may ask for its figures."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures = Figures()
        self._read: dict[int, int] = {}

    def add(self, batch_id: int, notes: Notes) -> None:
        """Count notes; a micro-batch may have several."""
        with self._lock:
            figures = self._figures
            figures.batches += batch_id not in self._read
            figures.read += notes.read
            figures.written += notes.written
            figures.failed += notes.count
            figures.by_columns += notes.by_columns
            figures.state_calls += notes.calls
            figures.seconds += notes.seconds
            figures.latest_ms = max(figures.latest_ms, notes.latest_ms)
            self._read[batch_id] = self._read.get(batch_id, 0) + notes.read
            while len(self._read) > _BATCHES_KEPT:
                del self._read[next(iter(self._read))]

    @property
    def read_of_batches(self) -> dict[int, int]:
        """The number of records read, by the number of each of the last micro-batches."""
        with self._lock:
            return dict(self._read)

    @property
    def figures(self) -> Figures:
        """A copy of what was counted so far."""
        with self._lock:
            return Figures(**vars(self._figures))


@dataclass(frozen=True)
class ExactlyOnce:
    """The settings for writing results exactly once.

    `name` is the query's among all of the cluster: only one process at a time commits under it.
    `marks_all`: headers of each record say which part of which micro-batch it is of.
    """

    options: SinkOptions
    name: str
    checkpoint: str
    """The one that numbers the micro-batches."""
    marks_all: bool = False

    def committer(self) -> Committer:
        """The driver's side; fences other processes. Raises KafkaException, CoordinatorError."""
        committer = Committer(self.options, self.name, retakes=False, checkpoint=self.checkpoint)
        try:
            committer.take_over()
        except BaseException:
            committer.close()
            raise
        return committer


class TaskResults:
    """The results that one task writes exactly once, in a transaction that it leaves open."""

    def __init__(self, to: ExactlyOnce, records: ResultRecords, place: TaskPlace) -> None:
        self._to = to
        self._records = records
        self._place = place
        self._marked: list[Results] = []
        self._transaction: Transaction | None = None
        self.count = 0

    def write(self, results: Results) -> None:
        """Write more. Raises KafkaException, WriteError."""
        self.count += len(results.keys)
        if self._to.marks_all:  # they say how many there are
            self._marked.append(results)
        else:
            self._send(results, ())

    def prepare(self) -> tuple[Prepared, ...]:
        """Wait until all has arrived; empty if there was nothing. Raises as `write` does."""
        place = self._place
        part = f"{self._to.checkpoint}/{place.batch}/{place.task}"
        marks = (
            (QUERY_HEADER, self._to.name.encode()),
            (BATCH_HEADER, part.encode()),
            (RECORDS_HEADER, str(self.count).encode()),
        )
        for results in self._marked:
            self._send(results, marks)
        return () if self._transaction is None else self._transaction.prepare(place.task)

    def abort(self) -> None:
        """Take back what was written."""
        if self._transaction is not None:
            self._transaction.abort()

    def _send(self, results: Results, marks: Sequence[Header]) -> None:
        if not len(results.keys):
            return
        if self._transaction is None:
            self._transaction = Transaction(self._to.options, self._take_id)
        columns = None
        if self._transaction.takes_columns:
            columns = self._records.columns(results, marks)
        if columns is not None:
            self._transaction.send_columns(self._records.topic, columns)
            return
        for record in self._records.of(results):
            self._transaction.send_record(
                (
                    record.topic,
                    record.value,
                    record.key,
                    _BY_KEY if record.partition is None else record.partition,
                    record.timestamp_ms,
                    [*record.headers, *marks] or None,
                )
            )

    def _take_id(self) -> str:
        return POOL.take(self._place.prefix, self._place.batch)


class ResultSink:
    """For `foreachBatch`: collects the tasks' reports of what they wrote, and commits it.

    Without a `committer` what they have written counts already.
    """

    def __init__(self, committer: Committer | None, on_notes: OnNotes) -> None:
        self._committer = committer
        self._on_notes = on_notes
        self.tally = Tally()

    def write(self, collect: Callable[[], Sequence[bytes]], batch_id: int) -> None:
        """Run a micro-batch by `collect`, which returns its last parcels.

        Raises what its tasks or the commit fail of.
        """
        notes = Notes()
        written: list[Written] = []
        try:
            for data in collect():
                parcel = decode_parcel(data)
                if isinstance(parcel, Notes):
                    notes.add(parcel)
                elif isinstance(parcel, Written):
                    written.append(parcel)
        except BaseException:
            if self._committer is not None:
                abort_results(self._committer, batch_id)
            raise
        if self._committer is not None:
            commit_results(self._committer, batch_id, written)
        self.tally.add(batch_id, notes)
        if notes.count:
            self._on_notes(notes.notes, notes.count)


def commit_results(committer: Committer, number: int, written: Sequence[Written]) -> None:
    """Commit what tasks have written in a micro-batch. Raises as `Committer.commit` does."""
    prepared = [one.prepared for one in written]
    was_retried = any(one.was_retried for one in written)
    try:
        committer.commit(number, prepared, was_retried=was_retried)
    except (NotPreparedError, CheckpointBehindError):
        # Nobody has decided about them, and nobody will.
        with _left_open_on_failure():
            committer.drop(prepared)
        raise


def abort_results(committer: Committer, number: int) -> None:
    """End what tasks of a failed micro-batch have left open: it holds up readers."""
    with _left_open_on_failure():
        committer.abort(number, ())


@contextmanager
def _left_open_on_failure() -> Iterator[None]:
    try:
        yield
    except (KafkaException, CoordinatorError) as error:
        _log.warning("transactions may stay open for a while: %s", error)

"""One query of a pipeline: a topic that is written, over failures and restarts; and its progress.

Programs ask for the progress of a running pipeline, and its metrics show it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as f

from barnabas.schemas.errors import RegistryError
from barnabas.spark.avro_topic import new_schema_id
from barnabas.spark.exactly_once import TransactionalWriter
from barnabas.spark.interruption import interruptible
from barnabas.spark.progress import committed_batch, lags_of
from barnabas.spark.record_writer import KafkaRecord
from barnabas.spark.supervision import QueryState, Restarts, SupervisedStream, why
from barnabas.streams.dead_letters import FailedRows
from barnabas.streams.environment import Cluster, query_settings
from barnabas.streams.errors import MalformedRecordError, PipelineError
from barnabas.streams.sinks import (
    AtLeastOnce,
    ExactlyOnce,
    Gate,
    Letters,
    Sink,
    no_letters,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from barnabas.streams.run_options import RunOptions

LOOK_SECONDS: Final = 0.2
_BACKOFF_FIRST_MS: Final = 1_000
_BACKOFF_MAX_MS: Final = 30_000
STOP_TIMEOUT_SECONDS: Final = 30.0


_SHOWN: Final = {
    QueryState.PAUSED: "waiting to start",
    QueryState.RUNNING: "running",
    QueryState.ERROR: "failed",
}


class RunningQuery:
    """One query: a topic that is written."""

    def __init__(
        self,
        topic: str,
        mode: str,
        make: Callable[[FailedRows | None], DataFrame],
        cluster: Cluster,
        options: RunOptions,
        pipeline: str,
    ) -> None:
        self.topic = topic
        self._mode = mode
        self._make = make
        self._cluster = cluster
        self._options = options
        self._pipeline = pipeline
        self._checkpoint = os.path.join(options.directory(pipeline), topic)
        self._gate: Gate | None = None
        self._life = SupervisedStream(topic, self._begin, self._release, may_end=True)
        self._pauses = Restarts(_BACKOFF_FIRST_MS, _BACKOFF_MAX_MS)
        self._restarts = 0
        self._batch_at_start = -1
        self._seen: BaseException | None = None
        """The failure that was looked at last."""
        self._learned: set[int] = set()
        """Schemas that it was started again for."""
        self._error: str | None = None
        self.after: tuple[RunningQuery, ...] = ()
        """Those that write what it reads; to catch up, it starts when they have ended."""

    @property
    def has_ended(self) -> bool:
        """True if it has processed what it was to process."""
        return self._life.has_ended

    def must_wait(self) -> bool:
        """Return whether it is too early to start."""
        return self._options.until_caught_up and not all(one.has_ended for one in self.after)

    def start(self) -> None:
        """Start, or go on from the checkpoint. Raises PipelineError."""
        self._life.start()

    def _begin(self) -> StreamingQuery:
        trigger: dict[str, Any] = (
            {"availableNow": True}
            if self._options.until_caught_up
            else {"processingTime": self._options.trigger}
        )
        failed_rows = (
            None
            if self._cluster.dead_letters is None
            else FailedRows(self._cluster.spark, self._pipeline)
        )
        try:
            # Spark notes the session's time zone where a frame is made.
            with query_settings(self._cluster.spark):
                stream = (
                    self._written(self._make(failed_rows), failed_rows)
                    .queryName(f"{self._pipeline}/{self.topic}")
                    .outputMode(self._mode)
                    .option("checkpointLocation", self._checkpoint)
                    .trigger(**trigger)
                    .start()
                )
        except (PySparkException, RegistryError) as error:
            raise PipelineError(f"{self.topic}: {why(error)}") from error
        self._batch_at_start = committed_batch(self._checkpoint)
        return stream

    def close_gate(self) -> None:
        """Let no further micro-batch begin."""
        if self._gate is not None:
            self._gate.close()

    def stop(self) -> None:
        """End, after the micro-batch that runs."""
        self._life.stop(STOP_TIMEOUT_SECONDS)

    def process_available(self, await_end: Callable[[float], bool]) -> None:
        """Wait until what is there is processed, over restarts too."""
        while True:
            stream = self._life.stream
            if stream is not None and stream.isActive:
                try:
                    stream.processAllAvailable()
                    return
                except StreamingQueryException:
                    pass  # the watcher decides what happens to it
            if await_end(LOOK_SECONDS):
                return

    def look(self, now_ms: int) -> bool:
        """Return whether it is to be started now, for the first time or again.

        Raises PipelineError where it is not to be started any more.
        """
        state = self._life.state
        if state is QueryState.PAUSED:
            return not self.must_wait()
        failure = self._life.last_failure
        if state is QueryState.ERROR and failure is not None and failure is not self._seen:
            self._seen = failure
            if self._learns_from(failure):
                return True
            is_due = self._pauses.is_due(state, now_ms)
            if self._pauses.failures > self._options.restarts_max:
                raise PipelineError(f"{self.topic}: {self._error}") from failure
            return is_due
        return self._pauses.is_due(state, now_ms)

    def run(self) -> None:
        """Start it, or start it again; what it fails of is for the next look."""
        if not self._life.restart():
            with suppress(PipelineError):
                self._life.resume()

    def _learns_from(self, failure: BaseException) -> bool:
        """Take note of a failure; returns whether it has learned what was missing.

        Raises MalformedRecordError, and what is no failure of Spark's or the registry's.
        """
        if isinstance(failure, PipelineError):  # of a start
            self._error = str(failure).removeprefix(f"{self.topic}: ")
            return False
        if not isinstance(failure, StreamingQueryException):
            raise failure
        self._error = why(failure)
        self._restarts += 1
        if committed_batch(self._checkpoint) > self._batch_at_start:
            self._pauses.sound()
        if "malformed record in" in str(failure):
            raise MalformedRecordError(f"{self.topic}: {self._error}") from failure
        schema_id = new_schema_id(failure)
        if schema_id is None or schema_id in self._learned:
            return False
        try:
            if schema_id not in self._cluster.learned:
                self._cluster.learn(schema_id)
        except RegistryError as error:
            self._error = str(error)
            return False
        self._learned.add(schema_id)
        return True

    def figures(self) -> QueryFigures:
        """Return what the query does, and all that Spark says of its last micro-batch."""
        told = self._life.progress()
        return QueryFigures(self._progress(told), told)

    def _progress(self, told: dict[str, Any]) -> QueryProgress:
        state = _SHOWN[self._life.state]
        if self._life.has_ended:
            state = "ended"
        if not told:
            return QueryProgress(self.topic, state, restarts=self._restarts, error=self._error)
        operators = told["stateOperators"]
        return QueryProgress(
            self.topic,
            state,
            batches=told["batchId"] + 1,
            rows=told["numInputRows"],
            rows_per_second=float(told.get("processedRowsPerSecond") or 0.0),
            lag=sum(sum(lags_of(source).values()) for source in told["sources"]),
            watermark=told.get("eventTime", {}).get("watermark"),
            state_rows=sum(one["numRowsTotal"] for one in operators),
            state_bytes=sum(one["memoryUsedBytes"] for one in operators),
            dropped_late=sum(one["numRowsDroppedByWatermark"] for one in operators),
            batch_ms=told["durationMs"].get("triggerExecution", 0),
            restarts=self._restarts,
            error=self._error,
        )

    def _written(self, frame: DataFrame, failed_rows: FailedRows | None) -> DataStreamWriter:
        """Say how the records are written."""
        gate = self._gate = Gate(self._sink(self._letters(failed_rows)))
        at = f.unix_millis("timestamp").alias("at")
        records = frame.select("key", "value", at, "headers")
        return records.writeStream.foreachBatch(interruptible(gate.write))

    def _letters(self, failed_rows: FailedRows | None) -> Letters:
        topic = self._cluster.dead_letters
        if failed_rows is None or topic is None:
            return no_letters
        return lambda: [
            KafkaRecord(topic, row.key, row.value, row.at, row.headers)
            for row in failed_rows.take()
        ]

    def _sink(self, letters: Letters) -> Sink:
        settings = self._cluster.client_settings()
        if self._options.guarantee == "exactly_once":
            bootstrap = settings.pop("bootstrap.servers")
            # Neither name has a slash, so no other pair gives the same.
            name = f"{self._pipeline}/{self.topic}"
            writer = TransactionalWriter(bootstrap, name, self._checkpoint, settings)
            return ExactlyOnce(self.topic, writer, letters)
        return AtLeastOnce(self.topic, tuple(settings.items()), letters)

    def _release(self) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.release()


@dataclass(frozen=True)
class QueryProgress:
    """The progress of one query. Times are milliseconds; `batches` counts from its first start.

    `rows`, `rows_per_second`, `dropped_late` and `batch_ms` are those of the last micro-batch.
    `lag`: how many records it was behind its topics when the last micro-batch was planned.
    `watermark`: ISO text, or None before the first record.
    """

    topic: str
    state: str
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    lag: int = 0
    watermark: str | None = None
    state_rows: int = 0
    state_bytes: int = 0
    dropped_late: int = 0
    batch_ms: int = 0
    restarts: int = 0
    error: str | None = None


@dataclass(frozen=True)
class QueryFigures:
    """A query's progress, and what Spark says of its last micro-batch."""

    progress: QueryProgress
    told: dict[str, Any] = field(default_factory=dict)
    """Spark's progress; empty before the first micro-batch."""


@dataclass(frozen=True)
class Progress:
    """The progress of a pipeline: its queries, by the topic that they write."""

    name: str
    is_running: bool
    queries: Mapping[str, QueryProgress] = field(default_factory=dict)

"""One query of a pipeline: a topic that is written, over failures and restarts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as f

from barnabas.spark.avro_topic import new_schema_id
from barnabas.spark.exactly_once import TransactionalWriter
from barnabas.spark.progress import last_progress
from barnabas.spark.record_writer import KafkaRecord
from barnabas.spark.registry_schemas import RegistryUnavailableError
from barnabas.streams.environment import Cluster
from barnabas.streams.errors import MalformedRecordError, PipelineError
from barnabas.streams.failed_rows import FailedRows
from barnabas.streams.failures import why
from barnabas.streams.query_settings import query_settings
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

    from barnabas.streams.pipeline import RunOptions

LOOK_SECONDS: Final = 0.2
_BACKOFF_FIRST_SECONDS: Final = 1.0
_BACKOFF_MAX_SECONDS: Final = 30.0
STOP_TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True)
class QueryProgress:
    """What one query does. Times are milliseconds; `batches` counts from its first start.

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
    dropped_late: int = 0
    batch_ms: int = 0
    restarts: int = 0
    error: str | None = None


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
        self._stream: StreamingQuery | None = None
        self._restarts = 0
        self._failures = 0
        """In a row, without a micro-batch between them."""
        self._batch_at_start = -1
        self._learned: set[int] = set()
        """Schemas that it was started again for."""
        self._restart_at = 0.0
        self._error: str | None = None
        self.after: tuple[RunningQuery, ...] = ()
        """Those that write what it reads; to catch up, it starts when they have ended."""
        self.has_ended = False

    def must_wait(self) -> bool:
        """Whether it is too early to start."""
        return self._options.until_caught_up and not all(one.has_ended for one in self.after)

    def start(self) -> None:
        """Start, or go on from the checkpoint."""
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
                self._stream = (
                    self._written(self._make(failed_rows), failed_rows)
                    .queryName(f"{self._pipeline}/{self.topic}")
                    .outputMode(self._mode)
                    .option("checkpointLocation", self._checkpoint)
                    .trigger(**trigger)
                    .start()
                )
        except (PySparkException, RegistryUnavailableError) as error:
            self._release()
            raise PipelineError(f"{self.topic}: {why(error)}") from error
        self._batch_at_start = self._last_batch()

    def close_gate(self) -> None:
        """Let no further micro-batch begin."""
        if self._gate is not None:
            self._gate.close()

    def stop(self) -> None:
        """End, after the micro-batch that runs."""
        stream, self._stream = self._stream, None
        if stream is not None:
            deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
            while stream.isActive and stream.status["isTriggerActive"]:
                if time.monotonic() > deadline:
                    break
                time.sleep(LOOK_SECONDS / 10)
            stream.stop()
        if self._gate is not None:
            self._gate.release()
            self._gate = None

    def process_available(self, await_end: Callable[[float], bool]) -> None:
        """Wait until what is there is processed, over restarts too."""
        while True:
            stream = self._stream
            if stream is not None and stream.isActive:
                try:
                    stream.processAllAvailable()
                    return
                except StreamingQueryException:
                    pass  # the watcher decides what becomes of it
            if await_end(LOOK_SECONDS):
                return

    def look_after(self) -> bool:
        """Start again what failed; returns whether the query goes on. Raises PipelineError."""
        if self._stream is None:
            if time.monotonic() < self._restart_at or self.must_wait():
                return True
            try:
                self.start()
            except PipelineError as error:
                self._error = str(error).removeprefix(f"{self.topic}: ")
                self._back_off()
            return True
        if self._stream.isActive:
            return True
        failure = self._stream.exception()
        if failure is None:
            self.has_ended = True
            return False  # it was to process what was there, and has
        self._error = why(failure)
        self._restarts += 1
        if self._last_batch() > self._batch_at_start:
            self._failures = 0
        text = str(failure)
        if "malformed record in" in text:
            raise MalformedRecordError(f"{self.topic}: {self._error}") from failure
        schema_id = new_schema_id(failure)
        self._release()
        if schema_id is not None and schema_id not in self._learned:
            self._learned.add(schema_id)
            try:
                if schema_id not in self._cluster.learned:
                    self._cluster.learn(schema_id)
                self._restart_at = 0.0
                return True
            except RegistryUnavailableError as error:
                self._learned.discard(schema_id)
                self._error = str(error)
        self._back_off()
        return True

    def progress(self) -> QueryProgress:
        """Return what the query does."""
        stream = self._stream
        state = "waiting to start" if stream is None else "running"
        if stream is not None and not stream.isActive:
            state = "ended" if stream.exception() is None else "failed"
        told = None if stream is None else last_progress(stream)
        if told is None:
            return QueryProgress(self.topic, state, restarts=self._restarts, error=self._error)
        operators = told["stateOperators"]
        return QueryProgress(
            self.topic,
            state,
            batches=told["batchId"] + 1,
            rows=told["numInputRows"],
            rows_per_second=float(told.get("processedRowsPerSecond") or 0.0),
            lag=sum(_lag(source) for source in told["sources"]),
            watermark=told.get("eventTime", {}).get("watermark"),
            state_rows=sum(one["numRowsTotal"] for one in operators),
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
        return records.writeStream.foreachBatch(gate.write)

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
        self._stream = None
        if self._gate is not None:
            self._gate.release()
            self._gate = None

    def _back_off(self) -> None:
        self._failures += 1
        if self._failures > self._options.restarts_max:
            raise PipelineError(f"{self.topic}: {self._error}")
        wait = min(_BACKOFF_FIRST_SECONDS * 2 ** (self._failures - 1), _BACKOFF_MAX_SECONDS)
        self._restart_at = time.monotonic() + wait

    def _last_batch(self) -> int:
        try:
            names = os.listdir(os.path.join(self._checkpoint, "commits"))
        except FileNotFoundError:
            return -1
        return max((int(name) for name in names if name.isdigit()), default=-1)


def _lag(source: Mapping[str, Any]) -> int:
    """How many records are between a source's place and its topics' ends."""

    def offsets(name: str) -> dict[tuple[str, str], int]:
        told = source.get(name)
        decoded = json.loads(told) if isinstance(told, str) else told
        if not isinstance(decoded, dict):
            return {}
        return {
            (topic, partition): at
            for topic, places in decoded.items()
            for partition, at in places.items()
        }

    ends, places = offsets("latestOffset"), offsets("endOffset")
    return sum(max(end - places.get(place, end), 0) for place, end in ends.items())

"""A pipeline that runs: its queries, watched, started again when they fail, and stopped."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as f

from barnabas.pipeline.avro import new_schema_id
from barnabas.pipeline.exactly_once import TransactionalWriter
from barnabas.pipeline.progress import last_progress
from barnabas.pipeline.registry_schemas import RegistryUnavailableError
from barnabas.pipeline.streams.dead_letters import dead_letters
from barnabas.pipeline.streams.environment import Cluster, active_session, registry_of
from barnabas.pipeline.streams.errors import MalformedRecordError, PipelineError
from barnabas.pipeline.streams.failures import why
from barnabas.pipeline.streams.query_settings import query_settings
from barnabas.pipeline.streams.sinks import AtLeastOnce, ExactlyOnce, Gate, Sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from barnabas.pipeline.streams.pipeline import Pipeline, RunOptions

_LOOK_SECONDS: Final = 0.2
_BACKOFF_FIRST_SECONDS: Final = 1.0
_BACKOFF_MAX_SECONDS: Final = 30.0
STOP_TIMEOUT_SECONDS: Final = 30.0
_TOPIC_TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True)
class QueryProgress:
    """What one query does. Counts are since its last start; times are milliseconds.

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


@dataclass(frozen=True)
class Progress:
    """What a pipeline does: its queries by the topic that they write."""

    name: str
    is_running: bool
    queries: Mapping[str, QueryProgress] = field(default_factory=dict)


def start_pipeline(
    pipeline: Pipeline, options: RunOptions, spark: SparkSession | None
) -> RunningPipeline:
    """Start a pipeline. Raises PipelineError."""
    running = RunningPipeline(pipeline, options, spark or active_session())
    try:
        running.start()
    except BaseException:
        running.stop()
        raise
    return running


def run_until_signal(running: RunningPipeline) -> None:
    """Return when a pipeline has ended, or SIGTERM or SIGINT has stopped it."""
    is_asked = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        is_asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        while not is_asked.is_set() and not running.await_end(_LOOK_SECONDS):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        running.stop()


class RunningPipeline:
    """A pipeline's queries. `stop` may be called from any thread."""

    def __init__(self, pipeline: Pipeline, options: RunOptions, spark: SparkSession) -> None:
        self.pipeline = pipeline
        self.options = options
        self.directory = options.directory(pipeline.name)
        is_exact = options.guarantee == "exactly_once"
        self._cluster = Cluster(
            spark,
            options.bootstrap_servers,
            registry_of(options.schema_registry_url),
            self.directory,
            pipeline.dead_letters,
            is_exact,
            options.records_per_batch_max,
            options.client,
        )
        self._queries = [self._query(output.topic, output.mode(), self._maker(output))
                         for output in pipeline.outputs]  # fmt: skip
        if pipeline.dead_letters is not None and pipeline.sources():
            self._queries.append(self._query(pipeline.dead_letters, "append", self._letters))
        self._is_stopping = threading.Event()
        self._has_ended = threading.Event()
        self._watcher = threading.Thread(
            target=self._watch, name=f"pipeline-{pipeline.name}", daemon=True
        )
        self.error: PipelineError | None = None

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the queries, and make the topics that are missing. Called once."""
        os.makedirs(self.directory, exist_ok=True)
        self._make_topics()
        for query in self._queries:
            query.start()
        self._watcher.start()

    def stop(self) -> None:
        """Let the micro-batches end that run, then end the queries."""
        self._is_stopping.set()
        if self._watcher.is_alive():
            self._watcher.join()
        for query in self._queries:
            query.close_gate()
        for query in self._queries:
            query.stop()
        self._has_ended.set()

    def await_end(self, timeout_s: float | None = None) -> bool:
        """Wait until all has ended; False if it runs on. Raises PipelineError if it failed."""
        has_ended = self._has_ended.wait(timeout_s)
        if self.error is not None:
            raise self.error
        return has_ended

    def process_available(self) -> None:
        """Wait until what is in the topics now is processed. Raises PipelineError."""
        for query in self._queries:
            query.process_available(self)

    def progress(self) -> Progress:
        """Return what the queries do now."""
        return Progress(
            self.pipeline.name,
            not self._has_ended.is_set(),
            {query.topic: query.progress() for query in self._queries},
        )

    # --- inside ------------------------------------------------------------------------------

    def _maker(self, output: Any) -> Callable[[], DataFrame]:
        def make() -> DataFrame:
            frame: DataFrame = output.records(self._cluster)[0]
            none = f.lit(None).cast("array<struct<key:string,value:binary>>")
            return frame.withColumn("headers", none)

        return make

    def _letters(self) -> DataFrame:
        return dead_letters(self.pipeline.sources(), self._cluster, self.pipeline.name)

    def _query(self, topic: str, mode: str, make: Callable[[], DataFrame]) -> _Query:
        return _Query(topic, mode, make, self._cluster, self.options, self.pipeline.name)

    def _make_topics(self) -> None:
        """Make topics that are written and missing, with the brokers' defaults."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({**self._cluster.client_settings(), "log_level": 2})
        try:
            known = admin.list_topics(timeout=_TOPIC_TIMEOUT_SECONDS).topics
            missing = [query.topic for query in self._queries if query.topic not in known]
            read = {source.topic for source in self.pipeline.sources()} - set(missing)
            absent = sorted(topic for topic in read if topic not in known)
            if absent:
                raise PipelineError(f"there is no topic {', '.join(absent)} to read")
            made = admin.create_topics(
                [NewTopic(topic, -1, -1) for topic in missing],
                operation_timeout=_TOPIC_TIMEOUT_SECONDS,
            ) if missing else {}  # fmt: skip
            for future in made.values():
                future.result(_TOPIC_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise PipelineError(
                f"{self.options.bootstrap_servers}: {error.args[0].str()}"
            ) from error

    def _watch(self) -> None:
        while not self._is_stopping.wait(_LOOK_SECONDS):
            try:
                active = [query.look_after() for query in self._queries]
            except PipelineError as error:
                self.error = error
                break
            if not any(active):
                break
        else:
            return
        for query in self._queries:
            query.close_gate()
        for query in self._queries:
            query.stop()
        self._has_ended.set()


class _Query:
    """One query: a topic that is written."""

    def __init__(
        self,
        topic: str,
        mode: str,
        make: Callable[[], DataFrame],
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
        self._restart_at = 0.0
        self._error: str | None = None

    def start(self) -> None:
        """Start, or go on from the checkpoint."""
        gate = self._gate = Gate(self._sink())
        trigger: dict[str, Any] = (
            {"availableNow": True}
            if self._options.until_caught_up
            else {"processingTime": self._options.trigger}
        )
        try:
            frame = self._make().select(
                "key", "value", f.unix_millis("timestamp").alias("at"), "headers"
            )
            with query_settings(self._cluster.spark):
                self._stream = (
                    frame.writeStream.queryName(f"{self._pipeline}/{self.topic}")
                    .foreachBatch(gate.write)
                    .outputMode(self._mode)  # type: ignore[arg-type]  # append or update
                    .option("checkpointLocation", self._checkpoint)
                    .trigger(**trigger)
                    .start()
                )
        except (PySparkException, RegistryUnavailableError) as error:
            gate.release()
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
                time.sleep(_LOOK_SECONDS / 10)
            stream.stop()
        if self._gate is not None:
            self._gate.release()
            self._gate = None

    def process_available(self, running: RunningPipeline) -> None:
        """Wait until what is there is processed, over restarts too."""
        while True:
            stream = self._stream
            if stream is not None and stream.isActive:
                try:
                    stream.processAllAvailable()
                    return
                except StreamingQueryException:
                    pass  # the watcher decides what becomes of it
            if running.await_end(_LOOK_SECONDS):
                return

    def look_after(self) -> bool:
        """Start again what failed; returns whether the query goes on. Raises PipelineError."""
        if self._stream is None:
            if time.monotonic() < self._restart_at:
                return True
            try:
                self.start()
            except PipelineError:
                self._back_off()
            return True
        if self._stream.isActive:
            return True
        failure = self._stream.exception()
        if failure is None:
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
        if schema_id is not None and schema_id not in self._cluster.learned:
            try:
                self._cluster.learn(schema_id)
                self._restart_at = 0.0
                return True
            except RegistryUnavailableError as error:
                self._error = str(error)
        self._back_off()
        return True

    def progress(self) -> QueryProgress:
        """Return what the query does."""
        stream = self._stream
        state = "waiting to restart" if stream is None else "running"
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

    def _sink(self) -> Sink:
        settings = self._cluster.client_settings()
        if self._options.guarantee == "exactly_once":
            bootstrap = settings.pop("bootstrap.servers")
            name = f"{self._pipeline}-{self.topic}"
            writer = TransactionalWriter(bootstrap, name, self._checkpoint, settings)
            return ExactlyOnce(self.topic, writer)
        return AtLeastOnce(self.topic, tuple(settings.items()))

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

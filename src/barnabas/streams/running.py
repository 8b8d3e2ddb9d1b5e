"""A pipeline that runs: its queries, watched, started again when they fail, and stopped."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types
from pyspark.sql import functions as f

from barnabas.spark.supervision import Supervisor, why
from barnabas.streams.dead_letters import FailedRows
from barnabas.streams.environment import Cluster, active_session, registry_of
from barnabas.streams.errors import PipelineError
from barnabas.streams.metrics import PipelineMetrics, listen_address
from barnabas.streams.outputs import sources_of
from barnabas.streams.running_query import LOOK_SECONDS, Progress, QueryFigures, RunningQuery
from barnabas.streams.sources import dead_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from barnabas.streams.outputs import Output
    from barnabas.streams.run_options import RunOptions

_TOPIC_TIMEOUT_SECONDS: Final = 30.0


def start_pipeline(
    name: str,
    outputs: Sequence[Output],
    dead_letters_topic: str | None,
    options: RunOptions,
    spark: SparkSession | None,
) -> RunningPipeline:
    """Start a pipeline. Raises PipelineError."""
    running = RunningPipeline(name, outputs, dead_letters_topic, options, spark or active_session())
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
        while not is_asked.is_set() and not running.await_end(LOOK_SECONDS):
            pass
    except PipelineError:
        if not is_asked.is_set():
            raise
    finally:
        try:
            running.stop()
        except (Py4JError, OSError):
            # A signal to the whole group of processes has ended Spark's JVM too.
            if not is_asked.is_set():
                raise
        for number, handler in before.items():
            signal.signal(number, handler)


class RunningPipeline:
    """A pipeline's queries. `stop` may be called from any thread."""

    def __init__(
        self,
        name: str,
        outputs: Sequence[Output],
        dead_letters_topic: str | None,
        options: RunOptions,
        spark: SparkSession,
    ) -> None:
        self.name = name
        self.options = options
        self.directory = options.directory(name)
        self._outputs = outputs
        self._sources = sources_of(outputs)
        is_exact = options.guarantee == "exactly_once"
        for output in outputs if is_exact else ():
            if not sources_of([output]):
                raise PipelineError(
                    f"{output.topic}: exactly once needs a topic that is read, whose committed "
                    "offsets say which micro-batch was written last"
                )
        self._cluster = Cluster(
            spark,
            options.bootstrap_servers,
            registry_of(options.schema_registry_url),
            self.directory,
            dead_letters_topic,
            is_exact,
            options.records_per_batch_max,
            options.client,
        )
        self._queries = [self._query(output.topic, output.mode(), self._maker(output))
                         for output in outputs]  # fmt: skip
        if dead_letters_topic is not None and self._sources:
            self._queries.append(self._query(dead_letters_topic, "append", self._letters))
        self._set_order()
        self._has_ended = threading.Event()
        self._supervisor = Supervisor(
            f"pipeline-{name}",
            lambda: self._queries,
            self._look,
            RunningQuery.run,
            look_s=LOOK_SECONDS,
            failed=self._failed,
        )
        self.error: PipelineError | None = None
        self._address = (
            listen_address(options.metrics_listener) if options.metrics_listener else None
        )
        self._metrics: PipelineMetrics | None = None

    @property
    def metrics_url(self) -> str | None:
        """The address of its metrics; None without `metrics_listener`."""
        return None if self._metrics is None else self._metrics.url

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the queries, and make the topics that are missing. Called once."""
        os.makedirs(self.directory, exist_ok=True)
        if self._address is not None:
            self._metrics = PipelineMetrics(self._address, self._figures)
        self._make_topics()
        for query in self._queries:
            if not query.must_wait():
                query.start()
        self._supervisor.start()

    def stop(self) -> None:
        """Let the micro-batches end that run, then end the queries."""
        self._supervisor.close()
        try:
            for query in self._queries:
                query.close_gate()
            for query in self._queries:
                query.stop()
        finally:
            self._has_ended.set()
            metrics, self._metrics = self._metrics, None
            if metrics is not None:
                metrics.close()

    def await_end(self, timeout_s: float | None = None) -> bool:
        """Wait until all has ended; False if it runs on. Raises PipelineError if it failed."""
        has_ended = self._has_ended.wait(timeout_s)
        if self.error is not None:
            raise self.error
        return has_ended

    def process_available(self) -> None:
        """Wait until what is in the topics now is processed. Raises PipelineError."""
        for query in self._queries:
            query.process_available(self.await_end)

    def progress(self) -> Progress:
        """Return what the queries do now."""
        return self._figures()[0]

    def _figures(self) -> tuple[Progress, list[QueryFigures]]:
        is_running = not self._has_ended.is_set()  # first: what comes with the end is final
        queries = [query.figures() for query in self._queries]
        by_topic = {one.progress.topic: one.progress for one in queries}
        return Progress(self.name, is_running, by_topic), queries

    # --- inside ------------------------------------------------------------------------------

    def _maker(self, output: Output) -> Callable[[FailedRows | None], DataFrame]:
        def make(failed_rows: FailedRows | None) -> DataFrame:
            frame = output.records(self._cluster, failed_rows)[0]
            none = f.lit(None).cast("array<struct<key:string,value:binary>>")
            return frame.withColumn("headers", none)

        return make

    def _letters(self, _failed_rows: FailedRows | None) -> DataFrame:
        return dead_letters(self._sources, self._cluster, self.name)

    def _query(
        self, topic: str, mode: str, make: Callable[[FailedRows | None], DataFrame]
    ) -> RunningQuery:
        return RunningQuery(topic, mode, make, self._cluster, self.options, self.name)

    def _set_order(self) -> None:
        by_topic = {query.topic: query for query in self._queries}
        feeders = {
            output.topic: tuple(by_topic[feeder.topic] for feeder in output.feeders())
            for output in self._outputs
        }
        for output in self._outputs:
            by_topic[output.topic].after = feeders[output.topic]
        if self._cluster.dead_letters in by_topic:
            # It reads all that the others read.
            by_topic[self._cluster.dead_letters].after = sum(feeders.values(), ())

    def _make_topics(self) -> None:
        """Make topics that are written and missing, with the brokers' defaults."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic

        from barnabas.kafka.admin import Admin

        admin = Admin(self._cluster.client_settings(), _TOPIC_TIMEOUT_SECONDS)
        try:
            known = admin.partition_counts()
            written = [output.topic for output in self._outputs]
            if self._cluster.dead_letters is not None:
                written.append(self._cluster.dead_letters)
            missing = [topic for topic in written if topic not in known]
            read = {source.topic for source in self._sources} - set(missing)
            absent = sorted(topic for topic in read if topic not in known)
            if absent:
                raise PipelineError(f"there is no topic {', '.join(absent)} to read")
            admin.create(NewTopic(topic, -1, -1) for topic in missing)
        except KafkaException as error:
            raise PipelineError(
                f"{self.options.bootstrap_servers}: {error.args[0].str()}"
            ) from error

    def _look(self, query: RunningQuery, now_ms: int) -> bool:
        if all(one.has_ended for one in self._queries):
            self.stop()
            return False
        return query.look(now_ms)

    def _failed(self, _query: RunningQuery, error: Exception) -> None:
        """End all: a query cannot go on."""
        if self.error is None:
            self.error = (
                error
                if isinstance(error, PipelineError)
                else PipelineError(f"{self.name}: {why(error)}")
            )
            if self.error is not error:
                self.error.__cause__ = error
        self.stop()

"""`python -m barnabas.demo.spark.stories`: the streaming queries of the two stories, until SIGTERM.

Each query keeps its place and its state in its own checkpoint, so a run that was stopped or killed
goes on exactly where it was. A query that fails because the cluster is away is started again from
its checkpoint; one that meets a schema registered since it started, at once and with that schema.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event as Flag
from typing import Final

import click
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it ships none
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.demo import topics
from barnabas.demo.schemas import AVRO_TOPICS, first_schema
from barnabas.demo.spark.queries import STORY_QUERIES, StoryOutput, StoryQuery
from barnabas.demo.spark.warehouse import WarehouseTable, schema_of
from barnabas.pipeline import kafka_io
from barnabas.pipeline.avro import AvroTopic, SchemaAbsentError, new_schema_id
from barnabas.pipeline.exactly_once import TransactionalWriter
from barnabas.pipeline.progress import (
    ProgressBoard,
    QueryReach,
    committed_offsets,
    last_progress,
    recent_progress,
)
from barnabas.pipeline.record_writer import RecordWriter
from barnabas.pipeline.registry_schemas import RegistrySchemas, RegistryUnavailableError
from barnabas.pipeline.session import SessionOptions, SparkStartError, start_session
from barnabas.pipeline.sink import ResultSink, ResultWriter
from barnabas.pipeline.topic_table import TableEmptyError, TopicTable

_POLL_SECONDS: Final = 0.2
_RESTARTS_IN_A_ROW_MAX: Final = 8
_RESTART_PAUSE_SECONDS: Final = 2.0
_EMPTY_TABLE_PAUSE_SECONDS: Final = 0.5
_FINISH_BATCH_SECONDS: Final = 5.0
_STOP_TIMEOUT_MS: Final = 3000


@dataclass(slots=True, frozen=True)
class StoryOptions:
    """Where the stories read and write. Paths are directories."""

    bootstrap_servers: str
    registry_url: str
    warehouse: str
    checkpoints: str
    trigger_ms: int = 1000
    offsets_per_trigger_max: int | None = None
    exactly_once: bool = False
    """Results in transactions: readers of what is committed see each micro-batch once."""


@dataclass(slots=True)
class _Running:
    query: StoryQuery
    reach: QueryReach
    stream: StreamingQuery | None = None
    """None until it has started: it waits for the table that it joins."""
    failures: int = 0
    restart_at: float | None = None


class Stories:
    """The queries of STORY_QUERIES, started, watched and stopped together."""

    def __init__(self, spark: SparkSession, options: StoryOptions, progress_path: str) -> None:
        self._spark = spark
        self._options = options
        self._running: list[_Running] = []
        reaches = {q.name: QueryReach(q.group, q.topic) for q in STORY_QUERIES}
        registry = RegistrySchemas(options.registry_url)
        self._values = {
            topic: AvroTopic(registry, topic, first_schema(topic)) for topic in AVRO_TOPICS
        }
        self._stations = TopicTable(
            spark,
            options.bootstrap_servers,
            topics.STATIONS,
            self._values[topics.STATIONS].decode,
        )
        self._board = ProgressBoard(progress_path, options.bootstrap_servers, reaches)

    def start(self) -> None:
        """Start every query from its checkpoint, or from the topics' beginning."""
        for query in STORY_QUERIES:
            reach = self._board.queries[query.name]
            offsets = committed_offsets(self._checkpoint(query))
            if offsets is not None:
                reach.reach(offsets)
            running = _Running(query, reach)
            self._running.append(running)
            self._start_or_wait(running)
        self._board.write("running")

    def run(self, stop: Flag) -> None:
        """Watch the queries until `stop` is set.

        Raises StreamingQueryException where one fails again and again.
        """
        while not stop.wait(_POLL_SECONDS):
            moved = [self._look_at(running) for running in self._running]
            if any(moved):
                self._board.write("running")
                for problem in self._board.commit():
                    _say(problem)

    def stop(self) -> None:
        """Let the micro-batches that run finish (for a moment), then stop every query."""
        deadline = time.monotonic() + _FINISH_BATCH_SECONDS
        streams = [running.stream for running in self._running if running.stream is not None]
        while time.monotonic() < deadline and any(
            stream.isActive and stream.status["isTriggerActive"] for stream in streams
        ):
            time.sleep(_POLL_SECONDS / 4)
        with ThreadPoolExecutor(max_workers=len(STORY_QUERIES)) as pool:
            for problem in pool.map(_stop_stream, streams):
                if problem is not None:
                    _say(problem)
        for running in self._running:
            self._look_at(running, restart=False)
        self._board.commit()
        self._board.write("stopped")
        self._board.close()
        self._stations.close()

    def _look_at(self, running: _Running, *, restart: bool = True) -> bool:
        stream = running.stream
        if restart and running.restart_at is None and stream is not None and not stream.isActive:
            self._failed(running, stream.exception())
        if running.restart_at is not None or stream is None:
            if restart and time.monotonic() >= (running.restart_at or 0.0):
                self._start_or_wait(running)
            return False
        moved = self._observe(running.reach, stream)
        if moved:
            running.failures = 0
        return moved

    def _observe(self, reach: QueryReach, stream: StreamingQuery) -> bool:
        last = last_progress(stream)
        if last is None or last["batchId"] <= reach.last_batch_id:
            return False
        # Asking for all that Spark remembers is dear; it is needed where more than one is new.
        new = [last] if last["batchId"] == reach.last_batch_id + 1 else None
        moved = [reach.observe(progress) for progress in new or recent_progress(stream)]
        return any(moved)

    def _start_or_wait(self, running: _Running) -> None:
        running.restart_at = None
        try:
            running.stream = self._start(running.query)
        except (TableEmptyError, SchemaAbsentError):
            running.restart_at = time.monotonic() + _EMPTY_TABLE_PAUSE_SECONDS
        except (
            KafkaException,
            RegistryUnavailableError,
            PySparkException,
            Py4JJavaError,
        ) as error:
            self._failed(running, error)  # the station table or the schemas could not be read

    def _failed(self, running: _Running, error: Exception | None) -> None:
        schema_id = new_schema_id(error)
        if schema_id is not None and self._learned(running.query.topic, schema_id):
            _say(f"{running.query.name} goes on from its checkpoint with schema {schema_id}")
            running.restart_at = 0.0
            return
        running.failures += 1
        if running.failures > _RESTARTS_IN_A_ROW_MAX:
            raise error or StreamingQueryException(f"{running.query.name} ended by itself")
        reason = _reason_of(error) if error else "ended by itself"
        _say(f"{running.query.name} starts again from its checkpoint: {reason[:300]}")
        running.restart_at = time.monotonic() + _RESTART_PAUSE_SECONDS

    def _learned(self, topic: str, schema_id: int) -> bool:
        """Take up a schema for the two topics that a query reads; False if there is none."""
        try:
            found = [self._values[name].learn(schema_id) for name in (topics.STATIONS, topic)]
            return all(found)
        except RegistryUnavailableError:
            return False

    def _start(self, query: StoryQuery) -> StreamingQuery:
        options = self._options
        for topic in (topics.STATIONS, query.topic):
            self._values[topic].refresh()
        events = kafka_io.read_stream(
            self._spark,
            options.bootstrap_servers,
            query.topic,
            self._values[query.topic].decode,
            offsets_per_trigger_max=options.offsets_per_trigger_max,
            is_committed_only=options.exactly_once,
        )
        stations = self._stations.read()
        sink = ResultSink(
            self._writer(query),
            [(output.as_output(), table_of(output, options.warehouse)) for output in query.outputs],
        )

        def write(rows: DataFrame, batch_id: int) -> None:
            if query.joins_stations:
                self._stations.ensure_latest(stations)
            sink.write(rows, batch_id)

        return (
            query.transform(events, stations.frame)
            .writeStream.queryName(query.name)
            .outputMode(query.output_mode)
            .option("checkpointLocation", self._checkpoint(query))
            .trigger(processingTime=f"{options.trigger_ms} milliseconds")
            .foreachBatch(write)
            .start()
        )

    def _writer(self, query: StoryQuery) -> ResultWriter:
        servers = self._options.bootstrap_servers
        if self._options.exactly_once:
            return TransactionalWriter(servers, query.name, self._checkpoint(query))
        return RecordWriter(servers)

    def _checkpoint(self, query: StoryQuery) -> str:
        return os.path.join(self._options.checkpoints, query.name)


def table_of(output: StoryOutput, warehouse: str) -> WarehouseTable:
    """Return the warehouse table of an output topic."""
    return WarehouseTable(warehouse, output.table, schema_of(output.row), output.key_columns)


def wait_for_topics(bootstrap_servers: str, stop: Flag) -> bool:
    """Wait until every input topic and the station table exist; False where stopped before."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})
    wanted = {topics.STATIONS, *topics.INPUT_TOPICS}
    said = False
    while not stop.is_set():
        try:
            if wanted <= admin.list_topics(timeout=5).topics.keys():
                return True
        except KafkaException as error:
            if not said:
                _say(f"waiting for {bootstrap_servers}: {error.args[0].str()}")
                said = True
        stop.wait(_POLL_SECONDS)
    return False


def _reason_of(error: Exception) -> str:
    """Return the line that names the error: Spark wraps Python's traceback in its own."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)), lines[0])


def _stop_stream(stream: StreamingQuery) -> str | None:
    try:
        stream.stop()
    except (PySparkException, Py4JJavaError):
        # It waits for a cluster that does not answer. Stopping Spark ends it; the micro-batch is
        # run again by the next start.
        return f"{stream.name} did not stop in {_STOP_TIMEOUT_MS} ms and is abandoned"
    return None


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@click.command(help="Run the streaming queries of the charging and retail stories until SIGTERM.")
@click.option("--bootstrap", required=True, help="The cluster's host:port[,host:port].")
@click.option("--registry", required=True, help="The schema registry's URL.")
@click.option("--warehouse", required=True, help="Directory of the Parquet tables.")
@click.option("--checkpoints", required=True, help="Directory of offsets and state.")
@click.option("--master", default="local[2]", show_default=True, help="Spark's master.")
@click.option("--progress", help="Progress file; default: progress.json in the checkpoints.")
@click.option("--trigger-ms", default=1000, show_default=True, type=click.IntRange(min=0))
@click.option("--max-offsets-per-trigger", type=click.IntRange(min=1))
@click.option("--exactly-once", is_flag=True, help="Write results in transactions, each once.")
def main(
    bootstrap: str,
    registry: str,
    warehouse: str,
    checkpoints: str,
    master: str,
    progress: str | None,
    trigger_ms: int,
    max_offsets_per_trigger: int | None,
    exactly_once: bool,
) -> None:
    stop = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    for directory in (warehouse, checkpoints):
        os.makedirs(directory, exist_ok=True)
    options = StoryOptions(
        bootstrap,
        registry,
        os.path.abspath(warehouse),
        os.path.abspath(checkpoints),
        trigger_ms,
        max_offsets_per_trigger,
        exactly_once,
    )
    progress_path = progress or os.path.join(checkpoints, "progress.json")
    try:
        code = _run(options, master, progress_path, stop)
    except (SparkStartError, StreamingQueryException) as error:
        sys.stderr.write(f"{error}\n")
        code = 1
    sys.exit(code)


def session_options(options: StoryOptions, master: str, scratch: str) -> SessionOptions:
    """Return how Spark is started for the stories."""
    return SessionOptions(
        app_name="barnabas-stories",
        master=master,
        # A second or so of events is little: one partition of state per operator, no
        # compilation. The number is fixed by the checkpoints once they exist.
        shuffle_partitions=1,
        small_batches=True,
        telemetry_path=os.path.join(options.checkpoints, "spark.log"),
        settings={
            "spark.local.dir": scratch,
            "spark.sql.warehouse.dir": options.warehouse,
            "spark.sql.streaming.stopTimeout": str(_STOP_TIMEOUT_MS),
        },
    )


def _run(options: StoryOptions, master: str, progress_path: str, stop: Flag) -> int:
    # In the checkpoints, not in /tmp: what a killed run leaves there is cleared by the next.
    scratch = os.path.join(options.checkpoints, "scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        _say("starting Spark")
        spark = start_session(session_options(options, master, scratch), _say)
        try:
            if wait_for_topics(options.bootstrap_servers, stop):
                stories = Stories(spark, options, progress_path)
                try:
                    stories.start()
                    _say("queries running")
                    stories.run(stop)
                finally:
                    stories.stop()
        finally:
            spark.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _say("stopped")
    return 0


if __name__ == "__main__":
    main()

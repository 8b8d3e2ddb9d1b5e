"""A persistent query hosted in Spark: start, stop, pause, its status and the cause of a failure.

    query = SparkQuery(plan, options, spark)
    query.start() … query.status() … query.pause(), query.resume() … query.stop()

The query reads its topics through Spark's Kafka connector, and runs the plan's stages in Python
workers (worker.py); state lies in Spark's RocksDB store. All is recovered from the checkpoint:
`pause` stops the query, `resume` starts it from where it was.

    topic ─▶ mapInArrow ─▶ shuffle ─▶ transformWithStateInPandas ─▶ … ─▶ foreachBatch ─▶ topic

Where an operator has the partitions of its topics, it gets the ranges of their offsets, and there
is no `mapInArrow`: the operator's workers read the topics. With one topic there is no shuffle.
Several operators with state may follow each other: Spark allows that in output mode `append`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Final

from confluent_kafka import KafkaException
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.kafka.admin import REQUEST_S, Admin
from barnabas.spark.datasource.committer import Committer
from barnabas.spark.datasource.options import options_of
from barnabas.spark.interruption import interruptible
from barnabas.spark.kafka_ranges import cut_by_time, ranges_of
from barnabas.spark.progress import (
    committed_positions,
    lag_of,
    planned_offsets,
    positions_of,
)
from barnabas.spark.session import cores_of
from barnabas.spark.small_batches import (
    Collect,
    for_each_batch,
    forget_origins,
    optional_rules,
)
from barnabas.spark.supervision import QueryState, SupervisedStream
from barnabas.spark.time_slices import TopicTimes
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.query_failures import QueryFailure, failure_of
from barnabas.sql.spark.checkpoint import (
    delete_checkpoint,
)
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import RangeReading
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.placement import AddedPartitionsError, place_plan
from barnabas.sql.spark.processor import OperatorProcessor
from barnabas.sql.spark.reading import range_parcels, why_spark_reads
from barnabas.sql.spark.results import (
    ExactlyOnce,
    Figures,
    ResultRecords,
    ResultSink,
)
from barnabas.sql.spark.worker import (
    PARCEL_COLUMN,
    SCHEMA,
    ResultFunction,
    SourceFunction,
)

_log = logging.getLogger(__name__)
SAME_WORKERS: Final = {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false"}
"""Spark sets this in the environment of `mapInArrow` workers, but not for stateful operators: if it
is on, there are two pools of worker processes, each with its own daemon."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class QueryStatus:
    """`lag`: by topic, how many records its readers are behind. `state_bytes`: in memory."""

    state: QueryState
    errors: tuple[QueryFailure, ...]
    figures: Figures
    lag: Mapping[str, int]
    positions: Mapping[tuple[str, int], tuple[int, int]]
    """By topic and partition the next offset, and the partition's end, of the last micro-batch."""
    state_pages: int
    state_bytes: int
    batch_ms: Mapping[str, int]
    """Spark's times of the last micro-batch, by phase."""


class SparkQuery:
    """One query. One thread at a time may start and end it; any thread may ask for its status."""

    def __init__(self, plan: QueryPlan, options: SparkQueryOptions, spark: SparkSession) -> None:
        self.plan = plan
        self.options = options
        self._given = spark
        self._spark = spark.newSession()
        self._sink: ResultSink | None = None
        self._committer: Committer | None = None
        self._admin: Admin | None = None
        self._counts: Mapping[str, int] = {}
        """The partitions of topics whose keys have their state where they are."""
        self.life = SupervisedStream(plan.query_id, self._begin, self._close)
        self.checkpoint_directory = options.checkpoint_of(plan.query_id)

    # --- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, from the checkpoint if there is one.

        Raises CheckpointError, MissingTopicError, KafkaException.
        """
        self.life.start()

    def move(self, spark: SparkSession) -> None:
        """Use that session from the next start on, where the JVM of the one before has ended."""
        if spark is not self._given:
            self._given, self._spark = spark, spark.newSession()

    def stop(self) -> None:
        """End; what is not yet written of a micro-batch is done again at the next start."""
        self.life.stop()

    def _begin(self) -> StreamingQuery:
        hosted = self._host()
        hosting = hosted.hosting
        configure_session(self._spark, 1 if hosting.partitions == 1 else hosting.tasks)
        exactly = self._exactly_once(hosted)
        self._committer = None if exactly is None else exactly.committer()
        self._sink = ResultSink(self._committer, self.options.on_notes)
        frame = self._frame(hosted)
        if len(hosted.topology.topics) > 1:
            servers = {"bootstrap.servers": self.options.bootstrap_servers}
            self._admin = Admin({**self.options.clients, **servers})
            times = TopicTimes(self._admin, REQUEST_S, is_committed_only=exactly is not None)
            cut_by_time(frame, times.offsets_after, self.checkpoint_directory)
        writer = frame.writeStream.queryName(self.plan.query_id)
        return (
            for_each_batch(writer, self._spark, PARCEL_COLUMN, interruptible(self._write))
            .outputMode("append")
            .option("checkpointLocation", self.checkpoint_directory)
            .trigger(processingTime=f"{self.options.trigger_ms} milliseconds")
            .start()
        )

    def _write(self, collect: Collect, batch_id: int) -> None:
        """Run a micro-batch. Raises what its tasks or the commit fail of, AddedPartitionsError."""
        assert self._sink is not None
        planned = planned_offsets(self.checkpoint_directory, batch_id) if self._counts else {}
        for topic, count in self._counts.items():
            if max(planned.get(topic, ()), default=-1) >= count:
                # Its keys may be elsewhere now; the next start checks that.
                raise AddedPartitionsError(topic, count)
        self._sink.write(collect, batch_id)

    def _close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()

    def delete(self) -> None:
        """End, and delete state, offsets and the last decision about results."""
        committer, self._committer = self._committer, None
        try:
            self.stop()
            delete_checkpoint(self.checkpoint_directory)
            if committer is not None:
                committer.forget()
        except KafkaException as error:
            _log.warning("a decision of %s could not be removed: %s", self.plan.query_id, error)
        finally:
            if committer is not None:
                committer.close()

    def await_end(self, timeout_s: float | None = None) -> bool:
        """Wait until the query has ended, failed or not; False if it still runs."""
        stream = self.life.stream
        while stream is not None and stream.isActive:
            # `status` has the error if it failed.
            with suppress(StreamingQueryException):
                stream.awaitTermination(None if timeout_s is None else math.ceil(timeout_s))
            if timeout_s is not None:
                break
        return stream is None or not stream.isActive

    def process_all(self) -> None:
        """Wait until all that is in the topics now is processed. Raises what the query fails of."""
        assert self.life.stream is not None, "not started"
        self.life.stream.processAllAvailable()

    # --- what it does ------------------------------------------------------------------------

    @property
    def figures(self) -> Figures:
        """What the query has done since its last start; asks Spark nothing."""
        return self._sink.tally.figures if self._sink else Figures()

    @property
    def read_of_batches(self) -> Mapping[int, int]:
        """The number of records that each of the last micro-batches has read, by its number."""
        return self._sink.tally.read_of_batches if self._sink else {}

    def explain(self) -> str:
        """Spark's physical plan: of the last micro-batch, else as the first would be; empty where
        Spark is in another process."""
        java = getattr(self._spark, "_jvm", None)
        if java is None:
            return ""
        execution, stream = None, self.life.stream
        if stream is not None and stream.isActive:
            execution = stream._jsq.streamingQuery().lastExecution()
        if execution is None:
            draft = HostedPlan.draft(self.plan, self.options.extension_directory)
            execution = self._frame(draft)._jdf.queryExecution()
        return str(java.PythonSQLUtils.explainString(execution, "formatted"))

    def status(self) -> QueryStatus:
        """The query's current activity."""
        state, own = self.life.state, self.options.properties
        progress = self.life.progress()
        operators = progress.get("stateOperators", [])
        return QueryStatus(
            state,
            tuple(failure_of(one.error, own, one.timestamp_ms) for one in self.life.failures),
            self.figures,
            lag_of(progress),
            positions_of(progress) if progress else committed_positions(self.checkpoint_directory),
            sum(operator["numRowsTotal"] for operator in operators),
            sum(operator["memoryUsedBytes"] for operator in operators),
            progress.get("durationMs", {}),
        )

    # --- how it is made ----------------------------------------------------------------------

    def _host(self) -> HostedPlan:
        """The plan with all that workers need."""
        cores = self.options.tasks_max or cores_of(str(self._spark.sparkContext.master))
        placed = place_plan(self.plan, self.options, cores)
        self._counts = placed.state_topics
        return placed.hosted

    def _exactly_once(self, hosted: HostedPlan) -> ExactlyOnce | None:
        """Return how results are written, if not at least once. Raises ConfigError."""
        options = self.options
        if options.guarantee is Guarantee.AT_LEAST_ONCE:
            return None
        return ExactlyOnce(
            options_of(options.bootstrap_servers, options.clients),
            f"{options.service_id}{self.plan.query_id}",
            hosted.hosting.state_name,
            options.marks_results,
        )

    def _frame(self, hosted: HostedPlan) -> DataFrame:
        """All from the topics to parcels of results."""
        topology = hosted.topology
        waiting: dict[int | None, list[DataFrame]] = {}
        ranges: dict[int, list[tuple[DataFrame, bool]]] = {}
        readings: dict[int, RangeReading] = {}
        for (stage, place), topic in sorted(topology.topics.items()):
            target = topology.operator_of(stage)
            if target is None:
                target = topology.next_operator(topology.entries[stage], hosted.stages)
            records, reading = self._source(topic)
            taker = hosted.takes_ranges(stage)
            if reading is not None and taker is not None:
                given = range_parcels(
                    records, stage, place, topic, hosted.labels, hosted.hosting.tasks
                )
                ranges.setdefault(taker, []).append(given)
                readings[taker] = reading
                continue
            if reading is not None:
                records = ranges_of(records)
            function = SourceFunction(hosted.hosting, stage, place, reading)
            if self.options.tasks_max is not None:
                records = records.coalesce(self.options.tasks_max)
            read = records.mapInArrow(function.__call__, SCHEMA)
            waiting.setdefault(target, []).append(read)
        for number, found in ranges.items():
            frames = [frame for frame, _ in found]
            together = reduce(DataFrame.unionAll, frames)
            if len(found) > 1 or not found[0][1]:
                # A few rows, which are shuffled: a task for each would take longer than they do.
                together = together.coalesce(1)
            waiting.setdefault(number, []).append(together)
        for number, members in enumerate(topology.operators):
            processor = OperatorProcessor(hosted.hosting, number, readings.get(number))
            made = (
                reduce(DataFrame.unionAll, waiting.pop(number))
                .groupBy("label")
                .transformWithStateInPandas(processor, SCHEMA, "Append", "None")
            )
            target = topology.next_operator(members, hosted.stages)
            waiting.setdefault(target, []).append(made)
        (parcels,) = waiting.values()
        frame = reduce(DataFrame.unionAll, parcels)
        exactly = self._exactly_once(hosted)
        if exactly is None:
            return frame
        write = ResultFunction(exactly, ResultRecords.of_plan(hosted), hosted.labels[0])
        return frame.mapInArrow(write.__call__, SCHEMA)

    def _source(self, topic: str) -> tuple[DataFrame, RangeReading | None]:
        """What `SourceFunction` takes; where workers read, Spark's source and how they do that."""
        given = self._kafka(topic)
        if why_spark_reads(self.options, self._spark):
            return _records(given), None
        options = self.options
        is_committed_only = options.guarantee is Guarantee.EXACTLY_ONCE
        clients = tuple(sorted(options.clients.items()))
        reading = RangeReading(options.bootstrap_servers, clients, is_committed_only)
        return given, reading

    def _kafka(self, topic: str) -> DataFrame:
        """Spark's source."""
        options = self.options
        reader = (
            self._spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", options.bootstrap_servers)
            .option("subscribe", topic)
            .option("startingOffsets", options.auto_offset_reset)
            # Records that retention has deleted are skipped, as in Kafka Streams.
            .option("failOnDataLoss", "false")
            .option("includeHeaders", "true")
            .option("maxOffsetsPerTrigger", options.records_per_batch_max)
        )
        if options.guarantee is Guarantee.EXACTLY_ONCE:
            reader = reader.option("kafka.isolation.level", "read_committed")
        for name, value in options.kafka.items():
            reader = reader.option(f"kafka.{name}", value)
        return reader.load()


def configure_session(spark: SparkSession, tasks: int) -> None:
    """Set what streams of micro-batches of parcels need, in so many tasks."""
    state = "spark.sql.streaming.stateStore"
    for name, value in {
        "spark.sql.shuffle.partitions": str(tasks),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.optimizer.excludedRules": optional_rules(spark),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # No limit in bytes: for one Spark measures the whole batch again with each row.
        "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
        f"{state}.providerClass": ROCKSDB,
        # A restart reads so many small files of changes at most; a snapshot is many files.
        f"{state}.minDeltasForSnapshot": "50",
        f"{state}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{state}.rocksdb.trackTotalNumberOfRows": "true",
        **SAME_WORKERS,
    }.items():
        spark.conf.set(name, value)
    forget_origins(spark)


def _records(given: DataFrame) -> DataFrame:
    return given.select(
        "partition",
        "offset",
        f.unix_millis("timestamp"),
        "key",
        "value",
        "headers",
    )

"""A query over generated rows that warms up a session for the first statement.

It is a windowed count like those of statements, so that the JVM has loaded and run all that a query
needs (the Kafka source, RocksDB, the Python operators), and the workers are forked and have run it.
Its Kafka source reads the service's command topic and drops all records.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # comes without types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.spark.kafka_ranges import ranges_of
from barnabas.spark.supervision import QueryState
from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import QueryCommand, apply
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import RangeReading
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.query import SAME_WORKERS, SparkQuery
from barnabas.sql.syntax.parser import parse

_WARM_SECONDS_MAX: Final = 60.0
"""The first statement waits no longer for it."""
_POLL_SECONDS: Final = 0.05
_ONCE_MS: Final = 3_600_000
"""Between micro-batches: it is stopped before the second."""
_ROWS: Final = 200
_FAILURES: Final = (PySparkException, Py4JError, OSError)
_STATEMENTS: Final = """
CREATE STREAM warming (k STRING KEY, v INT) WITH (kafka_topic='warming', value_format='JSON');
CREATE TABLE warmed AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM warming
  WINDOW TUMBLING (SIZE 10 SECONDS) WHERE v >= 0 GROUP BY k;
"""


def warm(
    spark: SparkSession,
    options: SparkQueryOptions,
    is_closing: threading.Event,
    is_wanted: threading.Event,
    read_topic: str | None = None,
) -> bool:
    """Run it to its first micro-batch, if nothing closes before. Returns whether it got there.

    Where a statement waits already (`is_wanted`) its query is what warms: then only the workers are
    forked, beside it. `read_topic`: a topic that Spark may read. Raises PySparkException,
    Py4JError, OSError.
    """
    tasks = spark.sparkContext.defaultParallelism
    # Their process reads its modules while the JVM plans.
    threading.Thread(
        target=_fork_workers, args=(spark, tasks), name="fork-workers", daemon=True
    ).start()
    if is_wanted.is_set():
        return False
    until = time.monotonic() + _WARM_SECONDS_MAX
    with tempfile.TemporaryDirectory(prefix="barnabas-warm-", ignore_cleanup_errors=True) as place:
        query = _Warming(spark, replace(_plain(options), checkpoints=place), tasks, read_topic)
        query.start()
        try:
            while not query.figures.batches:
                if is_closing.wait(_POLL_SECONDS) or time.monotonic() > until:
                    return False
                if query.life.state is not QueryState.RUNNING:
                    raise query.life.last_failure or PySparkException("the query has ended")
            return True
        finally:
            with suppress(*_FAILURES):
                query.stop()


def _plain(options: SparkQueryOptions) -> SparkQueryOptions:
    """Those of a query that can write nothing."""
    return replace(
        options,
        guarantee=Guarantee.AT_LEAST_ONCE,
        trigger_ms=_ONCE_MS,
        auto_offset_reset="earliest",
        records_per_batch_max=_ROWS,
    )


def _fork_workers(spark: SparkSession, tasks: int) -> None:
    # An error here would stop the query, too.
    with suppress(*_FAILURES):
        session = spark.newSession()
        for name, value in SAME_WORKERS.items():
            session.conf.set(name, value)
        session.range(0, tasks, 1, tasks).mapInArrow(_same, "id long").collect()


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _plan() -> QueryPlan:
    store, topics = MetaStore(), {"warming": 1}
    found: list[QueryPlan] = []
    for parsed in parse(_STATEMENTS):
        command = analyse(parsed.statement, store, {}, functions(), topics=topics, text=parsed.text)
        apply(command, store, parsed.text)
        if isinstance(command, QueryCommand):
            found.append(command.plan)
    (plan,) = found
    return plan


class _Warming(SparkQuery):
    """Its results go to the driver, which drops them."""

    def __init__(
        self, spark: SparkSession, options: SparkQueryOptions, tasks: int, read_topic: str | None
    ) -> None:
        super().__init__(_plan(), options, spark)
        self._tasks = tasks
        self._read_topic = read_topic

    def _host(self) -> HostedPlan:
        draft = HostedPlan.draft(self.plan)
        return draft.spread(
            replace(draft.hosting, partitions=self._tasks, tasks=self._tasks, state_name="warming")
        )

    def _source(self, topic: str) -> tuple[DataFrame, RangeReading | None]:
        number, partition = f.col("value"), f.col("value") % self._tasks
        rows = (
            self._spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", _ROWS * self._tasks)
            .option("numPartitions", self._tasks)
            .load()
            .select(
                partition.cast("int").alias("partition"),
                number.alias("offset"),
                f.unix_millis("timestamp"),
                f.concat(f.lit("k"), (number % 20).cast("string")).cast("binary").alias("key"),
                f.concat(f.lit('{"V":'), number.cast("string"), f.lit("}"))
                .cast("binary")
                .alias("value"),
                f.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
            )
        )
        if self._read_topic is None:
            return rows, None
        given, reading = super()._source(self._read_topic)
        if reading is not None:
            nothing = f.lit(None).cast("binary")
            given = ranges_of(given).select(
                "partition",
                f.col("first").alias("offset"),
                f.lit(0).cast("long"),
                nothing,
                nothing,
                f.lit(None).cast("array<struct<key:string,value:binary>>"),
            )
        return rows.unionAll(given.where(f.col("offset") < 0)), None

"""Runs an engine's queries on Spark: a QueryRunner over SparkQuery."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from barnabas.pipeline.sql.engine.queries import PersistentQuery, QueryFailure, QueryState
from barnabas.pipeline.sql.plan.encoding import encode_plan
from barnabas.pipeline.sql.spark import query as spark_query
from barnabas.pipeline.sql.spark.checkpoint import CheckpointError
from barnabas.pipeline.sql.spark.hosted import HostedPlan, Hosting
from barnabas.pipeline.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.pipeline.sql.spark.query import MissingTopicError, SparkQuery

_OFFSET_RESET = "ksql.streams.auto.offset.reset"
_GUARANTEE = "ksql.streams.processing.guarantee"
_STATES = {
    spark_query.QueryState.NOT_RUNNING: QueryState.PAUSED,
    spark_query.QueryState.RUNNING: QueryState.RUNNING,
    spark_query.QueryState.PAUSED: QueryState.PAUSED,
    spark_query.QueryState.ERROR: QueryState.ERROR,
}


class SparkRunner:
    """`session` gives the session when the first query needs it; `options` hold for all queries."""

    def __init__(self, options: SparkQueryOptions, session: Callable[[], SparkSession]) -> None:
        self._options = options
        self._session = session
        self._running: list[SparkHosted] = []

    def start(self, query: PersistentQuery, *, is_paused: bool = False) -> SparkHosted:
        options = replace(
            self._options,
            auto_offset_reset=str(query.properties.get(_OFFSET_RESET, "latest")).lower(),
            guarantee=_guarantee(query.properties),
            properties={
                name: value
                for name, value in query.properties.items()
                if isinstance(value, bool | int | float | str)
            },
        )
        hosted = SparkHosted(SparkQuery(query.plan, options, self._session()))
        self._running.append(hosted)
        if is_paused:
            hosted.pause()
        else:
            hosted.begin()
        return hosted

    def describe(self, query: PersistentQuery) -> str:
        """The stages that each operator of Spark's runs, with their stores."""
        own, encoded = self._options.extension_directory, encode_plan(query.plan)
        plan = HostedPlan(Hosting(query.query_id, encoded, 2, 2, extension_directory=own))
        lines = ["Topologies:"]
        for (stage, _), topic in sorted(plan.topology.topics.items()):
            lines.append(f"   Source: {topic} -> stage {stage}")
        for number, members in enumerate(plan.topology.operators):
            stores = [name for stage in sorted(members) for name in plan.stages[stage].stores]
            lines.append(f"   Operator: {number}, stages {sorted(members)}, stores {stores}")
        lines.append(f"   Sink: {plan.sink.topic}")
        return "\n".join(lines)

    def close(self) -> None:
        for hosted in self._running:
            hosted.stop()
        self._running.clear()


class SparkHosted:
    """One query on Spark, as the engine sees it."""

    def __init__(self, query: SparkQuery) -> None:
        self._query = query
        self._failure: QueryFailure | None = None

    def begin(self) -> None:
        """Start; what is wrong with its topics or its checkpoint is a failure of the query."""
        self._failure = None
        try:
            self._query.start()
        except (MissingTopicError, CheckpointError, KafkaException) as error:
            kind = "SYSTEM" if isinstance(error, KafkaException) else "USER"
            self._failure = QueryFailure(time.time_ns() // 1_000_000, str(error), kind)

    @property
    def state(self) -> QueryState:
        return QueryState.ERROR if self._failure else _STATES[self._query.status().state]

    @property
    def failures(self) -> tuple[QueryFailure, ...]:
        found = tuple(
            QueryFailure(error.timestamp_ms, error.message, error.type)
            for error in self._query.status().errors
        )
        return found if self._failure is None else (*found, self._failure)

    @property
    def figures(self) -> Mapping[str, float]:
        status = self._query.status()
        return {
            "rows_in": status.figures.read,
            "rows_out": status.figures.written,
            "errors": status.figures.failed,
            "batches": status.figures.batches,
            "state_bytes": status.state_bytes,
        }

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        return self._query.status().positions

    def pause(self) -> None:
        self._query.pause()

    def resume(self) -> None:
        if self._query.status().state is spark_query.QueryState.PAUSED:
            self.begin()

    def stop(self, *, forget: bool = False) -> None:
        if forget:
            self._query.delete()
        else:
            self._query.stop()


def _guarantee(properties: Mapping[str, object]) -> Guarantee:
    found = str(properties.get(_GUARANTEE, Guarantee.AT_LEAST_ONCE.value)).lower()
    return Guarantee.EXACTLY_ONCE if found.startswith("exactly_once") else Guarantee.AT_LEAST_ONCE

"""Runs plans in this process: for tests, for trying out, and for push queries.

State is in memory. A query that starts again reads its topics from where it began at first, to have
its state as it was, and writes nothing for the records whose results it had written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.base.clock import now_ms
from barnabas.schemas.registry_client import SchemaStore
from barnabas.spark.supervision import QueryState
from barnabas.sql.engine.cluster import Cluster, ClusterError, Follower, Start
from barnabas.sql.engine.queries import PersistentQuery
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.processing_log import (
    NoteEntry,
    entry_of,
    includes_rows,
    log_entry,
    production_error,
)
from barnabas.sql.query_failures import QueryFailure, failure_of
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import PlanDriver, TopicsDriver
from barnabas.sql.runtime.records import Row
from barnabas.sql.runtime.stage import Channel, Result
from barnabas.sql.runtime.topics import TopicRecord

_FAILURES_MAX = 100
_PARTITIONS_MAX = 32
"""State is split as the topics are, so that lateness counts for each partition, up to this."""


class NotOwnerError(Exception):
    """This server stood still, and others may have taken its queries over."""


class LocalQueryRunner:
    """Runs queries over a cluster's topics.

    `may_write`: whether this server still owns what it runs; asked before each result.
    """

    def __init__(
        self,
        cluster: Cluster,
        functions: Mapping[str, Function],
        schemas: SchemaStore | None,
        note: NoteEntry = log_entry,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._note = note
        self._cluster = cluster
        self._may_write = may_write
        self._functions = functions
        self._schemas = schemas
        self._running: list[LocalQuery] = []

    @property
    def progress(self) -> str:
        return "being started"

    def start(self, query: PersistentQuery, *, is_paused: bool = False) -> LocalQuery:
        hosted = LocalQuery(
            query, self._cluster, self._functions, self._schemas, self._note, self._may_write
        )
        self._running = [one for one in self._running if not one.is_ended]
        self._running.append(hosted)
        if is_paused:
            hosted.pause()
        else:
            hosted.begin()
        return hosted

    def describe(self, query: PersistentQuery) -> str:
        driver = PlanDriver(query.plan, PlanCompiler(self._functions, query.properties))
        lines = ["Topologies:"]
        for stage in driver.stages:
            lines.append(f"   Sub-topology: {stage.index}")
            for given in stage.inputs:
                name = given.name if isinstance(given, Channel) else given.topic
                lines.append(f"    Source: (topics: [{name}])")
            lines += [f"    Store: {name}" for name in stage.stores]
            for output in stage.outputs:
                if not isinstance(output, Result):
                    name = output.name if isinstance(output, Channel) else output.topic
                    lines.append(f"    Sink: (topic: {name})")
        return "\n".join(lines) + "\n\n"

    def forget(self, query: PersistentQuery) -> None:
        self._cluster.forget_group(query.group)

    def check_replacement(self, old: PersistentQuery, plan: QueryPlan) -> str:
        return (
            f"{old.query_id} continues from its offsets. Its state is rebuilt from its topics, by "
            "the new statement. Results that were written stay as they are."
        )

    def close(self) -> None:
        for hosted in self._running:
            hosted.stop()
        self._running.clear()


class LocalQuery:
    """A query in a thread of its follower."""

    def __init__(
        self,
        query: PersistentQuery,
        cluster: Cluster,
        functions: Mapping[str, Function],
        schemas: SchemaStore | None,
        note: NoteEntry,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._note = note
        self._shows_rows = includes_rows(query.properties)
        self._query = query
        self._may_write = may_write
        self._cluster = cluster
        self._functions = functions
        self._schemas = schemas
        self._lock = threading.RLock()
        self._follower: Follower | None = None
        self._state = QueryState.RUNNING
        self._failures: list[QueryFailure] = []
        self._counts: dict[str, float] = {
            "rows_in": 0,
            "rows_out": 0,
            "errors": 0,
            "stream_time_ms": -1,
        }
        self.is_ended = False
        self._has_failed = False
        self._plan: TopicsDriver | None = None

    @property
    def state(self) -> QueryState:
        return self._state

    @property
    def failures(self) -> tuple[QueryFailure, ...]:
        return tuple(self._failures)

    @property
    def figures(self) -> Mapping[str, float]:
        plan = self._plan
        stores = [] if plan is None else list(plan.driver.stores.values())
        return {**self._counts, "state_rows": sum(map(len, stores))}

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        follower = self._follower
        return {} if follower is None else follower.positions()

    def batches(self) -> None:
        """None: it runs record by record."""

    def begin(self) -> None:
        """Read the topics: from the beginning of all, or on from where the state is.

        An error is a failure of the query.
        """
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001  whatever it is: the query shows it
            self._fail(error)

    def _begin(self) -> None:
        with self._lock:
            compiler = PlanCompiler(self._functions, self._query.properties, self._log)
            driver = PlanDriver(
                self._query.plan, compiler, partitions=self._partitions(), log=self._log
            )
            plan = TopicsDriver(driver, self._schemas, self._log)
            self._plan = plan
            self._has_failed = False
            self._follower = self._cluster.follow(
                plan.topics,
                self._take,
                start_of(self._query.properties),
                group=self._query.group,
                after_batch=self._flush,
                on_error=self._fail,
            )
            if not self._has_failed:
                self._state = QueryState.RUNNING

    def _partitions(self) -> int:
        topics = self._cluster.topics()
        compiled = PlanDriver(self._query.plan, PlanCompiler(self._functions))
        counts = [
            topics[given.topic].partitions
            for stage in compiled.stages
            for given in stage.inputs
            if not isinstance(given, Channel) and given.topic in topics
        ]
        return min(max(counts, default=1), _PARTITIONS_MAX)

    def _take(self, topic: str, record: TopicRecord, is_done: bool) -> None:
        assert self._plan is not None
        counts = self._counts
        counts["rows_in"] += 1
        counts["stream_time_ms"] = max(counts["stream_time_ms"], record.timestamp_ms)
        for result in self._plan.pipe(topic, record):
            if is_done:
                continue
            for sink, made in self._plan.written(result):
                if not self._may_write():
                    raise NotOwnerError("another server may run this query by now")
                counts["rows_out"] += 1
                self._cluster.write(sink, made)

    def _log(self, message: str, row: Row | None, cause: BaseException | None) -> None:
        self._counts["errors"] += 1
        entry = entry_of(message, row, cause, rows=self._shows_rows)
        self._note(self._query.query_id, entry)

    def _flush(self) -> None:
        try:
            self._cluster.flush()
        except ClusterError as error:
            self._note(self._query.query_id, production_error(str(error)))
            raise

    def _fail(self, error: Exception) -> None:
        self._failures.append(failure_of(error, self._query.properties, now_ms()))
        del self._failures[:-_FAILURES_MAX]
        self._has_failed = True
        self._state = QueryState.ERROR

    def pause(self) -> None:
        with self._lock:
            self._close()
            self._state = QueryState.PAUSED

    def resume(self) -> None:
        with self._lock:
            if self._state is QueryState.PAUSED:
                self.begin()

    def restart(self) -> None:
        with self._lock:
            if self._state is QueryState.ERROR and not self.is_ended:
                self._close()
                self.begin()

    def stop(self, *, forget: bool = False) -> None:
        with self._lock:
            self.is_ended = True
            self._close()
            if forget:
                self._cluster.forget_group(self._query.group)

    def _close(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None


OFFSET_RESET = "auto.offset.reset"


def start_of(properties: Mapping[str, Any]) -> Start:
    """Return where a query with those settings begins to read."""
    reset = properties.get(f"ksql.streams.{OFFSET_RESET}", "latest")
    return Start.EARLIEST if str(reset).lower() == "earliest" else Start.LATEST

"""GET /metrics: what the server and its queries do, in Prometheus' text format.

Names follow ksqlDB's metrics, and those of Spark's progress where ksqlDB has none. A scrape asks
neither brokers nor registry: it is answered as fast while they are down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from barnabas.spark.supervision import QueryState
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.queries import BATCH_MS
from barnabas.sql.engine.running import RunningQuery
from barnabas.web.metrics import Families

_PULL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_QUERY = "query_id"

LogCounts = Callable[[], tuple[int, int]]
"""Returns the numbers of written and of dropped entries of the processing log."""


def _no_log() -> tuple[int, int]:
    return 0, 0


class ServerMetrics:
    """The figures of one server; `pull` and `push` count the queries of clients."""

    def __init__(self, engine: KsqlEngine, log_counts: LogCounts = _no_log) -> None:
        # A second series of each counter, which tells nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types there
        self._registry = CollectorRegistry()
        self._registry.register(EngineCollector(engine, log_counts))
        self._pull_seconds = Histogram(
            "ksql_pull_query_latency_seconds",
            "Time from a pull query's request to its whole answer.",
            buckets=_PULL_SECONDS,
            registry=self._registry,
        )
        self._pull_errors = self._counter("ksql_pull_query_errors", "Pull queries that failed.")
        self._push = self._counter("ksql_push_query_requests", "Push queries that were asked.")
        self._push_errors = self._counter("ksql_push_query_errors", "Push queries refused.")

    def _counter(self, name: str, what: str) -> Counter:
        return Counter(name, what, registry=self._registry)

    @contextmanager
    def pull(self) -> Iterator[None]:
        """Count a pull query and its duration; the block answers it."""
        began = time.perf_counter()
        try:
            yield
        except BaseException:
            self._pull_errors.inc()
            raise
        finally:
            self._pull_seconds.observe(time.perf_counter() - began)

    @contextmanager
    def push(self) -> Iterator[None]:
        """Count a push query; the block prepares it."""
        self._push.inc()
        try:
            yield
        except BaseException:
            self._push_errors.inc()
            raise

    def text(self) -> bytes:
        """All figures as they are now."""
        return generate_latest(self._registry)


class EngineCollector(Collector):
    """Asks the engine at each scrape."""

    def __init__(self, engine: KsqlEngine, log_counts: LogCounts) -> None:
        self._engine = engine
        self._log_counts = log_counts

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there is depends on the queries."""
        return ()

    def collect(self) -> Iterable[Metric]:
        families = Families()
        self._server(families)
        for running in list(self._engine.queries.values()):
            if not running.is_here:
                continue  # the server that runs it reports it
            _states(families, running)
            _counts(families, running)
            _places(families, running)
            _batches(families, running)
        return families.all()

    def _server(self, families: Families) -> None:
        engine, gauge, counter = self._engine, families.gauge, families.counter
        gauge("ksql_liveness_indicator", "1: the server is up.", 1)
        degraded = "1 if the command log is followed, 0 if it cannot be."
        gauge("ksql_command_runner_healthy", degraded, 0 if engine.degraded else 1)
        queries = list(engine.queries.values())
        gauge("ksql_num_persistent_queries", "Persistent queries.", len(queries))
        states = [running.state for running in queries if running.is_here]
        for state in QueryState:
            count = states.count(state)
            gauge(
                "ksql_queries",
                "Persistent queries that this server runs, by state.",
                count,
                state=state.value,
            )
        running = "Push queries that run now."
        gauge("ksql_push_queries", running, len(engine.asking.push_queries))
        written, dropped = self._log_counts()
        counter("ksql_processing_log_entries", "Entries in the processing log's topic.", written)
        full = "Entries that found the processing log's queue full, or no broker."
        counter("ksql_processing_log_dropped", full, dropped)


def _states(families: Families, running: RunningQuery) -> None:
    query_id = running.query.query_id
    now = running.state
    for state in QueryState:
        labels = {_QUERY: query_id, "status": state.value}
        families.gauge("ksql_query_status", "1 for the query's state.", state is now, **labels)
    failures = running.failures
    if now is QueryState.ERROR and failures:
        labels = {_QUERY: query_id, "type": failures[-1].type}
        families.gauge("ksql_query_error_status", "1: why the query stopped.", 1, **labels)
    restarts = "How often the query was started again after a failure."
    families.counter("ksql_query_restarts", restarts, running.restarts, query_id=query_id)


_COUNTED = {
    "rows_in": ("consumed_messages", "Records that the query has read."),
    "rows_by_columns": ("column_messages", "Records that the query has run as columns."),
    "rows_out": ("produced_messages", "Records that the query has written."),
    "errors": ("processing_errors", "Entries of the query for the processing log."),
    "batches": ("batches", "Micro-batches that the query has run."),
}
_MEASURED = {
    "state_bytes": ("state_bytes", "Size of the query's state in memory."),
    "state_rows": ("state_rows", "Rows of the query's stores, or pages of them on Spark."),
}


def _counts(families: Families, running: RunningQuery) -> None:
    figures, query_id = running.figures, running.query.query_id
    for figure, (name, what) in _COUNTED.items():
        if figure in figures:
            families.counter(f"ksql_query_{name}", what, figures[figure], query_id=query_id)
    for figure, (name, what) in _MEASURED.items():
        if figure in figures:
            families.gauge(f"ksql_query_{name}", what, figures[figure], query_id=query_id)
    for figure in ("rows_in", "rows_out", "errors"):
        name, what = _COUNTED[figure]
        rate = running.rates.per_second(figure)
        what = f"{what[:-1]} in a second, of the last half minute."
        families.gauge(f"ksql_query_{name}_per_second", what, rate, query_id=query_id)
    stream_time_ms = figures.get("stream_time_ms", -1)
    if stream_time_ms >= 0:
        what = "Stream time: the latest timestamp that the query has read."
        name = "ksql_query_stream_time_seconds"
        families.gauge(name, what, stream_time_ms / 1000, query_id=query_id)


def _places(families: Families, running: RunningQuery) -> None:
    for (topic, partition), (position, end) in sorted(running.positions().items()):
        labels = {_QUERY: running.query.query_id, "topic": topic, "partition": str(partition)}
        behind = "Records of the partition that the query has not read."
        families.gauge("ksql_query_consumer_lag", behind, max(0, end - position), **labels)
        families.gauge("ksql_query_position", "The next offset to read.", position, **labels)
        families.gauge("ksql_query_end_offset", "The partition's end.", end, **labels)


def _batches(families: Families, running: RunningQuery) -> None:
    for name, ms in running.figures.items():
        if name.startswith(BATCH_MS):
            labels = {_QUERY: running.query.query_id, "phase": name.removeprefix(BATCH_MS)}
            what = "Time of the last micro-batch by Spark's phases; triggerExecution is all of it."
            families.gauge("ksql_query_batch_duration_seconds", what, ms / 1000, **labels)

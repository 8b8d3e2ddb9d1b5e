"""`/metrics`, `/health/live` and `/health/ready` of a running pipeline, on a separate listener.

Names follow those of the SQL server, which also runs queries on Spark. Lag is by partition of the
topics that a query reads, as of the last micro-batch that Spark planned. A scrape asks only Spark,
not brokers or the registry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from barnabas.spark.progress import positions_of
from barnabas.streams.errors import PipelineError
from barnabas.streams.running_query import Progress, QueryFigures, QueryProgress
from barnabas.web.listening import CannotListenError, ListenAddress
from barnabas.web.metrics import Families, metrics_text
from barnabas.web.server import ServerThread
from barnabas.web.watch import METRICS
from barnabas.web.watch_server import serve_watch

STATES: Final = ("waiting to start", "running", "failed", "ended")
_QUERY: Final = "barnabas_pipeline_query"
_MEASURED: Final = {
    "rows": ("batch_rows", "Records that the last micro-batch has read."),
    "rows_per_second": ("rows_per_second", "Records a second during the last micro-batch."),
    "dropped_late": ("batch_late_rows", "Records that were too late for the last micro-batch."),
    "state_rows": ("state_rows", "Rows of the query's state."),
    "state_bytes": ("state_bytes", "Size of the query's state in memory."),
}
_COUNTED: Final = {
    "batches": ("batches", "Micro-batches since the checkpoint was made."),
    "restarts": ("restarts", "How often the query has failed and was to start again."),
}


def listen_address(text: str) -> ListenAddress:
    """The address that a setting names, as http://127.0.0.1:9405. Raises PipelineError."""
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    is_bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if parts.scheme != "http" or not parts.hostname or port is None or not is_bare:
        raise PipelineError(f"metrics_listener: {text!r} is not http://HOST:PORT")
    return ListenAddress(parts.hostname, port)


class PipelineMetrics:
    """Shows figures and health from its making to `close`."""

    def __init__(
        self, address: ListenAddress, pipeline: Callable[[], tuple[Progress, list[QueryFigures]]]
    ) -> None:
        """Serve. `pipeline` may take as long as Spark does. Raises PipelineError."""

        async def metrics() -> bytes:
            progress, queries = await asyncio.to_thread(pipeline)
            return metrics_text(figures(progress, queries).all())

        async def ready() -> str | None:
            progress, _ = await asyncio.to_thread(pipeline)
            return not_ready(progress)

        try:
            self._server: ServerThread = serve_watch(
                address, metrics, ready, name="pipeline-metrics"
            )
        except CannotListenError as error:
            raise PipelineError(f"metrics_listener: {error}") from error
        self.url = f"{self._server.server.listeners[0]}{METRICS}"
        """The address of its metrics, with the port that was chosen."""

    def close(self) -> None:
        """Serve no more."""
        self._server.close()


def not_ready(progress: Progress) -> str | None:
    """Why a pipeline does not process records; None if it does. Has no error's text in it."""
    if not progress.is_running:
        return "the pipeline has ended"
    failed = [topic for topic, query in progress.queries.items() if query.state == "failed"]
    return f"the query of {', '.join(failed)} has failed" if failed else None


def figures(progress: Progress, queries: list[QueryFigures]) -> Families:
    """The figures of a pipeline and of its queries."""
    families = Families()
    up = "1: the pipeline runs; 0: it has ended."
    families.gauge("barnabas_pipeline_up", up, progress.is_running, pipeline=progress.name)
    for one in queries:
        labels = {"pipeline": progress.name, "query": one.progress.topic}
        _query(families, one.progress, labels)
        _batch(families, one.told, labels)
    return families


def _query(families: Families, query: QueryProgress, labels: dict[str, str]) -> None:
    for state in STATES:
        what, is_now = "1 for the query's state.", query.state == state
        families.gauge(f"{_QUERY}_status", what, is_now, **labels, status=state)
    for name, (figure, what) in _COUNTED.items():
        families.counter(f"{_QUERY}_{figure}", what, getattr(query, name), **labels)
    for name, (figure, what) in _MEASURED.items():
        families.gauge(f"{_QUERY}_{figure}", what, getattr(query, name), **labels)
    watermark_s = _seconds(query.watermark)
    if watermark_s > 0:  # before the first record it is 1970
        what = "Up to this event time (seconds since 1970) the query expects no more records."
        families.gauge(f"{_QUERY}_watermark_seconds", what, watermark_s, **labels)


def _batch(families: Families, told: dict[str, Any], labels: dict[str, str]) -> None:
    for (topic, partition), (position, end) in sorted(positions_of(told).items()):
        place = {**labels, "topic": topic, "partition": str(partition)}
        behind = "Records of the partition that the query has not read."
        families.gauge(f"{_QUERY}_consumer_lag", behind, max(0, end - position), **place)
        families.gauge(f"{_QUERY}_position", "The next offset to read.", position, **place)
        families.gauge(f"{_QUERY}_end_offset", "The partition's end.", end, **place)
    for phase, ms in sorted(told.get("durationMs", {}).items()):
        what = "Time of the last micro-batch by Spark's phases; triggerExecution is all of it."
        name = f"{_QUERY}_batch_duration_seconds"
        families.gauge(name, what, ms / 1000, **labels, phase=phase)


def _seconds(watermark: str | None) -> float:
    if watermark is None:
        return 0.0
    moment = datetime.fromisoformat(watermark)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

"""Streaming queries written in Python that share a process and its Spark session: the SQL server's.

A pipeline is a function, named as `module:function`. It takes a PipelineContext and returns its
queries. The host starts each, starts it again from its checkpoint when it fails, later each time,
and commits how far it has read to the consumer group of its name, so that any tool shows its lag.
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships none
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.spark.progress import last_progress

_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5
_PAUSE_MS: Final = 500
_PAUSE_MS_MAX: Final = 15_000
_DOUBLINGS_MAX: Final = 5
_REASON_LENGTH_MAX: Final = 300


class PipelineError(ValueError):
    """A pipeline's name leads to no function, or two queries have one name."""


@dataclass(frozen=True)
class PipelineContext:
    """What a pipeline's queries run with.

    `spark` is a session of the pipeline's own. `state_directory` is for checkpoints. `properties`
    are the server's, with what is meant for the pipeline among them.
    """

    spark: SparkSession
    bootstrap_servers: str
    registry_url: str
    state_directory: str
    is_exactly_once: bool
    properties: Mapping[str, Any]
    kafka: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How clients of librdkafka connect, beside the addresses: TLS and login."""
    java_kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Likewise for Spark's Kafka connector, whose options begin with `kafka.`."""


@dataclass(frozen=True)
class PythonQuery:
    """`start` begins it, or goes on from its checkpoint. `name` is its consumer group too."""

    name: str
    start: Callable[[], StreamingQuery]


Pipeline = Callable[[PipelineContext], Iterable[PythonQuery]]


def load_pipeline(name: str) -> Pipeline:
    """Return the function that `module:function` names. Raises PipelineError."""
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function or "pipeline")
    except (ImportError, AttributeError) as error:
        raise PipelineError(f"there is no pipeline {name}: {error}") from error
    except Exception as error:
        raise PipelineError(f"the module of pipeline {name} fails: {error!r}") from error
    if not callable(found):
        raise PipelineError(f"{name} is no function")
    pipeline: Pipeline = found
    return pipeline


def queries_of(name: str, pipeline: Pipeline, context: PipelineContext) -> list[PythonQuery]:
    """What a pipeline's function returns. Raises PipelineError, whatever that raises."""
    try:
        return list(pipeline(context))
    except Exception as error:
        raise PipelineError(f"pipeline {name} fails: {error!r}") from error


@dataclass(slots=True)
class _Hosted:
    query: PythonQuery
    stream: StreamingQuery | None = None
    failures: int = 0
    start_at: float = 0.0
    batch_id: int = -1
    reached: list[TopicPartition] = field(default_factory=list)
    """What is processed and not committed yet."""
    committer: Consumer | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held by whoever starts it or ends it."""

    def end(self) -> None:
        """Stop it, to be started again another time."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(PySparkException, Py4JError):
                stream.stop()
        committer, self.committer = self.committer, None
        if committer is not None:
            committer.close()
        self.reached, self.failures, self.start_at = [], 0, 0.0


class PipelineHost:
    """Runs queries in a thread of its own, from `start` to `close`.

    `clients`: librdkafka's settings, for a cluster that asks for a login.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        queries: Sequence[PythonQuery],
        clients: Mapping[str, Any] | None = None,
    ) -> None:
        names = [query.name for query in queries]
        if len(set(names)) < len(names):
            raise PipelineError(f"two queries have one name: {', '.join(sorted(names))}")
        self.names = tuple(names)
        self._clients = {**(clients or {}), "bootstrap.servers": bootstrap_servers}
        self._wanted = frozenset(names)
        self._hosted = [_Hosted(query) for query in queries]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="python-pipelines", daemon=True)

    def start(self) -> None:
        """Start all queries, in the background."""
        self._thread.start()

    def run_only(self, names: Iterable[str]) -> None:
        """Run the queries of these names; the others have stopped once this returns."""
        self._wanted = frozenset(names)
        for hosted in self._hosted:
            if hosted.query.name not in self._wanted:
                with hosted.lock:
                    hosted.end()

    def close(self) -> None:
        """Stop all queries; a micro-batch that runs is run again by the next start."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for hosted in self._hosted:
            hosted.end()

    def _run(self) -> None:
        while True:
            for hosted in self._hosted:
                with hosted.lock:
                    if hosted.query.name in self._wanted:
                        self._look_at(hosted)
            if self._stopping.wait(_LOOK_SECONDS):
                return

    def _look_at(self, hosted: _Hosted) -> None:
        try:
            if hosted.stream is None:
                if time.monotonic() >= hosted.start_at:
                    hosted.stream, hosted.batch_id = hosted.query.start(), -1
                return
            if hosted.stream.isActive:
                self._observe(hosted, hosted.stream)
            else:
                failure = hosted.stream.exception()
                hosted.stream = None
                self._failed(hosted, failure)
        except Exception as error:  # noqa: BLE001 - a pipeline's own code may raise anything
            self._failed(hosted, error)

    def _failed(self, hosted: _Hosted, error: Exception | None) -> None:
        pause_ms = min(_PAUSE_MS * 2**hosted.failures, _PAUSE_MS_MAX)
        hosted.failures = min(hosted.failures + 1, _DOUBLINGS_MAX)
        hosted.start_at = time.monotonic() + pause_ms / 1000
        reason = str(error).strip()[:_REASON_LENGTH_MAX] if error else "ended by itself"
        _log.warning("%s starts again in %d ms: %s", hosted.query.name, pause_ms, reason)

    def _observe(self, hosted: _Hosted, stream: StreamingQuery) -> None:
        progress = last_progress(stream)
        if progress is not None and progress["batchId"] > hosted.batch_id:
            hosted.batch_id, hosted.failures = progress["batchId"], 0
            hosted.reached = _ends(progress)
        if hosted.reached:
            self._commit(hosted)

    def _commit(self, hosted: _Hosted) -> None:
        if hosted.committer is None:
            hosted.committer = Consumer(
                {
                    **self._clients,
                    "group.id": hosted.query.name,
                    "enable.auto.commit": False,
                    "log_level": 2,
                }
            )
        try:
            hosted.committer.commit(offsets=hosted.reached, asynchronous=False)
        except KafkaException as error:  # the next look tries again
            _log.warning("the offsets of %s: %s", hosted.query.name, error.args[0].str())
            return
        hosted.reached = []


def _ends(progress: Mapping[str, Any]) -> list[TopicPartition]:
    """Where a micro-batch ended, in all topics that it read."""
    return [
        TopicPartition(topic, int(partition), offset)
        for source in progress["sources"]
        for topic, ends in (source["endOffset"] or {}).items()
        for partition, offset in ends.items()
    ]

"""Streaming queries written in Python that share a process and its Spark session: the SQL server's.

A pipeline is a function, named as `module:function`. It takes a PipelineContext and returns its
queries. The host starts each one, restarts it from its checkpoint after a failure, with growing
pauses, and commits its position to the consumer group of its name, so that any tool shows its lag.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships none
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.spark.progress import positions_of
from barnabas.spark.supervision import QueryState, Restarts, SupervisedStream, Supervisor

_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.5
_PAUSE_MS: Final = 500
_PAUSE_MS_MAX: Final = 15_000
_REASON_LENGTH_MAX: Final = 300


class PipelineError(ValueError):
    """A pipeline's name leads to no function, or two queries have one name."""


@dataclass(frozen=True)
class PipelineContext:
    """The environment of a pipeline's queries.

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
    """The TLS and login settings of librdkafka's clients."""
    java_kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The same for Spark's Kafka connector, whose options begin with `kafka.`."""


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
        member = getattr(importlib.import_module(module), function or "pipeline")
    except (ImportError, AttributeError) as error:
        raise PipelineError(f"there is no pipeline {name}: {error}") from error
    except Exception as error:
        raise PipelineError(f"the module of pipeline {name} fails: {error!r}") from error
    if not callable(member):
        raise PipelineError(f"{name} is not a function")
    pipeline: Pipeline = member
    return pipeline


def queries_of(name: str, pipeline: Pipeline, context: PipelineContext) -> list[PythonQuery]:
    """The queries that a pipeline's function returns. Raises PipelineError for any exception of the
    function."""
    try:
        return list(pipeline(context))
    except Exception as error:
        raise PipelineError(f"pipeline {name} fails: {error!r}") from error


class _Hosted(SupervisedStream):
    """A query of a pipeline: it runs while it is wanted, and commits its position."""

    def __init__(self, query: PythonQuery, clients: Mapping[str, Any]) -> None:
        super().__init__(query.name, query.start, self._close_committer)
        self.is_wanted = True
        self.pauses = Restarts(_PAUSE_MS, _PAUSE_MS_MAX)
        self._clients = clients
        self._batch_id = -1
        self._reached: list[TopicPartition] = []
        """Offsets that are processed and not committed yet."""
        self._committer: Consumer | None = None

    def look(self, now_ms: int) -> bool:
        """Take note of what it does; returns whether it is to be started now."""
        with self.lock:
            return self.is_wanted and self._look(now_ms)

    def _look(self, now_ms: int) -> bool:
        state = self.state
        if state is QueryState.RUNNING:
            self._observe()
        was_waiting = self.pauses.due_ms is not None
        is_due = self.pauses.is_due(state, now_ms)
        if state is QueryState.ERROR and not was_waiting:
            pause_ms = (self.pauses.due_ms or now_ms) - now_ms
            reason = str(self.last_failure).strip()[:_REASON_LENGTH_MAX]
            _log.warning("%s restarts in %d ms: %s", self.name, pause_ms, reason)
        return is_due or state is QueryState.PAUSED

    def run(self) -> None:
        """Start it, or start it again, if it is wanted."""
        with self.lock:
            self._batch_id = -1
            if self.is_wanted and not self.restart():
                # Its failure is its state.
                with suppress(Exception):
                    self.resume()

    def end(self) -> None:
        """Stop it, to be started another time."""
        with self.lock, suppress(PySparkException, Py4JError):
            self.stop()
        self._batch_id, self._reached = -1, []

    def _observe(self) -> None:
        progress = self.progress()
        if progress and progress["batchId"] > self._batch_id:
            self._batch_id = progress["batchId"]
            self.pauses.sound()
            self._reached = [
                TopicPartition(topic, partition, reached)
                for (topic, partition), (reached, _) in positions_of(progress).items()
            ]
        if self._reached:
            self._commit()

    def _commit(self) -> None:
        if self._committer is None:
            self._committer = Consumer(
                {
                    **self._clients,
                    "group.id": self.name,
                    "enable.auto.commit": False,
                    "log_level": 2,
                }
            )
        try:
            self._committer.commit(offsets=self._reached, asynchronous=False)
        except KafkaException as error:  # the next look tries again
            _log.warning("the offsets of %s: %s", self.name, error.args[0].str())
            return
        self._reached = []

    def _close_committer(self) -> None:
        committer, self._committer = self._committer, None
        if committer is not None:
            committer.close()


class PipelineHost:
    """Runs queries in its own threads, from `start` to `close`.

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
        settings = {**(clients or {}), "bootstrap.servers": bootstrap_servers}
        self._hosted = [_Hosted(query, settings) for query in queries]
        self._supervisor = Supervisor(
            "python-pipelines",
            lambda: [hosted for hosted in self._hosted if hosted.is_wanted],
            _Hosted.look,
            _Hosted.run,
            look_s=_LOOK_SECONDS,
        )

    def start(self) -> None:
        """Start all queries, in the background."""
        self._supervisor.start()

    def run_only(self, names: Iterable[str]) -> None:
        """Run the queries of these names; the others have stopped once this returns."""
        wanted = frozenset(names)
        for hosted in self._hosted:
            hosted.is_wanted = hosted.name in wanted
            if not hosted.is_wanted:
                hosted.end()

    def close(self) -> None:
        """Stop all queries; a micro-batch that runs is run again by the next start."""
        self._supervisor.close()
        self.run_only(())

"""A kit to test connectors with: no broker, no Spark, topics in memory.

    with ConnectKit() as kit:
        kit.produce("orders", b'{"id": 1}')
        kit.start("to-shop", {"connector.class": "my.module:ShopSink", "topics": "orders"})
        kit.wait_until(lambda: kit.committed("to-shop") == {("orders", 0): 1})

A connector runs as it would in a worker: its tasks are threads, its records pass the converters and
transforms of its settings. By default converters are Kafka's String converter. Stopped and started
again under the same name, it goes on where its offsets say.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from barnabas.connect.allowed_paths import allow_paths
from barnabas.connect.allowed_plugins import allow
from barnabas.connect.connectors.base import (
    Connector,
    SinkRange,
    SinkWriter,
    SourceReader,
    TopicPartition,
)
from barnabas.connect.record import JsonMap, RawRecord
from barnabas.connect.tasks.base import RunningTask, TaskId, TaskPlan, Waits
from barnabas.connect.tasks.flow import FlowSpec
from barnabas.connect.tasks.jobs import RangeDone, SplitDone
from barnabas.connect.tasks.local import LocalEngine, connector_of
from barnabas.connect.tasks.memory import MemoryOffsets, MemoryTopics
from barnabas.connect.tasks.runner import BatchRunner, LocalBatchRunner
from barnabas.connect.tasks.source_transactions import Boundary
from barnabas.connect.tasks.transport import Offsets, Transport

_log = logging.getLogger(__name__)
WAIT_SECONDS: Final = 30.0
_STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
WORKER_SETTINGS: Final = MappingProxyType({"key.converter": _STRING, "value.converter": _STRING})


@dataclass(slots=True)
class TaskLog:
    """The reports of a task; a TaskListener."""

    states: list[str] = field(default_factory=list)
    error: BaseException | None = None
    topics: list[str] = field(default_factory=list)

    def started(self) -> None:
        """It runs."""
        self.states.append("RUNNING")

    def waits(self, what: str | None) -> None:
        """It cannot run yet; no engine of the kit says that."""
        self.states += [] if what is None else ["UNASSIGNED"]

    def paused(self) -> None:
        """It holds still."""
        self.states.append("PAUSED")

    def resumed(self) -> None:
        """It goes on."""
        self.states.append("RUNNING")

    def failed(self, error: BaseException) -> None:
        """It ended with an error."""
        _log.error("a task failed: %s", error, exc_info=error)
        self.error = error
        self.states.append("FAILED")

    def stopped(self) -> None:
        """It ended because it was asked to."""
        self.states.append("STOPPED")

    def confirm(self) -> None:
        """It may write."""

    def topics_used(self, topics: Sequence[str]) -> None:
        """It wrote to topics or read from them."""
        self.topics += topics


@dataclass(slots=True)
class KitContext:
    """The context that a connector is started with; a ConnectorContext."""

    name: str
    offsets: Any
    reconfigurations: int = 0
    error: BaseException | None = None

    def request_task_reconfiguration(self) -> None:
        """Count."""
        self.reconfigurations += 1

    def fail(self, error: BaseException) -> None:
        """Keep the error."""
        self.error = error


@dataclass(slots=True)
class KitConnector:
    """A connector that the kit runs."""

    connector: Connector
    context: KitContext
    tasks: list[RunningTask]
    logs: list[TaskLog]

    @property
    def error(self) -> BaseException | None:
        """Return what has ended a task, or the connector."""
        return next((log.error for log in self.logs if log.error), self.context.error)

    @property
    def states(self) -> list[str]:
        """Return each task's state; empty before it has one."""
        return [log.states[-1] if log.states else "" for log in self.logs]

    def pause(self) -> None:
        """Let all tasks hold still."""
        for task in self.tasks:
            task.pause()

    def resume(self) -> None:
        """Let all tasks go on."""
        for task in self.tasks:
            task.resume()

    def stop(self) -> None:
        """Stop all, and wait for their ends."""
        for task in self.tasks:
            task.stop()
        for task in self.tasks:
            assert task.join(WAIT_SECONDS), "a task does not end"
        self.connector.stop()


class _PicklingRunner(LocalBatchRunner):
    """Hands readers and writers over as Spark does: each micro-batch works on a copy.

    A deep copy is made of what `__getstate__` gives, and fails for most that cannot be pickled.
    """

    def run_source(
        self, reader: SourceReader, splits: Sequence[Any], more: Offsets
    ) -> tuple[Sequence[SplitDone], Offsets]:
        return super().run_source(deepcopy(reader), deepcopy(list(splits)), more)

    def run_sink(self, writer: SinkWriter, ranges: Sequence[SinkRange]) -> Sequence[RangeDone]:
        return super().run_sink(deepcopy(writer), ranges)


class _KitEngine(LocalEngine):
    def runner(
        self,
        connector: Connector,
        spec: FlowSpec,
        transport: Transport,
        stopping: Any,
        boundary: Boundary | None,
        waits: Waits,
    ) -> BatchRunner:
        return _PicklingRunner(spec, transport, stopping, boundary)


class ConnectKit:
    """Topics in memory and an engine that runs connectors on them."""

    def __init__(
        self, worker_settings: Mapping[str, str] = MappingProxyType({}), *, partitions: int = 1
    ) -> None:
        self.topics = MemoryTopics(partitions)
        self._worker = {**WORKER_SETTINGS, **worker_settings}
        self._engine = _KitEngine(self.topics.transport)
        self._running: list[KitConnector] = []

    def __enter__(self) -> ConnectKit:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all."""
        for one in self._running:
            for task in one.tasks:
                task.stop()
        self._engine.close()
        for one in self._running:
            one.connector.stop()

    def start(
        self,
        name: str,
        settings: Mapping[str, str],
        *,
        is_exactly_once: bool = False,
        is_paused: bool = False,
    ) -> KitConnector:
        """Start a connector and its tasks. Raises ConfigError, ConnectError."""
        settings = {"name": name, **settings}
        allow(settings.values())  # a test may name any class
        allow_paths(["/"])
        connector = connector_of(settings)
        offsets = MemoryOffsets(self.topics, name)
        context = KitContext(name, offsets)
        connector.start(context, settings)
        task_settings = connector.task_settings(int(settings.get("tasks.max", "1")))
        running = KitConnector(connector, context, [], [])
        self._running.append(running)
        for number, own in enumerate(task_settings):
            log = TaskLog()
            plan = TaskPlan(
                TaskId(name, number),
                settings,
                own,
                self._worker,
                "offsets" if is_exactly_once else None,
                is_exactly_once,
            )
            task = self._engine.start_task(
                plan, log, offsets, self.topics.store, is_paused=is_paused
            )
            running.tasks.append(task)
            running.logs.append(log)
        return running

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        self.topics.create(topic, partitions)

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> RawRecord:
        """Write a record; returns it with its place."""
        now_ms = time.time_ns() // 1_000_000
        return self.topics.put(
            topic,
            RawRecord(
                topic=topic,
                partition=partition,
                key=key,
                value=value,
                timestamp_ms=now_ms if timestamp_ms is None else timestamp_ms,
                headers=headers,
            ),
        )

    def records(self, topic: str) -> list[RawRecord]:
        """Return a topic's records, partition by partition."""
        with self.topics.lock:
            return [record for log in self.topics.topics.get(topic, []) for record in log]

    def values(self, topic: str) -> list[bytes | None]:
        """Return the values of a topic's records."""
        return [record.value for record in self.records(topic)]

    def offsets(self, connector: str) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Return what a source has stored."""
        return MemoryOffsets(self.topics, connector).all()

    def committed(self, connector: str) -> Mapping[TopicPartition, int]:
        """Return what a sink's group has committed."""
        with self.topics.lock:
            return dict(self.topics.committed.get(connector, {}))

    def wait_until(self, is_so: Callable[[], Any], seconds: float = WAIT_SECONDS) -> None:
        """Wait for a condition. Raises what has ended a task, or AssertionError in the end."""
        deadline = time.monotonic() + seconds
        while not is_so():
            for one in self._running:
                if one.error is not None:
                    raise one.error
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(0.005)

    def wait_for_records(self, topic: str, count: int) -> list[RawRecord]:
        """Wait until a topic has so many records, and return them."""
        self.wait_until(lambda: len(self.records(topic)) >= count)
        return self.records(topic)

    def wait_for_failure(self, connector: KitConnector | str) -> BaseException:
        """Wait until a task of a connector, or of that name, has failed; return its error."""
        if isinstance(connector, str):
            connector = next(
                one for one in reversed(self._running) if one.context.name == connector
            )
        deadline = time.monotonic() + WAIT_SECONDS
        while connector.error is None:
            assert time.monotonic() < deadline, "no task has failed"
            time.sleep(0.005)
        return connector.error

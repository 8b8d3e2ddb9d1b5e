"""The connector that shows that a flow is alive: a record per interval in the topic `heartbeats`.

Source: MirrorHeartbeatConnector, MirrorHeartbeatTask (Kafka 4.3).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import Definition
from barnabas.connect.connectors.base import (
    ConnectorContext,
    Settings,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.mirror import settings
from barnabas.connect.connectors.mirror.cluster import cluster_of
from barnabas.connect.connectors.mirror.connector import MirrorConnector, Schedule
from barnabas.connect.connectors.mirror.flow import Flow, client_errors
from barnabas.connect.connectors.mirror.policy import HEARTBEATS
from barnabas.connect.connectors.mirror.records import Heartbeat, record_of
from barnabas.connect.record import SourceRecord

_WAIT_SECONDS: Final = 0.1


class MirrorHeartbeat(MirrorConnector):
    """Sends heartbeats to the target."""

    definition: ClassVar[Definition] = settings.HEARTBEAT
    partition_texts = ("sourceClusterAlias", "targetClusterAlias")
    has_partition = False

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what may not be set of clients."""
        return client_errors(settings)

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Create the topic."""
        flow = self._flow = Flow.read(settings, self.definition)
        target = cluster_of(flow, "target", "heartbeats-target-admin")
        self._clusters = (target,)
        schedule = self._schedule = Schedule(f"{flow.source}->{flow.target}")
        replicas = int(flow.values["heartbeats.topic.replication.factor"])
        schedule.once(lambda: target.create_compacted(HEARTBEATS, replicas), "creating heartbeats")
        schedule.start()

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """One task, unless heartbeats are off."""
        if self._flow is None or self._flow.interval_s("emit.heartbeats") is None:
            return []
        return [dict(self._flow.settings)]

    def reader(self, context: TaskContext) -> SourceReader:
        """Return what makes heartbeats."""
        flow = Flow.read(context.settings, self.definition)
        return HeartbeatReader(flow.source, flow.target, flow.interval_s("emit.heartbeats") or 1.0)


class HeartbeatReader(SourceReader):
    """A heartbeat is due at each interval; what counts them is not stored."""

    def __init__(self, source: str, target: str, interval_s: float) -> None:
        self._source = source
        self._target = target
        self._interval_s = interval_s
        self._beats = 0
        self._due_s = time.monotonic() + interval_s

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the start of the count."""
        return {"beats": 0}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the count, one more when it is time."""
        left_s = self._due_s - time.monotonic()
        if left_s > 0:
            time.sleep(min(left_s, _WAIT_SECONDS))
        if time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + self._interval_s
            self._beats += 1
        return {"beats": self._beats}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return the time."""
        return [time.time_ns() // 1_000_000]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the heartbeat."""
        beat = Heartbeat(self._source, self._target, partition)
        where = {"sourceClusterAlias": self._source, "targetClusterAlias": self._target}
        yield record_of(beat, HEARTBEATS, where, partition)

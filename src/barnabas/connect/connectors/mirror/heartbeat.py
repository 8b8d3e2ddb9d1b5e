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
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.connectors.mirror import given_offsets, settings
from barnabas.connect.connectors.mirror.cluster import Cluster, cluster_of
from barnabas.connect.connectors.mirror.flow import Flow, client_errors
from barnabas.connect.connectors.mirror.policy import HEARTBEATS
from barnabas.connect.connectors.mirror.records import Heartbeat
from barnabas.connect.connectors.mirror.schedule import Schedule
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.schema import Schema, Type

_BYTES: Final = Schema(Type.BYTES)
_WAIT_SECONDS: Final = 0.1


class MirrorHeartbeat(SourceConnector):
    """Sends heartbeats to the target."""

    definition: ClassVar[Definition] = settings.HEARTBEAT
    _flow: Flow | None = None
    _schedule: Schedule | None = None
    _clusters: tuple[Cluster, ...] = ()

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

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: it is one record at a time."""
        return False

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """One task, unless heartbeats are off."""
        if self._flow is None or self._flow.interval_s("emit.heartbeats") is None:
            return []
        return [dict(self._flow.settings)]

    def reader(self, context: TaskContext) -> SourceReader:
        """Return what makes heartbeats."""
        flow = Flow.read(context.settings, self.definition)
        return HeartbeatReader(flow.source, flow.target, flow.interval_s("emit.heartbeats") or 1.0)

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        aliases = ("sourceClusterAlias", "targetClusterAlias")
        given_offsets.check(offsets, aliases, has_partition=False, is_zero=True)
        return True

    def stop(self) -> None:
        """End what `start` has begun."""
        if self._schedule is not None:
            self._schedule.stop()
        for cluster in self._clusters:
            cluster.close()


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
        yield SourceRecord(
            source_partition={
                "sourceClusterAlias": self._source,
                "targetClusterAlias": self._target,
            },
            source_offset={"offset": 0},
            topic=HEARTBEATS,
            partition=0,
            key_schema=_BYTES,
            key=beat.key,
            value_schema=_BYTES,
            value=beat.value,
            timestamp_ms=partition,
        )

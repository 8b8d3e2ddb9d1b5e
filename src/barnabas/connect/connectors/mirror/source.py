"""The connector that mirrors topics.

A source partition is `{"cluster", "topic", "partition"}`, its offset `{"offset"}` the last one that
was read. Source: MirrorSourceConnector (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

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
from barnabas.connect.connectors.mirror.schedule import Schedule
from barnabas.connect.connectors.mirror.source_reader import (
    ASSIGNED,
    MirrorReader,
    assignment,
)
from barnabas.connect.connectors.mirror.topics import TopicMirror
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.errors import ConfigError

_EMIT_SYNCS = "emit.offset-syncs.enabled"


class MirrorSource(SourceConnector):
    """Copies the records of topics, and keeps the copies' settings and rights like theirs."""

    definition: ClassVar[Definition] = settings.SOURCE
    has_receipts: ClassVar[bool] = True
    _flow: Flow | None = None
    _mirror: TopicMirror | None = None
    _schedule: Schedule | None = None
    _clusters: tuple[Cluster, ...] = ()

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong beyond single settings."""
        errors = client_errors(settings)
        if settings.get("exactly.once.support") == "required" and not _reads_committed(settings):
            text = (
                "MirrorSourceConnector can only provide exactly-once guarantees when its source "
                "consumer is configured with isolation.level set to 'read_committed'; otherwise, "
                "records from aborted and uncommitted transactions will be replicated from the "
                "source cluster to the target cluster."
            )
            errors["exactly.once.support"] = [text]
        is_configured = any(
            name.startswith(("offset-syncs-", "offset-syncs.topic.")) for name in settings
        )
        if settings.get(_EMIT_SYNCS) == "false" and is_configured:
            text = (
                f"MirrorSourceConnector can't setup offset-syncs feature while {_EMIT_SYNCS} "
                "set to false"
            )
            errors[_EMIT_SYNCS] = [text]
        return errors

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Create what is missing in the target, and watch both clusters."""
        flow = self._flow = Flow.read(settings, self.definition)
        if not flow.is_enabled:
            return
        source = cluster_of(flow, "source", "replication-source-admin")
        target = cluster_of(flow, "target", "replication-target-admin")
        self._clusters = (source, target)
        mirror = self._mirror = TopicMirror(flow, source, target)
        schedule = self._schedule = Schedule(f"{flow.source}->{flow.target}")

        def create_syncs_topic() -> None:
            if flow.values[_EMIT_SYNCS]:
                place = source if flow.syncs_side == "source" else target
                replicas = int(flow.values["offset-syncs.topic.replication.factor"])
                place.create_compacted(flow.syncs_topic, replicas)

        def refresh() -> None:
            if mirror.refresh():
                context.request_task_reconfiguration()

        schedule.once(create_syncs_topic, "creating the topic of offset syncs")
        # Tasks are asked for right after the start, unless their topics are found later.
        schedule.once(lambda: _ignore(mirror.refresh()), "loading topics", later=refresh)
        for name, work in (
            ("sync.topic.acls", mirror.sync_acls),
            ("sync.topic.configs", mirror.sync_configs),
            ("refresh.topics", refresh),
        ):
            interval_s = flow.interval_s(name)
            if interval_s is not None and name != "refresh.topics":
                schedule.once(work, name)
            schedule.repeat(work, interval_s, name)
        schedule.start()

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: tasks are what is read side by side; each copies in one piece."""
        return False

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Deal out the partitions."""
        if self._mirror is None or self._flow is None:
            return []
        places = [
            (topic, number)
            for topic, count in sorted(self._mirror.known.items())
            for number in range(count)
        ]
        tasks = min(tasks_max, len(places))
        return [
            {
                **self._flow.settings,
                ASSIGNED: assignment(places[index::tasks]),
                "task.index": str(index),
            }
            for index in range(tasks)
        ]

    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader of a task's partitions."""
        return MirrorReader(context, Flow.read(context.settings, self.definition))

    def exactly_once_support(self, settings: Settings) -> bool | None:
        """Return whether records of aborted transactions are skipped."""
        return _reads_committed(settings)

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        given_offsets.check(offsets, ("cluster", "topic"))
        return True

    def stop(self) -> None:
        """End the watch."""
        if self._schedule is not None:
            self._schedule.stop()
        for cluster in self._clusters:
            cluster.close()


def _reads_committed(settings: Settings) -> bool:
    try:
        return Flow(settings, {}).reads_committed
    except ConfigError:
        return False


def _ignore(_: object) -> None:
    """Do nothing with it."""

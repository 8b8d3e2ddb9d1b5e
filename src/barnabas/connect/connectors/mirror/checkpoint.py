"""The connector that translates the offsets of consumer groups.

Source: MirrorCheckpointConnector (Kafka 4.3).
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
from barnabas.connect.connectors.mirror.checkpoint_reader import ASSIGNED, CheckpointReader
from barnabas.connect.connectors.mirror.cluster import Cluster, cluster_of
from barnabas.connect.connectors.mirror.flow import Flow, client_errors
from barnabas.connect.connectors.mirror.schedule import Schedule
from barnabas.connect.record import JsonMap


class MirrorCheckpoint(SourceConnector):
    """Notes where a group would be in the target, and commits it there if so configured."""

    definition: ClassVar[Definition] = settings.CHECKPOINT
    _flow: Flow | None = None
    _schedule: Schedule | None = None
    _clusters: tuple[Cluster, ...] = ()
    _groups: frozenset[str] = frozenset()

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return what is wrong beyond single settings."""
        if settings.get("enabled", "true") == "false":
            return {}
        errors = client_errors(settings)
        checkpoints, syncs = "emit.checkpoints.enabled", "emit.offset-syncs.enabled"
        if settings.get(checkpoints) == "false":
            errors[checkpoints] = [
                f"MirrorCheckpointConnector can't run with {checkpoints} set to false"
            ]
        if settings.get(syncs) == "false":
            errors[syncs] = ["MirrorCheckpointConnector can't run without offset syncs"]
        return errors

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Create the topic of checkpoints, and watch the source's groups."""
        flow = self._flow = Flow.read(settings, self.definition)
        if not flow.is_enabled:
            return
        source = cluster_of(flow, "source", "checkpoint-source-admin")
        target = cluster_of(flow, "target", "checkpoint-target-admin")
        self._clusters = (source, target)
        is_wanted = flow.plugin("group.filter.class").should_replicate_group

        def look() -> bool:
            groups = frozenset(group for group in source.groups() if is_wanted(group))
            is_changed, self._groups = groups != self._groups, groups
            return is_changed

        def refresh() -> None:
            if look():
                context.request_task_reconfiguration()

        def load() -> None:
            look()

        schedule = self._schedule = Schedule(f"{flow.source}->{flow.target}-checkpoints")
        replicas = int(flow.values["checkpoints.topic.replication.factor"])
        schedule.once(
            lambda: target.create_compacted(flow.checkpoints_topic, replicas),
            "creating the topic of checkpoints",
        )
        schedule.once(load, "loading groups", later=refresh)
        schedule.repeat(refresh, flow.interval_s("refresh.groups"), "refreshing groups")
        schedule.start()

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Not: checkpoints are few."""
        return False

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Deal out the groups."""
        flow = self._flow
        if flow is None or not flow.is_enabled or flow.interval_s("emit.checkpoints") is None:
            return []
        groups = sorted(self._groups)
        tasks = min(tasks_max, len(groups))
        return [
            {
                **flow.settings,
                ASSIGNED: ",".join(groups[index::tasks]),
                "task.index": str(index),
            }
            for index in range(tasks)
        ]

    def reader(self, context: TaskContext) -> SourceReader:
        """Return what translates the offsets of a task's groups."""
        return CheckpointReader(context, Flow.read(context.settings, self.definition))

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store."""
        given_offsets.check(offsets, ("group", "topic"), is_zero=True)
        return True

    def stop(self) -> None:
        """End the watch."""
        if self._schedule is not None:
            self._schedule.stop()
        for cluster in self._clusters:
            cluster.close()

"""Runs a whole connector, with its tasks, on an engine and a cluster, without a worker."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from barnabas.connect.connectors.base import Connector
from barnabas.connect.tasks.base import TaskEngine
from barnabas.connect.tasks.local import connector_of
from barnabas.connect.testing import KitContext
from support.connect.tasks import TaskRun, TopicOffsets


class ConnectorRun:
    """A connector that runs; its tasks start again when it asks for it and `follow` is called."""

    def __init__(
        self,
        engine: TaskEngine,
        name: str,
        settings: Mapping[str, str],
        worker: Mapping[str, str],
        offsets: TopicOffsets,
        *,
        offsets_topic: str | None = None,
        is_exactly_once: bool = False,
    ) -> None:
        self.settings = {"name": name, **settings}
        self.context = KitContext(name, offsets)
        self.connector: Connector = connector_of(self.settings)
        self._engine = engine
        self._name = name
        self._worker = worker
        self._offsets = offsets
        self._offsets_topic = offsets_topic
        self._is_exactly_once = is_exactly_once
        self._seen = 0
        self._lock = Lock()
        self.tasks: list[TaskRun] = []
        self.connector.start(self.context, self.settings)
        self._start_tasks()

    def _start_tasks(self) -> None:
        tasks_max = int(self.settings.get("tasks.max", "1"))
        self.tasks = [
            TaskRun(
                self._engine,
                self._name,
                {**self.settings, **one},
                self._worker,
                self._offsets,
                task=number,
                offsets_topic=self._offsets_topic,
                is_exactly_once=self._is_exactly_once,
            )
            for number, one in enumerate(self.connector.task_settings(tasks_max))
        ]

    def follow(self) -> None:
        """Start the tasks again if the connector has asked for it; raise what ended one."""
        with self._lock:
            asked = self.context.reconfigurations
            if asked != self._seen:
                self._seen = asked
                for task in self.tasks:
                    task.stop()
                self._start_tasks()
            for task in self.tasks:
                if task.log.error is not None:
                    raise task.log.error

    def stop(self) -> None:
        """Stop it and wait for its end."""
        for task in self.tasks:
            task.stop()
        self.connector.stop()

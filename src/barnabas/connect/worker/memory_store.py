"""The store of standalone mode: connectors and statuses in memory, offsets in a file.

A restarted worker reads its connectors from their files again, and goes on from the offsets.
Source: org.apache.kafka.connect.storage.Memory*BackingStore (Kafka 4.3).
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.connect.connectors.base import OffsetReader
from barnabas.connect.record import JsonMap
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.offset_file import OffsetFile
from barnabas.connect.worker.state import (
    DESTROYED,
    STARTED,
    Properties,
    RestartRequest,
    Status,
    TopicStatus,
)


@dataclass(slots=True)
class MemoryState:
    """A `Snapshot`."""

    connectors: dict[str, Properties] = field(default_factory=dict, repr=False)
    target_states: dict[str, str] = field(default_factory=dict)
    task_configs: dict[TaskId, Properties] = field(default_factory=dict, repr=False)
    applied: dict[str, Properties] = field(default_factory=dict, repr=False)

    def tasks(self, connector: str) -> tuple[TaskId, ...]:
        """Return the tasks of a connector, in order."""
        tasks = [task for task in self.task_configs if task.connector == connector]
        return tuple(sorted(tasks, key=lambda task: task.task))


class MemoryStore:
    """A `Store` of one worker."""

    def __init__(self, offset_file: OffsetFile) -> None:
        self._lock = threading.RLock()
        self._state = MemoryState()
        self._statuses: dict[str, Status] = {}
        self._tasks: dict[str, dict[int, Status]] = {}
        self._topics: dict[str, dict[str, TopicStatus]] = {}
        self._offsets = offset_file

    def snapshot(self) -> MemoryState:
        """See Store."""
        with self._lock:
            state = self._state
            return MemoryState(
                dict(state.connectors),
                dict(state.target_states),
                dict(state.task_configs),
                dict(state.applied),
            )

    def put_connector(self, connector: str, config: Properties, target: str | None) -> None:
        """See Store."""
        with self._lock:
            self._state.connectors[connector] = dict(config)
            held = self._state.target_states
            held[connector] = target or held.get(connector, STARTED)

    def remove_connector(self, connector: str) -> None:
        """See Store."""
        with self._lock:
            self._remove_tasks(connector)
            for held in (self._state.connectors, self._state.target_states, self._state.applied):
                held.pop(connector, None)

    def put_tasks(self, connector: str, configs: Sequence[Properties]) -> None:
        """See Store."""
        with self._lock:
            self._remove_tasks(connector)
            for number, config in enumerate(configs):
                self._state.task_configs[TaskId(connector, number)] = dict(config)
            if configs:
                self._state.applied[connector] = self._state.connectors[connector]

    def _remove_tasks(self, connector: str) -> None:
        for task in self._state.tasks(connector):
            del self._state.task_configs[task]

    def put_target_state(self, connector: str, target: str) -> None:
        """See Store."""
        with self._lock:
            self._state.target_states[connector] = target

    def put_restart(self, request: RestartRequest) -> None:
        """See Store; nobody else is to be told."""

    def put_logger_level(self, namespace: str, level: str) -> None:
        """See Store; nobody else is to be told."""

    def status(self, name: str | TaskId) -> Status | None:
        """See Store."""
        with self._lock:
            if isinstance(name, str):
                return self._statuses.get(name)
            return self._tasks.get(name.connector, {}).get(name.task)

    def task_statuses(self, connector: str) -> Mapping[int, Status]:
        """See Store."""
        with self._lock:
            return copy.copy(self._tasks.get(connector, {}))

    def put_status(self, name: str | TaskId, status: Status, *, safely: bool = False) -> None:
        """See Store."""
        with self._lock:
            if isinstance(name, TaskId):
                held = self._tasks.setdefault(name.connector, {})
                if status.state == DESTROYED:
                    held.pop(name.task, None)
                else:
                    held[name.task] = status
            elif status.state == DESTROYED:
                for forgotten in (self._statuses, self._tasks, self._topics):
                    forgotten.pop(name, None)
            else:
                self._statuses[name] = status

    def topics(self, connector: str) -> Sequence[TopicStatus]:
        """See Store."""
        with self._lock:
            return list(self._topics.get(connector, {}).values())

    def put_topic(self, status: TopicStatus) -> None:
        """See Store."""
        with self._lock:
            self._topics.setdefault(status.connector, {}).setdefault(status.topic, status)

    def remove_topic(self, connector: str, topic: str) -> None:
        """See Store."""
        with self._lock:
            self._topics.get(connector, {}).pop(topic, None)

    def offsets(self, connector: str, config: Properties) -> OffsetReader:
        """See Store."""
        return self._offsets.reader(connector)

    def put_offsets(
        self,
        connector: str,
        config: Properties,
        offsets: Sequence[tuple[JsonMap, JsonMap | None]],
    ) -> None:
        """See Store."""
        self._offsets.put(connector, offsets)

    def close(self) -> None:
        """See Store; each write was stored already."""

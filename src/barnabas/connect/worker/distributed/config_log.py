"""The state that the config topic's records describe: connectors, tasks, target states.

Every worker reads the same records in the same order. Task configurations wait for their
connector's commit: only then are all of them in force, together. Compaction may have removed some
of an older set; a commit without its whole set marks the connector *inconsistent*, and its tasks do
not run until its owner has written them again.

Records that are not what a worker writes are left out, with a word in the log.

Source: org.apache.kafka.connect.storage.KafkaConfigBackingStore and ClusterConfigState (Kafka 4.3).
"""

from __future__ import annotations

import base64
import binascii
import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed import records as keys
from barnabas.connect.worker.distributed.records import (
    RecordError,
    SessionKey,
    json_type,
    number,
    parse_object,
    text,
)
from barnabas.connect.worker.state import (
    STARTED,
    TARGET_STATES,
    Properties,
    RestartRequest,
)

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class ConnectorChanged:
    """A connector is new, or its configuration is."""

    connector: str


@dataclass(slots=True, frozen=True)
class ConnectorRemoved:
    """A connector was deleted."""

    connector: str


@dataclass(slots=True, frozen=True)
class TasksChanged:
    """A connector's tasks have new configurations; `tasks` may be none."""

    connector: str
    tasks: tuple[TaskId, ...]


@dataclass(slots=True, frozen=True)
class TargetStateChanged:
    """A user wants another state of a connector."""

    connector: str


@dataclass(slots=True, frozen=True)
class SessionKeyChanged:
    """Requests between workers are signed with another key."""

    key: SessionKey


@dataclass(slots=True, frozen=True)
class RestartRequested:
    """A connector, and perhaps its tasks, are to start again."""

    request: RestartRequest


@dataclass(slots=True, frozen=True)
class LoggerLevelChanged:
    """All workers log a namespace at another level."""

    namespace: str
    level: str


Update = (
    ConnectorChanged
    | ConnectorRemoved
    | TasksChanged
    | TargetStateChanged
    | SessionKeyChanged
    | RestartRequested
    | LoggerLevelChanged
)


@dataclass(slots=True)
class ConfigState:
    """The configuration at an offset of the config topic (ClusterConfigState)."""

    offset: int = -1
    """That of the next record."""
    session_key: SessionKey | None = None
    connectors: dict[str, Properties] = field(default_factory=dict, repr=False)
    target_states: dict[str, str] = field(default_factory=dict)
    task_counts: dict[str, int] = field(default_factory=dict)
    task_configs: dict[TaskId, Properties] = field(default_factory=dict, repr=False)
    fenced_task_counts: dict[str, int] = field(default_factory=dict)
    """The number of tasks of a connector when older ones were last fenced."""
    generations: dict[str, int] = field(default_factory=dict)
    """The number of times that a connector's tasks were configured."""
    applied: dict[str, Properties] = field(default_factory=dict, repr=False)
    """The connector's configuration that its tasks were made from."""
    pending_fencing: set[str] = field(default_factory=set)
    inconsistent: set[str] = field(default_factory=set)

    def tasks(self, connector: str) -> tuple[TaskId, ...]:
        """Return the tasks of a connector that can run."""
        if connector in self.inconsistent:
            return ()
        return tuple(TaskId(connector, n) for n in range(self.task_counts.get(connector, 0)))

    def copy(self) -> ConfigState:
        """Return it as it is now."""
        state = copy.copy(self)
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, dict | set):
                setattr(state, name, value.copy())
        return state


class ConfigLog:
    """Takes the records in their order."""

    def __init__(self) -> None:
        self.state = ConfigState()
        self._deferred: dict[str, dict[TaskId, Properties]] = {}
        self._kinds: tuple[tuple[str, Callable[[str, bytes | None], Update | None]], ...] = (
            (keys.TARGET_STATE, self._on_target_state),
            (keys.CONNECTOR, self._on_connector),
            (keys.TASK_COUNT, self._on_task_count),
            (keys.TASK, self._on_task),
            (keys.COMMIT, self._on_commit),
            (keys.RESTART, self._on_restart),
            (keys.SESSION_KEY, self._on_session_key),
            (keys.LOGGER, self._on_logger),
        )

    def apply(self, offset: int, key: str | None, value: bytes | None) -> Update | None:
        """Take a record; returns what it changes."""
        self.state.offset = offset + 1
        for prefix, take in self._kinds:
            if key is not None and key.startswith(prefix):
                try:
                    return take(key.removeprefix(prefix), value)
                except RecordError as error:
                    _log.error("skipping the record %s of the config topic: %s", key, error)
                    return None
        _log.error("a record of the config topic has an unknown key: %s", key)
        return None

    def _on_target_state(self, name: str, value: bytes | None) -> Update | None:
        states = self.state.target_states
        if value is None:
            states.pop(name, None)
            if name in self.state.connectors:
                states[name] = STARTED
            return None
        fields = parse_object(value)
        wanted = fields.get("state.v2")
        if not isinstance(wanted, str):
            wanted = text(fields, "state")
        if wanted not in TARGET_STATES:
            raise RecordError(f"{wanted} is no target state")
        was = states.get(name)
        states[name] = wanted
        # The state may come before its connector, created in that state.
        return TargetStateChanged(name) if was != wanted and name in self.state.connectors else None

    def _on_connector(self, name: str, value: bytes | None) -> Update | None:
        if value is None:
            self._remove(name)
            return ConnectorRemoved(name)
        self.state.connectors[name] = _properties(value)
        self.state.target_states.setdefault(name, STARTED)
        return ConnectorChanged(name)

    def _remove(self, name: str) -> None:
        state = self.state
        state.connectors.pop(name, None)
        state.task_counts.pop(name, None)
        for task in [task for task in state.task_configs if task.connector == name]:
            del state.task_configs[task]
        self._deferred.pop(name, None)
        state.applied.pop(name, None)

    def _on_task(self, rest: str, value: bytes | None) -> Update | None:
        task = keys.task_of(rest)
        if task is None:
            raise RecordError("the key names no task")
        self._deferred.setdefault(task.connector, {})[task] = _properties(value)
        return None

    def _on_commit(self, name: str, value: bytes | None) -> Update | None:
        state = self.state
        config = state.connectors.get(name)
        if config is None:
            # Deleted: compaction has left only what came after.
            self._remove(name)
            return None
        count = number(parse_object(value), "tasks")
        deferred = self._deferred.get(name, {})
        updated: tuple[TaskId, ...] = ()
        # Fewer tasks than before leave configurations of the others behind.
        if all(TaskId(name, n) in deferred for n in range(count)):
            if name in self._deferred:
                state.task_configs.update(deferred)
                updated = tuple(deferred)
                state.generations[name] = state.generations.get(name, -1) + 1
            state.inconsistent.discard(name)
            state.applied[name] = config
        else:
            state.inconsistent.add(name)
        deferred.clear()
        state.task_counts[name] = count
        state.pending_fencing.add(name)
        return TasksChanged(name, updated)

    def _on_restart(self, name: str, value: bytes | None) -> Update | None:
        fields = parse_object(value)
        return RestartRequested(
            RestartRequest(
                name,
                only_failed=fields.get("only-failed") is True,
                include_tasks=fields.get("include-tasks") is True,
            )
        )

    def _on_task_count(self, name: str, value: bytes | None) -> Update | None:
        self.state.fenced_task_counts[name] = number(parse_object(value), "task-count")
        self.state.pending_fencing.discard(name)
        return None

    def _on_session_key(self, rest: str, value: bytes | None) -> Update | None:
        if rest:
            raise RecordError("an unknown key")
        fields = parse_object(value)
        try:
            key = base64.b64decode(text(fields, "key"), validate=True)
        except binascii.Error as error:
            raise RecordError("'key' is not base 64") from error
        created_ms = number(fields, "creation-timestamp")
        self.state.session_key = SessionKey(key, text(fields, "algorithm"), created_ms)
        return SessionKeyChanged(self.state.session_key)

    def _on_logger(self, namespace: str, value: bytes | None) -> Update | None:
        return LoggerLevelChanged(namespace, text(parse_object(value), "level"))


def _properties(value: bytes | None) -> Properties:
    properties: Any = parse_object(value).get("properties")
    if not isinstance(properties, dict):
        raise RecordError(f"'properties' should be an object but is {json_type(properties)}")
    for name, given in properties.items():
        if given is not None and not isinstance(given, str):
            raise RecordError(f"'{name}' should be a string but is {json_type(given)}")
    # Kafka's workers store settings that are null, which stand for no setting.
    return {name: given for name, given in properties.items() if given is not None}

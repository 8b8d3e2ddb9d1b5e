"""The state that the status topic's records describe: states of connectors and tasks, topics.

    status-connector-<name>  {"state", "trace", "worker_id", "generation",
                              "version"}
    status-task-<name>-<n>   the same
    status-topic-<topic>:connector-<name>
                             {"topic": {"name", "connector", "task", "discoverTimestamp"}}

Tombstones delete. A *safe* write, such as a worker's UNASSIGNED for what it stopped, is not written
where another worker of a newer generation has written since.

Source: org.apache.kafka.connect.storage.KafkaStatusBackingStore (Kafka 4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from barnabas.connect.record import json_bytes
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.records import (
    Pair,
    RecordError,
    number,
    parse_object,
    text,
)
from barnabas.connect.worker.state import Status, TopicStatus

_log = logging.getLogger(__name__)
CONNECTOR: Final = "status-connector-"
TASK: Final = "status-task-"
TOPIC: Final = "status-topic-"
_TOPIC_SEPARATOR: Final = ":connector-"
STATES: Final = (
    "UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "DESTROYED", "RESTARTING", "STOPPED",
)  # fmt: skip


def status_record(name: str | TaskId, status: Status) -> Pair:
    """Return the record of a connector's or task's state; DESTROYED is a tombstone."""
    key = f"{CONNECTOR if isinstance(name, str) else TASK}{name}"
    if status.state == "DESTROYED":
        return key, None
    value = {
        "state": status.state,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    return key, json_bytes(value)


def topic_record(status: TopicStatus) -> Pair:
    """Return the record of a used topic."""
    value = {
        "name": status.topic,
        "connector": status.connector,
        "task": status.task,
        "discoverTimestamp": status.discovered_ms,
    }
    return _topic_key(status.connector, status.topic), json_bytes({"topic": value})


def topic_removal(connector: str, topic: str) -> Pair:
    """Return the record that forgets a used topic."""
    return _topic_key(connector, topic), None


def _topic_key(connector: str, topic: str) -> str:
    return f"{TOPIC}{topic}{_TOPIC_SEPARATOR}{connector}"


class StatusLog:
    """Takes the records in their order."""

    def __init__(self) -> None:
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, dict[str, TopicStatus]] = {}

    def get(self, name: str | TaskId) -> Status | None:
        """Return the state of a connector or a task."""
        if isinstance(name, str):
            return self.connectors.get(name)
        return self.tasks.get(name.connector, {}).get(name.task)

    def topics_of(self, connector: str) -> Mapping[str, TopicStatus]:
        """Return the topics that a connector has used."""
        return self.topics.get(connector, {})

    def can_write_safely(self, name: str | TaskId, status: Status) -> bool:
        """Return whether nobody newer has told a state."""
        was = self.get(name)
        return (
            was is None or was.worker_id == status.worker_id or was.generation <= status.generation
        )

    def apply(self, key: str | None, value: bytes | None) -> None:
        """Take a record."""
        key = key or ""
        try:
            if key.startswith(CONNECTOR):
                self._on_connector(key.removeprefix(CONNECTOR), value)
            elif key.startswith(TASK):
                self._on_task(key.removeprefix(TASK), value)
            elif key.startswith(TOPIC):
                self._on_topic(key.removeprefix(TOPIC), value)
            else:
                raise RecordError("an unknown key")
        except RecordError as error:
            _log.warning("skipping the record %s of the status topic: %s", key, error)

    def _on_connector(self, name: str, value: bytes | None) -> None:
        if not name:
            raise RecordError("the key names no connector")
        if value is None:
            self.connectors.pop(name, None)
            self.tasks.pop(name, None)
        else:
            self.connectors[name] = _status(value)

    def _on_task(self, rest: str, value: bytes | None) -> None:
        name, dash, digits = rest.rpartition("-")
        if not dash or not digits.isdecimal():
            raise RecordError("the key names no task")
        task = TaskId(name, int(digits))
        if value is None:
            self.tasks.get(name, {}).pop(task.task, None)
            return
        status, was = _status(value), self.get(task)
        if (
            status.state == "UNASSIGNED"
            and was is not None
            and was.state == "RUNNING"
            and was.generation >= status.generation
        ):
            return  # its old worker stopped it after the new one had started it
        self.tasks.setdefault(name, {})[task.task] = status

    def _on_topic(self, rest: str, value: bytes | None) -> None:
        topic, separator, connector = rest.partition(_TOPIC_SEPARATOR)
        if not topic or not separator or not connector:
            raise RecordError("the key names no topic and connector")
        if value is None:
            self.topics.get(connector, {}).pop(topic, None)
            return
        fields = parse_object(value).get("topic")
        if not isinstance(fields, dict):
            raise RecordError("'topic' is not an object")
        self.topics.setdefault(connector, {})[topic] = TopicStatus(
            text(fields, "name"),
            text(fields, "connector"),
            number(fields, "task"),
            number(fields, "discoverTimestamp"),
        )


def _status(value: bytes) -> Status:
    fields = parse_object(value)
    state, trace, version = text(fields, "state"), fields.get("trace"), fields.get("version")
    if state not in STATES:
        raise RecordError(f"{state} is not a state")
    return Status(
        state,
        text(fields, "worker_id"),
        number(fields, "generation"),
        trace if isinstance(trace, str) else None,
        version if isinstance(version, str) else None,
    )

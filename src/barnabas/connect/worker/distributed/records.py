"""Records of the workers' topics: their JSON, and the keys and values of the config topic.

JSON is as Connect's own converter writes it, without schemas. Keys of the config and status topics
are text, those of the offset topic JSON. The config topic:

    connector-<name>        {"properties": {…}}, a tombstone deletes
    task-<name>-<n>         {"properties": {…}}, not in force until the connector's commit
    commit-<name>           {"tasks": count}: the tasks' configurations are whole
    target-state-<name>     {"state", "state.v2"}: older workers read STOPPED as PAUSED
    tasks-fencing-<name>    {"task-count"}: older producers of so many tasks are fenced
    session-key             {"key", "algorithm", "creation-timestamp"}
    restart-connector-<name>  {"include-tasks", "only-failed"}
    logger-cluster-<name>   {"level"}

Source: org.apache.kafka.connect.storage.KafkaConfigBackingStore (Kafka 4.3).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.connect.record import json_bytes
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.state import RestartRequest

CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
TARGET_STATE: Final = "target-state-"
TASK_COUNT: Final = "tasks-fencing-"
SESSION_KEY: Final = "session-key"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"

Pair = tuple[str, bytes | None]
"""Key and value of a record; a value None is a tombstone."""


class RecordError(ValueError):
    """A record's bytes are not what a worker writes."""


def parse(data: bytes | None) -> Any:
    """Return the value of JSON; None for no bytes. Raises RecordError."""
    if data is None:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from error


def parse_object(data: bytes | None) -> Mapping[str, Any]:
    """Return a JSON object. Raises RecordError, also for a tombstone."""
    if data is None:
        raise RecordError("unexpectedly null")
    value = parse(data)
    if not isinstance(value, dict):
        raise RecordError(f"in the wrong format: {json_type(value)}")
    return value


def text(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that is a string. Raises RecordError."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise RecordError(f"'{name}' should be a string but is {json_type(value)}")
    return value


def number(fields: Mapping[str, Any], name: str) -> int:
    """Return a field that is a whole number. Raises RecordError."""
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError(f"'{name}' should be a number but is {json_type(value)}")
    return value


def json_type(value: Any) -> str:
    """Return what JSON calls a value's type; the value itself may be a secret."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    return names.get(type(value), "an array" if isinstance(value, list) else "an object")


@dataclass(slots=True, frozen=True)
class SessionKey:
    """The key that signs requests between workers; `algorithm` is Java's name of the key's."""

    key: bytes = field(repr=False)
    algorithm: str
    created_ms: int


def connector_config(name: str, properties: Mapping[str, str | None]) -> Pair:
    """Return the record of a connector's configuration."""
    return CONNECTOR + name, json_bytes({"properties": dict(properties)})


def task_config(task: TaskId, properties: Mapping[str, str | None]) -> Pair:
    """Return the record of a task's configuration."""
    return f"{TASK}{task}", json_bytes({"properties": dict(properties)})


def tasks_commit(connector: str, count: int) -> Pair:
    """Return the record that puts a connector's task configurations in force."""
    return COMMIT + connector, json_bytes({"tasks": count})


def target_state(connector: str, state: str) -> Pair:
    """Return the record of what a user wants: STARTED, PAUSED or STOPPED."""
    old = "PAUSED" if state == "STOPPED" else state
    return TARGET_STATE + connector, json_bytes({"state": old, "state.v2": state})


def removal(connector: str) -> list[Pair]:
    """Return the records that delete a connector."""
    return [(CONNECTOR + connector, None), (TARGET_STATE + connector, None)]


def task_count(connector: str, count: int) -> Pair:
    """Return the record that says how many tasks may have written without being fenced."""
    return TASK_COUNT + connector, json_bytes({"task-count": count})


def session_key(key: SessionKey) -> Pair:
    """Return the record of a session key."""
    encoded = base64.b64encode(key.key).decode()
    value = {"key": encoded, "algorithm": key.algorithm, "creation-timestamp": key.created_ms}
    return SESSION_KEY, json_bytes(value)


def restart_request(request: RestartRequest) -> Pair:
    """Return the record of a wish to restart."""
    value = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    return RESTART + request.connector, json_bytes(value)


def logger_level(namespace: str, level: str) -> Pair:
    """Return the record of a log level for all workers (KIP-976)."""
    return LOGGER + namespace, json_bytes({"level": level})


def task_of(key: str) -> TaskId | None:
    """Return the task that a key of TASK names."""
    connector, dash, number = key.removeprefix(TASK).rpartition("-")
    if not dash or not number.isdecimal():
        return None
    return TaskId(connector, int(number))

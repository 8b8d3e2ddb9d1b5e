"""The operations of a worker: the interface between the REST interface and both modes.

`Herder` has the operations of both modes, which read the store; `standalone` and `distributed` add
what
changes connectors. Calls block and come from any thread; answers are JSON. They raise the errors of
`errors.requests`; ElsewhereError lets the REST interface ask another worker.

Source: org.apache.kafka.connect.runtime.{Herder,AbstractHerder} (Kafka 4.3).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from barnabas.base.clock import now_ms
from barnabas.connect.config import common
from barnabas.connect.config.answers import errors_of
from barnabas.connect.config.plugin_classes import kind_of
from barnabas.connect.config.validation import WorkerRules, validate_connector
from barnabas.connect.errors.requests import BadRequestError, NotFoundError
from barnabas.connect.record import JsonMap
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker import offset_requests
from barnabas.connect.worker.loggers import Loggers
from barnabas.connect.worker.restarts import Name, RestartPolicy, Restarts, read_policy
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.state import (
    FAILED,
    PAUSED,
    RESTARTING,
    STARTED,
    STOPPED,
    Properties,
    RestartRequest,
    Snapshot,
    state_json,
    status_json,
)
from barnabas.connect.worker.store import Store
from barnabas.schemas.data.errors import ConfigError

_log = logging.getLogger(__name__)
Json = dict[str, Any]
Offsets = Sequence[tuple[JsonMap | None, JsonMap | None]]
VERSION: Final = "4.3.1"
"""The version of Kafka whose interface this is."""
CLOSE_MARGIN_S: Final = 15.0
"""How long the herder may take to finish its current work, beyond the time to stop tasks."""


class Herder(ABC):
    """`cluster_id` is the Kafka cluster's."""

    def __init__(self, worker: Worker, rules: WorkerRules, cluster_id: str | None) -> None:
        self.worker, self.rules, self.cluster_id = worker, rules, cluster_id
        self.store: Store = worker.store
        self.loggers = Loggers()
        self.is_ready = False

    def start(self) -> None:
        """Begin; blocks until connectors can be asked for. Raises ConnectError."""
        self.is_ready = True

    # The existing connectors.

    def connectors(self) -> list[str]:
        """Return the names of all connectors."""
        return list(self.store.snapshot().connectors)

    def info(self, name: str) -> Json:
        """Return a connector's configuration and tasks."""
        state = self._known(name, f"Connector {name} not found")
        return info_json(state, name)

    def task_infos(self, name: str) -> list[Json]:
        """Return a connector's tasks with their configurations."""
        state = self._known(name, f"Connector {name} not found")
        return [
            {"id": _task_json(task), "config": dict(state.task_configs[task])}
            for task in state.tasks(name)
        ]

    def status(self, name: str) -> Json:
        """Return the states of a connector and its tasks."""
        status = self.store.status(name)
        if status is None:
            raise NotFoundError(f"No status found for connector {name}")
        kind = connector_type(self.store.snapshot().connectors.get(name))
        return status_json(name, kind, status, self.store.task_statuses(name))

    def task_status(self, task: TaskId) -> Json:
        """Return the state of a task."""
        status = self.store.status(task)
        if status is None:
            raise NotFoundError(f"No status found for task {task}")
        return {"id": task.task, **state_json(status)}

    def topics(self, name: str) -> Json:
        """Return the topics that a connector has used."""
        topics = [self.worker.hide(status.topic) for status in self.store.topics(name)]
        return {name: {"topics": topics}}

    def reset_topics(self, name: str) -> None:
        """Forget which topics a connector has used; those in use come back."""
        for status in self.store.topics(name):
            self.store.remove_topic(name, status.topic)
        for task, (_, listener) in list(self.worker.tasks.items()):
            if task.connector == name:
                listener.forget_topics()

    def validate(self, settings: Mapping[str, str | None]) -> Json:
        """Return what is right and wrong about a configuration."""
        given = {name: value for name, value in settings.items() if value is not None}
        resolved = self.worker.resolve(given)
        answer = validate_connector({**settings, **resolved}, self.rules)
        for value in (config["value"] for config in answer["configs"]):
            name, raw = value["name"], given.get(value["name"])
            if raw is not None and raw != resolved.get(name) and value["value"] is not None:
                value["value"] = raw
        # Names may contain secrets, too: those of transforms and groups are values of settings.
        hidden: Json = _hidden(answer, self.worker.hide)
        return hidden

    def offsets(self, name: str) -> Json:
        """Return how far a connector has come."""
        state = self._known(name, f"Connector {name} not found")
        config = self.worker.resolve(state.connectors[name])
        if connector_type(config) == "sink":
            offsets = offset_requests.sink_offsets(self.worker.settings, name, config)
        else:
            offsets = list(self.store.offsets(name, config).all())
        return {
            "offsets": [
                {"partition": dict(partition), "offset": dict(offset)}
                for partition, offset in offsets
            ]
        }

    def group_figures(
        self,
    ) -> Sequence[tuple[str, Mapping[str, float], tuple[tuple[str, str], ...]]]:
        """Return figures of this worker in its group for /metrics: their group and labels too."""
        return ()

    @abstractmethod
    def health(self) -> None:
        """Return once the worker has shown that it does its work. Raises TimeoutError."""

    def _known(self, name: str, text: str) -> Snapshot:
        state = self.store.snapshot()
        if name not in state.connectors:
            raise NotFoundError(text)
        return state

    def _check(self, config: Mapping[str, str | None]) -> dict[str, str]:
        """Raises BadRequestError with all that is wrong about a configuration."""
        answer = self.validate(config)
        if answer["error_count"]:
            lines = "".join(f"\n{error}" for error in errors_of(answer))
            raise BadRequestError(
                "Connector configuration is invalid and contains the following "
                f"{answer['error_count']} error(s):{lines}\nYou can also find the above list of "
                "errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
            )
        return {key: value for key, value in config.items() if value is not None}

    # Requests that change connectors.

    @abstractmethod
    def put(
        self, name: str, config: Mapping[str, str | None], target: str | None, *, may_replace: bool
    ) -> tuple[bool, Json]:
        """Write a configuration; returns whether the connector is new, and its info."""

    @abstractmethod
    def patch(self, name: str, changes: Mapping[str, str | None]) -> tuple[bool, Json]:
        """Change single settings of a configuration, None removes one (KIP-477)."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Stop a connector for good."""

    @abstractmethod
    def restart_connector(self, name: str) -> None:
        """Start a connector again, not its tasks."""

    @abstractmethod
    def restart(self, request: RestartRequest) -> Json:
        """Start a connector and tasks again; returns the states, RESTARTING where meant."""

    @abstractmethod
    def restart_task(self, task: TaskId) -> None:
        """Start a task again."""

    @abstractmethod
    def stop(self, name: str) -> None:
        """Let a connector be STOPPED: it has no tasks any more."""

    @abstractmethod
    def modify_offsets(self, name: str, offsets: Offsets | None) -> str:
        """Alter offsets, None resets all; returns what to tell the user."""

    @abstractmethod
    def reconfigure(self, name: str) -> None:
        """Ask a connector of this worker for its tasks again, soon."""

    @abstractmethod
    def close(self) -> None:
        """Stop all that runs here."""

    def pause(self, name: str) -> None:
        """Let a connector and its tasks hold still."""
        self._known(name, f"Unknown connector {name}")
        self.store.put_target_state(name, PAUSED)

    def resume(self, name: str) -> None:
        """Let a connector and its tasks go on."""
        self._known(name, f"Unknown connector {name}")
        self.store.put_target_state(name, STARTED)

    def put_tasks(
        self, name: str, body: bytes, headers: Mapping[str, str], *, may_forward: bool | None
    ) -> None:
        """Take tasks' configurations from another worker (between workers only)."""
        raise BadRequestError(
            "Kafka Connect in standalone mode does not support externally setting task "
            "configurations.",
            status=500,
        )

    def fence(self, name: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Fence older tasks of an exactly-once source (between workers only)."""
        raise BadRequestError(
            "Kafka Connect in standalone mode does not support exactly-once source connectors.",
            status=500,
        )

    def set_cluster_logger(self, namespace: str, level: str) -> None:
        """Log a namespace at a level, on all workers."""
        self.loggers.set_level(namespace, level)

    # Pieces of the above.

    def _modifiable(self, name: str) -> Snapshot:
        """Raises unless a connector's offsets can be modified."""
        state = self._known(name, f"Connector {name} not found")
        if state.target_states.get(name) != STOPPED or state.tasks(name):
            raise BadRequestError(
                "Connectors must be in the STOPPED state before their offsets can be modified. "
                "This can be done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint"
            )
        return state

    def _plan(self, request: RestartRequest) -> tuple[bool, list[TaskId], Json]:
        """Return whether the connector is meant, which tasks are, and the answer."""
        name = request.connector
        status = self.store.status(name)
        if status is None:
            raise NotFoundError(f"Status for connector {name} not found")
        statuses = self.store.task_statuses(name)
        meant = [
            TaskId(name, number)
            for number, one in sorted(statuses.items())
            if request.wants(TaskId(name, number), one)
        ]
        kind = connector_type(self.store.snapshot().connectors.get(name))
        answer = status_json(name, kind, status, statuses)
        is_meant = request.wants(name, status)
        if is_meant:
            answer["connector"]["state"] = RESTARTING
        for task in answer["tasks"]:
            if TaskId(name, task["id"]) in meant:
                task["state"] = RESTARTING
        return is_meant, meant, answer


class StartingAgain(Restarts):
    """Starts again what has failed on this worker, later each time: `Restarts` with a clock.

    `wait` is called with the seconds until something is due, and `now_due` is to be called then.
    A call of `wait` replaces the one before. `state` is what is configured. Calls must not overlap.
    """

    def __init__(
        self, worker: Worker, state: Callable[[], Snapshot], wait: Callable[[float], None]
    ) -> None:
        super().__init__(self._policy)
        self._worker, self._state, self._wait = worker, state, wait

    def has_failed(self, name: Name, error: BaseException) -> None:
        """A connector or task failed: its status tells when it starts again."""
        attempt = self.failed(name, error, now_ms())
        if attempt is not None:
            _log.warning("%s", attempt.note)
            self._worker.put_status(name, FAILED, error, safely=True, note=attempt.note)
        self._wait_for_next()

    def has_started(self, name: Name) -> None:
        """It was started, for any reason."""
        self.started(name, now_ms())

    def now_due(self) -> list[Name]:
        """Return what is to start now."""
        due = self.take_due(now_ms())
        for attempt in due:
            _log.info("restarting %s, attempt %d", attempt.name, attempt.number)
        self._wait_for_next()
        return [attempt.name for attempt in due]

    def _wait_for_next(self) -> None:
        due_ms = self.next_due_ms()
        if due_ms is not None:
            self._wait(max(0, due_ms - now_ms()) / 1000)

    def _policy(self, connector: str) -> RestartPolicy:
        config = self._state().connectors.get(connector)
        if config is None:
            raise ConfigError(f"there is no connector {connector}")
        return read_policy(self._worker.settings, config)


def info_json(state: Snapshot, name: str) -> Json:
    """Return the answer of `GET /connectors/{name}`."""
    config = dict(state.connectors[name])
    return {
        "name": name,
        "config": config,
        "tasks": [_task_json(task) for task in state.tasks(name)],
        "type": connector_type(config),
    }


def patched(config: Properties, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return a configuration with changes; None removes a setting."""
    whole = {**config, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def connector_type(config: Properties | None) -> str:
    """Return source, sink or unknown."""
    kind = kind_of((config or {}).get(common.CONNECTOR_CLASS) or "")
    return kind if kind in ("source", "sink") else "unknown"


def _task_json(task: TaskId) -> Json:
    return {"connector": task.connector, "task": task.task}


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    """Return JSON without the secrets in its texts and names."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list | tuple):
        return [_hidden(one, hide) for one in value]
    if isinstance(value, dict):
        return {hide(name): _hidden(one, hide) for name, one in value.items()}
    return value

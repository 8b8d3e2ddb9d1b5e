"""States of connectors and tasks, wanted and actual: the words of all parts of a worker.

A connector's *target state* is what a user wants: STARTED, PAUSED or STOPPED (stopped ones have no
tasks). Its *status*, and each task's, is what a worker says of it:

    UNASSIGNED ─▶ RUNNING ⇄ PAUSED        RESTARTING  a restart was asked for, and not yet begun
         ▲           │  ╲                  STOPPED     a connector whose target state that is
         └───────────┘   ▶ FAILED          DESTROYED   deleted; never kept

Source: org.apache.kafka.connect.runtime.{TargetState,AbstractStatus,RestartPlan} (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from barnabas.connect.tasks.base import TaskId

STARTED: Final = "STARTED"
PAUSED: Final = "PAUSED"
STOPPED: Final = "STOPPED"
TARGET_STATES: Final = (STARTED, PAUSED, STOPPED)
RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"
UNASSIGNED: Final = "UNASSIGNED"
RESTARTING: Final = "RESTARTING"
DESTROYED: Final = "DESTROYED"

Properties = Mapping[str, str]
"""A configuration as it was given: references to secrets are not resolved."""


@dataclass(slots=True, frozen=True)
class Status:
    """The state of a connector or task, as `worker_id` told it in a `generation` of the group."""

    state: str
    worker_id: str
    generation: int = 0
    trace: str | None = None
    version: str | None = None
    """The plugin's, of what runs (KIP-891)."""


@dataclass(slots=True, frozen=True)
class TopicStatus:
    """A topic that a connector's task has used (KIP-558)."""

    topic: str
    connector: str
    task: int
    discovered_ms: int


@dataclass(slots=True, frozen=True)
class RestartRequest:
    """Start a connector again, and perhaps its tasks; or only what has failed (KIP-745)."""

    connector: str
    only_failed: bool = False
    include_tasks: bool = False

    def wants(self, name: str | TaskId, status: Status) -> bool:
        """Return whether the connector or task of that status is meant."""
        if not isinstance(name, str) and not self.include_tasks:
            return False
        return not self.only_failed or status.state == FAILED


class Snapshot(Protocol):
    """The configuration at one time."""

    @property
    def connectors(self) -> Mapping[str, Properties]:
        """The connectors and their configurations."""

    @property
    def target_states(self) -> Mapping[str, str]:
        """The target state of each connector."""

    @property
    def task_configs(self) -> Mapping[TaskId, Properties]:
        """The tasks' configurations; those that `tasks` does not name are left from earlier."""

    @property
    def applied(self) -> Mapping[str, Properties]:
        """Of each connector, the configuration that its tasks were made from."""

    def tasks(self, connector: str) -> tuple[TaskId, ...]:
        """Return the tasks of a connector that can run."""


def tasks_changed(state: Snapshot, connector: str, configs: Sequence[Properties]) -> bool:
    """Return whether a connector's tasks must be recreated for its current configurations."""
    tasks = state.tasks(connector)
    if [state.task_configs.get(task) for task in tasks] != list(configs):
        return True
    return state.applied.get(connector) != state.connectors.get(connector)


def status_json(
    name: str, kind: str, status: Status, tasks: Mapping[int, Status]
) -> dict[str, Any]:
    """Return the answer of `GET /connectors/{name}/status`."""
    return {
        "name": name,
        "connector": state_json(status),
        "tasks": [{"id": task, **state_json(tasks[task])} for task in sorted(tasks)],
        "type": kind,
    }


def state_json(status: Status) -> dict[str, Any]:
    """Return one state as JSON; a trace stands only where there is one."""
    fields: dict[str, Any] = {"state": status.state, "worker_id": status.worker_id}
    fields["version"] = status.version
    if status.trace:
        fields["trace"] = status.trace
    return fields

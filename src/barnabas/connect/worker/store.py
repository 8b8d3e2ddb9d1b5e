"""Where connectors, their tasks, statuses and offsets are kept: THE interface of both modes.

Standalone mode keeps them in memory and in a file (`memory_store`), distributed mode in three
topics that all workers read. What was written is read back by the same thread; others see it soon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from barnabas.connect.connectors.base import OffsetReader
from barnabas.connect.record import JsonMap
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.state import (
    Properties,
    RestartRequest,
    Snapshot,
    Status,
    TopicStatus,
)


class StatusStore(Protocol):
    """The status of connectors and tasks."""

    def status(self, name: str | TaskId) -> Status | None:
        """Return the status of a connector or task."""

    def task_statuses(self, connector: str) -> Mapping[int, Status]:
        """Return the statuses of a connector's tasks."""

    def put_status(self, name: str | TaskId, status: Status, *, safely: bool = False) -> None:
        """Write a status; DESTROYED deletes it. `safely`: not over what a newer worker wrote."""

    def topics(self, connector: str) -> Sequence[TopicStatus]:
        """Return the topics that a connector has used."""

    def put_topic(self, status: TopicStatus) -> None:
        """Write that a connector uses a topic."""

    def remove_topic(self, connector: str, topic: str) -> None:
        """Forget that a connector uses a topic."""


class ConfigStore(Protocol):
    """The store of configurations."""

    def snapshot(self) -> Snapshot:
        """Return all, as it is now."""

    def put_connector(self, connector: str, config: Properties, target: str | None) -> None:
        """Write a configuration. None leaves the target state, which is STARTED at first."""

    def remove_connector(self, connector: str) -> None:
        """Delete a connector with its tasks."""

    def put_tasks(self, connector: str, configs: Sequence[Properties]) -> None:
        """Write the configurations of all tasks; none stops them all."""

    def put_target_state(self, connector: str, target: str) -> None:
        """Write what a user wants."""

    def put_restart(self, request: RestartRequest) -> None:
        """Tell all workers to start again what of a connector is theirs."""

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Tell all workers to log a namespace at a level."""


class OffsetStore(Protocol):
    """The offsets of sources."""

    def offsets(self, connector: str, config: Properties) -> OffsetReader:
        """Return the reader of a connector's offsets; its `config` may name its own topic."""

    def put_offsets(
        self,
        connector: str,
        config: Properties,
        offsets: Sequence[tuple[JsonMap, JsonMap | None]],
    ) -> None:
        """Write offsets, None deletes; returns when they are stored. Raises ConnectError."""


class Store(ConfigStore, StatusStore, OffsetStore, Protocol):
    """All of it."""

    def close(self) -> None:
        """Write what is not written, and end."""

"""The interface between the worker, which decides what runs, and its engine, which runs it.

The worker starts a task with its configuration, and a TaskListener reports the task's state. The
worker knows neither Spark nor records. There are two engines: `local` (threads of this process) and
`spark` (a Spark job per micro-batch). The worker's setting `barnabas.connect.engine` chooses; the
default is `spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from barnabas.connect.connectors.base import Figure, OffsetReader, Settings
from barnabas.connect.record import JsonMap

ENGINE: Final = "barnabas.connect.engine"


@dataclass(slots=True, frozen=True)
class TaskId:
    """A task of a connector; written `name-0`."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


@dataclass(slots=True, frozen=True)
class TaskPlan:
    """All that an engine needs to run a task.

    `connector_settings` is the connector's configuration with secrets resolved, `task_settings` the
    task's own, `worker_settings` the worker's. `offsets_topic` is where the source's offsets go
    (None: to `store_offsets` of the engine's caller, standalone mode's file).
    """

    id: TaskId
    connector_settings: Settings = field(repr=False)
    task_settings: Settings = field(repr=False)
    worker_settings: Settings = field(repr=False)
    offsets_topic: str | None
    is_exactly_once: bool = False
    generation: int = 0
    """Fences older runs of the same task of an exactly-once source (KIP-618)."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that config providers returned for the settings; they must never be shown."""


Waits = Callable[[str | None], None]
"""A TaskListener's `waits`."""
StoreOffsets = Callable[[str, Sequence[tuple[JsonMap, JsonMap]]], None]
"""Takes the connector's name and (partition, offset) pairs; returns when they are stored."""


class TaskListener(Protocol):
    """Receives the events of one task, on the engine's threads. States are Kafka's."""

    def confirm(self) -> None:
        """Raise ConnectError if the task has moved to another worker, or was reconfigured.

        The task of an exactly-once source calls it after it has taken its transactional id.
        """

    def waits(self, what: str | None) -> None:
        """The task waits for `what` before it can run, such as Spark; None ends the wait.

        Until then its state is UNASSIGNED, and `what` is shown.
        """

    def started(self) -> None:
        """The task runs."""

    def paused(self) -> None:
        """The task is paused."""

    def resumed(self) -> None:
        """The task runs again."""

    def failed(self, error: BaseException) -> None:
        """The task ended with an error; the worker decides whether it starts again."""

    def stopped(self) -> None:
        """The task ended because it was asked to."""

    def topics_used(self, topics: Sequence[str]) -> None:
        """The task wrote to or read from these topics (for /connectors/{name}/topics)."""


class RunningTask(Protocol):
    """A task that an engine runs."""

    def pause(self) -> None:
        """Hold still once the micro-batch that runs is done."""

    def resume(self) -> None:
        """Go on."""

    def stop(self) -> None:
        """Begin to end: the micro-batch that runs is finished; does not wait."""

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came."""

    def metrics(self) -> Mapping[str, float]:
        """Return figures under the names of Kafka's task metrics (source-record-poll-total …)."""

    def own_metrics(self) -> Sequence[Figure]:
        """Return the connector's own metrics."""


class TaskEngine(Protocol):
    """Runs tasks."""

    def start_task(
        self,
        plan: TaskPlan,
        listener: TaskListener,
        offsets: OffsetReader,
        store_offsets: StoreOffsets,
        *,
        is_paused: bool = False,
    ) -> RunningTask:
        """Start a task; returns at once; failures go to the listener."""

    def close(self) -> None:
        """Stop all and what serves them."""

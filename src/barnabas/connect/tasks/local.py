"""The engine without Spark: tasks are threads of this process, and so are their micro-batches.

For connectors that move little, for tests, and where no Java is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock
from typing import Any

from barnabas.connect.allowed_paths import allow_paths_of_worker, check_files
from barnabas.connect.allowed_plugins import allow_of_worker
from barnabas.connect.config.values import missing
from barnabas.connect.connectors.base import (
    Connector,
    Figure,
    OffsetReader,
    SinkConnector,
    SourceConnector,
)
from barnabas.connect.plugins import load
from barnabas.connect.tasks.base import (
    RunningTask,
    StoreOffsets,
    TaskListener,
    TaskPlan,
    Waits,
)
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.flow import FlowSpec
from barnabas.connect.tasks.kafka_transport import KafkaTransport
from barnabas.connect.tasks.runner import BatchRunner, LocalBatchRunner
from barnabas.connect.tasks.sink_task import SinkTask
from barnabas.connect.tasks.source_task import SourceTask
from barnabas.connect.tasks.source_transactions import Boundary, ConnectorsOwn, make_boundary
from barnabas.connect.tasks.task import BatchTask
from barnabas.connect.tasks.transport import Transport
from barnabas.schemas.data.errors import ConfigError


class NotRunning:
    """A task that did not start; a RunningTask."""

    def pause(self) -> None:
        """Do nothing."""

    def resume(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def join(self, timeout_s: float) -> bool:
        """It has ended."""
        return True

    def metrics(self) -> Mapping[str, float]:
        """Return nothing."""
        return {}

    def own_metrics(self) -> Sequence[Figure]:
        """Return nothing."""
        return ()


def connector_of(settings: Settings) -> Connector:
    """Return the connector that a configuration names. Raises ConfigError."""
    class_name = settings.get("connector.class")
    if not class_name:
        raise missing("connector.class")
    kind = load(class_name)
    if not issubclass(kind, SourceConnector | SinkConnector):
        raise ConfigError(f"{class_name} is not a connector")
    connector: Connector = kind()
    return connector


MakeTransport = Callable[[TaskPlan, Mapping[str, str], str], Transport]
"""Takes the plan, its settings and the name of this run."""


class LocalEngine:
    """Runs tasks in this process."""

    def __init__(self, transport: MakeTransport = KafkaTransport.of) -> None:
        self._transport = transport
        self._tasks: list[BatchTask] = []
        self._lock = Lock()
        """Workers start several tasks at once."""

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
        stopping = Event()
        try:
            task = self._made(plan, listener, offsets, store_offsets, stopping, is_paused)
        except Exception as error:  # noqa: BLE001  # all that connectors raise
            listener.failed(error)
            return NotRunning()
        with self._lock:
            self._tasks = [one for one in self._tasks if not one.join(0)]
            self._tasks.append(task)
            task.start()
        return task

    def _made(
        self,
        plan: TaskPlan,
        listener: TaskListener,
        offsets: OffsetReader,
        store_offsets: StoreOffsets,
        stopping: Event,
        is_paused: bool,
    ) -> BatchTask:
        allow_of_worker(plan.worker_settings)
        allow_paths_of_worker(plan.worker_settings)
        settings = {**plan.connector_settings, **plan.task_settings}
        spec = FlowSpec(
            plan.id.connector, plan.id.task, settings, plan.worker_settings, plan.secrets
        )
        connector = connector_of(settings)
        check_files(connector, settings)
        transport = self.transport(plan, settings)
        boundary = None
        if plan.is_exactly_once and isinstance(connector, SourceConnector):
            boundary = make_boundary(connector, settings, plan.worker_settings)
        runner = self.runner(connector, spec, transport, stopping, boundary, listener.waits)
        if isinstance(connector, SourceConnector):
            return SourceTask(
                plan,
                settings,
                connector,
                runner,
                listener,
                offsets,
                store_offsets,
                stopping,
                is_paused=is_paused,
                spark=self.spark,
                transactions=boundary if isinstance(boundary, ConnectorsOwn) else None,
            )
        assert isinstance(connector, SinkConnector)
        return SinkTask(
            plan,
            settings,
            connector,
            runner,
            transport,
            listener,
            stopping,
            is_paused=is_paused,
            spark=self.spark,
        )

    def runner(
        self,
        connector: Connector,
        spec: FlowSpec,
        transport: Transport,
        stopping: Event,
        boundary: Boundary | None,
        waits: Waits,
    ) -> BatchRunner:
        """Return the runner that executes the micro-batches of a task.

        `boundary` is where a source's transactions end; None is at least once. `waits` is called
        with what the task waits for.
        """
        return LocalBatchRunner(spec, transport, stopping, boundary)

    def transport(self, plan: TaskPlan, settings: Settings) -> Transport:
        """Return where the records of a task are."""
        return self._transport(plan, settings, uuid.uuid4().hex)

    @property
    def spark(self) -> Callable[[], Any] | None:
        """Return what gives readers and writers the Spark session, None without Spark."""
        return None

    def close(self) -> None:
        """Stop all and what serves them."""
        self.stop_tasks()

    def stop_tasks(self) -> None:
        """Stop all tasks and wait for their ends."""
        for task in self._tasks:
            task.stop()
        for task in self._tasks:
            task.join(30)
        self._tasks.clear()

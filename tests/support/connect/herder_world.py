"""A standalone worker without Kafka: connectors that say what they are told, tasks that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.connect.allowed_plugins import allow
from barnabas.connect.config import validators
from barnabas.connect.config.definition import ConfigType, Definition, Setting
from barnabas.connect.config.providers import ConfigProviders
from barnabas.connect.config.validation import WorkerRules
from barnabas.connect.connectors.base import (
    ConnectorContext,
    Figure,
    OffsetReader,
    Settings,
    SinkConnector,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.record import ConnectRecord, JsonMap
from barnabas.connect.tasks.base import StoreOffsets, TaskId, TaskListener, TaskPlan
from barnabas.connect.transforms.base import Predicate, Transform
from barnabas.connect.worker.memory_store import MemoryStore
from barnabas.connect.worker.offset_file import OffsetFile
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.secrets import Secrets
from barnabas.connect.worker.standalone import StandaloneHerder
from barnabas.schemas.data.errors import ConnectError

SOURCE = f"{__name__}.Source"
SINK = f"{__name__}.Sink"
RENAME = f"{__name__}.Rename"
NEVER = f"{__name__}.Never"
allow([__name__])
WORKER = "127.0.0.1:8083"


class Source(SourceConnector):
    """Has the tasks that its settings say; fails to start where they say so."""

    definition = Definition(
        (
            Setting("path", ConfigType.STRING, None, doc="Where to read."),
            Setting("topic", ConfigType.STRING, validator=validators.non_empty),
            Setting("wanted.tasks", ConfigType.INT, 1),
            Setting("secret", ConfigType.PASSWORD, None),
        )
    )
    contexts: dict[str, ConnectorContext] = {}  # noqa: RUF012  for tests to reach in

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        self._settings = settings
        if settings.get("path") == "broken":
            raise ConnectError("it is broken")
        self.contexts[context.name] = context

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        wanted = int(self._settings.get("wanted.tasks", "1"))
        return [{**self._settings, "part": str(number)} for number in range(wanted)]

    def reader(self, context: TaskContext) -> SourceReader:
        raise NotImplementedError

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        if any(offset == {"position": -1} for _, offset in offsets):
            raise ConnectError("no such position")
        return settings.get("path") != "elsewhere"


class Sink(SinkConnector):
    """Writes nothing."""

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return [{}] * tasks_max

    def writer(self, context: TaskContext) -> SinkWriter:
        raise NotImplementedError


class Rename(Transform):
    """Changes nothing."""

    definition = Definition(
        (Setting("field", ConfigType.STRING), Setting("size", ConfigType.INT, 3))
    )

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return record


class Never(Predicate):
    """Means no record."""

    def test(self, record: ConnectRecord) -> bool:
        return False


@dataclass
class FakeTask:
    """A task that waits."""

    plan: TaskPlan
    listener: TaskListener
    store: StoreOffsets
    calls: list[str] = field(default_factory=list)
    own: Sequence[Figure] = ()

    def pause(self) -> None:
        self.calls.append("pause")
        self.listener.paused()

    def resume(self) -> None:
        self.calls.append("resume")
        self.listener.resumed()

    def stop(self) -> None:
        self.calls.append("stop")
        self.listener.stopped()

    def join(self, timeout_s: float) -> bool:
        return True

    def metrics(self) -> Mapping[str, float]:
        return {}

    def own_metrics(self) -> Sequence[Figure]:
        return self.own


class FakeEngine:
    """An `Engine`; `tasks` has those that run, or ran last."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, FakeTask] = {}
        self.started: list[TaskId] = []

    def start_task(
        self,
        plan: TaskPlan,
        listener: TaskListener,
        offsets: OffsetReader,
        store_offsets: StoreOffsets,
        *,
        is_paused: bool = False,
    ) -> FakeTask:
        if plan.task_settings.get("path") == "untakable":
            raise ConnectError("no such task")
        task = self.tasks[plan.id] = FakeTask(plan, listener, store_offsets)
        self.started.append(plan.id)
        (listener.paused if is_paused else listener.started)()
        return task

    def close(self) -> None:
        pass


class HerderWorld:
    """A standalone herder with its engine and store."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        settings = settings or {}
        self.engine = FakeEngine()
        self.store = MemoryStore(OffsetFile(str(folder / "offsets")))
        resolve = Secrets(ConfigProviders.of_worker(settings))
        worker = Worker(WORKER, settings, self.engine, self.store, resolve=resolve)
        self.herder = StandaloneHerder(worker, WorkerRules(), "kafka-cluster")

    def create(
        self, name: str, target: str | None = None, class_name: str = SOURCE, **settings: str
    ) -> dict[str, Any]:
        """Make a connector; underscores of settings are dots."""
        given: dict[str, str | None] = {
            "name": name,
            "connector.class": class_name,
            "topic": "t",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        return self.herder.put(name, given, target, may_replace=False)[1]

    def states(self, name: str) -> tuple[str, list[str]]:
        """The connector's state and its tasks'."""
        status = self.herder.status(name)
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

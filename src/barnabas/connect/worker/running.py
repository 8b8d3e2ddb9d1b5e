"""The connectors and tasks of one worker, started and stopped as the herder says.

The herder decides, in either mode; this does it, and writes statuses as Kafka's worker does. A
connector of target state PAUSED or STOPPED is made but not started. Failed tasks stay known until
they are stopped.

Source: org.apache.kafka.connect.runtime.Worker and WorkerConnector (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Final

from barnabas import __version__
from barnabas.connect import plugins
from barnabas.connect.allowed_paths import check_files
from barnabas.connect.config import common
from barnabas.connect.config.validation import new_connector
from barnabas.connect.connectors.base import Connector, OffsetReader
from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.errors.reports import trace_of
from barnabas.connect.tasks.base import RunningTask, TaskEngine, TaskId, TaskPlan
from barnabas.connect.worker.reloads import Reloads
from barnabas.connect.worker.state import (
    DESTROYED,
    FAILED,
    PAUSED,
    RESTARTING,
    RUNNING,
    STARTED,
    STOPPED,
    UNASSIGNED,
    Properties,
    Status,
    TopicStatus,
)
from barnabas.connect.worker.store import Store
from barnabas.schemas.data.errors import ConfigError, ConnectError

_log = logging.getLogger(__name__)
Resolve = Callable[[Properties], dict[str, str]]
"""Replaces references to secrets (`${file:…}`) by what they stand for."""
GRACEFUL_MS = "task.shutdown.graceful.timeout.ms"
STOP_S: Final = 5.0
"""How long connectors may take to stop when the worker ends: as long as Kafka's."""
STOPS_MAX: Final = 8
_STATES = {STARTED: RUNNING, PAUSED: PAUSED, STOPPED: STOPPED}


@dataclass(slots=True)
class RunningConnector:
    """A connector of this worker; `is_started` tells whether its `start` was called last."""

    connector: Connector
    settings: dict[str, str] = field(repr=False)
    target: str
    is_started: bool = False
    is_failed: bool = False


class Context:
    """A `ConnectorContext`."""

    def __init__(
        self,
        name: str,
        offsets: OffsetReader,
        reconfigure: Callable[[str], None],
        fail: Callable[[str, BaseException], None],
    ) -> None:
        self.name, self.offsets = name, offsets
        self._reconfigure, self._fail = reconfigure, fail

    def request_task_reconfiguration(self) -> None:
        """See ConnectorContext."""
        self._reconfigure(self.name)

    def fail(self, error: BaseException) -> None:
        """See ConnectorContext."""
        self._fail(self.name, error)


class Worker:
    """Runs connectors and tasks. Calls for one connector must not overlap; the herder sees to it.

    `generation` is the group's, written with each status. `on_task_failed` hears of failures, from
    the engine's threads.
    """

    def __init__(
        self,
        worker_id: str,
        settings: Mapping[str, str],
        engine: TaskEngine,
        store: Store,
        *,
        resolve: Resolve = dict,
        generation: Callable[[], int] = lambda: 0,
        is_exactly_once: bool = False,
        offsets_topic: str | None = None,
    ) -> None:
        self.worker_id, self.settings = worker_id, settings
        self.engine, self.store, self.resolve = engine, store, resolve
        self.hide: Callable[[str], str] = getattr(resolve, "hidden", str)
        """Takes secrets out of a text."""
        self._secrets_in: Callable[[Properties], frozenset[str]] = getattr(
            resolve, "secrets_in", lambda _: frozenset()
        )
        self.reloads = Reloads(getattr(resolve, "lasting", lambda one: (resolve(one), None)))
        self._generation = generation
        self._is_exactly_once = is_exactly_once
        self._offsets_topic = offsets_topic
        self.graceful_s = int(settings.get(GRACEFUL_MS) or 5000) / 1000
        """Time for all tasks together to stop."""
        self.connectors: dict[str, RunningConnector] = {}
        self.tasks: dict[TaskId, tuple[RunningTask, StatusListener]] = {}
        self.starts: Counter[tuple[str, bool]] = Counter()
        """Numbers of starts of a `connector` or `task`, by success."""
        self._lock = threading.RLock()
        self.on_task_failed: Callable[[TaskId, BaseException], None] = lambda _task, _error: None
        self.on_connector_failed: Callable[[str, BaseException], None] = lambda _name, _error: None

    def put_status(
        self,
        name: str | TaskId,
        state: str,
        error: BaseException | None = None,
        *,
        safely: bool = False,
        note: str = "",
    ) -> None:
        """Write a status of this worker; a `note` stands below the error's trace, or for it."""
        parts = ("" if error is None else trace_of(error), note)
        trace = self.hide("\n".join(filter(None, parts))) or None
        status = Status(state, self.worker_id, self._generation(), trace, self._version_of(name))
        try:
            self.store.put_status(name, status, safely=safely)
        except ConnectError as problem:
            _log.error("the status %s of %s could not be written: %s", state, name, problem)

    def _version_of(self, name: str | TaskId) -> str:
        """The version of the plugin that runs."""
        connector = name if isinstance(name, str) else name.connector
        config = self.store.snapshot().connectors.get(connector, {})
        try:
            plugin = plugins.load(config.get(common.CONNECTOR_CLASS, ""))
        except ConfigError:
            return __version__
        return getattr(plugin, "version", "") or __version__

    def start_connector(
        self, name: str, config: Properties, target: str, reconfigure: Callable[[str], None]
    ) -> None:
        """Make a connector and bring it into its target state.

        Raises ConnectError, which its status FAILED tells too.
        """
        try:
            (settings,) = self.reloads.resolve(name, config)
            connector = new_connector(settings[common.CONNECTOR_CLASS])
            running = RunningConnector(connector, settings, target)
            with self._lock:
                if name in self.connectors:
                    raise ConnectError(f"Connector with name {name} already exists")
                self.connectors[name] = running
            if target == STARTED:
                self._begin(name, running, reconfigure)
            else:
                self.put_status(name, _STATES[target])
            self.starts["connector", True] += 1
        except Exception as error:
            self.starts["connector", False] += 1
            _log.exception("connector %s failed to start", name)
            self.put_status(name, FAILED, error, safely=True)
            if isinstance(error, ConnectError):
                raise
            raise ConnectError(f"Failed to start connector: {name}") from error

    def _begin(
        self, name: str, running: RunningConnector, reconfigure: Callable[[str], None]
    ) -> None:
        context = Context(
            name, self.store.offsets(name, running.settings), reconfigure, self._failed_itself
        )
        try:
            check_files(running.connector, running.settings)
            running.connector.start(context, running.settings)
        except Exception as error:
            running.is_failed = True
            raise ConnectError(
                f"Failed to transition connector {name} to state {STARTED}"
            ) from error
        running.is_started, running.is_failed = True, False
        self.put_status(name, RUNNING)

    def _failed_itself(self, name: str, error: BaseException) -> None:
        """A connector that runs says that it has failed."""
        self.fail_connector(name, error)
        self.on_connector_failed(name, error)

    def fail_connector(self, name: str, error: BaseException) -> None:
        """Let a connector be FAILED."""
        running = self.connectors.get(name)
        if running is not None:
            running.is_failed = True
            self.put_status(name, FAILED, error, safely=True)

    def stop_connector(self, name: str) -> None:
        """Stop a connector, not its tasks; nothing if it does not run here."""
        with self._lock:
            running = self.connectors.pop(name, None)
        self.reloads.forget(name)
        if running is not None:
            self._end(name, running)
            self.put_status(name, UNASSIGNED, safely=True)

    def _end(self, name: str, running: RunningConnector) -> None:
        if not running.is_started:
            return
        running.is_started = False
        try:
            running.connector.stop()
        except Exception:  # noqa: BLE001  it is over anyway
            _log.exception("connector %s could not be stopped", name)

    def is_running(self, name: str) -> bool:
        """Return whether a connector runs here and has not failed."""
        running = self.connectors.get(name)
        return running is not None and running.is_started and not running.is_failed

    def set_target_state(self, name: str, target: str, reconfigure: Callable[[str], None]) -> None:
        """Bring a connector and its tasks into a state. Raises ConnectError, told as FAILED."""
        running = self.connectors.get(name)
        for task, (running_task, _) in list(self.tasks.items()):
            if task.connector == name:
                (running_task.resume if target == STARTED else running_task.pause)()
        if running is None or (running.target == target and not running.is_failed):
            return
        running.target = target
        if target == STARTED:
            if not running.is_started or running.is_failed:
                self._end(name, running)
                try:
                    self._begin(name, running, reconfigure)
                except ConnectError as error:
                    self.put_status(name, FAILED, error, safely=True)
                    raise
        else:
            self._end(name, running)
            running.is_failed = False
            self.put_status(name, _STATES[target])

    def task_configs(self, name: str) -> list[dict[str, str]]:
        """Ask a connector for its tasks. Raises ConnectError."""
        running = self.connectors.get(name)
        if running is None:
            raise ConnectError(f"Connector {name} not found in this worker.")
        settings = running.settings
        parsed = {
            key: common.common_definition()
            .settings[key]
            .parse(settings.get(key), is_given=key in settings)
            for key in (common.TASKS_MAX, common.TASKS_MAX_ENFORCE)
        }
        limit = parsed[common.TASKS_MAX]
        configs = [dict(one) for one in running.connector.task_settings(limit)]
        if len(configs) > limit and parsed[common.TASKS_MAX_ENFORCE]:
            error = ConnectError(
                f"The connector {name} has generated {len(configs)} tasks, which is greater than "
                f"{limit}, the maximum number of tasks it is configured to create. This behaviour "
                "should be considered a bug and is disallowed. If necessary, it can be permitted "
                f"by reconfiguring the connector with '{common.TASKS_MAX_ENFORCE}' set to false; "
                "however, this option will be removed in a future release of Kafka Connect."
            )
            self.fail_connector(name, error)
            raise error
        class_name = plugins.full_name(settings[common.CONNECTOR_CLASS])
        shared = {"task.class": class_name.removesuffix("Connector") + "Task"}
        shared |= {
            key: settings[key] for key in (common.TOPICS, common.TOPICS_REGEX) if key in settings
        }
        return [one | shared for one in configs]

    def raw_task_configs(self, name: str, config: Properties) -> list[dict[str, str]]:
        """As `task_configs`, with the connector's references to secrets in place of the secrets."""
        references = {key: value for key, value in config.items() if "${" in value}
        return [
            {key: references.get(key, value) for key, value in one.items()}
            for one in self.task_configs(name)
        ]

    def start_task(
        self,
        task: TaskId,
        connector: Properties,
        config: Properties,
        target: str,
        confirm: Callable[[], None] = lambda: None,
    ) -> bool:
        """Start a task; the status shows whether that worked.

        `confirm` is TaskListener's.
        """
        listener = StatusListener(task, self, confirm)
        try:
            settings, own = self.reloads.resolve(task, connector, config)
            plan = TaskPlan(
                task,
                settings,
                own,
                self.settings,
                settings.get(common.OFFSETS_TOPIC) or self._offsets_topic,
                self._is_exactly_once,
                self._generation(),
                self._secrets_in({**self.settings, **settings, **own}),
            )
            running = self.engine.start_task(
                plan,
                listener,
                self.store.offsets(task.connector, settings),
                lambda name, offsets: self.store.put_offsets(name, settings, offsets),
                is_paused=target != STARTED,
            )
        except Exception as error:  # noqa: BLE001  told in its status
            self.starts["task", False] += 1
            _log.exception("task %s failed to start", task)
            self.put_status(task, FAILED, error, safely=True)
            self.on_task_failed(task, error)
            return False
        with self._lock:
            self.tasks[task] = (running, listener)
            self.starts["task", True] += 1
        return True

    def stop_tasks(self, tasks: Iterable[TaskId]) -> None:
        """Stop tasks together and wait for their end, as long as worker's settings say."""
        with self._lock:
            ending = [(task, *self.tasks.pop(task)) for task in tasks if task in self.tasks]
        for task, running, _ in ending:
            self.reloads.forget(task)
            running.stop()
        deadline = time.monotonic() + self.graceful_s
        for task, running, listener in ending:
            if not running.join(max(0.0, deadline - time.monotonic())):
                _log.warning("task %s did not stop in time and is abandoned", task)
            listener.leave()

    def restarting(self, name: str | TaskId) -> None:
        """A restart of it begins."""
        self.put_status(name, RESTARTING)

    def deleted(self, name: str | TaskId) -> None:
        """It is no more."""
        if isinstance(name, str):
            for number in self.store.task_statuses(name):
                self.put_status(TaskId(name, number), DESTROYED)
        self.put_status(name, DESTROYED)

    def close(self) -> None:
        """Stop all; a connector that hangs in its `stop` is left to itself after a while."""
        self.reloads.close()
        self.stop_tasks(list(self.tasks))
        threads = DaemonThreads(STOPS_MAX, "connect-stop")
        stops = {threads.submit(self.stop_connector, name): name for name in list(self.connectors)}
        for late in wait(stops, STOP_S).not_done:
            _log.warning("connector %s did not stop in time and is abandoned", stops[late])
        self.engine.close()


# Hears how a task fares, from the engine's threads, and writes its status.


class StatusListener:
    """A `TaskListener`. After `leave` nothing more is written: the task is somebody else's."""

    def __init__(self, task: TaskId, worker: Worker, confirm: Callable[[], None]) -> None:
        self._task, self._worker, self._confirm = task, worker, confirm
        self._topics: set[str] = set()
        self._lock = threading.Lock()
        self._is_left = False
        self._state = UNASSIGNED
        """The last one, apart from waiting."""
        self.is_failed = False

    def leave(self) -> None:
        """Hear no more."""
        with self._lock:
            self._is_left = True

    def _say(self, state: str, error: BaseException | None = None, *, safely: bool = False) -> None:
        with self._lock:
            self._state = state
            if not self._is_left:
                self._worker.put_status(self._task, state, error, safely=safely)

    def confirm(self) -> None:
        """See TaskListener."""
        self._confirm()

    def waits(self, what: str | None) -> None:
        """See TaskListener. What is waited for stands where a failure's trace would: Kafka's
        clients know no other place, and other workers and consoles show it."""
        with self._lock:
            state = self._state if what is None else UNASSIGNED
            if not self._is_left and self._state != FAILED:
                self._worker.put_status(self._task, state, note=what or "")

    def started(self) -> None:
        """See TaskListener."""
        self._say(RUNNING)

    def paused(self) -> None:
        """See TaskListener."""
        self._say(PAUSED)

    def resumed(self) -> None:
        """See TaskListener."""
        self._say(RUNNING)

    def failed(self, error: BaseException) -> None:
        """See TaskListener."""
        _log.error("task %s failed: %s", self._task, error, exc_info=error)
        self.is_failed = True
        self._say(FAILED, error, safely=True)
        if not self._is_left:
            self._worker.on_task_failed(self._task, error)

    def stopped(self) -> None:
        """See TaskListener."""
        self._say(UNASSIGNED, safely=True)

    def topics_used(self, topics: Sequence[str]) -> None:
        """See TaskListener."""
        if str(self._worker.settings.get("topic.tracking.enable", "true")).lower() != "true":
            return
        now_ms = time.time_ns() // 1_000_000
        for topic in topics:
            with self._lock:
                if topic in self._topics or self._is_left:
                    continue
                self._topics.add(topic)
            status = TopicStatus(topic, self._task.connector, self._task.task, now_ms)
            self._worker.store.put_topic(status)

    def forget_topics(self) -> None:
        """The connector's topics were reset: each is logged again when it is used."""
        with self._lock:
            self._topics.clear()

"""One worker alone: what is asked for is done at once, under one lock.

Source: org.apache.kafka.connect.runtime.standalone.StandaloneHerder (Kafka 4.3).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from barnabas.connect.config.validation import WorkerRules
from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.errors.requests import (
    AlreadyExistsError,
    NotFoundError,
    ShuttingDownError,
)
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker import offset_requests
from barnabas.connect.worker.herder import (
    CLOSE_MARGIN_S,
    Herder,
    Json,
    Offsets,
    StartingAgain,
    info_json,
    patched,
)
from barnabas.connect.worker.restarts import Name
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.state import (
    DESTROYED,
    STARTED,
    STOPPED,
    RestartRequest,
    tasks_changed,
)
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)
HEALTH_S = 10.0


class StandaloneHerder(Herder):
    """The herder of standalone mode."""

    def __init__(self, worker: Worker, rules: WorkerRules, cluster_id: str | None) -> None:
        super().__init__(worker, rules, cluster_id)
        self._lock = threading.RLock()
        self._later = DaemonThreads(1, "connect-herder")
        self._is_closed = False
        self._again = StartingAgain(worker, self.store.snapshot, self._start_due_in)
        self._timer: threading.Timer | None = None
        worker.reloads.wake = lambda: self._soon(worker.reloads.run_due)
        worker.reloads.restart = self._start_again_quietly
        worker.on_task_failed = lambda task, error: self._soon(self._failed, task, error)
        worker.on_connector_failed = lambda name, error: self._soon(self._failed, name, error)

    def put(
        self, name: str, config: Mapping[str, str | None], target: str | None, *, may_replace: bool
    ) -> tuple[bool, Json]:
        """See Herder."""
        checked = self._check(config)
        with self._turn():
            is_new = name not in self.store.snapshot().connectors
            if not is_new and not may_replace:
                raise AlreadyExistsError(f"Connector {name} already exists")
            if not is_new:
                self.worker.stop_connector(name)
            self._again.renew(name)
            self.store.put_connector(name, checked, target)
            self._start(name)
            self._update_tasks(name)
            return is_new, info_json(self.store.snapshot(), name)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> tuple[bool, Json]:
        """See Herder."""
        state = self._known(name, f"Connector {name} not found")
        return self.put(name, patched(state.connectors[name], changes), None, may_replace=True)

    def delete(self, name: str) -> None:
        """See Herder."""
        with self._turn():
            self._known(name, f"Connector {name} not found")
            self._again.forget(name)
            self._remove_tasks(name)
            self.worker.stop_connector(name)
            self.store.remove_connector(name)
            self.worker.deleted(name)

    def restart_connector(self, name: str) -> None:
        """See Herder."""
        with self._turn():
            self._known(name, f"Connector {name} not found")
            self.worker.stop_connector(name)
            self._start(name)
            self._update_tasks(name)

    def restart(self, request: RestartRequest) -> Json:
        """See Herder."""
        name = request.connector
        with self._turn():
            self._known(name, f"Unknown connector: {name}")
            is_meant, tasks, answer = self._plan(request)
            if is_meant:
                self.worker.stop_connector(name)
                self.worker.restarting(name)
            self.worker.stop_tasks(tasks)
            for task in tasks:
                self.worker.restarting(task)
            if is_meant:
                try:
                    self._start(name)
                except ConnectError as error:
                    _log.error("connector %s could not be restarted: %s", name, error)
            self._start_tasks(tasks)
            return answer

    def restart_task(self, task: TaskId) -> None:
        """See Herder."""
        with self._turn():
            state = self._known(task.connector, f"Connector {task.connector} not found")
            if task not in state.tasks(task.connector):
                raise NotFoundError(f"Task {task} not found")
            self.worker.stop_tasks([task])
            if not self._start_tasks([task]):
                raise ConnectError(f"Failed to start task: {task}")

    def pause(self, name: str) -> None:
        """See Herder."""
        with self._turn():
            super().pause(name)
            self._move(name)

    def resume(self, name: str) -> None:
        """See Herder."""
        with self._turn():
            super().resume(name)
            self._move(name)

    def stop(self, name: str) -> None:
        """See Herder."""
        with self._turn():
            self._known(name, f"Unknown connector {name}")
            self._again.forget(name)
            self._remove_tasks(name)
            self.store.put_target_state(name, STOPPED)
            self._move(name)

    def _move(self, name: str) -> None:
        """Bring a connector into the state that is wanted now; what fails is in its status."""
        target = self.store.snapshot().target_states[name]
        try:
            self.worker.set_target_state(name, target, self.reconfigure)
            if target == STARTED:
                self._update_tasks(name)
        except ConnectError as error:
            _log.error("connector %s could not become %s: %s", name, target, error)

    def modify_offsets(self, name: str, offsets: Offsets | None) -> str:
        """See Herder."""
        with self._turn():
            state = self._modifiable(name)
            config = self.worker.resolve(state.connectors[name])
            return offset_requests.modify(self.store, self.worker.settings, name, config, offsets)

    def reconfigure(self, name: str) -> None:
        """See Herder."""
        self._soon(self._reconfigure, name)

    def _reconfigure(self, name: str) -> None:
        try:
            self._update_tasks(name)
        except Exception as error:  # noqa: BLE001  told in its status
            _log.exception("connector %s could not list its tasks", name)
            self.worker.fail_connector(name, error)

    def health(self) -> None:
        """See Herder."""
        self._later.submit(self._lock_once).result(HEALTH_S)

    def _lock_once(self) -> None:
        with self._lock:
            pass

    def close(self) -> None:
        """See Herder; what hangs is left to itself after a while."""
        self._is_closed = True
        self._later.drop()
        is_ours = self._lock.acquire(timeout=self.worker.graceful_s + CLOSE_MARGIN_S)
        if not is_ours:
            _log.warning("the herder did not finish and is abandoned")
        try:
            self._forget_timer()
            self.worker.close()
            self.store.close()
        finally:
            if is_ours:
                self._lock.release()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock, to start or stop something. Raises ShuttingDownError once closed."""
        with self._lock:
            if self._is_closed:
                raise ShuttingDownError
            yield

    def _soon(self, do: Callable[..., None], *given: object) -> None:
        """Let the herder's own thread do it: who asks may be a task that the herder waits for."""
        if not self._is_closed:
            self._later.submit(self._do_open, do, *given)

    def _do_open(self, do: Callable[..., None], *given: object) -> None:
        with self._lock:
            if not self._is_closed:
                do(*given)

    def _start(self, name: str) -> None:
        state = self.store.snapshot()
        try:
            self.worker.start_connector(
                name, state.connectors[name], state.target_states[name], self.reconfigure
            )
        except ConnectError as error:
            self._again.has_failed(name, error)
            raise
        self._again.has_started(name)

    def _failed(self, name: Name, error: BaseException) -> None:
        if self._has_failed(name):
            self._again.has_failed(name, error)

    def _start_due_in(self, seconds: float) -> None:
        self._forget_timer()
        self._timer = threading.Timer(seconds, lambda: self._soon(self._start_due))
        self._timer.daemon = True
        self._timer.start()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _start_due(self) -> None:
        for name in self._again.now_due():
            if self._has_failed(name):
                self._start_again_quietly(name)

    def _start_again_quietly(self, name: Name) -> None:
        try:
            self._start_again(name)
        except ConnectError as error:
            _log.error("%s could not be restarted: %s", name, error)

    def _start_again(self, name: Name) -> None:
        if isinstance(name, TaskId):
            self.worker.stop_tasks([name])
            self.worker.restarting(name)
            self._start_tasks([name])
        else:
            self.worker.stop_connector(name)
            self.worker.restarting(name)
            self._start(name)
            self._update_tasks(name)

    def _has_failed(self, name: Name) -> bool:
        """Return whether it is still configured, and does not run: somebody may have seen to it."""
        state = self.store.snapshot()
        if isinstance(name, TaskId):
            task = self.worker.tasks.get(name)
            return name in state.tasks(name.connector) and (task is None or task[1].is_failed)
        running = self.worker.connectors.get(name)
        return name in state.connectors and (running is None or running.is_failed)

    def _update_tasks(self, name: str) -> None:
        """Ask a running connector for its tasks, and recreate them if they changed."""
        state = self.store.snapshot()
        if not self.worker.is_running(name) or state.target_states.get(name) != STARTED:
            return
        configs = self.worker.raw_task_configs(name, state.connectors[name])
        if tasks_changed(state, name, configs):
            self._remove_tasks(name)
            self.store.put_tasks(name, configs)
            self._start_tasks(self.store.snapshot().tasks(name))

    def _start_tasks(self, tasks: Iterable[TaskId]) -> bool:
        state, done = self.store.snapshot(), True
        for task in tasks:
            was_started = self.worker.start_task(
                task,
                state.connectors[task.connector],
                state.task_configs[task],
                state.target_states[task.connector],
            )
            if was_started:
                self._again.has_started(task)
            done &= was_started
        return done

    def _remove_tasks(self, name: str) -> None:
        tasks = self.store.snapshot().tasks(name)
        if tasks:
            self.worker.stop_tasks(tasks)
            self.store.put_tasks(name, ())
            for task in tasks:
                self.worker.put_status(task, DESTROYED)

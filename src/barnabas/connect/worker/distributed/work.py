"""This worker's part of the group's work: starts, stops, and restarts after failures.

All of it is called on the herder's thread; starts run side by side on a few others and are waited
for. Tasks of exactly-once sources begin once older ones are fenced, which nobody waits for.

Source: org.apache.kafka.connect.runtime.distributed.DistributedHerder (Kafka 4.3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.errors.requests import RequestError
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.connect.worker.distributed.share import NOTHING, Share
from barnabas.connect.worker.distributed.ticks import Ticks
from barnabas.connect.worker.distributed.zombies import Zombies
from barnabas.connect.worker.herder import StartingAgain, connector_type
from barnabas.connect.worker.running import Worker
from barnabas.connect.worker.state import FAILED, STARTED
from barnabas.schemas.data.errors import ConnectError

_log = logging.getLogger(__name__)
STARTERS_MAX: Final = 8


class LocalWork:
    """`zombies` sees to older tasks of exactly-once sources; `state` is what is configured."""

    def __init__(
        self,
        worker: Worker,
        ticks: Ticks,
        state: Callable[[], ConfigState],
        reconfigure: Callable[[str], None],
        zombies: Zombies | None,
    ) -> None:
        self.running = NOTHING
        """Connectors and tasks that were started here, including those that failed since."""
        self._worker = worker
        self._ticks = ticks
        self._state = state
        self._reconfigure = reconfigure
        self._zombies = zombies
        self._fencing: dict[TaskId, object] = {}
        self._restarts = StartingAgain(worker, state, self._start_due_in)
        self._waits = 0
        self._starters = DaemonThreads(STARTERS_MAX, "connect-start")
        worker.reloads.wake = lambda: ticks.post(worker.reloads.run_due)
        worker.reloads.restart = self._start_again
        worker.on_connector_failed = lambda name, error: ticks.post(
            lambda: self.failed(name, error)
        )
        worker.on_task_failed = lambda task, error: ticks.post(lambda: self.failed(task, error))

    # --- starting --------------------------------------------------------------------------------

    def run(self, wanted: Share, restarting: Iterable[TaskId]) -> None:
        """Start what of `wanted` does not run, and stop what else does."""
        self.stop(self.running.without(wanted))
        running = self.running.without(Share((), tuple(restarting)))
        self.start(wanted.without(running))
        self.running = wanted

    def start(self, work: Share) -> None:
        """Start connectors and tasks; failures to start appear in the status."""
        starts: list[Future[Any]] = [
            self._starters.submit(self._start_quietly, name) for name in work.connectors
        ]
        starts += [self._starters.submit(self.start_task, task) for task in work.tasks]
        for start in starts:
            start.result()

    def _start_quietly(self, name: str) -> None:
        try:
            self.start_connector(name)
        except ConnectError as error:
            _log.error("connector %s could not be started: %s", name, error)

    def start_connector(self, name: str) -> None:
        """Start a connector, which then says its tasks. Raises ConnectError, told in its status."""
        state = self._state()
        config = state.connectors.get(name)
        if config is None:
            return
        target = state.target_states.get(name, STARTED)
        try:
            self._worker.start_connector(name, config, target, self._reconfigure)
        except ConnectError as error:
            failure = error
            self._ticks.post(lambda: self.failed(name, failure))
            raise
        self._ticks.post(lambda: self._restarts.has_started(name))
        if target == STARTED:
            self._reconfigure(name)

    def start_task(self, task: TaskId) -> bool:
        """Start a task; whether that could be done, or begins once older ones are fenced."""
        state = self._state()
        config, connector = state.task_configs.get(task), state.connectors.get(task.connector)
        if config is None or connector is None:
            return False
        if self._zombies is not None and connector_type(connector) == "source":
            self._start_fenced(task, self._zombies)
            return True
        self._ticks.post(lambda: self._restarts.has_started(task))
        target = state.target_states.get(task.connector, STARTED)
        return self._worker.start_task(task, connector, config, target)

    def _start_fenced(self, task: TaskId, zombies: Zombies) -> None:
        mark = self._fencing[task] = object()
        generation = self._state().generations.get(task.connector)

        def confirm() -> None:
            zombies.after_task(task, generation, lambda: self._is_ours(task))

        def fenced(answer: Future[None]) -> None:
            error = answer.exception()
            self._ticks.post(lambda: self._go_on(task, mark, generation, error, confirm))

        zombies.before_task(task.connector).add_done_callback(fenced)

    def _go_on(
        self,
        task: TaskId,
        mark: object,
        generation: int | None,
        error: BaseException | None,
        confirm: Callable[[], None],
    ) -> None:
        if self._fencing.get(task) is not mark:
            return  # stopped or restarted in the meantime
        del self._fencing[task]
        state = self._state()
        if state.generations.get(task.connector) != generation:
            return  # it starts again with its new configuration
        if isinstance(error, RequestError) and error.status == 409:
            # The group, or the connector's tasks, change just now.
            self._ticks.post(lambda: self._again(task), 0.5)
            return
        if error is not None:
            self._worker.put_status(task, FAILED, error, safely=True)
            self.failed(task, error)
            return
        self._restarts.has_started(task)
        target = state.target_states.get(task.connector, STARTED)
        self._worker.start_task(
            task, state.connectors[task.connector], state.task_configs[task], target, confirm
        )

    def _again(self, task: TaskId) -> None:
        if task in self.running.tasks and task not in self._worker.tasks:
            self.start_task(task)

    # --- stopping --------------------------------------------------------------------------------

    def stop(self, work: Share) -> None:
        """Stop connectors and tasks, and wait for that as long as the worker's settings say."""
        if not work:
            return
        stops = [
            self._starters.submit(self._worker.stop_connector, name) for name in work.connectors
        ]
        for task in work.tasks:
            self._fencing.pop(task, None)
        self._worker.stop_tasks(work.tasks)
        for stop in stops:
            stop.result()
        for name in work.connectors:
            self._restarts.drop(name)
        for task in work.tasks:
            self._restarts.drop(task)
        self.running = self.running.without(work)

    def stop_tasks(self, tasks: Iterable[TaskId]) -> None:
        """Stop tasks that stay this worker's."""
        tasks = tuple(tasks)
        for task in tasks:
            self._fencing.pop(task, None)
        self._worker.stop_tasks(tasks)

    def close(self) -> None:
        """Stop everything."""
        self.stop(self.running)

    # --- starting again --------------------------------------------------------------------------

    def configured_anew(self, connector: str, *, with_tasks: bool) -> None:
        """Retry starts that kept failing, since they may work now; restart reconfigured tasks."""
        (self._restarts.forget if with_tasks else self._restarts.renew)(connector)

    def failed(self, name: str | TaskId, error: BaseException) -> None:
        """A connector or task failed: it starts again later, which its status tells."""
        if self._is_ours(name):
            self._restarts.has_failed(name, error)

    def _start_due_in(self, seconds: float) -> None:
        self._waits += 1
        self._ticks.post(partial(self._start_due, self._waits), seconds)

    def _start_due(self, wait: int) -> None:
        if wait != self._waits:  # another wait has replaced it
            return
        for name in self._restarts.now_due():
            self._start_again(name)

    def _start_again(self, name: str | TaskId) -> None:
        if not self._is_ours(name):
            return
        if isinstance(name, str):
            self._worker.stop_connector(name)
            self._worker.restarting(name)
            self._start_quietly(name)
        else:
            self.stop_tasks([name])
            self._worker.restarting(name)
            self.start_task(name)

    def _is_ours(self, name: str | TaskId) -> bool:
        return name in (self.running.connectors if isinstance(name, str) else self.running.tasks)

"""The connectors and tasks of a worker of several: what has failed starts again."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.config_log import ConfigState
from barnabas.connect.worker.distributed.share import Share
from barnabas.connect.worker.distributed.ticks import Ticks
from barnabas.connect.worker.distributed.work import LocalWork
from barnabas.connect.worker.running import Worker
from barnabas.schemas.data.errors import ConnectError
from support.node_process import wait_until

TASKS = (TaskId("a", 0), TaskId("b", 0))
BROKEN = ConnectError("it broke")


class Posted:
    """Ticks that keep what was posted until a test runs it."""

    def __init__(self) -> None:
        self.work: list[Callable[[], Any]] = []

    def post(self, work: Callable[[], Any], delay_s: float = 0.0) -> None:
        self.work.append(work)

    def run(self) -> None:
        """Run what is posted now, whenever it is due."""
        posted, self.work = self.work, []
        for work in posted:
            work()


def make_worker(pause_ms: int) -> MagicMock:
    settings = {"barnabas.connect.restart.backoff.ms": str(pause_ms)}
    return MagicMock(settings=settings, reloads=SimpleNamespace())


def local_work(ticks: Posted, worker: MagicMock) -> LocalWork:
    state = ConfigState(connectors={"a": {}, "b": {}}, task_configs={task: {} for task in TASKS})
    work = LocalWork(
        cast("Worker", worker), cast("Ticks", ticks), lambda: state, lambda _name: None, None
    )
    work.running = Share((), TASKS)
    return work


def test_one_wait_remains_however_often_tasks_failed() -> None:
    ticks = Posted()
    work = local_work(ticks, make_worker(pause_ms=3_600_000))
    for _ in range(5):
        for task in TASKS:
            work.failed(task, BROKEN)
    assert len(ticks.work) == 10
    ticks.run()
    assert len(ticks.work) == 1
    ticks.run()
    assert len(ticks.work) == 1


def test_all_that_is_due_starts_after_one_wait() -> None:
    ticks, worker = Posted(), make_worker(pause_ms=1)
    work = local_work(ticks, worker)
    for task in TASKS:
        work.failed(task, BROKEN)

    def are_started() -> bool:
        ticks.run()
        return worker.start_task.call_count == 2

    wait_until(are_started, "the restarts")
    assert [call.args[0] for call in worker.restarting.call_args_list] == list(TASKS)
    ticks.run()
    assert ticks.work == []

"""Tasks report progress while Spark starts or downloads packages for their connectors."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Event, Thread
from typing import Any, cast

import pytest

from barnabas.connect.tasks import spark
from barnabas.connect.tasks.base import TaskId, TaskPlan
from barnabas.connect.tasks.memory import MemoryOffsets, MemoryTopics
from barnabas.connect.tasks.spark import SparkEngine
from barnabas.connect.testing import TaskLog
from support.connect.tasks import STRING
from support.patience import PATIENCE_S

SINK = "support.connect.distributed_lines:DistributedLinesSink"
WORKER = {
    "bootstrap.servers": "127.0.0.1:1",
    "barnabas.connect.plugins": SINK,
    "barnabas.connect.paths": "/",
    "key.converter": STRING,
    "value.converter": STRING,
}


class Reports(TaskLog):
    """Of one task, in order: what it waits for, None once it has come, and its states."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Queue[str | None] = Queue()

    def waits(self, what: str | None) -> None:
        self.seen.put(what)

    def started(self) -> None:
        self.seen.put("RUNNING")

    def failed(self, error: BaseException) -> None:
        self.seen.put(f"FAILED {error}")

    def next(self) -> str | None:
        return self.seen.get(timeout=PATIENCE_S)


class SlowSpark:
    """Starts, with progress, when it is let."""

    def __init__(self) -> None:
        self.engine = SparkEngine(self._start)
        self.let = Event()

    def _start(self) -> Any:
        assert self.let.wait(PATIENCE_S)
        raise OSError("no Java")

    def task(self, number: int) -> Reports:
        topics, reports = MemoryTopics(), Reports()
        settings = {"connector.class": SINK, "topics": "t", "file": "/dev/null"}
        plan = TaskPlan(TaskId("s", number), settings, {}, WORKER, None)
        self.engine.start_task(plan, reports, MemoryOffsets(topics, "s"), topics.store)
        return reports


def test_all_tasks_that_wait_for_spark_report_its_progress() -> None:
    slow = SlowSpark()
    tasks = [slow.task(number) for number in range(2)]
    assert [task.next() for task in tasks] == ["Spark is starting"] * 2
    slow.engine.say("downloading jars: 1 MB so far")
    assert [task.next() for task in tasks] == ["downloading jars: 1 MB so far"] * 2
    slow.let.set()
    for task in tasks:
        assert task.next() is None
        assert str(task.next()).startswith("FAILED ")
    slow.engine.say("somebody else starts it")
    assert all(task.seen.empty() for task in tasks)
    slow.engine.close()


def test_a_session_that_runs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, session = SparkEngine(lambda: cast("Any", object())), Reports()
    engine.session()
    engine.session_for(session.waits)
    assert session.seen.empty()
    shown: list[str] = []

    def add(_: Any, packages: Any, waiting: Callable[[str], Any]) -> None:
        for coordinates in packages.values():
            with waiting(f"Spark downloads {coordinates}"):
                shown.append(str(session.next()))

    monkeypatch.setattr(spark, "add_packages", add)
    engine.add_packages({"a.B": "g:a:1"}, session.waits)
    assert shown == ["Spark downloads g:a:1"]
    assert session.next() is None


def test_packages_that_another_task_has_downloaded_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, second = SparkEngine(lambda: cast("Any", object())), Reports()
    engine.session()
    monkeypatch.setattr(spark, "add_packages", lambda *_: None)
    with engine._adding:
        late = Thread(target=engine.add_packages, args=({"a.B": "g:a:1"}, second.waits))
        late.start()
        assert second.next() == "Spark downloads packages for another task"
    late.join(PATIENCE_S)
    assert second.next() is None

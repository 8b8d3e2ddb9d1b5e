"""A standalone worker restarts failed connectors and tasks, unless that is switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.restarts import Name
from barnabas.schemas.data.errors import ConfigError, ConnectError
from support.connect.herder_world import HerderWorld, Source
from support.node_process import wait_until

TASK = TaskId("c", 0)
AT_ONCE = {"barnabas.connect.restart.backoff.ms": "1"}
NEVER = {"barnabas.connect.restart.enabled": "false"}
Make = Callable[..., HerderWorld]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[HerderWorld] = []

    def world(**settings: str) -> HerderWorld:
        made.append(HerderWorld(tmp_path, settings))
        return made[-1]

    yield world
    for one in made:
        one.herder.close()


def fail(world: HerderWorld, name: Name, error: Exception) -> None:
    """Let a task, or a connector, say that it failed; returns once the herder has heard it."""
    if isinstance(name, TaskId):
        world.engine.tasks[name].listener.failed(error)
    else:
        Source.contexts[name].fail(error)
    world.herder.health()


def trace(world: HerderWorld) -> str:
    return str(world.herder.task_status(TASK)["trace"])


@pytest.mark.parametrize("name", [TASK, "c"])
def test_what_failed_starts_again(make: Make, name: Name) -> None:
    world = make(**AT_ONCE)
    world.create("c")
    first = Source.contexts["c"], world.engine.tasks[TASK]
    fail(world, name, ConnectError("it broke"))
    wait_until(lambda: world.states("c") == ("RUNNING", ["RUNNING"]), "the restart")
    second = Source.contexts["c"], world.engine.tasks[TASK]
    assert [old is new for old, new in zip(first, second, strict=True)] == [
        name == TASK,
        name == "c",
    ]


def test_a_connector_configured_anew_does_not_keep_its_task_from_starting(make: Make) -> None:
    world = make(**{"barnabas.connect.restart.backoff.ms": "300"})
    world.create("c")
    fail(world, TASK, ConnectError("it broke"))
    world.herder.patch("c", {})
    wait_until(lambda: world.states("c") == ("RUNNING", ["RUNNING"]), "the restart")


def test_its_status_tells_when(make: Make) -> None:
    world = make()
    world.create("c")
    fail(world, TASK, ConnectError("it broke"))
    assert "it broke" in trace(world)
    assert "Task c-0 restarts at" in trace(world)
    assert world.states("c") == ("RUNNING", ["FAILED"])
    world.herder.restart_task(TASK)
    assert world.states("c") == ("RUNNING", ["RUNNING"])


@pytest.mark.parametrize(
    ("worker", "connector", "error"),
    [
        (NEVER, {}, ConnectError("it broke")),
        (AT_ONCE, {"barnabas.connect.restart.enabled": "false"}, ConnectError("it broke")),
        (AT_ONCE, {"barnabas.connect.restart.max.attempts": "0"}, ConnectError("it broke")),
        (AT_ONCE, {}, ConfigError("it is wrong")),
    ],
    ids=["worker says no", "connector says no", "no attempts", "a wrong configuration"],
)
def test_what_stays_failed(
    make: Make, worker: dict[str, str], connector: dict[str, str], error: Exception
) -> None:
    world = make(**worker)
    world.create("c", **connector)
    fail(world, TASK, error)
    world.herder.health()
    assert world.states("c") == ("RUNNING", ["FAILED"])
    assert "restarts" not in trace(world)


def test_a_connector_that_cannot_start_is_tried_again(make: Make) -> None:
    world = make(**AT_ONCE)
    with pytest.raises(ConnectError):
        world.create("c", path="broken")
    failures = world.herder.worker.starts["connector", False]
    wait_until(lambda: world.herder.worker.starts["connector", False] > failures + 1, "the restart")
    world.herder.patch("c", {"path": None})
    wait_until(lambda: world.states("c") == ("RUNNING", ["RUNNING"]), "the restart")


@pytest.mark.parametrize("end", ["stop", "delete"])
def test_what_is_ended_stays_so(make: Make, end: str) -> None:
    world = make(**{"barnabas.connect.restart.backoff.ms": "300"})
    world.create("c")
    world.create("other")
    fail(world, TASK, ConnectError("it broke"))
    fail(world, TaskId("other", 0), ConnectError("it broke"))
    getattr(world.herder, end)("c")
    started = world.engine.started.count(TASK)  # twice if the end came late
    wait_until(lambda: world.states("other") == ("RUNNING", ["RUNNING"]), "the restart")
    assert TASK not in world.herder.worker.tasks
    assert world.engine.started.count(TASK) == started


def test_nothing_starts_after_the_end(make: Make) -> None:
    world = make(**AT_ONCE)
    world.create("c")
    world.herder.close()
    world.engine.tasks[TASK].listener.failed(ConnectError("it broke"))
    assert world.engine.started.count(TASK) == 1

"""A standalone worker does with connectors what Kafka's does, in states and in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import __version__
from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.errors.requests import (
    AlreadyExistsError,
    BadRequestError,
    NotFoundError,
)
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker import running, standalone
from barnabas.connect.worker.state import PAUSED, STOPPED, RestartRequest
from barnabas.schemas.data.errors import ConnectError
from support.connect.hanging import HANGING, STOPPING, Hanging
from support.connect.herder_world import SINK, SOURCE, WORKER, HerderWorld, Source
from support.node_process import wait_until
from support.patience import PATIENCE_S


@pytest.fixture
def world(tmp_path: Path) -> Iterator[HerderWorld]:
    made = HerderWorld(tmp_path)
    yield made
    made.herder.close()


def test_a_connector_is_made_with_its_tasks(world: HerderWorld) -> None:
    info = world.create("c", tasks_max="2", wanted_tasks="2")
    assert info == {
        "name": "c",
        "config": {
            "name": "c",
            "connector.class": SOURCE,
            "topic": "t",
            "tasks.max": "2",
            "wanted.tasks": "2",
        },
        "tasks": [{"connector": "c", "task": 0}, {"connector": "c", "task": 1}],
        "type": "source",
    }
    assert world.herder.status("c") == {
        "name": "c",
        "connector": {"state": "RUNNING", "worker_id": WORKER, "version": __version__},
        "tasks": [
            {"id": 0, "state": "RUNNING", "worker_id": WORKER, "version": __version__},
            {"id": 1, "state": "RUNNING", "worker_id": WORKER, "version": __version__},
        ],
        "type": "source",
    }
    assert world.herder.task_infos("c")[1]["config"]["part"] == "1"
    assert world.herder.connectors() == ["c"]
    with pytest.raises(AlreadyExistsError, match="Connector c already exists"):
        world.create("c")


@pytest.mark.parametrize(
    ("target", "states"),
    [(None, ("RUNNING", ["RUNNING"])), (PAUSED, ("PAUSED", [])), (STOPPED, ("STOPPED", []))],
)
def test_initial_states(
    world: HerderWorld, target: str | None, states: tuple[str, list[str]]
) -> None:
    world.create("c", target)
    assert world.states("c") == states
    world.herder.resume("c")
    assert world.states("c") == ("RUNNING", ["RUNNING"])


def test_pause_resume_stop(world: HerderWorld) -> None:
    world.create("c")
    world.herder.pause("c")
    assert world.states("c") == ("PAUSED", ["PAUSED"])
    paused = world.herder.status("c")
    assert {one["version"] for one in (paused["connector"], *paused["tasks"])} == {__version__}
    world.herder.resume("c")
    assert world.states("c") == ("RUNNING", ["RUNNING"])
    world.herder.stop("c")
    assert world.states("c") == ("STOPPED", [])
    assert world.herder.info("c")["tasks"] == []
    for ask in (world.herder.pause, world.herder.resume, world.herder.stop):
        with pytest.raises(NotFoundError, match="Unknown connector x"):
            ask("x")


def test_wrong_configurations_are_refused_with_all_errors(world: HerderWorld) -> None:
    with pytest.raises(BadRequestError) as raised:
        world.create("c", topic="", tasks_max="x")
    assert str(raised.value) == (
        "Connector configuration is invalid and contains the following 3 error(s):\n"
        "Invalid value x for configuration tasks.max: Not a number of type INT\n"
        "Invalid value null for configuration tasks.max: Value must be non-null\n"
        "Invalid value  for configuration topic: String must be non-empty\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )
    assert world.herder.connectors() == []


def test_a_connector_that_does_not_start_is_failed_and_told(world: HerderWorld) -> None:
    with pytest.raises(ConnectError, match="Failed to transition connector c to state STARTED"):
        world.create("c", path="broken")
    status = world.herder.status("c")
    assert status["connector"]["state"] == "FAILED"
    assert "it is broken" in status["connector"]["trace"]
    assert status["tasks"] == []
    world.herder.put(
        "c", {**world.herder.info("c")["config"], "path": "ok"}, None, may_replace=True
    )
    assert world.states("c") == ("RUNNING", ["RUNNING"])


def test_a_failed_task_is_restarted_alone(world: HerderWorld) -> None:
    world.create("c", tasks_max="2", wanted_tasks="2")
    world.engine.tasks[TaskId("c", 1)].listener.failed(ConnectError("lost"))
    assert world.states("c") == ("RUNNING", ["RUNNING", "FAILED"])
    assert world.herder.task_status(TaskId("c", 1))["trace"].startswith(
        "org.apache.kafka.connect.errors.ConnectException: lost"
    )
    answer = world.herder.restart(RestartRequest("c", only_failed=True, include_tasks=True))
    assert answer["connector"]["state"] == "RUNNING"
    assert [task["state"] for task in answer["tasks"]] == ["RUNNING", "RESTARTING"]
    assert world.engine.started[2:] == [TaskId("c", 1)]
    assert world.states("c") == ("RUNNING", ["RUNNING", "RUNNING"])
    world.herder.restart_task(TaskId("c", 0))
    assert world.engine.started[3:] == [TaskId("c", 0)]
    for task in (TaskId("c", 2), TaskId("x", 0)):
        with pytest.raises(NotFoundError, match="not found"):
            world.herder.restart_task(task)


def test_a_task_that_cannot_start_is_failed(world: HerderWorld) -> None:
    world.create("c", path="untakable")
    assert world.states("c") == ("RUNNING", ["FAILED"])


def test_too_many_tasks_fail_the_connector(world: HerderWorld) -> None:
    with pytest.raises(ConnectError, match="has generated 2 tasks, which is greater than 1"):
        world.create("c", wanted_tasks="2")
    assert world.states("c") == ("FAILED", [])
    world.create("d", wanted_tasks="2", tasks_max_enforce="false")
    assert world.states("d") == ("RUNNING", ["RUNNING", "RUNNING"])


def test_patches_remove_and_change(world: HerderWorld) -> None:
    world.create("c", path="a")
    _, info = world.herder.patch("c", {"path": None, "topic": "u"})
    assert info["config"] == {"name": "c", "connector.class": SOURCE, "topic": "u"}
    with pytest.raises(NotFoundError, match="Connector x not found"):
        world.herder.patch("x", {})


def test_connectors_that_ask_are_configured_again(world: HerderWorld) -> None:
    world.create("c", wanted_tasks="1", tasks_max="3")
    running = world.herder.worker.connectors["c"]
    running.connector._settings = {**running.settings, "wanted.tasks": "3"}  # type: ignore[attr-defined]
    Source.contexts["c"].request_task_reconfiguration()
    world.herder.health()
    assert world.states("c") == ("RUNNING", ["RUNNING"] * 3)


def test_deleted_connectors_leave_nothing(world: HerderWorld) -> None:
    world.create("c")
    world.herder.delete("c")
    assert world.herder.connectors() == []
    for ask in (world.herder.status, world.herder.info, world.herder.delete):
        with pytest.raises(NotFoundError):
            ask("c")
    # Late reports of the task are ignored.
    world.engine.tasks[TaskId("c", 0)].listener.failed(ConnectError("late"))
    with pytest.raises(NotFoundError):
        world.herder.task_status(TaskId("c", 0))


def test_offsets_are_modified_when_stopped_only(world: HerderWorld) -> None:
    world.create("c", path="elsewhere")
    partition = {"file": "x"}
    world.engine.tasks[TaskId("c", 0)].store("c", [(partition, {"position": 5})])
    assert world.herder.offsets("c") == {
        "offsets": [{"partition": partition, "offset": {"position": 5}}]
    }
    with pytest.raises(BadRequestError, match="Connectors must be in the STOPPED state before"):
        world.herder.modify_offsets("c", None)
    world.herder.stop("c")
    text = world.herder.modify_offsets("c", [(partition, {"position": 1})])
    assert text.startswith(
        "The Connect framework-managed offsets for this connector have been altered successfully."
    )
    assert world.herder.offsets("c")["offsets"][0]["offset"] == {"position": 1}
    with pytest.raises(ConnectError, match="no such position"):
        world.herder.modify_offsets("c", [(partition, {"position": -1})])
    with pytest.raises(ConnectError, match="field a contains MAP"):
        world.herder.modify_offsets("c", [({"a": {}}, {"position": 1})])
    world.herder.patch("c", {"path": None})
    assert world.herder.modify_offsets("c", None) == (
        "The offsets for this connector have been reset successfully"
    )
    assert world.herder.offsets("c") == {"offsets": []}


def test_topics_are_told_until_they_are_reset(world: HerderWorld) -> None:
    world.create("c")
    listener = world.engine.tasks[TaskId("c", 0)].listener
    listener.topics_used(["a", "b", "a"])
    assert world.herder.topics("c") == {"c": {"topics": ["a", "b"]}}
    world.herder.reset_topics("c")
    assert world.herder.topics("c") == {"c": {"topics": []}}
    listener.topics_used(["b"])
    assert world.herder.topics("c") == {"c": {"topics": ["b"]}}


def test_sinks_give_their_tasks_the_topics(world: HerderWorld) -> None:
    world.create("s", class_name=SINK, topics="a,b", tasks_max="2")
    assert [info["config"]["topics"] for info in world.herder.task_infos("s")] == ["a,b", "a,b"]
    assert world.herder.info("s")["type"] == "sink"


@pytest.fixture
def hangs() -> Iterator[None]:
    Hanging.free.clear()
    yield
    Hanging.free.set()


@pytest.mark.usefixtures("hangs")
def test_a_start_that_hangs_is_left_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone, "CLOSE_MARGIN_S", 0.0)
    world = HerderWorld(tmp_path, {"task.shutdown.graceful.timeout.ms": "1"})
    world.create("c")
    begun = tmp_path / "begun"
    threads = DaemonThreads(2, "asks")
    hanging = threads.submit(world.create, "h", class_name=HANGING, begun=str(begun))
    wait_until(begun.exists, "the start")
    waiting = threads.submit(world.create, "w")
    world.herder.close()
    assert world.engine.tasks[TaskId("c", 0)].calls == ["stop"]
    assert not hanging.done()
    Hanging.free.set()
    hanging.result(PATIENCE_S)
    with pytest.raises(ConnectError, match="Worker is shutting down"):
        waiting.result(PATIENCE_S)


@pytest.mark.usefixtures("hangs")
def test_a_stop_that_hangs_is_left_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for stop_s in (0.1, 1.0, 10.0):  # time in which a slow machine may not stop the other either
        monkeypatch.setattr(running, "STOP_S", stop_s)
        world = HerderWorld(tmp_path / str(stop_s))
        world.create("c")
        world.create("h", class_name=STOPPING, begun=str(tmp_path / "begun"))
        caplog.clear()
        world.herder.close()
        assert "connector h did not stop in time and is abandoned" in caplog.text
        if "connector c" not in caplog.text:
            break
    assert "connector c" not in caplog.text

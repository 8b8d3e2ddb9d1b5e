"""Workers of one group share connectors and tasks, and take over from each other."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from barnabas.app.testing import Kafka
from barnabas.connect.config.providers import ConfigProvider, Provided
from barnabas.connect.errors.requests import (
    BadRequestError,
    ElsewhereError,
    NotFoundError,
    RequestError,
)
from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.herder import DistributedHerder
from barnabas.connect.worker.metrics import worker_metrics
from barnabas.connect.worker.state import RestartRequest
from barnabas.schemas.data.errors import ConfigError, ConnectError
from support.connect.herder_world import SINK, Source
from support.connect.workers import World
from support.node_process import wait_until


@pytest.fixture
def world(kafka: Kafka) -> Iterator[World]:
    before = client_threads()
    made = World(kafka)
    yield made
    made.close()
    wait_until(lambda: not client_threads() - before, "the end of all Kafka clients", shown=clients)


def clients() -> str:
    """List the librdkafka clients that are left, with their referrers."""
    kinds = (Producer, Consumer, AdminClient)
    left = [one for one in gc.get_objects() if isinstance(one, kinds)]
    return "\n".join(f"{one}: {gc.get_referrers(one)}"[:2_000] for one in left)


def client_threads() -> set[int]:
    """The threads of librdkafka's clients in this process; none where there is no /proc."""
    gc.collect()
    found = set()
    for thread in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError):  # it has ended
            if (thread / "comm").read_text().startswith("rdk:"):
                found.add(int(thread.name))
    return found


def follower(world: World) -> DistributedHerder:
    """A worker that does not lead."""
    return next(one for one in world.herders.values() if not one.position.is_leader)


def leader(world: World) -> DistributedHerder:
    return next(one for one in world.herders.values() if one.position.is_leader)


def test_workers_share_connectors_and_take_over(world: World) -> None:
    one = world.add()
    world.create(one, "a", wanted_tasks="3", tasks_max="3")
    world.wait(lambda: world.is_whole(a=3))
    world.wait(lambda: world.states(one, "a") == ["RUNNING"] * 4)
    two = world.add()
    world.wait(lambda: world.is_whole(a=3))
    world.create(two, "b", SINK, topics="t", tasks_max="2")
    world.wait(lambda: world.is_whole(a=3, b=2))
    with pytest.raises(ElsewhereError, match="Only the leader can set connector configs") as error:
        follower(world).patch("a", {})
    assert error.value.url == world.url_of(leader(world))
    text = worker_metrics(one).decode()
    assert (
        'kafka_connect_worker_rebalance_connect_protocol{connect_protocol="SESSIONED"} 1.0' in text
    )
    assert f"kafka_connect_coordinator_assigned_tasks {len(one.worker.tasks)}.0\n" in text
    world.wait(lambda: b"kafka_connect_worker_rebalance_rebalancing 0.0\n" in worker_metrics(one))
    gone = world.url_of(one)[7:-1]
    world.remove(one)
    world.wait(lambda: world.is_whole(a=3, b=2))
    world.wait(lambda: world.states(two, "a") == ["RUNNING"] * 4)
    assert gone not in str(two.status("a"))


@pytest.mark.slow
def test_configurations_reach_who_runs_it(world: World) -> None:
    one, two = world.add(), world.add()
    world.create(one, "a", wanted_tasks="2", tasks_max="2")
    world.wait(lambda: world.is_whole(a=2))
    world.create(two, "a", wanted_tasks="3", tasks_max="3", path="new")
    world.wait(lambda: world.is_whole(a=3))
    for herder, engine in zip(world.herders.values(), world.engines.values(), strict=True):
        for task in herder.worker.tasks:
            assert engine.tasks[task].plan.task_settings["path"] == "new"
    # A connector asks for other tasks by itself; its owner may not be the leader.
    owner = next(one for one in world.herders.values() if "a" in one.worker.connectors)
    owner.worker.connectors["a"].settings["wanted.tasks"] = "1"
    Source.contexts["a"].request_task_reconfiguration()
    world.wait(lambda: world.is_whole(a=1))
    world.ask(one, lambda herder: herder.delete("a"))
    world.wait(lambda: not world.runs() and not world.owners())
    world.wait(lambda: world.states(one, "a") == world.states(two, "a") == [])
    with pytest.raises(NotFoundError):
        world.ask(one, lambda herder: herder.delete("a"))


@pytest.mark.slow
def test_followers_send_tasks_to_the_leader_signed(world: World) -> None:
    world.add(), world.add()
    name = "ä/b"
    for number in range(3):  # one of them is run by a follower
        world.create(leader(world), f"{name}{number}")
    world.wait(lambda: world.is_whole(**{f"{name}{number}": 1 for number in range(3)}))
    url = world.url_of(leader(world))
    assert any("/tasks" in path for path in world.ways[url].seen)
    with pytest.raises(BadRequestError, match="missing required signature"):
        leader(world).put_tasks(f"{name}0", b"[]", {}, may_forward=False)
    headers = {"X-Connect-Authorization": "AA==", "X-Connect-Request-Signature-Algorithm": "x"}
    with pytest.raises(BadRequestError, match="Algorithm x not available"):
        leader(world).put_tasks(f"{name}0", b"[]", headers, may_forward=False)
    headers["X-Connect-Request-Signature-Algorithm"] = "HmacSHA256"
    with pytest.raises(RequestError, match="invalid signature") as error:
        leader(world).fence(f"{name}0", b"", headers)
    assert error.value.status == 403


@pytest.mark.slow
def test_a_closed_worker_leaves_no_client_behind(kafka: Kafka) -> None:
    before = client_threads()
    world = World(kafka, exactly_once_source_support="enabled")
    try:
        one = world.add()
        world.create(one, "a", offsets_storage_topic=kafka.name("own"))
        world.wait(lambda: world.is_whole(a=1))
        assert one.offsets("a") == {"offsets": []}
    finally:
        world.close()
    assert client_threads() <= before
    with pytest.raises(ConnectError, match="is closed"):
        one.offsets("a")


def test_states_that_users_want(world: World) -> None:
    one, two = world.add(), world.add()
    world.create(one, "a", wanted_tasks="2", tasks_max="2")
    world.wait(lambda: world.states(two, "a") == ["RUNNING"] * 3)
    two.pause("a")
    world.wait(lambda: world.states(one, "a") == ["PAUSED"] * 3)
    one.resume("a")
    world.wait(lambda: world.states(two, "a") == ["RUNNING"] * 3)
    world.ask(follower(world), lambda herder: herder.stop("a"))
    world.wait(lambda: world.states(one, "a") == ["STOPPED"])
    world.wait(lambda: not world.runs())
    offsets = [({"file": "x"}, {"position": 1})]
    assert "altered successfully" in world.ask(
        follower(world), lambda herder: herder.modify_offsets("a", offsets)
    )
    assert two.offsets("a") == {
        "offsets": [{"partition": {"file": "x"}, "offset": {"position": 1}}]
    }
    one.resume("a")
    world.wait(lambda: world.states(two, "a") == ["RUNNING"] * 3)
    with pytest.raises(BadRequestError, match="must be in the STOPPED state"):
        world.ask(two, lambda herder: herder.modify_offsets("a", None))


@pytest.mark.slow
def test_restarts_reach_who_runs_it(world: World) -> None:
    one, two = world.add(barnabas_connect_restart_enabled="false"), world.add()
    world.create(one, "a", wanted_tasks="2", tasks_max="2")
    world.wait(lambda: world.states(two, "a") == ["RUNNING"] * 3)
    world.wait(lambda: world.is_whole(a=2))
    task = next(iter(one.worker.tasks))
    engine = world.engines[world.url_of(one)]
    engine.tasks[task].listener.failed(ConnectError("it broke"))
    world.wait(lambda: "FAILED" in world.states(two, "a"))
    count = len(engine.started)
    request = RestartRequest("a", only_failed=True, include_tasks=True)
    answer = world.ask(follower(world), lambda herder: herder.restart(request))
    assert [one["state"] for one in answer["tasks"]].count("RESTARTING") == 1
    world.wait(lambda: world.states(two, "a") == ["RUNNING"] * 3)
    assert engine.started[count:] == [task]
    world.ask(two, lambda herder: herder.restart_task(task))
    assert engine.started[count:] == [task, task]
    world.ask(one, lambda herder: herder.restart_connector("a"))
    with pytest.raises(NotFoundError, match="Unknown task: a-7"):
        world.ask(one, lambda herder: herder.restart_task(TaskId("a", 7)))


@pytest.mark.slow
def test_what_failed_starts_again_by_itself(kafka: Kafka) -> None:
    world = World(kafka, barnabas_connect_restart_backoff_ms="300")
    try:
        one = world.add()
        world.create(one, "a")
        world.wait(lambda: world.states(one, "a") == ["RUNNING"] * 2)
        engine = world.engines[world.url_of(one)]
        seen = []
        for _ in range(2):
            engine.tasks[TaskId("a", 0)].listener.failed(ConnectError("it broke"))
            world.wait(lambda: "FAILED" in world.states(one, "a"))
            world.wait(lambda: "restarts at" in str(one.status("a")))
            seen.append(one.status("a")["tasks"][0]["trace"])
            world.wait(lambda: world.states(one, "a") == ["RUNNING"] * 2)
        assert "it broke" in seen[0]
        assert "(attempt 1)" in seen[0]
        assert "(attempt 2)" in seen[1]
        Source.contexts["a"].fail(ConnectError("it lost its database"))
        world.wait(lambda: "it lost its database" in str(one.status("a")["connector"]))
        world.wait(lambda: world.states(one, "a") == ["RUNNING"] * 2)
        broken = ConnectError("it cannot work")
        broken.__cause__ = ConfigError("Missing required configuration")
        count = len(engine.started)
        engine.tasks[TaskId("a", 0)].listener.failed(broken)
        world.wait(lambda: "cannot work" in str(one.status("a")))
        world.create(one, "b", path="broken")
        world.wait(lambda: "(attempt 2)" in str(world.states(one, "b") and one.status("b")))
        assert engine.started[count:] == []
        world.create(one, "b", path="ok")
        world.wait(lambda: world.states(one, "b") == ["RUNNING"] * 2)
    finally:
        world.close()


class Vault(ConfigProvider):
    """Gives a value for a second."""

    value = "old"

    def get(self, path: str, keys: Collection[str]) -> Provided:
        return Provided(dict.fromkeys(keys, self.value), 1_000)


@pytest.mark.slow
def test_values_that_expire_start_it_again(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Vault, "value", "old")
    world = World(kafka, config_providers="v", config_providers_v_class=f"{__name__}.Vault")
    try:
        one = world.add()
        world.create(one, "a", secret="${v:k}")
        world.wait(lambda: world.is_whole(a=1))
        first = Source.contexts["a"]
        world.wait(lambda: Source.contexts["a"] is not first)
        engine = world.engines[world.url_of(one)]
        assert engine.started == [TaskId("a", 0)]
        Vault.value = "new"
        world.wait(lambda: engine.tasks[TaskId("a", 0)].plan.task_settings["secret"] == "new")
        world.wait(lambda: world.states(one, "a") == ["RUNNING"] * 2)
    finally:
        world.close()


@pytest.mark.slow
def test_a_new_worker_finds_what_there_was(world: World) -> None:
    one = world.add()
    world.create(one, "a", wanted_tasks="2", tasks_max="2")
    world.wait(lambda: world.is_whole(a=2))
    world.remove(one)
    two = world.add()
    world.wait(lambda: world.is_whole(a=2))
    assert two.info("a")["tasks"] == [{"connector": "a", "task": n} for n in range(2)]
    world.wait(lambda: world.states(two, "a") == ["RUNNING"] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["eager", "compatible"])
def test_older_protocols(kafka: Kafka, protocol: str) -> None:
    world = World(kafka, connect_protocol=protocol)
    try:
        one = world.add()
        world.create(one, "a", wanted_tasks="2", tasks_max="2")
        world.wait(lambda: world.is_whole(a=2))
        world.add()
        world.wait(lambda: world.is_whole(a=2))
        world.create(one, "a", wanted_tasks="4", tasks_max="4")
        world.wait(lambda: world.is_whole(a=4))
        world.remove(one)
        world.wait(lambda: world.is_whole(a=4))
    finally:
        world.close()


@pytest.mark.slow
def test_older_tasks_of_exactly_once_sources_are_fenced(kafka: Kafka) -> None:
    world = World(kafka, exactly_once_source_support="enabled")
    try:
        one = world.add()
        world.add()
        world.create(one, "a", wanted_tasks="2", tasks_max="2")
        world.wait(lambda: world.is_whole(a=2))
        world.wait(lambda: one.topics_store.snapshot().fenced_task_counts == {"a": 2})
        old = kafka.producer(transactional_id=f"{world.settings['group.id']}-a-1")
        old.init_transactions(30)
        old.begin_transaction()
        old.produce(kafka.topic("lines"), b"of an older task")
        old.flush()
        of_two = [task for engine in world.engines.values() for task in engine.tasks.values()]
        for task in of_two:
            task.listener.confirm()
        # Its tasks are recreated: producers of the older tasks are fenced first.
        world.create(one, "a", wanted_tasks="3", tasks_max="3")
        world.wait(lambda: world.is_whole(a=3))
        with pytest.raises(KafkaException) as error:
            old.commit_transaction(30)
        assert error.value.args[0].code() in (
            KafkaError._FENCED,
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
        )
        # One that was slow to take its transactional id must not write beside the newer ones.
        for task in of_two:
            with pytest.raises(ConnectError, match="already generated a new set of task configs"):
                task.listener.confirm()
        snapshot = one.topics_store.snapshot()
        assert snapshot.fenced_task_counts == {"a": 3}
        assert not snapshot.pending_fencing
        # A sink has nothing to fence.
        world.create(one, "s", SINK, topics="t")
        world.wait(lambda: world.is_whole(a=3, s=1))
        with pytest.raises(BadRequestError, match="missing required signature"):
            leader(world).fence("a", b"", {})
        world.ask(one, lambda herder: herder.stop("a"))
        world.wait(lambda: world.is_whole(s=1) or len(world.runs()) == 1)
        answer = world.ask(one, lambda herder: herder.modify_offsets("a", None))
        assert "reset successfully" in answer
    finally:
        world.close()

"""Our workers and Apache Kafka's in one group, and each after the other on the same topics."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from barnabas.app.testing import Kafka
from barnabas.connect.allowed_plugins import allow
from barnabas.connect.worker.distributed.herder import DistributedHerder
from support.connect.kafka_connect import KafkaWorker, needs_kafka_connect
from support.connect.workers import World

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    needs_kafka_connect,
]
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture
def world(kafka: Kafka) -> Iterator[World]:
    allow([FILE_SOURCE])
    made = World(kafka, session_timeout_ms="6000")
    yield made
    made.close()


@pytest.fixture
def theirs(world: World, tmp_path: Path) -> Iterator[KafkaWorker]:
    worker = kafka_worker(world, tmp_path)
    yield worker
    worker.close()


def kafka_worker(world: World, tmp_path: Path) -> KafkaWorker:
    """One of Kafka's in the group, which is not waited for."""
    settings = {
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "plugin.discovery": "only_scan",
        **world.settings,
    }
    servers = world.settings["bootstrap.servers"]
    worker = KafkaWorker(tmp_path / "kafka", servers, "theirs", settings=settings)
    worker.launch()
    return worker


def config(tmp_path: Path, name: str) -> dict[str, str]:
    path = tmp_path / f"{name}.txt"
    path.write_text("one\n")
    return {"connector.class": FILE_SOURCE, "file": str(path), "topic": f"{name}-lines"}


def is_running(herder: DistributedHerder, name: str) -> bool:
    """Return whether a connector and its only task run, by the status topic."""
    status = herder.store.status(name)
    tasks = herder.store.task_statuses(name)
    states = [one.state for one in (status, *tasks.values()) if one is not None]
    return len(tasks) == 1 and states == ["RUNNING"] * 2


def where(herder: DistributedHerder, names: list[str]) -> set[str]:
    """The workers that run tasks."""
    return {one.worker_id for name in names for one in herder.store.task_statuses(name).values()}


def records(kafka: Kafka, topic: str) -> list[tuple[str, bytes | None]]:
    """Keys and values of a topic, as they are."""
    found: list[tuple[str, bytes | None]] = []
    with contextlib.closing(
        Consumer(
            {
                **kafka.client_config,
                "group.id": kafka.name("reader"),
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return found
            found.append((message.key().decode(), message.value()))


def assert_one_form(kafka: Kafka, world: World) -> None:
    """Check that statuses of both kinds of workers have the same form."""
    forms: dict[str, set[str]] = {}
    workers = set()
    for key, value in records(kafka, world.settings["status.storage.topic"]):
        fields = json.loads(value or b"null")
        assert json.dumps(fields, separators=(",", ":")).encode() == value
        prefix = re.match("status-(connector|task|topic)-", key)
        assert prefix is not None
        forms.setdefault(prefix[0], set()).add(",".join(fields))
        workers.add(fields.get("worker_id"))
    assert forms.keys() == {"status-connector-", "status-task-", "status-topic-"}
    assert {len(form) for form in forms.values()} == {1}
    assert len(workers - {None}) == 2


def test_one_group_of_both(world: World, theirs: KafkaWorker, tmp_path: Path, kafka: Kafka) -> None:
    ours = world.add()
    theirs.wait()
    names = [f"c{number}" for number in range(4)]
    # Connectors are created through either worker, not only the leader.
    for number, name in enumerate(names):
        given = config(tmp_path, name)
        if number % 2:
            world_config = {"name": name, **given}
            if ours.position.is_leader:
                ours.put(name, world_config, None, may_replace=True)
                continue
        theirs.wait_until(
            lambda name=name, given=given: (  # type: ignore[misc]  # mypy knows no defaults here
                theirs.ask("PUT", f"/connectors/{name}/config", given)[0] in (200, 201)
            )
        )
    theirs.wait_until(lambda: all(is_running(ours, name) for name in names))
    theirs.wait_until(lambda: len(where(ours, names)) == 2)
    assert len(ours.worker.tasks) == 2
    assert len(ours.worker.connectors) == 2
    assert sorted(theirs.ask("GET", "/connectors")[1]) == names
    for name in names:
        assert theirs.ask("GET", f"/connectors/{name}/status")[1] == ours.status(name)
        assert theirs.ask("GET", f"/connectors/{name}")[1]["tasks"] == ours.info(name)["tasks"]
    assert ours.member.protocol_version == 2

    assert_one_form(kafka, world)

    # Each worker carries out requests that the other received.
    assert theirs.ask("PUT", "/connectors/c0/pause")[0] == 202
    ours.pause("c1")
    for name in ("c0", "c1"):
        theirs.wait_until(lambda name=name: "RUNNING" not in str(ours.status(name)))  # type: ignore[misc]
    assert theirs.ask("PUT", "/connectors/c0/resume")[0] == 202
    ours.resume("c1")
    theirs.wait_until(lambda: all(is_running(ours, name) for name in names))
    theirs.wait_until(
        lambda: theirs.ask("POST", "/connectors/c2/restart?includeTasks=true")[0] == 202
    )
    theirs.wait_until(lambda: all(is_running(ours, name) for name in names))
    theirs.wait_until(lambda: theirs.ask("DELETE", "/connectors/c3")[0] == 204)
    theirs.wait_until(lambda: ours.store.status("c3") is None)
    names.remove("c3")

    # The remaining worker takes over.
    theirs.kill(signal.SIGKILL)
    world.wait(lambda: world.is_whole(**dict.fromkeys(names, 1)))
    world.wait(lambda: all(is_running(ours, name) for name in names))


def test_they_go_on_where_we_were_and_back(world: World, tmp_path: Path, kafka: Kafka) -> None:
    first = world.add()
    first.put("c", {"name": "c", **config(tmp_path, "c")}, None, may_replace=True)
    world.wait(lambda: is_running(first, "c"))
    url = str(tmp_path / "c.txt")
    first.stop("c")
    world.wait(lambda: not world.runs())
    first.modify_offsets("c", [({"filename": url}, {"position": 4})])
    world.remove(first)

    theirs = kafka_worker(world, tmp_path)
    try:
        theirs.wait()
        assert theirs.ask("GET", "/connectors/c/status")[1]["connector"]["state"] == "STOPPED"
        offsets = theirs.ask("GET", "/connectors/c/offsets")[1]
        assert offsets == {"offsets": [{"partition": {"filename": url}, "offset": {"position": 4}}]}
        assert theirs.ask("PUT", "/connectors/c/resume")[0] == 202
        theirs.wait_until(
            lambda: "RUNNING" in str(theirs.ask("GET", "/connectors/c/tasks/0/status")[1])
        )
        with open(url, "a") as lines:
            lines.write("two\n")
        given = {"offset": {"position": 8}, "partition": {"filename": url}}
        theirs.wait_until(
            lambda: theirs.ask("GET", "/connectors/c/offsets")[1]["offsets"] == [given]
        )
        assert theirs.ask("PUT", "/connectors/c/config", config(tmp_path, "d"))[0] == 200
        assert theirs.ask("PUT", "/admin/loggers/root?scope=cluster", {"level": "INFO"})[0] == 204
    finally:
        theirs.close()

    last = world.add()
    world.wait(lambda: is_running(last, "c"))
    assert last.info("c")["config"]["topic"] == "d-lines"
    assert last.offsets("c")["offsets"] == [given]
    assert last.position.session_key is not None

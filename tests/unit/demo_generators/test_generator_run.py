"""Runs of the generator against a node: killed, stopped and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

from barnabas.app.cluster import Cluster
from barnabas.demo.contract import (
    CHECKPOINT_FILE,
    START_TIME_MS,
    TOPIC_PARTITIONS,
    TRUTH_FILE,
    GeneratorProgress,
    Plan,
    Truth,
)
from barnabas.demo.generators.charging import station_table
from barnabas.demo.generators.run import GeneratorRun, StateMismatchError, load_or_create, store
from barnabas.demo.generators.simulation import World
from barnabas.demo.schemas import (
    AVRO_TOPICS,
    EVOLVED_FIELD,
    EVOLVED_FROM,
    EVOLVING_TOPIC,
    subject_of,
)
from barnabas.demo.topics import INPUT_TOPICS, MINUTE_MS, STATIONS
from support.registry_thread import registry_of

PLAN: Plan = {"seed": 3, "rate": 150, "acceleration": 240, "seconds": 6}


@pytest.fixture
def bootstrap_servers() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def registry_url(bootstrap_servers: str) -> Iterator[str]:
    with registry_of(bootstrap_servers) as url:
        yield url


def truth_without_interruption(plan: Plan = PLAN) -> Truth:
    world = World(plan)
    while not world.at_end:
        world.step()
    return world.truth()


def read_all(bootstrap_servers: str, registry_url: str, topic: str) -> list[dict[str, Any]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "check",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    registry = SchemaRegistryClient({"url": registry_url})
    deserialize = AvroDeserializer(registry)
    partitions = range(TOPIC_PARTITIONS[topic])
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    values = []
    ended: set[int | None] = set()
    while len(ended) < len(partitions):
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            ended.add(message.partition())
        else:
            value = deserialize(message.value() or b"")
            assert isinstance(value, dict)
            values.append(value)
    consumer.close()
    registry.close()
    return values


def run_of(
    bootstrap_servers: str, registry_url: str, directory: Path, *, paced: bool = False
) -> GeneratorRun:
    return GeneratorRun(bootstrap_servers, registry_url, str(directory), PLAN, paced=paced)


def read_truth(directory: Path) -> Truth:
    truth: Truth = json.loads((directory / TRUTH_FILE).read_text())
    return truth


def assert_topics_hold(bootstrap_servers: str, registry_url: str, truth: Truth) -> int:
    """Every event is there; returns how many records are copies."""
    copies = 0
    for topic in INPUT_TOPICS:
        ids = Counter(
            value["event_id"] for value in read_all(bootstrap_servers, registry_url, topic)
        )
        assert len(ids) == truth["events"][topic]
        copies += ids.total() - len(ids)
    return copies


def test_a_run_publishes_everything_and_says_so(
    bootstrap_servers: str, registry_url: str, tmp_path: Path
) -> None:
    reports: list[GeneratorProgress] = []
    truth = run_of(bootstrap_servers, registry_url, tmp_path).run(reports.append)
    assert truth == read_truth(tmp_path) == truth_without_interruption()
    assert assert_topics_hold(bootstrap_servers, registry_url, truth) == truth["duplicates"]
    stations = read_all(bootstrap_servers, registry_url, STATIONS)
    latest = {row["station_id"]: row for row in stations}
    assert [latest[key] for key in sorted(latest)] == station_table(len(latest), 24)
    assert len(stations) == len(World(PLAN).stations) + 2  # which got a new firmware
    assert reports[-1]["done"]
    assert reports[-1]["fraction"] == 1.0
    assert reports[-1]["published"] == reports[-1]["planned"] == sum(truth["events"].values())


def test_one_schema_evolves_in_the_middle(
    bootstrap_servers: str, registry_url: str, tmp_path: Path
) -> None:
    """And a change that breaks readers is refused. A run that goes on finds all of it there."""
    reports: list[GeneratorProgress] = []
    for seconds in (6, 8):
        plan: Plan = {**PLAN, "seconds": seconds}
        GeneratorRun(bootstrap_servers, registry_url, str(tmp_path), plan, paced=False).run(
            reports.append
        )
    assert reports[-1]["refused"] == "READER_FIELD_MISSING_DEFAULT_VALUE"
    evolved_ms = reports[-1]["evolved_ms"]
    assert evolved_ms == START_TIME_MS + 12 * MINUTE_MS
    with SchemaRegistryClient({"url": registry_url}) as client:
        versions = {topic: client.get_versions(subject_of(topic)) for topic in AVRO_TOPICS}
        metadata = client.get_latest_version(subject_of(EVOLVING_TOPIC)).schema.metadata
    assert versions == {topic: [1, 2] if topic == EVOLVING_TOPIC else [1] for topic in AVRO_TOPICS}
    assert metadata is not None
    assert metadata.properties is not None
    assert metadata.properties.properties == {EVOLVED_FROM: "2025-03-03T06:12:00+00:00"}
    reported = read_all(bootstrap_servers, registry_url, EVOLVING_TOPIC)
    assert {value["event_time_ms"] >= evolved_ms for value in reported} == {False, True}
    for value in reported:
        has_temperature = value.get(EVOLVED_FIELD) is not None
        assert has_temperature == (value["event_time_ms"] >= evolved_ms)


def test_a_finished_run_publishes_nothing_more(
    bootstrap_servers: str, registry_url: str, tmp_path: Path
) -> None:
    truth = run_of(bootstrap_servers, registry_url, tmp_path).run()
    assert run_of(bootstrap_servers, registry_url, tmp_path).run() == truth
    assert assert_topics_hold(bootstrap_servers, registry_url, truth) == truth["duplicates"]


@pytest.mark.slow
def test_a_stopped_run_has_delivered_what_happened_and_goes_on(
    bootstrap_servers: str, registry_url: str, tmp_path: Path
) -> None:
    first = run_of(bootstrap_servers, registry_url, tmp_path, paced=True)
    first.stop()
    stopped = first.run()
    assert stopped["pending"] == 0
    assert not stopped["done"]
    second = run_of(bootstrap_servers, registry_url, tmp_path, paced=True)
    truth = second.run(lambda progress: second.stop())
    assert truth["pending"] == 0
    assert not truth["done"]
    assert_topics_hold(bootstrap_servers, registry_url, truth)
    done = run_of(bootstrap_servers, registry_url, tmp_path).run()
    assert done == truth_without_interruption()
    assert_topics_hold(bootstrap_servers, registry_url, done)


def test_a_killed_run_goes_on_to_the_same_totals(
    bootstrap_servers: str, registry_url: str, tmp_path: Path
) -> None:
    longer: Plan = {**PLAN, "seconds": 20}  # a kill must not come after its end
    command = [
        *(sys.executable, "-m", "barnabas.demo.generators"),
        *(
            "--bootstrap",
            bootstrap_servers,
            "--registry",
            registry_url,
            "--state-dir",
            str(tmp_path),
        ),
        *("--seed", "3", "--rate", "150", "--seconds", str(longer["seconds"])),
    ]
    kills = 0
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            before = json.loads(process.stdout.readline())
            assert not before["done"]
            process.kill()
            kills += process.wait() == -signal.SIGKILL
    assert kills == 2
    subprocess.run([*command, "--unpaced"], check=True, stdout=subprocess.DEVNULL)
    truth = read_truth(tmp_path)
    assert truth == truth_without_interruption(longer)
    assert assert_topics_hold(bootstrap_servers, registry_url, truth) >= truth["duplicates"]


def test_the_command_ends_cleanly_on_sigterm(
    bootstrap_servers: str, registry_url: str, tmp_path: Path
) -> None:
    command = [
        *(sys.executable, "-m", "barnabas.demo.generators"),
        *(
            "--bootstrap",
            bootstrap_servers,
            "--registry",
            registry_url,
            "--state-dir",
            str(tmp_path),
            "--rate",
            "100",
        ),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        last = json.loads(process.stdout.read().splitlines()[-1])
        assert process.wait() == 0
    truth = read_truth(tmp_path)
    assert truth["pending"] == 0
    assert last["published"] == sum(truth["events"].values())
    assert last["planned"] is None
    assert_topics_hold(bootstrap_servers, registry_url, truth)


@pytest.mark.parametrize("name", ["seed", "rate", "acceleration"])
def test_a_directory_of_another_plan_is_refused(tmp_path: Path, name: str) -> None:
    world = World(PLAN)
    store(str(tmp_path), world.snapshot(), world.truth())
    other: Any = {**PLAN, name: 999}
    with pytest.raises(StateMismatchError, match=name):
        load_or_create(str(tmp_path), other)
    arguments = ["--bootstrap", "127.0.0.1:1", "--registry", "http://127.0.0.1:1"]
    arguments += ["--state-dir", str(tmp_path)]
    for option in ("seed", "rate", "acceleration"):
        arguments += [f"--{option}", str(other[option])]
    refused = subprocess.run(
        [sys.executable, "-m", "barnabas.demo.generators", *arguments],
        check=False,
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 2
    assert str(tmp_path) in refused.stderr


def test_a_plan_may_be_made_longer(tmp_path: Path) -> None:
    world = World(PLAN)
    while not world.at_end:
        world.step()
    store(str(tmp_path), world.snapshot(), world.truth())
    longer: Plan = {**PLAN, "seconds": 12}
    went_on = load_or_create(str(tmp_path), longer)
    while not went_on.at_end:
        went_on.step()
    assert went_on.truth() == truth_without_interruption(longer)


def test_a_half_written_file_is_never_found(tmp_path: Path) -> None:
    world = World(PLAN)
    store(str(tmp_path), world.snapshot(), world.truth())
    kept = (tmp_path / CHECKPOINT_FILE).read_bytes()
    (tmp_path / f"{CHECKPOINT_FILE}.partial").write_text('{"version": 1, "wor')
    assert load_or_create(str(tmp_path), PLAN).snapshot() == World(PLAN).snapshot()
    assert (tmp_path / CHECKPOINT_FILE).read_bytes() == kept

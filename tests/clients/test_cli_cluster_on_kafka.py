"""The commands for clusters against Apache Kafka: they are clients of any Kafka cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.app.testing import Kafka
from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cli import ClusterCli
from support.cluster_processes import ClusterProcesses
from support.effort import others_slow

pytestmark = needs_apache_kafka


@pytest.fixture(scope="module", params=others_slow([1, 3]))
def nodes(request: pytest.FixtureRequest) -> list[int]:
    return list(range(1, request.param + 1))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, nodes: list[int]) -> Iterator[Kafka]:
    directory = tmp_path_factory.mktemp("apache-kafka")
    with (
        ClusterProcesses(directory, len(nodes), program=ApacheKafka()) as cluster,
        Kafka(cluster.bootstrap_servers) as handle,
    ):
        yield handle


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


def test_status_and_quorum(cli: ClusterCli, nodes: list[int]) -> None:
    status = cli.json("cluster", "status")
    assert [node["node"] for node in status["nodes"]] == nodes
    assert {node["state"] for node in status["nodes"]} <= {"up", "empty"}
    assert status["metadata_version"] == "4.3-IV0"
    quorum = cli.json("quorum", "status")
    assert [voter["node"] for voter in quorum["voters"]] == nodes
    assert quorum["voters_alive"] == len(nodes)
    assert len(cli.json("quorum", "describe")) == len(nodes)
    assert cli.run("doctor", "--json").code == 0


@pytest.mark.parametrize("nodes", [pytest.param(3, marks=pytest.mark.slow)], indirect=True)
def test_replicas_move_and_leaders_follow(cli: ClusterCli, kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=3)
    kafka.produce(topic, [b"%d" % number for number in range(100)])
    partitions = [{"topic": topic, "partition": index, "replicas": [1]} for index in range(3)]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    arguments = ("topic", "reassign", "--plan", str(plan))
    assert cli.run(*arguments, "--verify").code == 5
    assert cli.json(*arguments, "--yes", "--throttle", "50MB")["moved"] == 3
    assert cli.run(*arguments, "--verify").code == 0
    moved = cli.json("rebalance", "--yes", "--throttle", "50MB")
    assert moved["done"]
    (described,) = cli.json("topic", "describe", topic)
    assert sorted(row["leader"] for row in described["partitions"]) == [1, 2, 3]
    assert cli.json("rebalance", "--dry-run")["moves"] == []
    assert cli.json("topic", "elect-leaders") == []
    rows = cli.json("config", "describe", "topic", topic)
    assert [row["key"] for row in rows if "throttled" in row["key"]] == []
    assert len(kafka.consume(topic, 100)) == 100


def test_what_kafka_refuses_is_one_line(cli: ClusterCli, nodes: list[int]) -> None:
    fixed = cli.run("quorum", "remove-voter", str(nodes[-1]), "--yes")
    assert fixed.code == 1
    assert "kraft.version" in fixed.err
    assert cli.run("cluster", "drain", "9").code == 4
    assert cli.run("topic", "elect-leaders", "no-such-topic").code == 4

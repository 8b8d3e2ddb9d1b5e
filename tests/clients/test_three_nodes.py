"""Every client against three nodes: a selection that belongs to every test run.

`make test-cluster` runs the whole modules against three nodes.
"""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from client_cluster import NODES, SettledKafka
from client_matrix import KEPT, CoreMatrix, numbered
from test_aiokafka import AiokafkaClient
from test_confluent_kafka import ConfluentClient
from test_franz_go import BUILD_TIMEOUT_S, copy_in_transactions
from test_kafka_python import KafkaPythonClient
from test_kcat import KcatClient
from test_spark_matrix import SparkClient

from barnabas.app.testing import Kafka
from support.cluster_processes import ClusterProcesses
from support.foreign_programs import go_program
from support.java_host import JavaHost
from support.spark import shared_session

pytestmark = [
    pytest.mark.skipif(NODES > 1, reason="the modules themselves run on three nodes"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's
]


@pytest.fixture
def settle(three_nodes: ClusterProcesses) -> Callable[[], None]:
    return three_nodes.wait_until_healthy


@pytest.fixture
def kafka(
    three_nodes: ClusterProcesses, settle: Callable[[], None], request: pytest.FixtureRequest
) -> Iterator[Kafka]:
    with SettledKafka(three_nodes.bootstrap_servers, request.node.name, settle) as handle:
        yield handle


class TestConfluentKafka(CoreMatrix):
    client_class = ConfluentClient


class TestKafkaPython(CoreMatrix):
    client_class = KafkaPythonClient


class TestAiokafka(CoreMatrix):
    client_class = AiokafkaClient


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
class TestKcat(CoreMatrix):
    client_class = KcatClient


@pytest.mark.parametrize(
    ("step", "partitions", "expected"),
    [
        ("produce", 3, {"partitions": 3, "ordered": True, "zstd": "1500-1999"}),
        ("offsets", 2, {"latest": [[5, -1], [0, -1]], "deleted": [3, 0], "read from": 3}),
        ("groups", 2, {"alter": "done", "instances": ["one"]}),
    ],
)
def test_java_client(
    java: JavaHost, kafka: Kafka, step: str, partitions: int, expected: dict[str, Any]
) -> None:
    names = [kafka.topic(partitions=partitions, config=KEPT), kafka.name("group")]
    result = java.run("client-steps", kafka.bootstrap_servers, step, *names)
    seen = json.loads(result.lines[-1])
    assert {key: seen[key] for key in expected} == expected


@pytest.mark.timeout(BUILD_TIMEOUT_S)
@pytest.mark.parametrize("is_consumer", [False, True], ids=["classic", "consumer"])
def test_franz_go_copies_in_transactions(kafka: Kafka, is_consumer: bool) -> None:
    copy_in_transactions(go_program("franz_chain"), kafka, is_consumer=is_consumer)


def test_spark(kafka: Kafka) -> None:
    """Spark writes, and reads back in one batch, from leaders on all nodes."""
    shared_session()
    topic = kafka.topic(partitions=6, config=KEPT)
    client = SparkClient(kafka.bootstrap_servers)
    client.produce(topic, numbered(100))
    assert client.read(topic, 0, 0, 100) == numbered(100)
    gc.collect()  # PySpark leaves the sockets of collect() to the garbage collector


def test_the_nodes_share_leaders_coordinators_and_controllers(
    kafka: Kafka, three_nodes: ClusterProcesses
) -> None:
    topic = kafka.topic(partitions=6)
    leaders = {three_nodes.leader_of(topic, partition) for partition in range(6)}
    assert leaders == set(three_nodes.nodes)
    assert three_nodes.in_sync(topic) == set(three_nodes.nodes)
    assert three_nodes.controller() in three_nodes.nodes

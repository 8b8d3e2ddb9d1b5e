"""The `kafka` fixture, as a project that installs us would use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import barnabas
from barnabas.app.testing import Kafka

CONFIGURATION = """
[pytest]
filterwarnings = error
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
barnabas_config =
    num.partitions=3
"""
TESTS = """
import pytest

addresses = set()

@pytest.mark.parametrize("attempt", [1, 2])
def test_topics_are_its_own(kafka, attempt):
    topic = kafka.topic("orders", partitions=2)
    assert "orders" in topic
    kafka.produce(topic, [b"a", b"b"])
    assert sorted(kafka.consume(topic, 2)) == [b"a", b"b"]
    addresses.add(kafka.bootstrap_servers)

def test_one_cluster_serves_them_all(kafka, kafka_bootstrap_servers):
    assert addresses | {kafka_bootstrap_servers} == {kafka.bootstrap_servers}
    assert [t for t in kafka.admin.list_topics(timeout=10).topics if "orders" in t] == []

def test_configuration(kafka):
    kafka.produce("automatic", [b"a"])
    assert len(kafka.admin.list_topics(timeout=10).topics["automatic"].partitions) == 3
"""
UNUSED = """
import sys

def test_nothing_was_loaded():
    loaded = {name for name in sys.modules if name.startswith("barnabas")}
    assert loaded <= {"barnabas", "barnabas.app", "barnabas.app.pytest_plugin"}
    assert "confluent_kafka" not in sys.modules
"""


def run_pytest(directory: Path, *arguments: str) -> str:
    """Run pytest in a process of its own; fails where it does."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_it.py").write_text(TESTS)
    assert "4 passed" in run_pytest(tmp_path)


def test_a_cluster_that_runs_already_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    (tmp_path / "test_it.py").write_text(TESTS)
    with barnabas.Cluster(config={"num.partitions": "3"}) as cluster:
        run_pytest(tmp_path, "--barnabas-bootstrap", cluster.bootstrap_servers)
        with Kafka(cluster.bootstrap_servers) as kafka:
            assert "automatic" in kafka.admin.list_topics(timeout=10).topics


SEVERAL = """
def test_nodes_can_be_stopped(kafka, barnabas_cluster):
    topic = kafka.topic("orders", partitions=3)
    kafka.produce(topic, [b"a"])
    assert len(kafka.admin.list_topics(timeout=10).brokers) == 3
    assert kafka.consume(topic, 1) == [b"a"]
    barnabas_cluster.stop_node(2)
    try:
        kafka.produce(topic, [b"b"])
        assert sorted(kafka.consume(topic, 2)) == [b"a", b"b"]
    finally:
        barnabas_cluster.start_node(2)
    assert sorted(kafka.consume(topic, 2)) == [b"a", b"b"]
"""


def test_several_nodes(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SEVERAL)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run_pytest(tmp_path, "--barnabas-nodes", "3")
    (tmp_path / "pytest.ini").write_text("[pytest]\nbarnabas_nodes = 3\n")
    run_pytest(tmp_path)


@pytest.mark.parametrize("count", ["0", "-1"])
def test_a_cluster_of_no_nodes_is_an_error(tmp_path: Path, count: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(kafka):\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    with pytest.raises(AssertionError, match="a cluster has at least one node"):
        run_pytest(tmp_path, "--barnabas-nodes", count)


def test_it_costs_nothing_where_it_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(UNUSED)
    run_pytest(tmp_path)


def test_conveniences(kafka: Kafka) -> None:
    assert kafka.name("x") != kafka.name("x")
    topic = kafka.topic()
    kafka.produce(topic, [("k", None), "text"])
    assert kafka.consume(topic, 2) == [None, b"text"]
    with pytest.raises(AssertionError, match="2 of 3"):
        kafka.consume(topic, 3, timeout_s=1)

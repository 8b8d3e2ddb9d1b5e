"""`barnabas doctor` against clusters that are well and clusters that are not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.app.testing import Kafka
from support.cli import ClusterCli, run_cli
from support.cluster_processes import ClusterProcesses
from support.node_process import wait_until
from support.ports import free_port


def levels(findings: list[dict[str, str]], check: str) -> list[str]:
    return [finding["level"] for finding in findings if finding["check"] == check]


def test_a_cluster_that_is_well(kafka: Kafka) -> None:
    result = ClusterCli(kafka.bootstrap_servers).run("doctor", "--round-trip", "--json")
    assert result.code == 0, result.text
    nodes = len(kafka.bootstrap_servers.split(","))
    assert levels(result.json, "bootstrap") == ["ok"] * nodes
    assert levels(result.json, "partitions") == ["ok"]
    assert levels(result.json, "round trip") == ["ok"]
    notes = levels(result.json, "advertised")
    assert notes == ["note"] * nodes, "loopback serves this machine alone"


def test_internal_topics_that_a_cluster_is_too_small_for() -> None:
    wanted = {"offsets.topic.replication.factor": "3"}
    with barnabas.Cluster(config=wanted) as cluster:
        result = run_cli("doctor", "-b", cluster.bootstrap_servers, "--json")
    assert result.code == 5
    (finding,) = [item for item in result.json if item["check"] == "internal topics"]
    assert finding["level"] == "fault"
    assert finding["detail"] == (
        "offsets.topic.replication.factor is 3, but the cluster has 1 broker: "
        "consumer groups do not work"
    )


def test_text_for_people(kafka: Kafka) -> None:
    text = ClusterCli(kafka.bootstrap_servers).ok("doctor").text
    assert "ok     bootstrap: " in text
    assert text.endswith("No fault found.\n")


def test_nobody_there() -> None:
    result = run_cli("doctor", "-b", f"127.0.0.1:{free_port()}", "--json")
    assert result.code == 5
    assert levels(result.json, "bootstrap") == ["fault"]
    assert levels(result.json, "cluster") == []


@pytest.fixture
def mute_server() -> Iterator[str]:
    """Accepts, reads, and answers with what no broker says."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            stream, _ = server.accept()
            with stream:
                stream.recv(100)
                stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_something_that_is_no_broker(mute_server: str) -> None:
    result = run_cli("doctor", "-b", mute_server, "--json")
    assert result.code == 5
    (finding,) = [item for item in result.json if item["check"] == "bootstrap"]
    assert "does not speak Kafka's protocol" in finding["detail"]


def test_an_advertised_address_that_leads_nowhere() -> None:
    port = free_port()  # which nobody listens on
    config = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with barnabas.Cluster(config=config) as cluster:
        result = run_cli("doctor", "-b", cluster.bootstrap_servers, "--json")
    assert result.code == 5
    (finding,) = [item for item in result.json if item["check"] == "advertised"]
    assert finding["level"] == "fault"
    assert f"127.0.0.1:{port}, which cannot be reached" in finding["detail"]
    assert "advertised.listeners" in finding["advice"]


def test_a_node_that_was_killed_is_missing_from_the_quorum_too(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path, 3) as cluster:
        killed = next(number for number in cluster.nodes if number != cluster.controller())
        survivors = [node for node in cluster.nodes.values() if node.node_id != killed]
        cli = ClusterCli(",".join(node.bootstrap_servers for node in survivors))
        cluster.kill(killed)

        said: dict[str, list[str]] = {}

        def is_down() -> bool:
            said.clear()
            for finding in cli.run("doctor", "--json").json:
                said.setdefault(finding["check"], []).append(finding["detail"])
            return "is down" in str(said.get("nodes"))

        wait_until(is_down, "the node being fenced")
        assert any(text.startswith(f"node {killed} at ") for text in said["nodes"])
        assert len(said["advertised"]) == 2, "the address of a node that is down is not at fault"
        assert said["quorum"] == [f"voters that do not follow: {killed}; no other may be lost"]
        cluster.start(killed)
        wait_until(lambda: "3 voters, all follow" in cli.run("doctor").text, "a quorum of three")

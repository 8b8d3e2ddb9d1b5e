"""Three nodes with static voters become a dynamic quorum as they run, by Kafka's own tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from client_cluster import PROGRAM

from barnabas.app.testing import Kafka
from support.apache_kafka import ApacheKafka, needs_apache_kafka
from support.cluster_processes import EAGER, Barnabas, ClusterNode, ClusterProcesses, Program
from support.java_host import JavaHost, ToolResult
from support.node_process import wait_until

LEVEL = re.compile(r"Feature: kraft\.version\s.*FinalizedVersionLevel: (\d)")
RECORDS = [b"%d" % number for number in range(30)]


class Tools:
    """Kafka's tools against one cluster."""

    def __init__(self, java: JavaHost, cluster: ClusterProcesses) -> None:
        self._java = java
        self._server = ("--bootstrap-server", cluster.bootstrap_servers)

    def features(self, *arguments: str, exit_code: int | None = 0) -> ToolResult:
        return self._java.run("kafka-features", *self._server, *arguments, exit_code=exit_code)

    def quorum(self, *arguments: str, exit_code: int | None = 0) -> ToolResult:
        tool = "kafka-metadata-quorum"
        return self._java.run(tool, *self._server, *arguments, exit_code=exit_code)

    def level(self) -> int:
        """The finalized kraft.version."""
        found = LEVEL.search(self.features("describe").out)
        assert found is not None
        return int(found[1])

    def status(self, name: str) -> list[dict[str, Any]]:
        """CurrentVoters or CurrentObservers."""
        for line in self.quorum("describe", "--status").lines:
            if line.startswith(f"{name}:"):
                replicas: list[dict[str, Any]] = json.loads(line.partition(":")[2])
                return replicas
        raise AssertionError(f"no {name}")

    def voters(self) -> dict[int, str]:
        """Node id → directory id."""
        return {voter["id"]: voter.get("directoryId", "") for voter in self.status("CurrentVoters")}


def directory_id(node: ClusterNode) -> str:
    text = (node.data / "meta.properties").read_text()
    found = re.search(r"^directory\.id=(.+)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


def name_bootstrap_servers(node: ClusterNode) -> None:
    """Change a node's configuration as the upgrade requires: from voters to bootstrap servers."""
    settings = node.properties.read_text()
    voters = re.search(r"^controller\.quorum\.voters=(.+)$", settings, re.MULTILINE)
    assert voters is not None
    servers = ",".join(voter.partition("@")[2] for voter in voters[1].split(","))
    node.properties.write_text(
        settings.replace(voters[0], f"controller.quorum.bootstrap.servers={servers}")
    )


class OneOfKafka:
    """Node 1 is Apache Kafka's, the others are ours."""

    def format(self, properties: Path, cluster_id: str) -> list[str]:
        return self._of(properties).format(properties, cluster_id)

    def start(self, properties: Path) -> list[str]:
        return self._of(properties).start(properties)

    def _of(self, properties: Path) -> Program:
        return ApacheKafka() if properties.parent.name == "node-1" else Barnabas()


def raise_kraft_version(tools: Tools) -> None:
    assert tools.level() == 0
    upgrade = ("upgrade", "--feature", "kraft.version=1")
    wait_until(
        lambda: tools.features(*upgrade, "--dry-run", exit_code=None).exit_code == 0,
        "every voter to tell the leader who it is",
        timeout_s=120,
    )
    assert tools.level() == 0, "it was only asked whether it could be"
    tools.features(*upgrade)
    wait_until(lambda: tools.level() == 1, "the level at whichever node is asked")
    tools.features(*upgrade)


@pytest.fixture
def cluster(tmp_path: Path) -> ClusterProcesses:
    program = ApacheKafka() if PROGRAM == "kafka" else Barnabas()
    return ClusterProcesses(tmp_path, 3, EAGER, program=program)


@pytest.mark.timeout(300)
def test_static_voters_become_voters_that_come_and_go(
    java: JavaHost, cluster: ClusterProcesses
) -> None:
    with cluster, Kafka(cluster.bootstrap_servers) as kafka:
        tools = Tools(java, cluster)
        topic = kafka.topic(partitions=3)
        kafka.produce(topic, RECORDS)
        raise_kraft_version(tools)
        refused = tools.features("downgrade", "--feature", "kraft.version=0", exit_code=1)
        assert "Can't downgrade the version of this feature." in refused.out
        directories = {node_id: directory_id(node) for node_id, node in cluster.nodes.items()}
        assert tools.voters() == directories

        gone = next(node_id for node_id in cluster.nodes if node_id != cluster.controller())
        tools.quorum(
            *("remove-controller", "--controller-id", str(gone)),
            *("--controller-directory-id", directories[gone]),
        )
        assert tools.voters().keys() == cluster.nodes.keys() - {gone}
        cluster.restart(gone)  # its configuration still names it among the voters
        wait_until(
            lambda: gone in [replica["id"] for replica in tools.status("CurrentObservers")],
            "the node that was voted out to observe",
        )
        properties = str(cluster.nodes[gone].properties)
        added = tools.quorum("--command-config", properties, "add-controller")
        assert f"Added controller {gone}" in added.out
        assert tools.voters() == directories

        cluster.kill(*cluster.nodes)
        for node in cluster.nodes.values():
            name_bootstrap_servers(node)
        cluster.start()
        assert (tools.level(), tools.voters()) == (1, directories)
        for node in cluster.nodes.values():
            state = json.loads((node.data / "__cluster_metadata-0" / "quorum-state").read_text())
            assert state["data_version"] == 1
        leader = cluster.controller()
        cluster.kill(leader)
        assert cluster.wait_for_controller(other_than=leader) != leader
        cluster.start(leader)
        assert sorted(value or b"" for value in kafka.consume(topic, 30)) == sorted(RECORDS)
        kafka.produce(topic, RECORDS)


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_apache_kafka
@pytest.mark.parametrize("leader", ["Kafka's", "ours"])
def test_voters_of_kafka_and_ours_tell_each_other(
    java: JavaHost, tmp_path: Path, leader: str
) -> None:
    with ClusterProcesses(tmp_path, 3, EAGER, program=OneOfKafka()) as cluster:
        tools = Tools(java, cluster)

        def leads() -> bool:
            return (cluster.controller() == 1) is (leader == "Kafka's")

        for _ in range(5):
            if not leads():
                cluster.restart(cluster.controller())
        if not leads():
            pytest.skip("the others were elected again and again")
        raise_kraft_version(tools)
        assert leads()
        directories = {node_id: directory_id(node) for node_id, node in cluster.nodes.items()}
        assert tools.voters() == directories
        cluster.restart(cluster.controller())
        assert (tools.level(), tools.voters()) == (1, directories)

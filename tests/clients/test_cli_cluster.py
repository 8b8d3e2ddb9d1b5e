"""`barnabas cluster`, `rebalance`, `quorum` and moves by hand, on clusters that serve on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import barnabas
from barnabas.app.testing import Kafka
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.child_signals import usual_signals
from support.cli import ClusterCli, following, run_cli
from support.node_process import wait_until
from support.raw_client import RawClient

BARNABAS = [sys.executable, "-m", "barnabas"]
EXIT_TIMEOUT_S = 60


@pytest.fixture(scope="module")
def three() -> Iterator[barnabas.Cluster]:
    """Three nodes that every test leaves running."""
    with barnabas.Cluster(nodes=3, racks=("a", "b", "c")) as cluster:
        yield cluster


@pytest.fixture
def cli(three: barnabas.Cluster) -> ClusterCli:
    return ClusterCli(three.bootstrap_servers)


class KnownTopics(Kafka):
    """Creates topics that every node knows when a command asks any of them."""

    def topic(
        self, hint: str = "", partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        name = super().topic(hint, partitions, config)
        wait_for_topic(self.bootstrap_servers, name, ErrorCode.NONE)
        return name


def wait_for_topic(bootstrap_servers: str, topic: str, code: ErrorCode) -> None:
    """Wait until every node answers `code` for a topic."""
    for server in bootstrap_servers.split(","):
        with RawClient(server) as node:
            node.wait_for_topic(topic, code)


def wait_until_placed(
    bootstrap_servers: str, topic: str, wanted: dict[int, tuple[list[int], int]]
) -> None:
    """Wait until every node knows the replicas and the leader of each partition."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])

    def placed(node: RawClient) -> dict[int, tuple[list[int], int]]:
        (found,) = node.call(asked, MetadataResponse).topics
        return {row.partition_index: (row.replica_nodes, row.leader_id) for row in found.partitions}

    for server in bootstrap_servers.split(","):
        with RawClient(server) as node:
            wait_until(lambda node=node: placed(node) == wanted, f"{wanted} on {server}")


@pytest.fixture
def topics(three: barnabas.Cluster, request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with KnownTopics(three.bootstrap_servers, request.node.name) as handle:
        yield handle


def described(cli: ClusterCli, topic: str) -> dict[int, dict[str, Any]]:
    """Partitions by number."""
    (found,) = cli.json("topic", "describe", topic)
    return {row["partition"]: row for row in found["partitions"]}


def node_of(cli: ClusterCli, node_id: int) -> dict[str, Any]:
    """What `cluster status` says of a node; nothing while the node that answers lacks it."""
    status = json.loads(cli.run("cluster", "status", "--json").out)
    return next((dict(node) for node in status["nodes"] if node["node"] == node_id), {})


def wait_until_node(cli: ClusterCli, node_id: int, sees: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until this holds for what every node says of one."""
    cli.wait_until_each(lambda each: sees(node_of(each, node_id)), f"news of node {node_id}")


def wait_until_down(cluster: barnabas.Cluster, node_id: int) -> None:
    """Wait until every node that runs knows that one is down: a command may ask any of them."""
    running = [node.bootstrap_servers for node in cluster.nodes.values() if node.is_running]
    rest = ClusterCli(",".join(running))
    wait_until_node(rest, node_id, lambda node: node.get("state") == "down")


def wait_until_nodes(cli: ClusterCli, ids: list[int]) -> None:
    def known(each: ClusterCli) -> bool:
        status = json.loads(each.run("cluster", "status", "--json").out)
        return [node["node"] for node in status["nodes"]] == ids

    cli.wait_until_each(known, f"only {ids} being known")


def wait_until_in_sync(cli: ClusterCli) -> None:
    wait_until(lambda: cli.run("cluster", "status").code == 0, "the cluster's being well")


# -- looking


def test_status(cli: ClusterCli, topics: Kafka) -> None:
    topic = topics.topic(partitions=6)
    topics.produce(topic, [b"x" * 1000] * 10)
    status = cli.json("cluster", "status")
    assert [node["node"] for node in status["nodes"]] == [1, 2, 3]
    assert [node["rack"] for node in status["nodes"]] == ["a", "b", "c"]
    assert {node["state"] for node in status["nodes"]} == {"up"}
    assert sum(node["leads"] for node in status["nodes"]) == status["partitions"]
    assert all(node["size_bytes"] > 10_000 for node in status["nodes"])
    assert status["controller"] in (1, 2, 3)
    assert status["metadata_version"] == "4.3-IV0"
    text = cli.ok("cluster", "status").lines
    assert text[1].split() == [
        "NODE",
        "ADDRESS",
        "RACK",
        "ROLES",
        "STATE",
        "LEADS",
        "HOLDS",
        "SIZE",
        "FREE",
    ]


def test_quorum(cli: ClusterCli, three: barnabas.Cluster) -> None:
    status = cli.json("quorum", "status")
    assert [voter["node"] for voter in status["voters"]] == [1, 2, 3]
    assert (status["voters_alive"], status["majority"], status["problem"]) == (3, 2, None)
    assert [row["role"] for row in status["voters"]].count("leader") == 1
    rows = cli.json("quorum", "describe")
    assert all(len(row["directory"]) == 22 for row in rows)
    wait_until(
        lambda: all(row["lag"] <= 10 for row in cli.json("quorum", "describe")),
        "voters that follow",
    )
    assert "high watermark" in cli.ok("quorum", "status").text
    (listener,) = rows[0]["addresses"]
    address = listener.removeprefix("CONTROLLER://")
    direct = cli.json("quorum", "status", "--bootstrap-controller", address)
    assert direct["leader"] == status["leader"]


def test_a_cluster_that_is_well(cli: ClusterCli, topics: Kafka) -> None:
    topics.topic(partitions=3)
    findings = cli.json("doctor")
    levels = {(item["check"], item["level"]) for item in findings}
    assert {("quorum", "ok"), ("nodes", "ok"), ("racks", "ok"), ("partitions", "ok")} <= levels


def test_one_node_that_is_down_is_told(cli: ClusterCli, three: barnabas.Cluster) -> None:
    three.stop_node(3)
    try:
        wait_until_down(three, 3)
        status = cli.run("cluster", "status")
        assert status.code == 5
        assert "node 3 is down" in status.err
        wait_until(lambda: cli.run("quorum", "status").code == 5, "its absence being noticed")
        assert "one more voter is lost" in cli.run("quorum", "status").err
        doctor = cli.run("doctor", "--json")
        assert doctor.code == 5
        assert {"quorum", "nodes"} <= {
            item["check"] for item in doctor.json if item["level"] == "fault"
        }
        refused = cli.run("cluster", "remove", "2", "--yes")
        assert refused.code == 1
        assert "would lose its majority" in refused.err
        assert cli.run("quorum", "remove-voter", "1", "--yes").code == 1
    finally:
        three.start_node(3)
    wait_until_in_sync(cli)


# -- reading


@pytest.mark.parametrize("more", [(), ("--group", "of-a-new-topic")], ids=str)
def test_follow_waits_for_a_topic_that_does_not_exist_yet(
    cli: ClusterCli, topics: Kafka, more: tuple[str, ...]
) -> None:
    later = topics.name("later")
    with following(cli, "consume", later, "-f", *more) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert follower.stderr.readline() == f"topic {later} does not exist yet: waiting for it\n"
        cli.ok("topic", "create", later, "--partitions", "6", "--replication-factor", "1")
        topics.produce(later, [b"%d" % number for number in range(12)])
        lines = {follower.stdout.readline() for _ in range(12)}
    assert lines == {f"{number}\n" for number in range(12)}


# -- moving by hand


def write_plan(path: Path, *moves: tuple[str, int, list[int]]) -> str:
    partitions = [
        {"topic": topic, "partition": index, "replicas": replicas}
        for topic, index, replicas in moves
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_reassign(cli: ClusterCli, topics: Kafka, tmp_path: Path) -> None:
    topic = topics.topic(partitions=2)
    topics.produce(topic, [b"a", b"b"])
    plan = write_plan(tmp_path / "p", (topic, 0, [3, 1]), (topic, 1, [2]))
    before = cli.run("topic", "reassign", "--plan", plan, "--verify", "--json")
    assert before.code == 5
    assert {row["state"] for row in before.json} == {"not begun"}
    assert cli.json("topic", "reassign", "--plan", plan, "--dry-run")["done"] is False
    done = cli.json("topic", "reassign", "--plan", plan, "--yes")
    assert (done["done"], done["moved"]) == (True, 2)
    # Each command may ask another node than the one that saw the moves end.
    wait_until_placed(topics.bootstrap_servers, topic, {0: ([3, 1], 3), 1: ([2], 2)})
    rows = described(cli, topic)
    assert [rows[0]["replicas"], rows[1]["replicas"]] == [[3, 1], [2]]
    assert [rows[0]["leader"], rows[1]["leader"]] == [3, 2]
    after = cli.json("topic", "reassign", "--plan", plan, "--verify")
    assert {row["state"] for row in after} == {"done"}
    assert cli.json("topic", "reassign", "--cancel", "--yes") == []
    assert sorted(topics.consume(topic, 2), key=str) == [b"a", b"b"]


def test_plans_that_cannot_be(cli: ClusterCli, topics: Kafka, tmp_path: Path) -> None:
    topic = topics.topic()
    for move, words in (
        ((topic, 0, [1, 9]), "there is no node 9; there are 1, 2, 3"),
        ((topic, 5, [1]), f"there is no partition {topic}-5"),
        ((f"{topic}-not", 0, [1]), "there is no partition"),
    ):
        result = cli.run("topic", "reassign", "--plan", write_plan(tmp_path / "p", move), "--yes")
        assert result.code == 1
        assert words in result.err
    plan = write_plan(tmp_path / "p", (topic, 0, [1]))
    assert "--yes" in cli.run("topic", "reassign", "--plan", plan).err
    assert cli.run("topic", "reassign").code == 2
    assert cli.run("topic", "reassign", "--plan", plan, "--verify", "--cancel").code == 2
    assert cli.run("topic", "reassign", "--plan", plan, "--throttle", "fast").code == 2


def test_a_topic_that_was_deleted_is_told_by_verify(
    cli: ClusterCli, topics: Kafka, tmp_path: Path
) -> None:
    kept, deleted = topics.topic(), topics.topic()
    plan = write_plan(tmp_path / "p", (kept, 0, [1, 2, 3]), (deleted, 0, [1, 2, 3]))
    cli.ok("topic", "reassign", "--plan", plan, "--yes")
    cli.ok("topic", "delete", deleted, "--yes")
    wait_for_topic(topics.bootstrap_servers, deleted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    found = cli.run("topic", "reassign", "--plan", plan, "--verify", "--json")
    assert (found.code, {row["partition"]: row["state"] for row in found.json}) == (
        5,
        {f"{kept}-0": "done", f"{deleted}-0": "there is no such partition"},
    )


def test_a_node_that_is_down_is_no_target(
    cli: ClusterCli, topics: Kafka, three: barnabas.Cluster, tmp_path: Path
) -> None:
    topic = topics.topic()
    plan = write_plan(tmp_path / "p", (topic, 0, [1]))
    cli.ok("topic", "reassign", "--plan", plan, "--yes")
    three.stop_node(3)
    try:
        wait_until_down(three, 3)
        plan = write_plan(tmp_path / "p", (topic, 0, [1, 3]))
        refused = cli.run("topic", "reassign", "--plan", plan, "--yes")
        assert refused.code == 1
        assert "node 3 is down and cannot take a replica; start it first" in refused.err
        moves = cli.json("rebalance", "--dry-run")["moves"]
        assert all(3 not in set(move["after"]) - set(move["before"]) for move in moves)
    finally:
        three.start_node(3)
    wait_until_in_sync(cli)


def test_leaders_come_back(cli: ClusterCli, topics: Kafka, three: barnabas.Cluster) -> None:
    topic = topics.topic(partitions=6)
    preferred = {index: row["replicas"][0] for index, row in described(cli, topic).items()}
    three.stop_node(2)
    three.start_node(2)
    wait_until_in_sync(cli)
    rows = cli.json("topic", "elect-leaders", topic)
    assert all(row["error"] is None for row in rows)
    assert all(row["leader"] == preferred[int(row["partition"].rpartition("-")[2])] for row in rows)

    def leaders(cli: ClusterCli) -> dict[int, int]:
        return {index: row["leader"] for index, row in described(cli, topic).items()}

    # Another node may be asked here than the one that the command has waited for.
    cli.wait_until_each(lambda each: leaders(each) == preferred, "the election")
    assert cli.json("topic", "elect-leaders", topic) == []
    assert cli.run("topic", "elect-leaders", "no-such-topic").code == 4
    assert cli.run("topic", "elect-leaders", "--unclean").code == 2
    unknown = cli.run("topic", "elect-leaders", topic, "--partition", "99")
    assert (unknown.code, f"there is no partition {topic}-99" in unknown.err) == (4, True)


def test_nothing_to_rebalance(cli: ClusterCli) -> None:
    cli.ok("rebalance", "--yes")
    # Any node may be asked, also one that has not heard of the last move.
    wait_until(lambda: cli.ok("rebalance").lines == ["Nothing has to move."], "the moves' end")


def test_nodes_that_do_not_exist(cli: ClusterCli) -> None:
    for arguments in (("cluster", "drain", "9"), ("cluster", "remove", "9")):
        result = cli.run(*arguments, "--yes")
        assert result.code == 4
        assert "there is no node 9" in result.err
    assert cli.run("quorum", "remove-voter", "9", "--yes").code == 4
    assert cli.run("quorum", "add-voter", "9@localhost:1").code == 1
    assert cli.run("quorum", "add-voter").code == 2


def test_draining_below_the_replication_factor_is_refused(cli: ClusterCli, topics: Kafka) -> None:
    topics.topic()
    result = cli.run("cluster", "drain", "2", "--yes")
    assert result.code == 1
    assert "add a broker first" in result.err


# -- growing and shrinking


class Traffic:
    """Records sent with acks=all until it is stopped; every one must be acknowledged."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "acks": "all", "enable.idempotence": True}
        )
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: list[bytes] = []
        self.failed: list[object] = []

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            value = b"%d" % number
            self._producer.produce(self._topic, value, value, on_delivery=self._delivered)
            self._producer.poll(0.002)
            number += 1
        self._producer.flush(60)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.append(message.value())
        else:
            self.failed.append(error)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()


def test_a_cluster_grows_and_shrinks_while_it_serves() -> None:
    with barnabas.Cluster(nodes=3) as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        cli = ClusterCli(cluster.bootstrap_servers)
        topic = kafka.topic(partitions=8)
        with Traffic(cluster.bootstrap_servers, topic) as traffic:
            added = cluster.add_node()
            assert added == 4
            wait_until_node(cli, 4, lambda node: node.get("state") == "empty")
            clients = node_of(cli, 4)["address"]
            votes = cli.run("quorum", "add-voter", f"4@{clients}")
            assert (votes.code, "is not a controller's listener" in votes.err) == (1, True)
            moved = cli.json("rebalance", "--yes", "--throttle", "50MB")
            assert moved["done"]
            assert len(moved["moves"]) == moved["moved"]
            wait_until_node(cli, 4, lambda node: node["holds"] == 6)
            counts = [node["holds"] for node in cli.json("cluster", "status")["nodes"]]
            assert max(counts) - min(counts) <= 1
            cli.ok("cluster", "drain", "4", "--yes")
            wait_until_node(cli, 4, lambda node: node["holds"] == 0)
            still_up = cli.run("cluster", "remove", "4", "--yes", "--wait", "0")
            assert still_up.code == 1
            assert "node 4 still runs" in still_up.err
            cluster.stop_node(4)
            removed = cli.json("cluster", "remove", "4", "--yes")
            assert (removed["unregistered"], removed["voter_removed"]) == (True, False)
            wait_until_nodes(cli, [1, 2, 3])
        assert traffic.failed == []
        assert len(traffic.acknowledged) > 100
        assert sorted(
            map(bytes, filter(None, kafka.consume(topic, len(traffic.acknowledged))))
        ) == (sorted(traffic.acknowledged))
        rows = cli.json("config", "describe", "topic", topic)
        assert [row for row in rows if "throttled" in row["key"]] == []


def test_a_process_joins_votes_and_leaves(tmp_path: Path) -> None:
    with barnabas.Cluster(nodes=2) as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        cli = ClusterCli(cluster.bootstrap_servers)
        topic = kafka.topic(partitions=4)
        kafka.produce(topic, [b"%d" % number for number in range(50)])
        directory = tmp_path / "node"
        made = cli.json("cluster", "add", "-d", str(directory), "--voter", "--rack", "x")
        assert (made["node"], made["joined"], made["votes"]) == (3, False, False)
        properties = directory / "server.properties"
        assert f"barnabas start {properties}" == made["start"]
        assert "broker.rack=x\n" in properties.read_text()
        assert "listeners=PLAINTEXT://127.0.0.1:" in properties.read_text()
        assert cli.run("cluster", "add", "-d", str(directory)).code == 1
        assert cli.run("cluster", "add", "-d", str(tmp_path / "other"), "--node-id", "2").code == 1
        nobody = ("--node-id", "77", "--replace", "-d", str(tmp_path / "other"))
        replaced = cli.run("cluster", "add", *nobody)
        assert (replaced.code, "there is no node 77 to replace" in replaced.err) == (4, True)
        early = cli.run("quorum", "add-voter", "--config", str(properties))
        assert early.code == 1
        assert "does not follow the quorum" in early.err
        with (tmp_path / "out").open("wb") as out:
            process = subprocess.Popen(
                [*BARNABAS, "start", str(properties)], stdout=out, stderr=out
            )
        try:
            wait_until(
                lambda: len(cli.json("quorum", "status")["observers"]) == 1, "node 3 following"
            )
            cli.ok("quorum", "add-voter", "--config", str(properties))
            assert [row["node"] for row in cli.json("quorum", "status")["voters"]] == [1, 2, 3]
            twice = cli.run("quorum", "add-voter", "--config", str(properties))
            assert (twice.code, "a voter already" in twice.err) == (1, True)
            wait_until_node(cli, 3, lambda node: node.get("state") == "empty")
            cli.ok("rebalance", "--yes")
            wait_until_node(cli, 3, lambda node: node["holds"] > 0)
            plan = cli.run("cluster", "remove", "3", "--dry-run")
            assert "Node 3 would lose its vote." in plan.text
            remove = [*BARNABAS, "cluster", "remove", "3", "--yes", "-b", cli.bootstrap_servers]
            with subprocess.Popen(remove, stdout=subprocess.PIPE, text=True) as remover:
                assert remover.stdout is not None
                for line in remover.stdout:
                    if "stop it now" in line:
                        break
                process.send_signal(signal.SIGTERM)
                assert process.wait(EXIT_TIMEOUT_S) == 0
                assert "removed from the cluster" in remover.stdout.read()
            assert remover.returncode == 0
        finally:
            process.kill()
            process.wait()
        assert [row["node"] for row in cli.json("quorum", "status")["voters"]] == [1, 2]
        wait_until_nodes(cli, [1, 2])
        assert len(kafka.consume(topic, 50)) == 50


@pytest.mark.slow
def test_an_interrupted_rebalance_leaves_no_throttle_and_goes_on_later() -> None:
    with barnabas.Cluster(nodes=2) as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        cli = ClusterCli(cluster.bootstrap_servers)
        topic = kafka.topic(partitions=6, config={"compression.type": "uncompressed"})
        kafka.produce(topic, [os.urandom(100_000) for _ in range(120)])
        cluster.add_node()
        wait_until_node(cli, 3, lambda node: node.get("state") == "empty")
        arguments = ("rebalance", "--yes", "--throttle", "200kB", "--concurrent", "2")
        with usual_signals():
            process = subprocess.Popen(
                [*BARNABAS, *arguments, "-b", cluster.bootstrap_servers],
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            )
        with process:
            assert process.stderr is not None
            assert "of " in process.stderr.readline()
            wait_until(lambda: cli.json("cluster", "status")["partitions_moving"] > 0, "a move")
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        assert process.returncode == 130
        assert "barnabas rebalance continues" in rest
        assert "throttles are removed" in rest
        for kind, name in (("topic", topic), ("broker", "1"), ("broker", "2"), ("broker", "3")):
            rows = cli.json("config", "describe", kind, name)
            assert [row["key"] for row in rows if "throttled" in row["key"]] == []
        done = cli.json("rebalance", "--yes")
        assert done["done"]
        wait_until_node(cli, 3, lambda node: node["holds"] == 4)
        assert cli.json("rebalance", "--dry-run")["moves"] == []
        assert len(kafka.consume(topic, 120)) == 120


def test_a_lost_disk_is_replaced() -> None:
    with barnabas.Cluster(nodes=3) as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        cli = ClusterCli(cluster.bootstrap_servers)
        topic = kafka.topic(partitions=3)
        kafka.produce(topic, [b"%d" % number for number in range(30)])
        cluster_id = cli.json("cluster", "status")["cluster_id"]
        node = cluster.nodes[3]
        properties = os.path.join(node.directory, "server.properties")
        cluster.stop_node(3)
        shutil.rmtree(node.properties["log.dirs"])
        arguments = ("storage", "format", "-c", properties, "-t", cluster_id)
        cli.ok("quorum", "remove-voter", "3", "--yes")
        assert run_cli(*arguments, "--no-initial-controllers").code == 0
        cluster.start_node(3)
        cli.ok("quorum", "add-voter", "--config", properties)
        assert [row["node"] for row in cli.json("quorum", "status")["voters"]] == [1, 2, 3]
        wait_until_in_sync(cli)
        assert len(kafka.consume(topic, 30)) == 30, "and the offsets topic has its three replicas"
        cluster.stop_node(1)
        assert len(kafka.consume(topic, 30)) == 30


def test_a_node_is_replaced_under_its_id(tmp_path: Path) -> None:
    with barnabas.Cluster(nodes=3) as cluster:
        cli = ClusterCli(cluster.bootstrap_servers)
        directory = str(tmp_path / "new")
        replace = ("cluster", "add", "--node-id", "3", "--replace", "-d", directory)
        # The node that is asked may not know yet that it runs.
        wait_until_node(cli, 3, lambda node: node.get("state") not in (None, "down"))
        runs = cli.run(*replace)
        assert (runs.code, "stop it first" in runs.err) == (1, True)
        cluster.stop_node(3)
        wait_until_down(cluster, 3)
        votes = cli.run(*replace, "--voter")
        assert (votes.code, "remove-voter 3 first" in votes.err) == (1, True)
        cli.ok("quorum", "remove-voter", "3", "--yes")
        assert cli.json(*replace, "--voter")["node"] == 3

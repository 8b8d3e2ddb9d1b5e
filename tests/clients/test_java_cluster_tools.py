"""Kafka's tools for who leads and who holds what: elections, reassignments, brokers that leave.

Each works on however many nodes there are; with one there is little to move, but much to refuse.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.app.testing import Kafka
from support.java_host import JavaHost, ToolResult
from support.node_process import wait_until

Tool = Callable[..., ToolResult]
Settle = Callable[[], None]


@pytest.fixture
def tool(java: JavaHost, kafka: Kafka) -> Tool:
    """Run a tool against the cluster."""

    def run(name: str, *arguments: str, exit_code: int | None = 0) -> ToolResult:
        server = ("--bootstrap-server", kafka.bootstrap_servers)
        parts = [*arguments, *server] if name == "kafka-cluster" else [*server, *arguments]
        return java.run(name, *parts, exit_code=exit_code)

    return run


def plan(path: Path, topic: str, *partitions: list[int]) -> str:
    """A file that asks for these replicas."""
    path.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": topic, "partition": number, "replicas": replicas}
                    for number, replicas in enumerate(partitions)
                ],
            }
        )
    )
    return str(path)


# -- kafka-leader-election


@pytest.mark.parametrize("kind", ["preferred", "unclean"])
def test_no_election_is_needed_where_all_is_well(kafka: Kafka, tool: Tool, kind: str) -> None:
    name = kafka.topic("elected", partitions=2)
    done = tool(
        *("kafka-leader-election", "--election-type", kind),
        *("--topic", name, "--partition", "1"),
    )
    assert f"Valid replica already elected for partitions {name}-1" in done.out
    tool("kafka-leader-election", "--election-type", kind, "--all-topic-partitions")


def test_elections_of_unknown_partitions_are_refused(kafka: Kafka, tool: Tool) -> None:
    name = kafka.topic("elected", partitions=1)
    refused = tool(
        *("kafka-leader-election", "--election-type", "preferred"),
        *("--topic", name, "--partition", "9"),
        exit_code=1,
    )
    assert f"{name}-9" in refused.out
    assert "UnknownTopicOrPartitionException" in refused.out


# -- kafka-reassign-partitions


def test_replicas_move_and_the_move_can_be_verified(
    kafka: Kafka, tool: Tool, settle: Settle, node_ids: list[int], tmp_path: Path
) -> None:
    name = kafka.topic("moved", partitions=2)
    kafka.produce(name, [b"a", b"b", b"c"])
    assert "No partition reassignments found." in tool("kafka-reassign-partitions", "--list").out
    target = plan(tmp_path / "plan.json", name, node_ids[::-1], node_ids)
    begun = tool(
        *("kafka-reassign-partitions", "--reassignment-json-file", target, "--execute"),
        *("--throttle", "50000000"),
    )
    assert "Successfully started partition reassignments" in begun.out
    settle()
    verified = tool(*("kafka-reassign-partitions", "--reassignment-json-file", target, "--verify"))
    for number in (0, 1):
        assert f"Reassignment of partition {name}-{number} is completed." in verified.out
    assert "Clearing topic-level throttles" in verified.out
    described = tool("kafka-topics", "--describe", "--topic", name).out
    assert f"Replicas: {','.join(map(str, node_ids[::-1]))}\t" in described
    assert "throttled" not in described
    assert kafka.consume(name, 3)


def test_records_travel_with_their_replica(
    kafka: Kafka, tool: Tool, settle: Settle, node_ids: list[int], tmp_path: Path
) -> None:
    """From the first node to the last, and the first forgets them; alone, a node keeps them."""
    name = kafka.topic("travels")
    verify = ("kafka-reassign-partitions", "--verify", "--reassignment-json-file")
    for stop in (node_ids[0], node_ids[-1]):
        target = plan(tmp_path / f"to-{stop}.json", name, [stop])
        kafka.produce(name, [b"a", b"b", b"c"])
        begin = ("kafka-reassign-partitions", "--execute", "--reassignment-json-file")
        tool(*begin, target)
        wait_until(
            lambda target=target: "is completed" in tool(*verify, target).out, f"the move to {stop}"
        )
        settle()
        described = tool("kafka-topics", "--describe", "--topic", name).out
        assert f"Leader: {stop}\tReplicas: {stop}\tIsr: {stop}\t" in described
    assert len(kafka.consume(name, 6)) == 6
    dirs = tool("kafka-log-dirs", "--describe", "--topic-list", name).out
    brokers = json.loads(dirs[dirs.index("{") :].splitlines()[0])["brokers"]
    holders = [
        broker["broker"]
        for broker in brokers
        if any(log_dir["partitions"] for log_dir in broker["logDirs"])
    ]
    assert holders == [node_ids[-1]]


REFUSED = {
    "unknown broker": ([77], "INVALID_REPLICA_ASSIGNMENT|Unknown broker id 77"),
    "one twice": ([1, 1], "duplicate|more than once"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_moves_are_refused(kafka: Kafka, tool: Tool, tmp_path: Path, case: str) -> None:
    replicas, words = REFUSED[case]
    name = kafka.topic("stays", partitions=1)
    target = plan(tmp_path / "plan.json", name, replicas)
    refused = tool(
        *("kafka-reassign-partitions", "--reassignment-json-file", target, "--execute"),
        exit_code=1,
    )
    assert any(word in refused.out for word in words.split("|"))


def test_a_move_that_is_not_under_way_is_cancelled_without_a_word(
    kafka: Kafka, tool: Tool, node_ids: list[int], tmp_path: Path
) -> None:
    name = kafka.topic("stays", partitions=1)
    target = plan(tmp_path / "plan.json", name, node_ids)
    cancelled = tool(
        *("kafka-reassign-partitions", "--reassignment-json-file", target, "--cancel"),
    )
    assert "None of the specified partition reassignments are active." in cancelled.out


def test_a_plan_can_be_generated(
    kafka: Kafka, tool: Tool, node_ids: list[int], tmp_path: Path
) -> None:
    name = kafka.topic("planned", partitions=3)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    generated = tool(
        *("kafka-reassign-partitions", "--topics-to-move-json-file", str(topics)),
        *("--broker-list", ",".join(map(str, node_ids)), "--generate"),
    )
    proposed = json.loads(generated.out.split("Proposed partition reassignment configuration")[1])
    assert len(proposed["partitions"]) == 3


# -- kafka-cluster, kafka-features


def test_a_broker_that_is_not_there_cannot_be_unregistered(tool: Tool) -> None:
    refused = tool("kafka-cluster", "unregister", "--id", "4711", exit_code=1)
    assert "Broker ID 4711 is not currently registered" in refused.err


def test_a_release_is_upgraded_to(tool: Tool) -> None:
    """The release names kraft.version 1 too, with which static voters become dynamic ones."""
    upgrade = ("kafka-features", "upgrade", "--release-version", "4.3")
    wait_until(
        lambda: tool(*upgrade, exit_code=None).exit_code == 0,
        "every voter to tell the leader who it is, a minute after it began to follow",
        timeout_s=90,
    )
    lines = tool("kafka-features", "describe").lines
    [kraft] = [line for line in lines if line.startswith("Feature: kraft.version")]
    assert "FinalizedVersionLevel: 1" in kraft
    named = [line for line in lines if "kraft.version" not in line and "FinalizedVersion" in line]
    features = ",".join(
        f"{line.split()[1]}={line.split('FinalizedVersionLevel: ')[1].split()[0]}"
        for line in named
        if "metadata.version" not in line
    )
    assert features
    for feature in features.split(","):
        tool("kafka-features", "upgrade", "--feature", feature)

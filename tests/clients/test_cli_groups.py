"""`barnabas share-group`, `streams-group` and `group`, beside Kafka's own tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.app.testing import Kafka
from barnabas.protocol.messages import streams_groups as heartbeats
from barnabas.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from support.cli import ClusterCli
from support.java_host import JavaHost, ToolResult
from support.node_process import wait_until
from support.raw_client import RawClient
from support.streams_world import subtopology, topology

Tool = Callable[..., ToolResult]


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


@pytest.fixture
def tool(java: JavaHost, kafka: Kafka) -> Tool:
    """Run a tool against the cluster."""

    def run(name: str, *arguments: str) -> ToolResult:
        return java.run(name, "--bootstrap-server", kafka.bootstrap_servers, *arguments)

    return run


def test_a_share_group_from_beginning_to_end(
    cli: ClusterCli, kafka: Kafka, tool: Tool, java: JavaHost
) -> None:
    topic, name = kafka.topic(), kafka.name("share")
    theirs = ("kafka-share-groups", "--group", name, "--describe")
    cli.ok("produce", topic, stdin=b"a\nb\nc\n")
    unknown = cli.run("share-group", "reset-offsets", name, "-t", topic, "--to", "earliest")
    assert (unknown.code, "--create makes one" in unknown.err) == (4, True)
    reset = ("share-group", "reset-offsets", name, "--topic", topic, "--create")
    planned = cli.json(*reset, "--to", "earliest")
    assert planned == [{"topic": topic, "partition": 0, "before": None, "after": 0}]
    assert cli.run("share-group", "describe", name).code == 4, "that was only shown"
    cli.ok(*reset, "--to", "earliest", "--execute")
    (group,) = cli.json("share-group", "describe", name)
    assert [(row["start"], row["lag"]) for row in group["offsets"]] == [(0, 3)]
    servers = ("--bootstrap-server", kafka.bootstrap_servers)
    consumer = java.start(
        "kafka-console-share-consumer", *servers, "--topic", topic, "--group", name
    )
    consumer.wait_until(lambda: consumer.out.split() == ["a", "b", "c"])
    (row,) = [row for row in tool(*theirs, "--members").table if row[0] == name]
    (group,) = cli.json("share-group", "describe", name)
    (member,) = group["members"]
    assert (group["state"], member["member"]) == ("Stable", row[1])
    assert member["partitions"] == [f"{topic}-0"]
    (row,) = [row for row in tool(*theirs, "--state").table if row[0] == name]
    assert row[-2:] == [group["state"], "1"]
    shown = cli.ok("share-group", "describe", name, "--members").lines
    assert shown[1].split() == ["MEMBER", "HOST", "CLIENT", "MEMBER", "EPOCH", "PARTITIONS"]
    assert "group epoch" in cli.ok("share-group", "describe", name, "--state").text
    for refused in (
        cli.run("share-group", "delete", name, "--yes"),
        cli.run(*reset, "--to", "latest", "--execute"),
        cli.run("share-group", "delete-offsets", name, "-t", topic, "--yes"),
    ):
        assert (refused.code, "[NON_EMPTY_GROUP]" in refused.err) == (1, True), refused.err
    assert name in [item["group"] for item in cli.json("share-group", "list", "--state", "Stable")]
    (listed,) = [item for item in cli.json("group", "list") if item["group"] == name]
    assert listed == {"group": name, "state": "Stable", "type": "Share"}
    consumer.stop()
    wait_until(
        lambda: cli.json("share-group", "describe", name)[0]["state"] == "Empty", "its leaving"
    )
    done = cli.json("share-group", "delete-offsets", name, "--topic", topic, "--yes")
    assert done == [{"topic": topic, "deleted": True}]
    assert cli.json("share-group", "describe", name)[0]["offsets"] == []
    again = cli.run("share-group", "delete-offsets", name, "--topic", topic, "--yes")
    assert (again.code, "has no offsets" in again.err) == (4, True)
    cli.ok(*reset, "--to", "latest", "--execute")
    offsets = [row[2:] for row in tool(*theirs, "--offsets").table if row[:2] == [name, topic]]
    assert offsets == [["0", "3", "0"]]
    assert cli.json("share-group", "delete", name, "--yes") == [{"group": name, "deleted": True}]
    assert name not in [item["group"] for item in cli.json("share-group", "list")]
    assert cli.run("share-group", "delete", name, "--yes").code == 4


class StreamsMember:
    """One thread of a Kafka Streams application that reads a topic and counts."""

    def __init__(self, kafka: Kafka, group: str, topic: str) -> None:
        self.group = group
        with RawClient(kafka.bootstrap_servers) as raw:
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            found: list[str] = []

            def is_found() -> bool:
                (answer,) = raw.call(find, FindCoordinatorResponse).coordinators
                found[:] = [f"{answer.host}:{answer.port}"]
                return not answer.error_code

            wait_until(is_found, "a coordinator")
        self.raw = RawClient(found[0])
        self.topology = topology(subtopology("0", sources=[topic], changelogs=[f"{topic}-counts"]))
        self.epoch = 0

    def beat(self, **fields: Any) -> Any:
        """A heartbeat."""
        request = heartbeats.StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id="m", member_epoch=self.epoch, **fields
        )
        answer = self.raw.call(request, heartbeats.StreamsGroupHeartbeatResponse, 0)
        if not answer.error_code:
            self.epoch = answer.member_epoch
        return answer

    def join(self) -> None:
        def has_joined() -> bool:
            self.epoch = 0
            none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
            answer = self.beat(
                rebalance_timeout_ms=30_000, topology=self.topology, process_id="p", **none
            )
            return not answer.error_code

        wait_until(has_joined, "a coordinator that takes members")

    def leave(self) -> None:
        self.epoch = -1
        self.beat()
        self.raw.socket.close()


def test_a_streams_group_from_beginning_to_end(cli: ClusterCli, kafka: Kafka, tool: Tool) -> None:
    topic, name = kafka.topic(), kafka.name("streams")
    theirs = ("kafka-streams-groups", "--group", name, "--describe")
    cli.ok("produce", topic, stdin=b"a\nb\nc\n")
    assert cli.run("streams-group", "describe", name).code == 4
    member = StreamsMember(kafka, name, topic)
    member.join()
    (group,) = cli.json("streams-group", "describe", name)
    assert group["internal_topics"] == [f"{topic}-counts"]
    assert [item["process"] for item in group["members"]] == ["p"]
    (row,) = [row for row in tool(*theirs, "--state").table if row[0] == name]
    assert row[-2:] == [group["state"], "1"]
    shown = cli.ok("streams-group", "describe", name, "--members").lines
    assert shown[1].split()[:3] == ["MEMBER", "PROCESS", "CLIENT"]
    assert "topology epoch" in cli.ok("streams-group", "describe", name, "--state").text
    reset = ("streams-group", "reset-offsets", name)
    refused = cli.run(*reset, "--input-topic", topic, "--to", "earliest")
    assert (refused.code, "[NON_EMPTY_GROUP]" in refused.err) == (1, True)
    assert cli.run("streams-group", "delete", name, "--yes").code == 1
    member.leave()
    wait_until(
        lambda: cli.json("streams-group", "describe", name)[0]["state"] == "Empty", "its leaving"
    )
    planned = cli.json(*reset, "--input-topic", topic, "--to", "2")
    assert planned == [{"topic": topic, "partition": 0, "before": None, "after": 2}]
    cli.ok(*reset, "--topic", f"{topic}:0", "--to", "2", "--execute")
    (group,) = cli.json("streams-group", "describe", name)
    assert [(row["offset"], row["end"], row["lag"]) for row in group["offsets"]] == [(2, 3, 1)]
    assert cli.ok("streams-group", "describe", name).lines[2].split() == [topic, "0", "2", "3", "1"]
    cli.ok("topic", "create", f"{topic}-counts", "--if-not-exists")
    cli.ok(
        *(*reset, "--all-input-topics", "--to", "earliest", "--execute"),
        *("--delete-all-internal-topics", "--yes"),
    )
    assert cli.json("topic", "list", "--match", f"{topic}-counts") == []
    assert [item["group"] for item in cli.json("streams-group", "list")].count(name) == 1
    deleted = cli.json("streams-group", "delete-offsets", name, "--input-topic", topic, "--yes")
    assert deleted == [{"topic": topic, "partition": 0, "deleted": True}]
    assert cli.json("streams-group", "describe", name)[0]["offsets"] == []
    assert cli.json("streams-group", "delete", name, "--yes")[0]["deleted"]
    assert cli.run("streams-group", "describe", name).code == 4


def test_offsets_of_a_consumer_group_are_deleted(cli: ClusterCli, kafka: Kafka) -> None:
    first, second, name = kafka.topic(), kafka.topic(), kafka.name("group")
    for topic in (first, second):
        cli.ok("produce", topic, "-v", "a")
        cli.ok("consume", topic, "--group", name)
    assert cli.run("group", "delete-offsets", "nobody", "-t", first, "--yes").code == 4
    asked = cli.run("group", "delete-offsets", name, "-t", first)
    assert (asked.code, "--yes" in asked.err) == (2, True)
    cli.ok("group", "delete-offsets", name, "--topic", first, "--yes")
    (group,) = cli.json("group", "describe", name)
    assert [row["topic"] for row in group["offsets"]] == [second]
    (listed,) = [
        row for row in cli.json("group", "list", "--type", "classic") if row["group"] == name
    ]
    assert listed == {"group": name, "state": "Empty", "type": "Classic"}
    assert name not in [row["group"] for row in cli.json("group", "list", "--state", "Stable")]


def test_groups_of_another_type_are_not_taken(cli: ClusterCli, kafka: Kafka) -> None:
    topic, name = kafka.topic(), kafka.name("group")
    cli.ok("produce", topic, "-v", "a")
    cli.ok("consume", topic, "--group", name)
    for kind in ("share-group", "streams-group"):
        for arguments in (
            ("describe", name),
            ("delete", name, "--yes"),
            ("reset-offsets", name, "-t", topic, "--to", "latest", "--execute"),
            ("delete-offsets", name, "-t", topic, "--yes"),
        ):
            result = cli.run(kind, *arguments)
            assert (result.code, result.err.count("\n")) == (4, 1), result.err
    assert cli.json("group", "describe", name)[0]["offsets"]

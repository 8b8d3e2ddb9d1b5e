"""Share groups with Kafka's own tools: consume, list, describe, move, forget and delete."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.app.testing import Kafka
from support.java_host import JavaHost, ToolResult
from support.node_process import wait_until

Tool = Callable[..., ToolResult]


@pytest.fixture
def tool(java: JavaHost, kafka: Kafka) -> Tool:
    """Run a tool against the cluster."""

    def run(name: str, *arguments: str, stdin: str = "", exit_code: int = 0) -> ToolResult:
        servers = ("--bootstrap-server", kafka.bootstrap_servers)
        return java.run(name, *servers, *arguments, stdin=stdin, exit_code=exit_code)

    return run


def test_a_share_group_from_beginning_to_end(kafka: Kafka, tool: Tool, java: JavaHost) -> None:
    topic, group = kafka.topic(), kafka.name("share")
    groups = ("kafka-share-groups", "--group", group)

    def offsets() -> list[tuple[str, ...]]:
        """Start offset and lag of the partition."""
        rows = tool(*groups, "--describe", "--offsets").table
        return [(row[3], row[4]) for row in rows if row[:3] == [group, topic, "0"]]

    tool("kafka-console-producer", "--topic", topic, stdin="a\nb\nc\n")
    tool(*groups, "--reset-offsets", "--topic", topic, "--to-earliest", "--execute")
    assert offsets() == [("0", "3")]
    servers = ("--bootstrap-server", kafka.bootstrap_servers)
    consumer = java.start(
        "kafka-console-share-consumer", *servers, "--topic", topic, "--group", group
    )
    consumer.wait_until(lambda: consumer.out.split() == ["a", "b", "c"])
    (member,) = [row for row in tool(*groups, "--describe", "--members").table if row[0] == group]
    assert member[-1] == f"{topic}:0"
    (state,) = [row for row in tool(*groups, "--describe", "--state").table if row[0] == group]
    assert state[-2:] == ["Stable", "1"]
    assert "is not EMPTY" in tool(*groups, "--delete").out
    consumer.stop()
    # The kept start offset follows with the next write; what is done counts at once.
    wait_until(lambda: [lag for _, lag in offsets()] == ["0"], "a lag of 0", shown=offsets)
    assert group in tool("kafka-share-groups", "--list").lines
    assert [group, "Share", "share"] in tool("kafka-groups", "--list").table
    forgotten = tool(*groups, "--delete-offsets", "--topic", topic)
    assert [topic, "Successful"] in forgotten.table
    assert offsets() == []
    tool(*groups, "--reset-offsets", "--topic", topic, "--to-latest", "--execute")
    assert offsets() == [("3", "0")]
    assert "successful" in tool(*groups, "--delete").out
    assert group not in tool("kafka-share-groups", "--list").lines

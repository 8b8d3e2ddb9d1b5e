"""Kafka's own command-line tools, version 4.3.1, unchanged.

What each prints is compared with what it prints about Apache Kafka; `--barnabas-bootstrap` runs
the same tests against a Kafka. Internal topics and groups of other tests may be there.
"""

from __future__ import annotations

import itertools
import json
import operator
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from client_matrix import KEPT

from barnabas.app.testing import Kafka
from support.java_host import JavaHost, ToolResult, ToolRun
from support.node_process import wait_until

Tool = Callable[..., ToolResult]


@pytest.fixture
def tool(java: JavaHost, kafka: Kafka) -> Tool:
    """Run a tool against the cluster."""

    def run(name: str, *arguments: str, stdin: str = "", exit_code: int = 0) -> ToolResult:
        server = ("--bootstrap-server", kafka.bootstrap_servers)
        # Its parser wants the verb first; that of kafka-metadata-quorum wants it last.
        parts = [*arguments, *server] if name == "kafka-cluster" else [*server, *arguments]
        return java.run(name, *parts, stdin=stdin, exit_code=exit_code)

    return run


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """The configuration of a group's member that hears of rebalances soon."""
    path = tmp_path / "consumer.properties"
    path.write_text("heartbeat.interval.ms=200\n")
    return path


# -- kafka-topics


def test_topics_are_created_described_and_deleted(
    kafka: Kafka, tool: Tool, settle: Callable[[], None], copies: int
) -> None:
    name = kafka.name()
    created = tool(
        *("kafka-topics", "--create", "--topic", name, "--partitions", "3"),
        *("--config", "retention.ms=3600000", "--config", "cleanup.policy=compact"),
    )
    assert f"Created topic {name}." in created.lines
    settle()
    assert name in tool("kafka-topics", "--list").lines

    described = tool("kafka-topics", "--describe", "--topic", name).lines
    head = _fields(described[0])
    assert re.fullmatch(r"[\w-]{22}", head.pop("TopicId"))
    configs = set(head.pop("Configs").split(","))
    assert head == {"Topic": name, "PartitionCount": "3", "ReplicationFactor": str(copies)}
    assert {"retention.ms=3600000", "cleanup.policy=compact"} <= configs
    for partition, fields in enumerate(map(_fields, described[1:])):
        replicas = fields.pop("Replicas").split(",")
        assert sorted(replicas) == [str(n + 1) for n in range(copies)]
        assert sorted(fields.pop("Isr").split(",")) == sorted(replicas)
        assert fields == {
            "Topic": name,
            "Partition": str(partition),
            "Leader": replicas[0],
            "Elr": "",
            "LastKnownElr": "",
        }
    assert len(described) == 4

    tool("kafka-topics", "--delete", "--topic", name)
    settle()
    assert name not in tool("kafka-topics", "--list").lines


def test_topics_are_described_by_id_pages_and_state(
    kafka: Kafka, tool: Tool, node_ids: list[int]
) -> None:
    name = kafka.topic("paged", partitions=7, config={"segment.ms": "100000"})
    described = tool("kafka-topics", "--describe", "--topic", name).lines
    topic_id = _fields(described[0])["TopicId"]
    paged = tool(
        *("kafka-topics", "--describe", "--topic", name),
        *("--partition-size-limit-per-response", "2"),
    )
    assert paged.lines == described
    by_id = tool("kafka-topics", "--describe", "--topic-id", topic_id).lines
    leaders = [int(_fields(line)["Leader"]) for line in by_id[1:]]
    assert len(leaders) == 7
    assert set(leaders) == set(node_ids)
    overridden = tool("kafka-topics", "--describe", "--topics-with-overrides").lines
    assert described[0] in overridden
    for state in ("unavailable", "under-replicated", "under-min-isr"):
        assert name not in tool("kafka-topics", "--describe", f"--{state}-partitions").out
    excluded = tool("kafka-topics", "--list", "--exclude-internal").lines
    assert name in excluded
    assert not any(line.startswith("__") for line in excluded)


def test_topics_get_partitions(
    kafka: Kafka, tool: Tool, settle: Callable[[], None], node_ids: list[int]
) -> None:
    name = kafka.topic("grows", partitions=2)
    tool("kafka-topics", "--alter", "--topic", name, "--partitions", "4")
    settle()
    assert len(tool("kafka-topics", "--describe", "--topic", name).lines) == 5
    tool(
        *("kafka-topics", "--alter", "--topic", name, "--partitions", "6"),
        *("--replica-assignment", ",".join([":".join(map(str, node_ids))] * 6)),
    )
    settle()
    assert len(tool("kafka-topics", "--describe", "--topic", name).lines) == 7
    kafka.produce(name, [b"a", b"b"])
    shrunk = tool("kafka-topics", "--alter", "--topic", name, "--partitions", "3", exit_code=1)
    assert "currently has 6 partition(s)" in shrunk.out


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--topic", "bad/name"], "InvalidTopicException"),
        (["--topic", "x" * 250], "InvalidTopicException"),
        (["--topic", "many", "--replication-factor", "9"], "InvalidReplicationFactorException"),
        (["--topic", "none", "--partitions", "0"], "greater than 0|InvalidPartitionsException"),
        (["--topic", "off", "--replica-assignment", "77"], "InvalidReplicaAssignmentException"),
        (["--topic", "key", "--config", "no.such.key=1"], "Unknown topic config name"),
        (["--topic", "value", "--config", "retention.ms=soon"], "retention.ms"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_topics_are_refused(tool: Tool, options: list[str], complaint: str) -> None:
    refused = tool("kafka-topics", "--create", *options, exit_code=1)
    assert re.search(complaint, refused.out + refused.err)


def test_topics_exist_or_not(kafka: Kafka, tool: Tool) -> None:
    name = kafka.topic()
    again = tool("kafka-topics", "--create", "--topic", name, exit_code=1)
    assert f"Topic '{name}' already exists" in again.out
    tool("kafka-topics", "--create", "--topic", name, "--if-not-exists")
    for action in ("--describe", "--delete"):
        missing = tool("kafka-topics", action, "--topic", f"{name}-not", exit_code=1)
        assert "does not exist as expected" in missing.out
        tool("kafka-topics", action, "--topic", f"{name}-not", "--if-exists")


# -- kafka-configs


def test_configs_of_topics(kafka: Kafka, tool: Tool) -> None:
    name = kafka.topic(config={"retention.ms": "3600000"})
    topic = ("kafka-configs", "--topic", name)
    assert _configs(tool(*topic, "--describe")) == {"retention.ms": "3600000"}
    tool(
        *(*topic, "--alter", "--delete-config", "retention.ms"),
        *("--add-config", "cleanup.policy=[compact,delete],max.message.bytes=2000"),
    )
    changed = {"cleanup.policy": "compact,delete", "max.message.bytes": "2000"}
    assert _configs(tool(*topic, "--describe")) == changed
    everything = tool(*topic, "--describe", "--all")
    values = _configs(everything)
    assert changed.items() <= values.items()
    assert values["retention.ms"] == "604800000"
    assert values["segment.bytes"] == "1073741824"
    assert "min.insync.replicas" in values
    assert (
        "  max.message.bytes=2000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "max.message.bytes=2000, DEFAULT_CONFIG:message.max.bytes=1048588}"
    ) in everything.lines
    for wrong in ("cleanup.policy=nonsense", "segment.bytes=1", "no.such.key=1"):
        refused = tool(*topic, "--alter", "--add-config", wrong, exit_code=1)
        assert "InvalidConfigurationException" in refused.err
    assert _configs(tool(*topic, "--describe")) == changed


def test_configs_of_brokers(kafka: Kafka, tool: Tool, node_ids: list[int]) -> None:
    if len(node_ids) > 1:
        pytest.skip("what a topic inherits is told by whichever broker is asked")
    topic = kafka.topic()
    broker = ("kafka-configs", "--broker", "1")
    defaults = ("kafka-configs", "--broker-defaults")
    try:
        tool(*broker, "--alter", "--add-config", "log.retention.ms=7200000")
        assert _configs(tool(*broker, "--describe"))["log.retention.ms"] == "7200000"
        tool(*defaults, "--alter", "--add-config", "message.max.bytes=900000")
        assert _configs(tool(*defaults, "--describe"))["message.max.bytes"] == "900000"
        inherited = tool("kafka-configs", "--topic", topic, "--describe", "--all")
        assert _configs(inherited)["retention.ms"] == "7200000"
        assert _configs(inherited)["max.message.bytes"] == "900000"
        assert (
            "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=900000, "
            "DEFAULT_CONFIG:message.max.bytes=1048588}"
        ) in inherited.out
    finally:
        tool(*broker, "--alter", "--delete-config", "log.retention.ms")
        tool(*defaults, "--alter", "--delete-config", "message.max.bytes")
    assert "log.retention.ms" not in _configs(tool(*broker, "--describe"))
    everything = _configs(tool(*broker, "--describe", "--all"))
    assert everything["node.id"] == "1"
    assert everything["message.max.bytes"] == "1048588"
    for wrong in ("node.id=4", "message.max.bytes=many"):
        tool(*broker, "--alter", "--add-config", wrong, exit_code=1)


def test_configs_of_loggers_and_groups(tool: Tool) -> None:
    loggers = _configs(tool("kafka-configs", "--describe", "--broker-logger", "1"))
    assert "root" in loggers
    group = tool("kafka-configs", "--describe", "--entity-type", "groups", "--entity-name", "g")
    assert "doesn't have dynamic config" in group.out


# -- the console


def test_console_carries_keys_headers_and_nulls(kafka: Kafka, tool: Tool) -> None:
    topic = kafka.topic()
    tool(
        *("kafka-console-producer", "--topic", topic),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        *("--reader-property", "key.separator=|", "--reader-property", "null.marker=NULL"),
        *("--command-property", "compression.type=zstd", "--sync"),
        stdin="a:1,b:2\tk1|v1\na:ü\tk2|NULL\nNULL\tNULL|v3\n",
    )
    shown = [part for name in ("key", "headers", "offset") for part in _shown(name)]
    consumed = tool(
        *("kafka-console-consumer", "--topic", topic, "--from-beginning"),
        *("--max-messages", "3", *shown, "--formatter-property", "null.literal=<null>"),
    )
    assert consumed.lines == [
        "Offset:0\ta:1,b:2\tk1\tv1",
        "Offset:1\ta:ü\tk2\t<null>",
        "Offset:2\tNO_HEADERS\t<null>\tv3",
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_with_each_codec(kafka: Kafka, tool: Tool, codec: str) -> None:
    topic = kafka.topic()
    values = [f"value {index} {'x' * 100}" for index in range(50)]
    tool(
        *("kafka-console-producer", "--topic", topic, "--compression-codec", codec),
        stdin="\n".join(values) + "\n",
    )
    offset = ("--partition", "0", "--offset", "20", "--max-messages", "30")
    assert tool("kafka-console-consumer", "--topic", topic, *offset).lines == values[20:]


def test_console_goes_on_in_a_group(kafka: Kafka, tool: Tool) -> None:
    topic, group = kafka.topic(), kafka.name("group")
    read = ("kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning")
    for part in ("first", "second"):
        tool("kafka-console-producer", "--topic", topic, stdin=f"{part} a\n{part} b\n")
        assert tool(*read, "--max-messages", "2").lines == [f"{part} a", f"{part} b"]


def test_console_reads_the_offsets_topic(kafka: Kafka, tool: Tool) -> None:
    topic, group = kafka.topic(), kafka.name("group")
    kafka.produce(topic, [b"a", b"b", b"c"])
    tool(
        *("kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", "3"),
    )
    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    mine: list[dict[str, Any]] = []
    patience_ms = itertools.accumulate(itertools.repeat(2), operator.mul, initial=1500)

    def is_printed() -> bool:
        """The tool ends when no record comes for a while, which a busy machine may not keep."""
        printed = tool(
            *("kafka-console-consumer", "--topic", "__consumer_offsets", "--from-beginning"),
            *("--formatter", formatter, "--timeout-ms", str(next(patience_ms))),
        )
        # The formatter puts nothing between records.
        records = json.loads(f"[{printed.out.replace('}{', '},{')}]")
        mine[:] = [record for record in records if record["key"]["data"]["group"] == group]
        return bool(mine)

    wait_until(is_printed, f"the offsets of {group}")
    assert mine[-1]["key"]["data"] == {"group": group, "topic": topic, "partition": 0}
    assert mine[-1]["value"]["data"]["offset"] == 3


# -- groups


def test_groups_are_described_reset_and_deleted(
    kafka: Kafka, tool: Tool, node_ids: list[int]
) -> None:
    topic, group = kafka.topic(partitions=2), kafka.name("group")
    for value in ("a", "b", "c", "d"):
        tool(
            *("kafka-console-producer", "--topic", topic),
            *("--reader-property", "parse.key=true", "--reader-property", "key.separator=|"),
            stdin=f"{value}|{value}\n",
        )
    ends = _offsets(tool("kafka-get-offsets", "--topic", topic))
    assert sum(ends.values()) == 4
    tool(
        *("kafka-console-consumer", "--topic", topic, "--group", group, "--from-beginning"),
        *("--max-messages", "4"),
    )
    groups = "kafka-consumer-groups"
    mine = ("--group", group)
    assert group in tool(groups, "--list").lines
    assert [group, "Empty"] in tool(groups, "--list", "--state").table
    assert [group, "Classic"] in tool(groups, "--list", "--type").table
    assert [group, "Classic", "consumer"] in tool("kafka-groups", "--list").table
    assert [group, "Stable"] not in tool(groups, "--list", "--state", "stable").table

    described = tool(groups, "--describe", *mine)
    assert f"Consumer group '{group}' has no active members." in described.err
    rows = {int(row[2]): row for row in described.table[1:]}
    assert rows == {
        partition: [group, topic, str(partition), str(end), str(end), "0", "-", "-", "-"]
        for partition, end in ends.items()
    }
    state = tool(groups, "--describe", *mine, "--state").table[1]
    assert state[1] in kafka.bootstrap_servers.split(",")
    assert state[2] in [f"({node_id})" for node_id in node_ids]
    assert [state[0], *state[3:]] == [group, "-", "Empty", "0"]
    assert len(tool(groups, "--describe", *mine, "--members").table) == 1

    reset = (groups, "--reset-offsets", *mine, "--topic", topic)
    planned = tool(*reset, "--to-earliest", "--dry-run").table[1:]
    assert sorted(planned) == [[group, topic, str(partition), "0"] for partition in (0, 1)]
    assert _committed(tool(groups, "--describe", *mine)) == ends
    tool(*reset, "--to-offset", "1", "--execute")
    expected = {partition: min(1, end) for partition, end in ends.items()}
    assert _committed(tool(groups, "--describe", *mine)) == expected
    tool(*reset, "--to-latest", "--execute")
    tool(*reset, "--shift-by", "-1", "--execute")
    expected = {partition: max(0, end - 1) for partition, end in ends.items()}
    assert _committed(tool(groups, "--describe", *mine)) == expected
    tool(*reset, "--to-datetime", "2024-01-01T00:00:00.000", "--execute")
    assert _committed(tool(groups, "--describe", *mine)) == {0: 0, 1: 0}
    exported = tool(*reset, "--to-latest", "--export", "--dry-run").lines
    assert sorted(exported) == sorted(f'"{topic}",{p},{end}' for p, end in ends.items())

    removed = tool(groups, "--delete-offsets", *mine, "--topic", f"{topic}:1")
    assert [topic, "1", "Successful"] in removed.table
    assert _committed(tool(groups, "--describe", *mine)) == {0: 0}
    assert "was successful" in tool(groups, "--delete", *mine).out
    assert group not in tool(groups, "--list").lines
    assert "GroupIdNotFoundException" in tool(groups, "--delete", *mine).out
    assert f"Group {group} not found" in tool(groups, "--describe", *mine).out


@pytest.mark.parametrize(
    ("assignor", "instances"),
    [
        pytest.param("Range", False, id="range", marks=pytest.mark.slow),
        pytest.param("RoundRobin", False, id="round-robin", marks=pytest.mark.slow),
        pytest.param("CooperativeSticky", False, id="cooperative-sticky"),
        pytest.param("Range", True, id="static-members"),
    ],
)
def test_groups_share_partitions_among_members(
    java: JavaHost, kafka: Kafka, tool: Tool, quick: Path, assignor: str, instances: bool
) -> None:
    """Three members come, one goes, and each record is read once."""
    topic, group = kafka.topic(partitions=6), kafka.name("group")
    members: list[ToolRun] = []

    def join(number: int) -> None:
        identity = ("--group-instance-id", f"i-{number}") if instances else ()
        members.append(
            java.start(
                *("kafka-verifiable-consumer", "--bootstrap-server", kafka.bootstrap_servers),
                *("--topic", topic, "--group-id", group, "--reset-policy", "earliest"),
                # A static member that has gone is waited for; no other is to be missed.
                *("--session-timeout", "10000" if instances else "60000"),
                *("--verbose", *identity),
                *("--command-config", str(quick)),
                *("--assignment-strategy", f"org.apache.kafka.clients.consumer.{assignor}Assignor"),
            )
        )

    def shares() -> list[int]:
        return sorted(len(_assigned(member)) for member in members)

    try:
        join(0)
        members[0].wait_until(lambda: shares() == [6])
        join(1)
        join(2)
        for member in members:
            member.wait_until(lambda member=member: len(_assigned(member)) == 2)
        described = tool("kafka-consumer-groups", "--describe", "--group", group, "--state")
        assert described.table[1][-2:] == ["Stable", "3"]
        listed = tool("kafka-consumer-groups", "--describe", "--group", group, "--members")
        assert [row[-1] for row in listed.table[1:]] == ["2", "2", "2"]
        if instances:
            assert {row[2] for row in listed.table[1:]} == {"i-0", "i-1", "i-2"}
        refused = tool("kafka-consumer-groups", "--delete", "--group", group)
        assert "GroupNotEmptyException" in refused.out

        java.run(
            *("kafka-verifiable-producer", "--bootstrap-server", kafka.bootstrap_servers),
            *("--topic", topic, "--max-messages", "300", "--acks", "-1"),
        )
        gone = members.pop(0)
        gone.stop()
        remaining = members[0]
        remaining.wait_until(lambda: shares() == [3, 3])
        remaining.wait_until(lambda: len(_consumed([gone, *members])) >= 300)
    finally:
        for member in members:
            member.stop()
    assert sorted(_consumed([gone, *members])) == sorted(map(str, range(300)))
    lag = tool("kafka-consumer-groups", "--describe", "--group", group).table[1:]
    assert sum(int(row[3]) for row in lag if row[3] != "-") == 300


def test_static_member_returns_without_a_rebalance(
    java: JavaHost, kafka: Kafka, quick: Path
) -> None:
    topic, group = kafka.topic(partitions=2), kafka.name("group")
    arguments = (
        *("kafka-verifiable-consumer", "--bootstrap-server", kafka.bootstrap_servers),
        *("--topic", topic, "--group-id", group, "--session-timeout", "30000"),
        *("--command-config", str(quick)),
    )
    stays = java.start(*arguments, "--group-instance-id", "stays")
    stays.wait_until(lambda: len(_assigned(stays)) == 2)
    returns = java.start(*arguments, "--group-instance-id", "returns")
    for run in (stays, returns):
        run.wait_until(lambda run=run: len(_assigned(run)) == 1)
    kept = _assigned(returns)
    rounds = stays.out.count("partitions_assigned")
    # A static member that closes does not leave: its partitions wait for it.
    returns.stop()
    again = java.start(*arguments, "--group-instance-id", "returns")
    again.wait_until(lambda: _assigned(again) == kept)
    assert stays.out.count("partitions_assigned") == rounds
    fenced = java.start(*arguments, "--group-instance-id", "returns")
    result = again.wait()
    assert "FencedInstanceIdException" in result.err
    fenced.wait_until(lambda: _assigned(fenced) == kept)
    for run in (fenced, stays):
        run.stop()


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("assignor", ["Range", "CooperativeSticky"])
def test_groups_survive_members_that_come_and_go(
    java: JavaHost, kafka: Kafka, tool: Tool, quick: Path, assignor: str, seed: int
) -> None:
    """In the end everything has been read; commits never go back."""
    random = Random(seed)
    topic, group = kafka.topic(partitions=8), kafka.name("group")
    total = 6000
    producer = java.start(
        *("kafka-verifiable-producer", "--bootstrap-server", kafka.bootstrap_servers),
        *("--topic", topic, "--max-messages", str(total), "--throughput", "300", "--acks", "-1"),
    )
    arguments = (
        *("kafka-verifiable-consumer", "--bootstrap-server", kafka.bootstrap_servers),
        *("--topic", topic, "--group-id", group, "--reset-policy", "earliest"),
        *("--session-timeout", "6000", "--verbose", "--command-config", str(quick)),
        *("--assignment-strategy", f"org.apache.kafka.clients.consumer.{assignor}Assignor"),
    )
    everyone: list[ToolRun] = []
    present: list[ToolRun] = []
    for step in range(40):
        if len(present) < 2 or (len(present) < 6 and random.random() < 0.6):
            static = ("--group-instance-id", f"i-{step}") if random.random() < 0.2 else ()
            run = java.start(*arguments, *static)
            everyone.append(run)
            present.append(run)
            run.wait_for("partitions_assigned" if random.random() < 0.7 else "startup_complete")
        else:
            present.pop(random.randrange(len(present))).stop()
    producer.wait()
    assert producer.json_lines()[-1]["acked"] == total
    present[0].wait_until(lambda: len(set(_consumed(everyone))) >= total)
    for run in present:
        run.stop()
    assert set(_consumed(everyone)) == set(map(str, range(total)))

    # A commit during a rebalance fails, and its records are read again: those and no others.
    # The tool leaves out partitions of which no commit has succeeded.
    def lag() -> int:
        rows = tool("kafka-consumer-groups", "--describe", "--group", group).table[1:]
        return total - sum(int(row[3]) for row in rows if row[3] != "-")

    behind = lag()
    last = java.start(*arguments)
    last.wait_until(lambda: len(_assigned(last)) == 8 and len(_consumed([last])) == behind)
    last.stop()
    assert len(_consumed([last])) == behind
    assert lag() == 0
    for run in everyone:
        for partition in range(8):
            commits = _commits(run, partition)
            assert commits == sorted(commits)
        assert "UnknownMemberId" not in str(run)


# -- offsets, records, directories


def test_offsets_are_looked_up(kafka: Kafka, tool: Tool) -> None:
    topic = kafka.topic(partitions=2, config=KEPT)
    producer = kafka.producer()
    for offset, timestamp_ms in enumerate((1000, 5000, 3000, 5000)):
        producer.produce(topic, f"{offset}", partition=1, timestamp=timestamp_ms)
        producer.flush()

    def at(time: str) -> dict[int, int]:
        return _offsets(tool("kafka-get-offsets", "--topic", topic, "--time", time))

    assert at("earliest") == at("-2") == at("earliest-local") == {0: 0, 1: 0}
    assert at("latest") == at("-1") == {0: 0, 1: 4}
    assert at("max-timestamp") == at("-3") == {1: 1}
    assert at("1") == at("1000") == {1: 0}
    assert at("1001") == at("4000") == {1: 1}
    assert at("5001") == {}
    assert _offsets(tool("kafka-get-offsets", "--topic-partitions", f"{topic}:1")) == {1: 4}


def test_records_are_deleted(kafka: Kafka, tool: Tool, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=2)
    producer = kafka.producer()
    for offset in range(10):
        producer.produce(topic, f"{offset}", partition=0)
        producer.produce(topic, f"{offset}", partition=1)
    producer.flush()
    wanted = tmp_path / "offsets.json"

    def delete(*offsets: int) -> ToolResult:
        rows = [{"topic": topic, "partition": p, "offset": o} for p, o in enumerate(offsets)]
        wanted.write_text(json.dumps({"version": 1, "partitions": rows}))
        return tool("kafka-delete-records", "--offset-json-file", str(wanted))

    deleted = delete(4, -1)
    assert f"partition: {topic}-0\tlow_watermark: 4" in deleted.lines
    assert f"partition: {topic}-1\tlow_watermark: 10" in deleted.lines
    assert "OffsetOutOfRangeException" in delete(11, -1).out
    early = tool("kafka-get-offsets", "--topic", topic, "--time", "earliest")
    assert _offsets(early) == {0: 4, 1: 10}
    read = tool(
        *("kafka-console-consumer", "--topic", topic, "--partition", "0"),
        *("--offset", "earliest", "--max-messages", "6"),
    )
    assert read.lines == ["4", "5", "6", "7", "8", "9"]


def test_log_directories_are_described(kafka: Kafka, tool: Tool, node_ids: list[int]) -> None:
    topic = kafka.topic(partitions=2)
    kafka.produce(topic, [b"x" * 1000])
    described = tool("kafka-log-dirs", "--describe", "--topic-list", topic).lines[-1]
    brokers = json.loads(described)["brokers"]
    assert sorted(broker["broker"] for broker in brokers) == node_ids
    for broker in brokers:
        (directory,) = broker["logDirs"]
        assert directory["error"] is None
        sizes = {entry["partition"]: entry["size"] for entry in directory["partitions"]}
        assert set(sizes) == {f"{topic}-0", f"{topic}-1"}
        assert 1000 < sum(sizes.values()) < 1200
        assert all(entry["offsetLag"] == 0 for entry in directory["partitions"])
        assert not any(entry["isFuture"] for entry in directory["partitions"])


# -- the cluster


def test_cluster_describes_itself(tool: Tool, node_ids: list[int]) -> None:
    cluster_id = tool("kafka-cluster", "cluster-id").lines[0].removeprefix("Cluster ID: ")
    assert re.fullmatch(r"[\w-]{22}", cluster_id)
    endpoints = tool("kafka-cluster", "list-endpoints").table
    assert sorted(row[0] for row in endpoints[-len(node_ids) :]) == [str(n) for n in node_ids]

    quorum = "kafka-metadata-quorum"
    status = dict(
        re.split(r":\s+", line, maxsplit=1) for line in tool(quorum, "describe", "--status").lines
    )
    assert status["ClusterId"] == cluster_id
    assert int(status["LeaderId"]) in node_ids
    assert int(status["HighWatermark"]) > 0
    assert int(status["MaxFollowerLag"]) <= 10  # the leader may just have written
    assert [voter["id"] for voter in json.loads(status["CurrentVoters"])] == node_ids
    leader, *followers = tool(quorum, "describe", "--replication").table[1:]
    assert (leader[0], leader[3], leader[-1]) == (status["LeaderId"], "0", "Leader")
    assert [row[-1] for row in followers] == ["Follower"] * (len(node_ids) - 1)

    features = {
        fields["Feature"].strip(): fields
        for line in tool("kafka-features", "describe").lines
        for fields in [dict(re.findall(r"(\w+): (\S+)", line))]
    }
    assert features["metadata.version"]["FinalizedVersionLevel"] == "4.3-IV0"
    assert features["group.version"]["FinalizedVersionLevel"] == "1"
    refused = tool("kafka-features", "downgrade", "--feature", "metadata.version=7", exit_code=1)
    assert "Could not downgrade metadata.version to 7" in refused.out


def test_api_versions_are_those_of_kafka(kafka: Kafka, tool: Tool, node_ids: list[int]) -> None:
    """Each API is served in all of Kafka's versions, and usable."""
    lines = tool("kafka-broker-api-versions").lines
    if len(node_ids) == 1:
        assert lines[0].startswith(f"{kafka.bootstrap_servers} (id: 1 rack: null isFenced: false)")
    else:
        assert re.search(r"\(id: [123] rack: rack-[123] isFenced: false\)", lines[0])
    served = {
        int(match[1]): match[2]
        for line in lines[1:]
        if (match := re.match(r"\s+\w+\((\d+)\): (.+?),?$", line))
    }
    assert served[0] == "0 to 13 [usable: 13]"
    assert served[1] == "4 to 18 [usable: 18]"
    assert served[3] == "0 to 13 [usable: 13]"
    assert served[18] == "0 to 4 [usable: 4]"
    assert not any("UNKNOWN" in versions for versions in served.values())


# -- load


def test_performance_tools(java: JavaHost, kafka: Kafka, tool: Tool) -> None:
    topic = kafka.topic(partitions=3)
    server = f"bootstrap.servers={kafka.bootstrap_servers}"
    sent = java.run(
        *("kafka-producer-perf-test", "--topic", topic, "--num-records", "20000"),
        *("--record-size", "200", "--throughput", "-1", "--command-property", server),
        *("acks=all", "compression.type=lz4"),
    )
    assert sent.out.startswith("20000 records sent")
    read = tool("kafka-consumer-perf-test", "--topic", topic, "--num-records", "20000")
    heads, values = (re.split(r",\s*", line) for line in read.lines[-2:])
    assert dict(zip(heads, values, strict=True))["data.consumed.in.nMsg"] == "20000"
    latency = tool(
        *("kafka-e2e-latency", "--topic", topic, "--num-records", "100"),
        *("--producer-acks", "all", "--record-size", "100"),
    )
    assert re.search(r"Avg latency: [\d.]+ ms", latency.out)


@pytest.mark.parametrize("acks", ["1", "-1"])
def test_verifiable_producer(java: JavaHost, kafka: Kafka, acks: str) -> None:
    topic = kafka.topic(partitions=2)
    run = java.start(
        *("kafka-verifiable-producer", "--bootstrap-server", kafka.bootstrap_servers),
        *("--topic", topic, "--max-messages", "200", "--acks", acks, "--repeating-keys", "7"),
    )
    run.wait()
    lines = run.json_lines()
    assert lines[-1]["name"] == "tool_data"
    assert lines[-1]["sent"] == lines[-1]["acked"] == 200
    assert sorted(filter(None, kafka.consume(topic, 200))) == sorted(
        b"%d" % index for index in range(200)
    )


def _fields(line: str) -> dict[str, str]:
    """'Topic: t<tab>Partition: 0' as a mapping."""
    parts = [part for part in line.strip().split("\t") if part]
    return {name: value.strip() for name, _, value in (part.partition(":") for part in parts)}


def _configs(result: ToolResult) -> dict[str, str]:
    """Return the configs that kafka-configs shows, by name."""
    found = re.findall(r"^  (\S+)=(.*) sensitive=(?:true|false) ", result.out, re.MULTILINE)
    return dict(found)


def _offsets(result: ToolResult) -> dict[int, int]:
    """'topic:partition:offset' lines, by partition."""
    rows = [line.rsplit(":", 2) for line in result.lines]
    return {int(partition): int(offset) for _, partition, offset in rows if offset}


def _committed(result: ToolResult) -> dict[int, int]:
    """CURRENT-OFFSET by partition."""
    return {int(row[2]): int(row[3]) for row in result.table[1:]}


def _shown(name: str) -> tuple[str, str]:
    return "--formatter-property", f"print.{name}=true"


def _assigned(run: ToolRun) -> set[int]:
    """The partitions that a verifiable consumer has."""
    partitions: set[int] = set()
    for event in run.json_lines():
        named = {entry["partition"] for entry in _partitions(event)}
        if event["name"] == "partitions_assigned":
            partitions |= named
        elif event["name"] == "partitions_revoked":
            partitions -= named
    return partitions


def _partitions(event: dict[str, Any]) -> list[dict[str, Any]]:
    return event["partitions"] if event["name"].startswith("partitions_") else []


def _commits(run: ToolRun, partition: int) -> list[int]:
    """Return the offsets that a verifiable consumer committed between two assignments."""
    return [
        entry["offset"]
        for event in run.json_lines()
        if event["name"] == "offsets_committed" and event["success"]
        for entry in event["offsets"]
        if entry["partition"] == partition
    ]


def _consumed(runs: list[ToolRun]) -> list[str]:
    """Values that verifiable consumers read."""
    return [
        event["value"]
        for run in runs
        for event in run.json_lines()
        if event["name"] == "record_data"
    ]

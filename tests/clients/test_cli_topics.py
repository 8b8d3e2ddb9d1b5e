"""`barnabas topic` and `barnabas config` against a cluster."""

from __future__ import annotations

import pytest

from barnabas.app.testing import Kafka
from support.cli import ClusterCli
from support.node_process import wait_until


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.topic(partitions=2)


def node_count(kafka: Kafka) -> int:
    """Return the number of nodes, which is also the default number of replicas."""
    return len(kafka.bootstrap_servers.split(","))


def test_topics_come_and_go(cli: ClusterCli, kafka: Kafka) -> None:
    name = kafka.name()
    assert cli.json("topic", "create", name, "-p", "3") == [{"name": name, "created": True}]
    rows = cli.json("topic", "list", "--match", f"^{name}$")
    assert rows == [{"name": name, "partitions": 3, "replicas": node_count(kafka)}]
    assert cli.json("topic", "delete", name, "--yes") == [{"name": name, "deleted": True}]
    assert cli.json("topic", "list", "--match", f"^{name}$") == []


def test_replicas_have_kafkas_name_too(cli: ClusterCli, kafka: Kafka) -> None:
    name = kafka.name()
    cli.ok("topic", "create", name, "--replication-factor", "1")
    (row,) = cli.json("topic", "list", "--match", f"^{name}$")
    assert row["replicas"] == 1


def test_internal_topics_are_shown_on_request(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    kafka.produce(topic, [b"a"])
    cli.ok("consume", topic, "-g", kafka.name("group"))
    assert "__consumer_offsets" not in cli.ok("topic", "list").text
    assert "__consumer_offsets" in cli.ok("topic", "list", "--internal").text


def test_a_topic_that_exists(cli: ClusterCli, topic: str) -> None:
    refused = cli.run("topic", "create", topic)
    assert refused.code == 1
    assert "TOPIC_ALREADY_EXISTS" in refused.err
    assert refused.err.count("\n") == 1
    row = {"name": topic, "created": False}
    assert cli.json("topic", "create", topic, "--if-not-exists") == [row]


def test_a_topic_that_does_not_exist(cli: ClusterCli, kafka: Kafka) -> None:
    name = kafka.name()
    for command in (["topic", "describe", name], ["topic", "delete", name, "-y"]):
        result = cli.run(*command)
        assert result.code == 4, result.err
        assert name in result.err
    assert cli.run("consume", name, "--group", "g").code == 4
    row = {"name": name, "deleted": False}
    assert cli.json("topic", "delete", name, "-y", "--if-exists") == [row]


def test_validation_alone_creates_nothing(cli: ClusterCli, kafka: Kafka) -> None:
    name = kafka.name()
    cli.ok("topic", "create", name, "--validate-only")
    assert cli.json("topic", "list", "--match", name) == []
    refused = cli.run("topic", "create", name, "--validate-only", "-c", "retention.ms=soon")
    assert refused.code == 1


def test_describe(cli: ClusterCli, kafka: Kafka) -> None:
    name = kafka.topic(partitions=2, config={"retention.ms": "5000"})
    cli.ok("produce", name, "-v", "a", "-v", "b", "-p", "1")
    (topic,) = cli.json("topic", "describe", name)
    assert topic["name"] == name
    assert len(topic["id"]) == 22
    assert topic["config"] == {"retention.ms": "5000"}
    assert [row["end"] for row in topic["partitions"]] == [0, 2]
    assert [row["records"] for row in topic["partitions"]] == [0, 2]
    for row in topic["partitions"]:
        assert len(row["replicas"]) == node_count(kafka)
        assert sorted(row["replicas"]) == sorted(row["isr"])
        assert row["replicas"][0] == row["leader"]
    text = cli.ok("topic", "describe", name).text
    assert "retention.ms=5000" in text
    assert text.splitlines()[2].split() == [
        "PARTITION",
        "LEADER",
        "REPLICAS",
        "ISR",
        "START",
        "END",
        "RECORDS",
    ]


def test_alter(cli: ClusterCli, topic: str) -> None:
    cli.ok("topic", "alter", topic, "-p", "4", "-c", "retention.ms=9", "-c", "flush.ms=7")
    cli.ok("topic", "alter", topic, "--unset", "flush.ms")
    (described,) = cli.json("topic", "describe", topic)
    assert described["config"] == {"retention.ms": "9"}
    assert len(described["partitions"]) == 4
    assert cli.run("topic", "alter", topic).code == 2
    fewer = cli.run("topic", "alter", topic, "-p", "1")
    assert fewer.code == 1
    assert "INVALID_PARTITIONS" in fewer.err


def test_trim(cli: ClusterCli, topic: str) -> None:
    cli.ok("produce", topic, "-p", "0", stdin=b"a\nb\nc\nd\n")
    rows = cli.json("topic", "trim", topic, "--before", "-1", "-p", "0", "--yes")
    assert rows == [{"topic": topic, "partition": 0, "start": 3}]
    assert cli.ok("consume", topic).lines == ["d"]


def test_nobody_is_asked_without_a_terminal(cli: ClusterCli, topic: str) -> None:
    result = cli.run("topic", "delete", topic)
    assert result.code == 2
    assert "--yes" in result.err


def test_config_of_a_topic(cli: ClusterCli, topic: str) -> None:
    assert cli.ok("config", "set", "topic", topic, "retention.ms=77").code == 0
    rows = {row["key"]: row for row in cli.json("config", "describe", "topic", topic)}
    assert rows["retention.ms"]["value"] == "77"
    assert rows["retention.ms"]["source"] == "topic"
    everything = cli.json("config", "describe", "topic", topic, "--all")
    assert len(everything) > 25
    cli.ok("config", "delete", "topic", topic, "retention.ms")
    keys = [row["key"] for row in cli.json("config", "describe", "topic", topic)]
    assert "retention.ms" not in keys


def test_config_that_cannot_be(cli: ClusterCli, topic: str) -> None:
    refused = cli.run("config", "set", "topic", topic, "retention.ms=soon")
    assert refused.code == 1
    assert "INVALID_CONFIG" in refused.err
    assert cli.run("config", "set", "topic", topic, "retention.ms").code == 2


def test_config_of_brokers(cli: ClusterCli) -> None:
    rows = {row["key"]: row for row in cli.json("config", "describe", "broker", "1", "--all")}
    assert rows["node.id"]["value"] == "1"
    assert rows["log.retention.hours"]["source"] == "default"
    cli.ok("config", "set", "broker", "all", "log.retention.ms=654321")

    def is_set() -> bool:
        rows = cli.json("config", "describe", "broker", "1")
        wanted = ("log.retention.ms", "654321", "broker")
        return wanted in [(row["key"], row["value"], row["source"]) for row in rows]

    try:
        wait_until(is_set, "the broker's new value")
    finally:
        cli.ok("config", "delete", "broker", "all", "log.retention.ms")
    refused = cli.run("config", "set", "broker", "1", "node.id=5")
    assert refused.code == 1


def test_defaults_of_all_brokers(cli: ClusterCli) -> None:
    before = cli.json("config", "describe", "broker", "defaults")
    assert "log.retention.ms" not in {row["key"] for row in before}
    cli.ok("config", "set", "broker", "defaults", "log.retention.ms=765432")

    def sources() -> set[tuple[str, str]]:
        rows = cli.json("config", "describe", "broker", "1")
        return {(row["value"], row["source"]) for row in rows if row["key"] == "log.retention.ms"}

    try:
        wait_until(lambda: sources() == {("765432", "broker defaults")}, "the new default")
        rows = cli.json("config", "describe", "broker", "defaults")
        wanted = ("defaults", "log.retention.ms", "765432")
        assert wanted in {(row["name"], row["key"], row["value"]) for row in rows}
    finally:
        cli.ok("config", "delete", "broker", "defaults", "log.retention.ms")
    refused = cli.run("config", "set", "broker", "defaults", "log.retention.ms=soon")
    assert (refused.code, "log.retention.ms" in refused.err) == (1, True)


@pytest.mark.parametrize("what", [["describe"], ["set", "a=b"], ["delete", "a"]])
@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("", 2, "give the broker's id, all or defaults"),
        ("one", 2, "must be an id, all or defaults"),
        ("77", 4, "there is no broker 77; there are 1"),
    ],
)
def test_brokers_that_there_are_not(
    cli: ClusterCli, what: list[str], name: str, code: int, told: str
) -> None:
    command, *rest = what
    result = cli.run("config", command, "broker", name, *rest)
    assert result.code == code
    assert told in result.err


def test_passwords_are_hidden(cli: ClusterCli) -> None:
    rows = {row["key"]: row for row in cli.json("config", "describe", "broker", "1", "--all")}
    assert rows["ssl.key.password"]["value"] == "[hidden]"

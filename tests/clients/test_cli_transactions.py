"""`barnabas transaction` beside Kafka's own tool."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.app.testing import Kafka
from barnabas.protocol.errors import ErrorCode
from support.cli import ClusterCli
from support.hanging_transaction import HOUR_MS, STRANGER, VERIFICATION, write_hanging
from support.java_host import JavaHost
from support.node_process import wait_until
from support.patience import PATIENCE_S


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


@pytest.fixture
def unverified(cli: ClusterCli) -> Iterator[None]:
    """Brokers that take transactional records of which the coordinator knows nothing."""
    cli.ok("config", "set", "broker", "defaults", f"{VERIFICATION}=false")
    yield
    cli.ok("config", "delete", "broker", "defaults", VERIFICATION)


def leader(cli: ClusterCli, kafka: Kafka, topic: str) -> str:
    """The address of the leader of partition 0."""
    (found,) = cli.json("topic", "describe", topic)
    addresses = kafka.bootstrap_servers.split(",")
    return addresses[int(found["partitions"][0]["leader"]) - 1]


def leave_hanging(cli: ClusterCli, kafka: Kafka, topic: str) -> None:
    """Write a record of a transaction that no coordinator knows, an hour old."""
    name = kafka.name()

    def is_written() -> bool:
        code = write_hanging(leader(cli, kafka, topic), topic, name)
        return code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)

    wait_until(is_written, "the leader taking an unverified record")


def opened(kafka: Kafka, name: str, topic: str) -> Producer:
    producer = kafka.producer(transactional_id=name, transaction_timeout_ms=900_000)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush(PATIENCE_S)
    return producer


def test_a_hanging_transaction_is_found_as_kafkas_tool_finds_it_and_aborted(
    unverified: None, cli: ClusterCli, kafka: Kafka, java: JavaHost
) -> None:
    topic = kafka.topic(config={"message.timestamp.type": "CreateTime"})
    cli.ok("produce", topic, "-v", "first")
    opened(kafka, kafka.name("alive"), topic)
    leave_hanging(cli, kafka, topic)
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    theirs = java.run("kafka-transactions", *server, "find-hanging", "--topic", topic).table
    found = cli.run("transaction", "find-hanging", "--topic", topic, "--json")
    (row,) = found.json
    assert found.code == 5
    ours = [str(-1 if value is None else value) for value in row.values()]
    assert [ours[:7]] == [line[:7] for line in theirs[1:]]
    assert (row["producer_id"], row["start_offset"], row["duration_min"]) == (STRANGER, 2, 60)
    assert "duration min".upper() in cli.run("transaction", "find-hanging").text
    assert cli.run("transaction", "find-hanging", "-t", topic, "-p", "0").code == 5
    waiting = cli.json_lines("consume", topic)
    assert [record["value"] for record in waiting] == ["first"]
    recent = ("--max-transaction-timeout", "61")
    assert cli.json("transaction", "find-hanging", "--topic", topic, *recent) == []
    refused = cli.run("transaction", "abort", "-t", topic, "-p", "0", "--start-offset", "2")
    assert (refused.code, "give --yes" in refused.err) == (2, True)
    place = ("--topic", topic, "--partition", "0")
    done = cli.json("transaction", "abort", *place, "--start-offset", "2", "--yes")
    assert (done["producer_id"], done["aborted"]) == (STRANGER, True)
    assert cli.json("transaction", "find-hanging", "--topic", topic) == []
    rows = cli.json("transaction", "describe-producers", *place)
    assert {row["producer_id"]: row["start_offset"] for row in rows}[STRANGER] is None
    again = cli.run("transaction", "abort", *place, "--start-offset", "2", "--yes")
    assert (again.code, "begins at offset 2" in again.err) == (4, True)


def test_transactions_are_listed_described_and_terminated(
    cli: ClusterCli, kafka: Kafka, java: JavaHost
) -> None:
    topic = kafka.topic(partitions=2)
    name = kafka.name()
    producer = opened(kafka, name, topic)
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    (theirs,) = [
        line for line in java.run("kafka-transactions", *server, "list").table if line[0] == name
    ]
    (row,) = [row for row in cli.json("transaction", "list") if row["transactional_id"] == name]
    assert [str(value) for value in row.values()] == theirs
    for options, listed in (
        (("--state", "Ongoing"), True),
        (("--state", "CompleteCommit"), False),
        (("--producer-id", str(row["producer_id"])), True),
        (("--duration-filter", str(HOUR_MS)), False),
        (("--transactional-id-pattern", f"{name[:-1]}."), True),
    ):
        found = {row["transactional_id"] for row in cli.json("transaction", "list", *options)}
        assert (name in found) is listed, options
    assert cli.run("transaction", "list", "--state", "Nonsense").code == 2
    (described,) = cli.json("transaction", "describe", name)
    assert described["state"] == "Ongoing"
    assert described["partitions"] in ([f"{topic}-0"], [f"{topic}-1"])
    assert 0 <= described["duration_ms"] < HOUR_MS
    assert f"transactional id  {name}\n" in cli.ok("transaction", "describe", name).text
    number = described["partitions"][0][-1]
    producers = cli.json("transaction", "describe-producers", "-t", topic, "-p", number)
    assert [(item["producer_id"], item["start_offset"]) for item in producers] == [
        (row["producer_id"], 0)
    ]
    assert cli.json("transaction", "terminate", name, "--yes")["terminated"]
    assert cli.json("transaction", "describe", name)[0]["partitions"] == []
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_S)


def test_what_there_is_not(cli: ClusterCli, kafka: Kafka) -> None:
    topic = kafka.topic()
    for arguments in (
        ("transaction", "describe", "nobody"),
        ("transaction", "terminate", "nobody", "--yes"),
        ("transaction", "describe-producers", "-t", topic, "-p", "9"),
        ("transaction", "describe-producers", "-t", "no-such-topic", "-p", "0"),
        ("transaction", "find-hanging", "-t", "no-such-topic"),
        ("transaction", "find-hanging", "-t", topic, "-p", "9"),
        ("transaction", "abort", "-t", topic, "-p", "0", "--start-offset", "0", "--yes"),
    ):
        result = cli.run(*arguments)
        assert (result.code, result.err.count("\n")) == (4, 1), result.err
    for words in (
        ("transaction", "find-hanging", "-p", "0"),
        ("transaction", "abort", "-t", topic, "-p", "0"),
        ("transaction", "abort", "-t", topic, "-p", "0", "--producer-id", "0"),
        (
            "transaction",
            "abort",
            "-t",
            topic,
            "-p",
            "0",
            "--producer-id",
            "0",
            "--start-offset",
            "1",
        ),
    ):
        assert cli.run(*words).code == 2, words

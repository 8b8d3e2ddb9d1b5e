"""`barnabas perf` with small loads: what is counted is what was sent and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.app.testing import Kafka
from barnabas.cli.records.perf_load import Stats, percentiles
from support.cli import ClusterCli

LATENCIES = ["avg", "max", "p50", "p95", "p99", "p99_9"]


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.topic(partitions=2)


def test_records_of_a_size(cli: ClusterCli, topic: str) -> None:
    sent = cli.json("perf", "produce", topic, "--num-records", "300", "--record-size", "120")
    assert (sent["topic"], sent["records"]) == (topic, 300)
    assert list(sent["latency_ms"]) == LATENCIES
    assert 0 < sent["latency_ms"]["p50"] <= sent["latency_ms"]["p99"] <= sent["latency_ms"]["max"]
    records = cli.json_lines("consume", topic)
    assert {len(record["value"]) for record in records} == {120}
    assert len({record["value"] for record in records}) > 200
    read = cli.json("perf", "consume", topic, "--num-records", "300")
    assert (read["records"], read["size_bytes"]) == (300, 300 * 120)
    assert read["elapsed_ms"] >= read["rebalance_ms"]
    line = cli.ok("perf", "consume", topic, "-n", "300").text
    assert line.startswith("300 records read, ")


def test_records_of_a_file_and_numbers(cli: ClusterCli, topic: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("one|two|three")
    options = ("--payload-file", str(lines), "--payload-delimiter", "|")
    shown = cli.ok("perf", "produce", topic, "-n", "60", *options).text
    assert shown.startswith("60 records sent, ")
    assert " ms 99.9th\n" in shown
    values = [record["value"] for record in cli.json_lines("consume", topic)]
    assert set(values) == {"one", "two", "three"}
    cli.ok("perf", "produce", topic, "-n", "40", "--payload-monotonic")
    values = [record["value"] for record in cli.json_lines("consume", topic)]
    assert {str(number) for number in range(40)} <= set(values)


def test_a_rate_is_held_and_reported(cli: ClusterCli, topic: str) -> None:
    rate = ("--throughput", "200", "--reporting-interval", "50", "--warmup-records", "20")
    shown = cli.ok("perf", "produce", topic, "-n", "60", "--record-size", "10", *rate).lines
    assert len(shown) >= 3, "intervals, the summary, the steady state"
    assert shown[-1].startswith("steady state: 40 records sent, ")
    sent = cli.json("perf", "produce", topic, "-n", "60", "--record-size", "10", *rate)
    assert sent["records_per_s"] <= 250
    assert sent["steady_state"]["records"] == 40


def test_transactions_are_committed(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    # For a second: a pause before the first transaction must not leave all to be sent at once.
    options = ("--payload-monotonic", "--throughput", "60", "--transaction-duration-ms", "20")
    sent = cli.json("perf", "produce", topic, "-n", "60", *options)
    assert sent["transactions"] > 1
    assert len(cli.json_lines("consume", topic)) == 60
    name = kafka.name()
    named = ("--payload-monotonic", "--transactional-id", name)
    assert cli.json("perf", "produce", topic, "-n", "5", *named)["transactions"] == 1
    (described,) = cli.json("transaction", "describe", name)
    assert described["state"] in ("CompleteCommit", "PrepareCommit")


def test_properties_reach_the_clients(cli: ClusterCli, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    file.write_text("compression.type=no-such-codec\nbuffer.memory=33554432\n")
    arguments = ("perf", "produce", topic, "-n", "1", "--payload-monotonic")
    refused = cli.run(*arguments, "--producer-config", str(file))
    assert (refused.code, "compression" in refused.err) == (2, True)
    properties = ("--producer-props", "compression.type=lz4", "--producer-props", "linger.ms=1")
    cli.ok(*arguments, "--producer-config", str(file), *properties)
    unknown = cli.run("perf", "consume", topic, "-n", "1", "--consumer-props", "no.such=1")
    assert (unknown.code, "no.such" in unknown.err) == (2, True)


def test_a_group_goes_on_where_it_was(cli: ClusterCli, topic: str, kafka: Kafka) -> None:
    cli.ok("perf", "produce", topic, "-n", "30", "--payload-monotonic")
    name = kafka.name()
    assert cli.json("perf", "consume", topic, "-n", "30", "--group", name)["records"] == 30
    (group,) = cli.json("group", "describe", name)
    assert group["lag"] == 0
    more = cli.run("perf", "consume", topic, "-n", "5", "--group", name, "--timeout", "1")
    assert (more.code, "0 of 5 were read" in more.err) == (1, True)


def test_what_cannot_be(cli: ClusterCli, topic: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for arguments, code in (
        (("produce", topic, "-n", "1"), 2),
        (("produce", topic, "-n", "1", "--record-size", "1", "--payload-monotonic"), 2),
        (("produce", topic, "-n", "1", "--payload-file", str(empty)), 2),
        (("produce", topic, "-n", "5", "--record-size", "1", "--warmup-records", "5"), 2),
        (("produce", "no-such-topic", "-n", "1", "--record-size", "1"), 4),
        (("consume", "no-such-topic", "-n", "1"), 4),
        (("consume", topic, "-n", "1", "--group", ""), 2),
        (("produce", topic, "-n", "1", "--record-size", "3000000"), 1),
    ):
        result = cli.run("perf", *arguments)
        assert (result.code, result.err.count("\n")) == (code, 1), result.err


def test_percentiles() -> None:
    assert percentiles([float(number) for number in range(1000)]) == {
        "p50": 500.0,
        "p95": 950.0,
        "p99": 990.0,
        "p99_9": 999.0,
    }
    assert set(percentiles([]).values()) == {0.0}
    stats = Stats(2_000_000, 0.0)
    for number in range(1_000):
        stats.add(float(number), 1024 * 1024)
    figures = stats.figures(10.0)
    assert (figures["records"], figures["records_per_s"], figures["mb_per_s"]) == (1000, 100, 100)
    assert figures["latency_ms"]["max"] == 999.0
    assert 490 < figures["latency_ms"]["p50"] < 510, "every fourth is kept"

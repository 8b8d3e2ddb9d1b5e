"""`barnabas feature` beside Kafka's own tool, and `barnabas log dirs`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

import barnabas
from barnabas.app.testing import Kafka
from support.cli import ClusterCli, run_cli
from support.java_host import JavaHost

FIELD = re.compile(r"(\w+): (\S+)")


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


def test_levels_are_those_that_kafkas_tool_shows(
    cli: ClusterCli, kafka: Kafka, java: JavaHost
) -> None:
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    theirs = java.run("kafka-features", *server, "describe").lines
    told = [dict(FIELD.findall(line)) for line in theirs]
    shown = [line.split() for line in cli.ok("feature", "describe").lines[1:]]
    keys = ("Feature", "SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel")
    assert [row[:4] for row in shown] == [[item[key] for key in keys] for item in told]
    rows = cli.json("feature", "describe")
    assert {row["feature"] for row in rows} >= {"metadata.version", "kraft.version"}
    mapping = [
        line.split()
        for line in java.run(
            "kafka-features", *server, "version-mapping", "--release-version", "4.2"
        ).lines
    ]
    ours = run_cli("feature", "version-mapping", "--release-version", "4.2", "--json").json
    assert {f"{row['feature']}={row['level']}" for row in ours} == {
        words[0].rstrip("=") for words in mapping if "=" in words[0]
    }


@pytest.fixture(scope="module", params=[1, 3])
def own(request: pytest.FixtureRequest) -> Iterator[ClusterCli]:
    """Clusters whose levels may change."""
    with barnabas.Cluster(nodes=request.param) as cluster:
        yield ClusterCli(cluster.bootstrap_servers)


def finalized(cli: ClusterCli) -> dict[str, int]:
    return {row["feature"]: row["finalized"] for row in cli.json("feature", "describe")}


def test_levels_are_lowered_and_raised(own: ClusterCli) -> None:
    before = finalized(own)
    assert before["transaction.version"] == 2
    lower = ("feature", "downgrade", "--feature", "transaction.version=1")
    assert own.json(*lower, "--dry-run") == [
        {"feature": "transaction.version", "level": 1, "changed": False}
    ]
    assert finalized(own) == before
    refused = own.run(*lower)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    own.ok(*lower, "--yes")
    own.wait_until_each(lambda cli: finalized(cli)["transaction.version"] == 1, "the lower level")
    own.ok("feature", "disable", "--feature", "share.version", "--yes")
    own.wait_until_each(lambda cli: finalized(cli)["share.version"] == 0, "the level 0")
    raised = own.json("feature", "upgrade", "--release-version", "4.3", "--yes")
    assert {row["feature"] for row in raised} == {"transaction.version", "share.version"}
    own.wait_until_each(lambda cli: finalized(cli) == before, "the levels of before")
    again = own.ok("feature", "upgrade", "--release-version", "4.3", "--yes")
    assert again.text == "All features have these levels already.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("upgrade", "--feature", "metadata.version=9999", "--yes"), 1, "metadata.version"),
        (("upgrade", "--feature", "no.such.feature=1", "--yes"), 1, "no.such.feature"),
        (("downgrade", "--feature", "metadata.version=3.3", "--yes"), 1, "metadata.version"),
        (("upgrade", "--yes"), 2, "--release-version"),
        (("upgrade", "--feature", "share.version", "--yes"), 2, "NAME=LEVEL"),
        (("upgrade", "--feature", "share.version=one", "--yes"), 2, "not a level"),
        (("upgrade", "-f", "share.version=1", "-f", "share.version=1", "--yes"), 2, "twice"),
        (("upgrade", "--release-version", "9.9", "--yes"), 2, "9.9"),
    ],
)
def test_what_is_refused_is_one_line(
    cli: ClusterCli, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = cli.run("feature", *arguments)
    assert (result.code, result.err.count("\n")) == (code, 1), result.err
    assert words in result.err


def test_dependencies() -> None:
    feature = "eligible.leader.replicas.version=1"
    shown = run_cli("feature", "dependencies", "--feature", feature).lines
    assert shown[1].split() == ["eligible.leader.replicas.version", "1", "metadata.version=4.0-IV1"]
    assert run_cli("feature", "dependencies", "--feature", "no.such=1").code == 4
    assert run_cli("feature", "dependencies").code == 2


def test_log_directories_as_kafkas_tool_tells_them(
    cli: ClusterCli, kafka: Kafka, java: JavaHost
) -> None:
    topic = kafka.topic(partitions=2)
    cli.ok("produce", topic, "-v", "x" * 5000, "-p", "0")
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    arguments = ("kafka-log-dirs", *server, "--describe", "--topic-list", topic)
    (text,) = [line for line in java.run(*arguments).lines if line.startswith("{")]
    theirs = {
        (broker["broker"], directory["logDir"], replica["partition"]): replica["size"]
        for broker in json.loads(text)["brokers"]
        for directory in broker["logDirs"]
        for replica in directory["partitions"]
    }
    found = cli.json("log", "dirs", "--topic-list", topic)
    assert theirs == {
        (item["broker"], item["directory"], replica["partition"]): replica["size_bytes"]
        for item in found
        for replica in item["replicas"]
    }
    assert max(theirs.values()) > 5000
    table = cli.ok("log", "dirs", "--topic-list", topic, "--replicas").lines
    assert table[0].split()[:4] == ["BROKER", "DIRECTORY", "PARTITION", "SIZE"]
    assert len(table) == 1 + len(theirs)
    total = cli.ok("log", "dirs", "--broker-list", "1").lines
    assert len(total) == 2
    assert cli.run("log", "dirs", "--broker-list", "99").code == 4
    assert cli.run("log", "dirs", "--broker-list", "one").code == 2
    assert cli.run("log", "dirs", "--topic-list", "no-such-topic").code == 4

"""`barnabas group` while a group's coordinator moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.cli.group import calls as committed
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from support.cli import ClusterCli

MOVED = ErrorCode.NOT_COORDINATOR


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Cluster() as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        yield kafka


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """Five records in the second of three partitions, where the group `g` committed 3."""
    name = kafka.topic(partitions=3)
    producer = kafka.producer()
    for _ in range(5):
        producer.produce(name, b"record", partition=1)
    producer.flush()
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g"})
    offsets = [TopicPartition(name, 1, 3, "a note")]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    return name


def refuse(monkeypatch: pytest.MonkeyPatch, error: ErrorCode, times: int) -> Iterator[int]:
    """Have that many requests for committed offsets refused; returns those still to come."""
    answer = GroupCoordinator.offset_fetch
    refusals = iter(range(times))

    def refuse_at_first(
        service: GroupCoordinator, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> Any:
        if next(refusals, None) is None:
            return answer(service, request, require_stable=require_stable)
        return OffsetFetchResponseGroup(group_id=request.group_id, error_code=error)

    monkeypatch.setattr(GroupCoordinator, "offset_fetch", refuse_at_first)
    return refusals


def test_committed_offsets_are_shown(cli: ClusterCli, topic: str) -> None:
    (described,) = cli.json("group", "describe", "g")
    (row,) = described["offsets"]
    shown = ("topic", "partition", "offset", "end", "lag", "metadata")
    assert [row[key] for key in shown] == [topic, 1, 3, 5, 2, "a note"]


def test_partitions_are_asked_for_in_parts(
    cli: ClusterCli, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "BATCH_MAX", 2)
    cli.ok("group", "reset-offsets", "g", "--topic", topic, "--to", "0", "--execute")
    (described,) = cli.json("group", "describe", "g")
    rows = [(row["topic"], row["partition"], row["offset"]) for row in described["offsets"]]
    assert rows == [(topic, number, 0) for number in range(3)]


@pytest.mark.parametrize("error", [MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_moves_is_waited_for(
    cli: ClusterCli, topic: str, monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    """librdkafka's admin client ends the process where it gets the answer NOT_COORDINATOR."""
    refusals = refuse(monkeypatch, error, 3)
    (described,) = cli.json("group", "describe", "g")
    assert described["lag"] == 2
    assert next(refusals, None) is None
    refusals = refuse(monkeypatch, error, 3)
    row = {"topic": topic, "partition": 1, "before": 3, "after": 1}
    assert cli.json("group", "reset-offsets", "g", "--all-topics", "--to", "1") == [row]
    assert next(refusals, None) is None


def test_a_coordinator_that_is_never_there_is_one_line(
    cli: ClusterCli, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, MOVED, 1_000)
    result = cli.run("group", "describe", "g", "--timeout", "1")
    assert (result.code, result.out) == (1, b"")
    assert "g: " in result.err
    assert "[NOT_COORDINATOR]" in result.err


def test_a_group_has_a_name(cli: ClusterCli) -> None:
    result = cli.run("group", "reset-offsets", "", "--all-topics", "--to", "0")
    assert result.code == 2
    assert "cannot be empty" in result.err

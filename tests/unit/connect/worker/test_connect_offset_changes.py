"""Changes to a sink's offsets, at a cluster: what is not named stays, whatever fails in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.connect.tasks.clients import admin_settings
from barnabas.connect.worker import offset_requests
from barnabas.connect.worker.offset_requests import sink_offsets
from barnabas.kafka.wire_admin import NoControllerError, WireAdmin
from barnabas.schemas.data.errors import ConnectError
from support.connect.herder_world import SINK
from support.node_process import wait_until

PARTITIONS = 4


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Cluster() as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        yield kafka


class Sink:
    """A stopped sink whose group has read ten records of each partition."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka, self.name, self.topic = kafka, kafka.name("sink"), kafka.topic("t", PARTITIONS)
        self.config = {"connector.class": SINK, "topics": self.topic}
        self.worker = {"bootstrap.servers": kafka.bootstrap_servers}
        self.group = f"connect-{self.name}"
        consumer = self.consumer()
        places = [TopicPartition(self.topic, number, 10) for number in range(PARTITIONS)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def consumer(self) -> Consumer:
        return self.kafka.consumer(**{"group.id": self.group, "enable.auto.commit": False})

    def modify(self, offsets: dict[int, int | None] | None) -> str:
        given: Sequence[Any] | None = None
        if offsets is not None:
            given = [
                (
                    {"kafka_topic": self.topic, "kafka_partition": number},
                    None if offset is None else {"kafka_offset": offset},
                )
                for number, offset in offsets.items()
            ]
        nowhere: Any = None
        return offset_requests.modify(nowhere, self.worker, self.name, self.config, given)

    @property
    def offsets(self) -> dict[int, int]:
        found = sink_offsets(self.worker, self.name, self.config)
        return {where["kafka_partition"]: at["kafka_offset"] for where, at in found}


@pytest.fixture
def sink(kafka: Kafka) -> Sink:
    return Sink(kafka)


def test_offsets_that_are_not_named_stay(sink: Sink) -> None:
    assert "altered successfully" in sink.modify({0: None, 1: 3})
    assert sink.offsets == {1: 3, 2: 10, 3: 10}
    sink.modify({0: None, 1: None})
    assert sink.offsets == {2: 10, 3: 10}
    assert "reset successfully" in sink.modify(None)
    assert sink.offsets == {}
    sink.modify({2: None, 3: 7})
    assert sink.offsets == {3: 7}


@pytest.mark.parametrize("step", ["_alter", "_forget"])
def test_a_worker_that_ends_in_between_loses_no_offset_that_is_kept(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def end(*_: Any) -> None:
        raise ConnectError("the worker ends here")

    monkeypatch.setattr(offset_requests, step, end)
    with pytest.raises(ConnectError, match="ends here"):
        sink.modify({0: None, 1: 3})
    found = sink.offsets
    assert (found[2], found[3]) == (10, 10)
    monkeypatch.undo()
    sink.modify({0: None, 1: 3})
    assert sink.offsets == {1: 3, 2: 10, 3: 10}


def test_offsets_that_tasks_still_read_are_not_deleted(sink: Sink) -> None:
    consumer = sink.consumer()
    consumer.subscribe([sink.topic])

    def has_all() -> bool:
        consumer.poll(0.1)
        return len(consumer.assignment()) == PARTITIONS

    wait_until(has_all, "the consumer's assignment")
    for offset in (None, 3):
        with pytest.raises(ConnectError, match="because its tasks haven't stopped completely yet"):
            sink.modify({0: offset})
    assert sink.offsets == dict.fromkeys(range(PARTITIONS), 10)
    consumer.close()
    sink.modify({0: None})
    assert sink.offsets == dict.fromkeys(range(1, PARTITIONS), 10)


def test_what_hinders_a_deletion_is_said(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    sink.worker |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    settings = admin_settings(sink.config, sink.worker)
    places = [(sink.topic, 0)]
    with pytest.raises(ConnectError, match=r"GSSAPI is not supported.*or reset all"):
        offset_requests._forget(settings, sink.group, sink.name, places)

    def away(*_: Any) -> None:
        raise NoControllerError("nobody answers")

    monkeypatch.setattr(WireAdmin, "ask", away)
    del sink.worker["security.protocol"]
    with pytest.raises(ConnectError, match=r"^Failed to alter consumer group offsets for conn"):
        sink.modify({0: None})
    assert len(sink.offsets) == PARTITIONS

"""Our own producer, if a leader closes the connection at requests that are too large for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import OffsetSpec

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.kafka import wire_producer
from barnabas.kafka.admin import Admin
from barnabas.kafka.wire import BrokenOffError
from barnabas.kafka.wire_producer import BREAKS_MIN, WireProducer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec

LIMIT = 2_000
"""The largest request that the leader reads, in bytes of records."""


class Leader:
    """Leads all partitions, and reads no request above its limit."""

    def __init__(self) -> None:
        self.limit = LIMIT
        self.breaks = 0
        """Requests to come at which it closes the connection, whatever their size."""
        self.asked: list[dict[int, int]] = []
        """The size of the records of each partition, by request."""
        self.answer = ErrorCode.NONE

    def learn(self, topics: set[str]) -> Mapping[str, Any]:
        return {}

    def forget(self) -> None:
        """Nothing is kept."""

    def partitions(self, topic: str) -> int:
        return 4

    def of(self, place: tuple[str, int]) -> int:
        return 1

    def connection(self, leader: int) -> Leader:
        return self

    def call(self, _: Any, request: Any, __: int) -> Any:
        (topic,) = request.topic_data
        sizes = {one.index: len(one.records) for one in topic.partition_data}
        self.asked.append(sizes)
        if self.breaks or sum(sizes.values()) > self.limit:
            self.breaks = max(0, self.breaks - 1)
            raise BrokenOffError("h:1 broke off: Connection reset by peer")
        parts = [
            SimpleNamespace(index=index, error_code=self.answer, base_offset=0) for index in sizes
        ]
        return SimpleNamespace(responses=[SimpleNamespace(name="t", partition_responses=parts)])


@dataclass
class World:
    """A producer, its leader, and what it reported by partition."""

    producer: WireProducer
    leader: Leader
    told: list[tuple[int, KafkaError | None]]

    def produce(self, partition: int, size: int) -> None:
        self.producer.produce("t", bytes(size), partition=partition)

    @property
    def failures(self) -> dict[int, KafkaError]:
        return {partition: error for partition, error in self.told if error is not None}


def world(monkeypatch: pytest.MonkeyPatch, **more: Any) -> World:
    monkeypatch.setattr(wire_producer, "LARGE_SIZE_BYTES", 1_000)
    monkeypatch.setattr(wire_producer, "BREAKS_SECONDS_MIN", 0.0)
    told: list[tuple[int, KafkaError | None]] = []
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "on_delivery": lambda error, message: told.append((message.partition(), error)),
        **more,
    }
    producer, leader = WireProducer(settings), Leader()
    monkeypatch.setattr(producer, "_leaders", leader)
    return World(producer, leader, told)


def test_a_record_at_which_the_connection_is_always_closed_says_why_and_hinders_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = world(monkeypatch)
    found.produce(0, 3_000)
    for partition in (1, 2):
        found.produce(partition, 100)
    assert found.producer.flush(20) == 0
    assert [partition for partition, error in found.told if error is None] == [1, 2]
    assert found.told[-1][0] == 0
    error = found.failures[0]
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    size = found.leader.asked[-1][0]
    assert size > 3_000
    assert error.str() == (
        f"the partition's leader closed the connection at each of {BREAKS_MIN} requests with a "
        f"record of {size} bytes; it does so if a request is larger than its "
        "socket.request.max.bytes"
    )
    found.produce(0, 100)
    assert found.producer.flush(20) == 0
    assert found.told[-1] == (0, None)


def test_batches_that_are_too_large_together_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = world(monkeypatch)
    for partition in range(4):
        found.produce(partition, 1_500)
    assert found.producer.flush(20) == 0
    assert found.failures == {}
    assert [sorted(sizes) for sizes in found.leader.asked] == [[0, 1, 2, 3], [0], [1], [2], [3]]


def test_a_leader_that_closes_connections_for_another_reason_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = world(monkeypatch)
    for _ in range(3):
        found.leader.breaks = BREAKS_MIN - 1
        found.produce(0, 1_500)
        assert found.producer.flush(20) == 0
    assert found.failures == {}
    found.leader.answer = ErrorCode.NOT_LEADER_OR_FOLLOWER
    found.leader.breaks = BREAKS_MIN - 1
    found.produce(0, 1_500)
    assert found.producer.flush(0) == 1
    for _ in range(BREAKS_MIN):
        found.producer.flush(0)
    found.leader.breaks = BREAKS_MIN - 1
    for _ in range(BREAKS_MIN):
        found.producer.flush(0)
    found.leader.answer = ErrorCode.NONE
    assert found.producer.flush(20) == 0
    assert found.failures == {}


def test_the_end_of_the_time_says_that_the_connection_was_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A small record is not taken for too large: its time must pass."""
    found = world(monkeypatch, **{"delivery.timeout.ms": 300})
    found.leader.limit = 10
    found.produce(0, 100)
    found.produce(0, 100)
    assert found.producer.flush(20) == 0
    error = found.failures[0]
    assert error.code() == KafkaError._MSG_TIMED_OUT
    assert "no acknowledgement in time: the partition's leader closed the connection" in error.str()
    assert "a batch of 2 records" in error.str()


def test_it_takes_time_to_know_that_a_record_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    found = world(monkeypatch)
    now = [100.0]
    monkeypatch.setattr("barnabas.kafka.wire_producer.time.monotonic", lambda: now[0])
    monkeypatch.setattr(wire_producer, "BREAKS_SECONDS_MIN", 10.0)
    found.produce(0, 3_000)
    for _ in range(3 * BREAKS_MIN):
        assert found.producer.flush(0) == 1
    now[0] += 10.1
    assert found.producer.flush(0) == 0
    assert f"{3 * BREAKS_MIN + 1} requests" in found.failures[0].str()


class Numbers:
    """Columns of records of a hundred bytes."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def spread(self, partitions: int) -> Iterable[tuple[int, Numbers]]:
        yield 0, self

    def halves(self) -> tuple[Numbers, Numbers]:
        return Numbers(self.count // 2), Numbers(self.count - self.count // 2)

    def encoded(self, codec: Codec, compression_level: int | None, **_: Any) -> bytearray:
        return bytearray(100 * self.count)


def test_batches_above_the_limit_of_a_request_are_split_before_they_are_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = world(monkeypatch)
    monkeypatch.setattr(wire_producer, "REQUEST_SIZE_BYTES_MAX", 1_000)
    found.producer.produce_columns("t", Numbers(50))
    assert found.producer.flush(20) == 0
    assert found.failures == {}
    assert max(sizes[0] for sizes in found.leader.asked) <= 1_000
    assert sum(sizes[0] for sizes in found.leader.asked) == 5_000


# -- a node


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    config = {"socket.request.max.bytes": "2000000"}
    with Cluster(config=config) as cluster, Kafka(cluster.bootstrap_servers) as kafka:
        yield kafka


@pytest.mark.parametrize("more", [{}, {"enable.idempotence": True}])
def test_a_node_that_does_not_read_a_request(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    monkeypatch.setattr(wire_producer, "BREAKS_SECONDS_MIN", 0.0)
    topic = kafka.topic(config={"max.message.bytes": "50000000"})
    told: list[KafkaError | None] = []
    producer = WireProducer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "on_delivery": lambda error, _: told.append(error),
            **more,
        }
    )
    for size in (1_500_000, 3_000_000, 10):
        producer.produce(topic, bytes(size))
        assert producer.flush(60) == 0
    stored, refused, after = told
    assert (stored, after) == (None, None)
    assert refused is not None
    assert refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert "socket.request.max.bytes" in refused.str()
    admin = Admin({"bootstrap.servers": kafka.bootstrap_servers})
    place = TopicPartition(topic, 0)
    assert admin.offsets({place: OffsetSpec.latest()}) == {(topic, 0): 2}
    admin.close()
    producer.purge()

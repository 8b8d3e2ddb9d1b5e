"""A node that is killed under load keeps every acknowledged record, in order, once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.node_process import NodeProcess, wait_until

PARTITIONS = 2
WAITING_MAX = 50_000
"""Records that wait for a busy node: its client keeps twice as many."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    node = NodeProcess(tmp_path / "node", {"log.flush.interval.messages": "1"})
    yield node
    node.stop()


class Load:
    """One producer's life: what it sent, and what was acknowledged at which offset."""

    def __init__(self, bootstrap_servers: str, topic: str, first: int) -> None:
        self.topic = topic
        self.next = first
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 60_000,
                "logger": _silent(),
            }
        )

    def send(self, count: int) -> None:
        for number in range(self.next, self.next + count):
            self.producer.produce(
                self.topic,
                str(number).encode(),
                partition=number % PARTITIONS,
                on_delivery=self._delivered,
            )
        self.next += count
        self.producer.poll(0)

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            place = (message.partition(), message.offset())  # type: ignore[attr-defined]
            self.acknowledged[int(message.value() or b"")] = place  # type: ignore[attr-defined]


def _silent() -> object:
    import logging

    logger = logging.getLogger("killed-on-purpose")
    logger.setLevel(logging.CRITICAL)
    return logger


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_node_keeps_every_acknowledged_record(node: NodeProcess, kills: int) -> None:
    choose = random.Random(20)
    node.start()
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(20)
    del admin
    acknowledged: dict[int, tuple[int, int]] = {}
    sent = 0
    for _ in range(kills):
        load = Load(node.bootstrap_servers, "t", sent)
        goal = choose.randrange(50, 600)
        while len(load.acknowledged) < goal:
            if len(load.producer) < WAITING_MAX:
                load.send(choose.randrange(1, 100))
            load.producer.poll(0.001)
        load.send(500)
        node.kill()
        load.producer.poll(0)
        load.producer.purge()
        load.producer.flush(5)
        sent = load.next
        assert load.acknowledged
        acknowledged |= load.acknowledged
        node.start()
    _check(node, acknowledged, sent)
    assert node.stop() == 0
    node.start()
    _check(node, acknowledged, sent)


def _check(node: NodeProcess, acknowledged: dict[int, tuple[int, int]], sent: int) -> None:
    found = _read_all(node.bootstrap_servers)
    places = dict(found)
    lost = {number for number, place in acknowledged.items() if places.get(place) != number}
    assert not lost, f"{len(lost)} acknowledged records are not where they were acknowledged"
    counts = Counter(number for _, number in found)
    assert not [number for number, count in counts.items() if count > 1], "duplicates"
    assert not set(counts) - set(range(sent)), "records that nobody sent"
    for partition in range(PARTITIONS):
        numbers = [number for (where, _), number in found if where == partition]
        assert numbers == sorted(numbers), "records are out of order"


def _read_all(bootstrap_servers: str) -> list[tuple[tuple[int, int], int]]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "check"})
    found: list[tuple[tuple[int, int], int]] = []
    try:
        for partition in range(PARTITIONS):
            place = TopicPartition("t", partition, 0)
            _, end = consumer.get_watermark_offsets(place, 20)
            consumer.assign([place])
            read = 0

            def advance(end: int = end) -> bool:
                nonlocal read
                for message in consumer.consume(1000, 0.5):
                    assert message.error() is None, message.error()
                    assert message.offset() == read, "a gap in the offsets"
                    read += 1
                    where = (message.partition() or 0, message.offset() or 0)
                    found.append((where, int(message.value() or b"")))
                return read >= end

            wait_until(advance, "reading everything back")
    finally:
        consumer.close()
    return found

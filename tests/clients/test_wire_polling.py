"""Partitions polled at once from real nodes, while records come, and leaders move or are gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from client_cluster import NODES, move_leaders

from barnabas.app.testing import Kafka
from barnabas.base.ids import TopicPartition
from barnabas.cli.admin import Admin
from barnabas.cli.connection import Connection as Brokers
from barnabas.kafka.wire_reader import Place, Polled, WireReader
from barnabas.protocol.records.batch import iterate_headers
from barnabas.protocol.records.records import decode_records
from support.client_logins import java

RECORDS = 600


@pytest.fixture
def reader(kafka: Kafka) -> Iterator[WireReader]:
    made = WireReader(kafka.client_config)
    yield made
    made.close()


def values_of(polled: Polled) -> list[bytes | None]:
    """The values of what was polled, without records before the offset that was asked for."""
    found = []
    for one in polled.fetched:
        data = bytes(one.batches)
        for position, _ in iterate_headers(data, allow_partial_tail=True):
            records = decode_records(data, position)
            found += [record.value for record in records if record.offset >= one.first]
    return found


class Writer(threading.Thread):
    """Writes numbered records, each to the partition of its number, one after the other.

    A context, in which it runs: where a test fails, it ends, too.
    """

    def __init__(self, kafka: Kafka, places: list[Place]) -> None:
        super().__init__()
        self._is_over = False
        self._producer = kafka.producer(acks="all", enable_idempotence=True)
        self._places = places
        self.count = 0

    def __enter__(self) -> Writer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.join()

    def run(self) -> None:
        for number in range(RECORDS):
            if self._is_over:
                return
            topic, partition = self._places[number % len(self._places)]
            self._producer.produce(topic, b"%d" % number, partition=partition)
            self._producer.flush()  # acknowledged before the next one is sent
            self.count += 1


def test_records_come_once_in_order_and_with_those_of_tables_before_them(
    kafka: Kafka, reader: WireReader
) -> None:
    topics = [kafka.topic(name, 3) for name in ("table", "stream")]
    places = [(topic, number) for number in range(3) for topic in topics]
    tables = {place for place in places if place[0] == topics[0]}
    offsets = dict.fromkeys(places, 0)
    numbers: dict[Place, list[int]] = {place: [] for place in places}
    rows: set[int] = set()
    latest = 0
    with Writer(kafka, places):
        while sum(map(len, numbers.values())) < RECORDS:
            found, errors = reader.poll(offsets, 100, tables)
            assert errors == {}
            for place, polled in found.items():
                assert polled.next > offsets[place]
                offsets[place] = polled.next
                came = [int(value or b"") for value in values_of(polled)]
                numbers[place] += came
                if place in tables:
                    rows.update(came)
                else:
                    latest = max([latest, *came])
            # The rows that were acknowledged before the stream's last record was sent.
            assert rows >= set(range(0, latest, 2))
    for at, place in enumerate(places):
        assert numbers[place] == list(range(at, RECORDS, len(places)))


@pytest.mark.skipif(NODES == 1, reason="one node leads everything")
def test_partitions_are_followed_to_their_new_leaders(kafka: Kafka, reader: WireReader) -> None:
    topic = kafka.topic("moving", 3)
    places = [(topic, number) for number in range(3)]
    offsets = dict.fromkeys(places, 0)
    numbers: dict[Place, list[int]] = {place: [] for place in places}
    moves = 0
    login = java(kafka.bootstrap_servers)
    with (
        Writer(kafka, places) as writer,
        Admin(Brokers(kafka.bootstrap_servers, login, 60)) as admin,
    ):
        while sum(map(len, numbers.values())) < RECORDS:
            found, errors = reader.poll(offsets, 50)
            assert errors == {}
            for place, polled in found.items():
                offsets[place] = polled.next
                numbers[place] += [int(value or b"") for value in values_of(polled)]
            if moves < writer.count // 100:
                moves += 1
                move_leaders(admin, [TopicPartition(*place) for place in places])
    assert moves > 2
    for at, place in enumerate(places):
        assert numbers[place] == list(range(at, RECORDS, len(places)))

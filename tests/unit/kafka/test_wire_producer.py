"""Our own producer before brokers that answer what they were not asked, or less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from barnabas.kafka.wire_producer import WireProducer

STORED = 0


class OddBroker:
    """Leads both partitions of each topic; its answers name the places that a test gives."""

    def __init__(self, *answers: Iterable[tuple[str, int]]) -> None:
        self._answers = list(answers)
        self.asked: list[list[tuple[str, int]]] = []

    def learn(self, topics: set[str]) -> Mapping[str, Any]:
        return {}

    def forget(self) -> None:
        """Nothing is kept."""

    def partitions(self, topic: str) -> int:
        return 2

    def of(self, place: tuple[str, int]) -> int:
        return 1

    def connection(self, leader: int) -> OddBroker:
        return self

    def call(self, _: Any, request: Any, __: int) -> Any:
        self.asked.append(
            [
                (topic.name, one.index)
                for topic in request.topic_data
                for one in topic.partition_data
            ]
        )
        answers = [
            SimpleNamespace(
                name=topic,
                partition_responses=[
                    SimpleNamespace(index=partition, error_code=STORED, base_offset=0)
                ],
            )
            for topic, partition in self._answers.pop(0)
        ]
        return SimpleNamespace(responses=answers)


def produced(broker: OddBroker, monkeypatch: pytest.MonkeyPatch) -> tuple[WireProducer, list[int]]:
    """A producer that has sent a record to each partition, and the partitions it reported."""
    stored: list[int] = []

    def told(error: KafkaError | None, message: Any) -> None:
        assert error is None
        stored.append(message.partition())

    producer = WireProducer({"bootstrap.servers": "127.0.0.1:1", "on_delivery": told})
    monkeypatch.setattr(producer, "_leaders", broker)
    for partition in range(2):
        producer.produce("t", b"v", partition=partition)
    return producer, stored


@pytest.mark.parametrize(
    "first",
    [[("other", 0)], [("t", 7)], [("t", 0), ("t", 0)], [("t", 0), ("other", 0)]],
    ids=["another topic", "another partition", "one twice", "one too many"],
)
def test_answers_that_were_not_asked_for_are_an_error_of_the_broker(
    first: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [("t", 1)] if ("t", 0) in first else [("t", 0), ("t", 1)]
    broker = OddBroker(first, left)
    producer, stored = produced(broker, monkeypatch)
    assert producer.flush(30) == 0
    assert sorted(stored) == [0, 1]
    assert broker.asked == [[("t", 0), ("t", 1)], left]


def test_what_is_not_answered_is_sent_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = OddBroker([("t", 1)], [], [("t", 0)])
    producer, stored = produced(broker, monkeypatch)
    pauses: list[float] = []
    monkeypatch.setattr("barnabas.kafka.wire_producer.time.sleep", pauses.append)
    assert producer.flush(30) == 0
    assert stored == [1, 0]
    assert broker.asked == [[("t", 0), ("t", 1)], [("t", 0)], [("t", 0)]]
    assert len(pauses) == 2


def test_batches_that_are_too_large_for_one_request_go_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.kafka.wire_producer.REQUEST_SIZE_BYTES_MAX", 100)
    broker = OddBroker([("t", 0)], [("t", 1)])
    producer, stored = produced(broker, monkeypatch)
    assert producer.flush(30) == 0
    assert stored == [0, 1]
    assert broker.asked == [[("t", 0)], [("t", 1)]]

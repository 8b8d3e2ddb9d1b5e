"""A task's producers while no broker answers."""

from __future__ import annotations

from threading import Event, Timer
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from barnabas.connect.engine import kafka_output
from barnabas.connect.engine.kafka_output import KafkaOutput, KafkaTransactions
from barnabas.connect.engine.topics import TopicCreation
from barnabas.connect.record import RawRecord
from barnabas.schemas.data.errors import ConnectError


def never() -> Any:
    raise AssertionError("no topic is created here")


class Silent:
    """A producer whose commits are never answered."""

    def __init__(self) -> None:
        self.commits = 0

    def begin_transaction(self) -> None:
        """Begin."""

    def commit_transaction(self, seconds: float) -> None:
        self.commits += 1
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer", False, True))


def test_a_stopped_task_does_not_wait_for_a_commit_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter(range(1000))
    monkeypatch.setattr(kafka_output.time, "monotonic", lambda: float(next(now)))
    output: Any = object.__new__(KafkaTransactions)
    output.producer, output._is_open, output._stopping = Silent(), False, Event()
    output.heed(stopping := Event())
    stopping.set()
    with pytest.raises(ConnectError, match="stopped before a transaction was committed"):
        output.commit("c", [])
    assert output.producer.commits > 2


def test_a_stopped_task_does_not_wait_for_room_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_output, "STOP_GRACE_SECONDS", 0.1)
    settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    creation = TopicCreation((), never)
    output = KafkaOutput({**settings, "queue.buffering.max.messages": 1}, creation)
    stopping = Event()
    output.heed(stopping)
    output.send(RawRecord(topic="t", value=b"first"))
    timer = Timer(0.2, stopping.set)
    timer.start()
    try:
        with pytest.raises(ConnectError, match="stopped before there was room for a record"):
            output.send(RawRecord(topic="t", value=b"second"))
    finally:
        timer.join()
        output.close()

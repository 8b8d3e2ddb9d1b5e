"""A task's producers while no broker answers."""

from __future__ import annotations

import time
from threading import Event, Timer
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from barnabas.connect.record import RawRecord
from barnabas.connect.tasks import kafka_output
from barnabas.connect.tasks.kafka_output import KafkaOutput, KafkaTransactions
from barnabas.connect.tasks.topics import TopicCreation
from barnabas.schemas.data.errors import ConnectError
from support.node_process import wait_until


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
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))
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


class Queue:
    """A producer with room for so many records, until it is polled."""

    def __init__(self, room: int) -> None:
        self.room = self.left = room
        self.records: list[tuple[bytes | None, int | None]] = []

    def produce(
        self, topic: str, value: bytes | None, key: None = None, timestamp: int | None = None
    ) -> None:
        if value == b"too large":
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if not self.left:
            raise BufferError
        self.left -= 1
        self.records.append((value, timestamp))

    def poll(self, seconds: float) -> None:
        if seconds:
            self.left = self.room


@pytest.mark.parametrize("timestamp_ms", [None, 0, 7])
def test_values_are_queued_as_records_are(timestamp_ms: int | None) -> None:
    values = [b"1", None, b"too large", b"2", b"3", b"4"]
    outputs = []
    for _ in range(2):
        output: Any = object.__new__(KafkaOutput)
        output.producer, output._told = Queue(2), kafka_output._Told()
        output._topics, output._stopping = TopicCreation((), never), Event()
        output._since_poll = 0
        outputs.append(output)
    at_once, one_by_one = outputs
    at_once.send_values("t", values, timestamp_ms)
    for value in values:
        one_by_one.send(RawRecord(topic="t", value=value, timestamp_ms=timestamp_ms))
    assert at_once.producer.records == one_by_one.producer.records
    assert [value for value, _ in at_once.producer.records] == [b"1", None, b"2", b"3", b"4"]
    (failed,) = at_once._told.failed
    assert failed[0] == one_by_one._told.failed[0][0]


def test_values_wait_behind_a_record_with_the_timestamp_zero() -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    output: Any = KafkaOutput(settings, TopicCreation((), never))
    output.send_values("t", [b"1", b"2"], 0)
    assert output.producer._queued == 2

    def counts_them_alone() -> bool:
        output.producer._producer.poll(0)  # until then it also counts its reports of lost brokers
        return len(output.producer) == 2

    wait_until(counts_them_alone, "the producer's length")
    output.send_values("t", [b"3"], 7)
    assert output.producer._queued == 3, "it comes after them"
    output.producer._wire.purge()
    output.send_values("t", [b"4"], 7)
    assert output.producer._queued == 0
    output.close()

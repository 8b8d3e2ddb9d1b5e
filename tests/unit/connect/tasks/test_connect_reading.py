"""What readers of Kafka make of messages and errors, with a consumer that is no network's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, KafkaException, TopicPartition

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.mirror import checkpoint, cluster, ranges
from barnabas.connect.tasks import kafka_ranges
from barnabas.connect.tasks.kafka_errors import as_connect_error
from barnabas.schemas.data.errors import ConnectError, RetriableError


class Message:
    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self._offset = offset
        self._error = error

    def __getattr__(self, name: str) -> Callable[[], Any]:
        found = {
            "topic": "t",
            "partition": 0,
            "offset": self._offset,
            "error": self._error,
            "key": None,
            "value": b"%d" % self._offset,
            "headers": None,
            "timestamp": (TIMESTAMP_CREATE_TIME, 5),
        }[name]
        return lambda: found


class Consumer:
    """Has some messages; like librdkafka's it waits where more are asked for than there are."""

    def __init__(self, _: object) -> None:
        self.messages = [Message(number) for number in range(3)]
        self.failure: KafkaException | None = None
        self.asked_s: list[float] = []

    def poll(self, _: float) -> Message | None:
        return self.messages.pop(0) if self.messages else None

    def consume(self, count: int, seconds: float) -> list[Message]:
        assert not seconds or count <= len(self.messages), "it would wait"
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    def get_watermark_offsets(
        self, _: object, timeout_s: float = 0.0, **__: object
    ) -> tuple[int, int]:
        self.asked_s.append(timeout_s)
        if self.failure is not None:
            raise self.failure
        return 0, 3

    def assign(self, _: Sequence[TopicPartition]) -> None: ...

    def incremental_assign(self, _: Sequence[TopicPartition]) -> None: ...


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kafka_ranges, ranges, checkpoint):
        monkeypatch.setattr(module, "Consumer", Consumer)


def _values(sink: kafka_ranges.RangeReader, ranges: Sequence[tuple[int, int]]) -> list[Any]:
    pieces = [piece for start, end in ranges for piece in sink.pieces(start, end)]
    return [message.value() for piece in pieces for message in piece]


def test_a_few_records_are_not_held_back_until_there_are_many() -> None:
    wanted = [b"0", b"1", b"2"]
    sink = kafka_ranges.RangeReader({}, "t", 0)
    assert _values(sink, [(0, 3)]) == wanted
    mirror = ranges.RangesConsumer({})
    assert [one.value for one in mirror.read([SinkRange("t", 0, 0, 3)])] == wanted
    log = checkpoint.LogReader({}, "t")
    assert [value for _, value in log.read_to_end(5)] == wanted


def test_what_the_client_gives_again_is_read_once() -> None:
    def given_again(consumer: Any) -> None:
        consumer.messages = [Message(number) for number in (0, 1, 0, 1, 2, 3, 2, 3, 4)]

    pieces = [(0, 3), (3, 5)]
    wanted = [b"0", b"1", b"2", b"3", b"4"]
    sink = kafka_ranges.RangeReader({}, "t", 0)
    given_again(sink._consumer)
    assert _values(sink, pieces) == wanted
    mirror = ranges.RangesConsumer({})
    given_again(mirror._consumer)
    found = [
        one.value for start, end in pieces for one in mirror.read([SinkRange("t", 0, start, end)])
    ]
    assert found == wanted


def test_a_log_whose_leader_is_unknown_is_read_again_later() -> None:
    log = checkpoint.LogReader({}, "t")
    consumer: Any = log._consumer
    consumer.failure = KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
    for _ in range(3):
        with pytest.raises(RetriableError):
            list(log.read_to_end(15.0))
    consumer.failure = None
    for _ in range(2):
        list(log.read_to_end(15.0))
    assert consumer.asked_s == [5.0, 10.0, 15.0, 15.0, 5.0]


def test_a_log_whose_leader_is_silent_is_read_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.0)
    log = checkpoint.LogReader({}, "t")
    consumer: Any = log._consumer
    consumer.messages.pop()
    found: list[bytes | None] = []
    with pytest.raises(RetriableError, match="t does not answer"):
        found.extend(value for _, value in log.read_to_end(3600.0))
    assert found == [b"0", b"1"]


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_CONTROLLER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
    ],
)
def test_what_brokers_say_while_they_change_places_is_tried_again(code: int) -> None:
    made = as_connect_error("cannot ask", KafkaException(KafkaError(code)))
    assert isinstance(made, RetriableError)
    assert str(made).startswith("cannot ask: ")


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED),
        KafkaError(KafkaError.INVALID_REPLICATION_FACTOR),
        KafkaError(KafkaError._AUTHENTICATION),
        KafkaError(KafkaError._TRANSPORT, "fatal", True),
    ],
)
def test_what_will_not_pass_ends_the_task(error: KafkaError) -> None:
    made = as_connect_error("cannot ask", KafkaException(error))
    assert type(made) is ConnectError

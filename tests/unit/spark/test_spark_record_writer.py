"""Records of a micro-batch arrive, or their writer says that they may not have."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException

from barnabas.app.testing import Kafka
from barnabas.kafka.ordered_producer import OrderedProducer
from barnabas.spark import record_writer
from barnabas.spark.record_writer import RecordWriter
from barnabas.spark.sink import to_json

TIMEOUT_S = 20.0


def values(kafka: Kafka, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = kafka.consumer(topic)
    found = consumer.consume(count, TIMEOUT_S)
    consumer.close()
    return [(message.key(), message.value()) for message in found]


def test_records_are_there_when_write_returns(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = record_writer.OrderedProducer
    monkeypatch.setattr(
        record_writer,
        "OrderedProducer",
        lambda config: made({**config, "queue.buffering.max.messages": 2}),
    )
    topic = kafka.topic()
    writer = RecordWriter(kafka.bootstrap_servers)
    writer.write(0, [(topic, f"k{n}", f"v{n}") for n in range(5)])
    writer.write(1, [])
    writer.close()
    assert values(kafka, topic, 5) == [(f"k{n}".encode(), f"v{n}".encode()) for n in range(5)]


def test_a_record_that_is_refused_fails_its_batch_and_no_other(kafka: Kafka) -> None:
    topic = kafka.topic(config={"max.message.bytes": "2000"})
    writer = RecordWriter(kafka.bootstrap_servers)
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        writer.write(0, [(topic, "k", "x" * 5000)])
    writer.write(1, [(topic, "k", "small")])
    writer.close()
    assert values(kafka, topic, 1) == [(b"k", b"small")]


class Unanswered(OrderedProducer):
    """A producer whose time is up before it has seen an answer."""

    def flush(self, timeout: float = -1) -> int:
        return len(self)


def test_what_is_not_acknowledged_in_time_fails_its_batch(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    writer = RecordWriter(kafka.bootstrap_servers)
    with monkeypatch.context() as patch:
        patch.setattr(record_writer, "OrderedProducer", Unanswered)
        with pytest.raises(KafkaException, match="_TIMED_OUT"):
            writer.write(0, [(topic, "k", "0")])
    writer.write(0, [(topic, "k", "0")])
    writer.close()
    assert values(kafka, topic, 1) == [(b"k", b"0")]


def test_json_is_compact_and_leaves_out_what_is_null() -> None:
    assert to_json({"n": 1, "name": "Malmö", "gone": None}) == '{"n":1,"name":"Malmö"}'

"""Records of a micro-batch arrive, or their writer says that they may not have."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewPartitions

from barnabas.app.testing import Kafka
from barnabas.kafka import wire, wire_producer
from barnabas.kafka.ordered_producer import OrderedProducer
from barnabas.kafka.partitioners import Partitioner
from barnabas.protocol.apis import PRODUCE
from barnabas.spark import record_writer
from barnabas.spark.record_columns import RecordColumns
from barnabas.spark.record_writer import KafkaRecord, RecordWriter
from barnabas.spark.sink import to_json
from support.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S


def values(kafka: Kafka, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = kafka.consumer(topic)
    found = consumer.consume(count, TIMEOUT_S)
    consumer.close()
    return [(message.key(), message.value()) for message in found]


def test_records_are_there_when_write_returns(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = OrderedProducer
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


Row = tuple[bytes | None, bytes | None, int]


def columns(rows: list[Row]) -> RecordColumns:
    return RecordColumns.of(*zip(*rows, strict=True))


def by_partition(kafka: Kafka, topic: str, count: int) -> dict[int | None, list[Row]]:
    consumer = kafka.consumer(topic)
    found: dict[int | None, list[Row]] = {}
    for message in consumer.consume(count, TIMEOUT_S):
        row = message.key(), message.value(), message.timestamp()[1]
        found.setdefault(message.partition(), []).append(row)
    consumer.close()
    return found


def test_columns_go_where_their_keys_belong_and_are_there_when_the_write_returns(
    kafka: Kafka,
) -> None:
    topic, of = kafka.topic(partitions=3), Partitioner("murmur2_random").of
    rows: list[Row] = [
        (b"k%d" % (n % 50), None if n % 7 == 0 else b"v%d" % n, n % 3) for n in range(500)
    ]
    writer = RecordWriter(kafka.bootstrap_servers, kafka.client_config)
    assert writer.write_columns(topic, columns(rows[:400]))
    # The other way of the same writer goes on behind them.
    writer.write(0, [KafkaRecord(topic, *rows[400])])
    assert writer.write_columns(topic, columns(rows[401:]))
    writer.close()
    found = by_partition(kafka, topic, len(rows))
    assert found == {p: [row for row in rows if of(row[0], 3) == p] for p in range(3)}


def test_columns_that_a_topic_refuses_are_halved_until_it_takes_them(kafka: Kafka) -> None:
    topic = kafka.topic(config={"max.message.bytes": "2000"})
    rows: list[Row] = [(b"k", b"%d" % n * 20, 1) for n in range(100, 300)]
    writer = RecordWriter(kafka.bootstrap_servers)
    assert writer.write_columns(topic, columns(rows))
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        writer.write_columns(topic, columns([(b"k", b"x" * 5000, 1)]))
    assert writer.write_columns(topic, columns(rows[:1]))
    writer.close()
    assert by_partition(kafka, topic, len(rows) + 1) == {0: [*rows, rows[0]]}


def test_columns_whose_answer_is_lost_are_there_once(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic()
    rows: list[Row] = [(b"k%d" % n, b"v", 1) for n in range(20)]
    asked: list[int] = []
    call = wire.Connection.call

    def lost(connection: wire.Connection, api: Any, *arguments: Any) -> Any:
        answer = call(connection, api, *arguments)
        if api is PRODUCE:
            asked.append(answer.responses[0].partition_responses[0].error_code)
            if len(asked) == 1:
                raise wire.WireError("the connection is lost")
        return answer

    monkeypatch.setattr(wire.Connection, "call", lost)
    writer = RecordWriter(kafka.bootstrap_servers)
    assert writer.write_columns(topic, columns(rows))
    assert writer.write_columns(topic, columns(rows[:1]))
    writer.close()
    assert len(asked) == 3
    assert by_partition(kafka, topic, len(rows) + 1) == {0: [*rows, rows[0]]}


def test_columns_go_to_partitions_that_a_topic_got_later(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_producer, "METADATA_AGE_SECONDS_MAX", 0.0)
    topic, of = kafka.topic(), Partitioner("murmur2_random").of
    rows: list[Row] = [(b"k%d" % n, b"v", 1) for n in range(20)]
    writer = RecordWriter(kafka.bootstrap_servers)
    assert writer.write_columns(topic, columns(rows))
    kafka.admin.create_partitions([NewPartitions(topic, 4)])[topic].result(TIMEOUT_S)
    assert writer.write_columns(topic, columns(rows))
    writer.close()
    found = by_partition(kafka, topic, 2 * len(rows))
    expected = {p: [row for row in rows if of(row[0], 4) == p] for p in range(4)}
    assert found == {**expected, 0: [*rows, *expected[0]]}


@pytest.mark.parametrize(
    "settings",
    [
        {"message.max.bytes": 5_000},
        {"partitioner": "consistent"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
    ],
)
def test_columns_are_left_to_librdkafka_where_settings_need_it(settings: dict[str, Any]) -> None:
    writer = RecordWriter("127.0.0.1:1", settings)
    assert not writer.write_columns("topic", columns([(b"k", b"v", 1)]))


def test_json_is_compact_and_leaves_out_what_is_null() -> None:
    assert to_json({"n": 1, "name": "Malmö", "gone": None}) == '{"n":1,"name":"Malmö"}'

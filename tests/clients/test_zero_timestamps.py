"""Records with the timestamp 0 keep it, with every writer, and keep their partition and order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pyarrow
import pytest
from client_matrix import KEPT
from confluent_kafka import OFFSET_BEGINNING, KafkaException, Message, TopicPartition

import barnabas
from barnabas.app.testing import Kafka
from barnabas.connect.record import RawRecord
from barnabas.connect.tasks.kafka_output import KafkaOutput, KafkaTransactions
from barnabas.connect.tasks.topics import TopicCreation
from barnabas.connect.tasks.transport import BatchAbortedError
from barnabas.kafka import wire
from barnabas.kafka.ordered_producer import OrderedProducer
from barnabas.kafka.wire import Connection, WireError
from barnabas.kafka.wire_producer import WireProducer
from barnabas.protocol.apis import PRODUCE
from barnabas.spark.datasource.committer import Committer, task_prefix
from barnabas.spark.datasource.options import read_options
from barnabas.spark.datasource.task import (
    IdPool,
    TaskPlace,
    WriteError,
    close_connections,
    write_rows,
)
from barnabas.spark.record_writer import KafkaRecord, RecordWriter
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.server.kafka_cluster import KafkaCluster
from support.patience import PATIENCE_S

STAMPS = [5, 0, 6, 7, 0, 0, 8]


@pytest.fixture(autouse=True)
def no_connections() -> Iterator[None]:
    """Tasks keep connections; none is left to other tests."""
    yield
    close_connections()


def read(kafka: Kafka, topic: str, count: int, partitions: int = 1) -> list[Message]:
    """The committed records of a topic."""
    consumer = kafka.consumer(isolation_level="read_committed")
    consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)])
    messages = consumer.consume(count, PATIENCE_S)
    consumer.close()
    return messages


def stamps(messages: list[Message]) -> list[tuple[bytes | None, int]]:
    return [(message.value(), message.timestamp()[1]) for message in messages]


def wanted(given: list[int] = STAMPS) -> list[tuple[bytes | None, int]]:
    return [(str(number).encode(), stamp) for number, stamp in enumerate(given)]


def test_records_written_at_least_once_keep_it(kafka: Kafka) -> None:
    topic = kafka.topic(config=KEPT)
    writer = RecordWriter(kafka.bootstrap_servers, dict(kafka.client_config))
    records = [
        KafkaRecord(topic, b"k", str(number).encode(), stamp, [("h", b"1")])
        for number, stamp in enumerate(STAMPS)
    ]
    writer.write(0, records)
    writer.write(1, [KafkaRecord(topic, b"k", b"now", None)])
    writer.close()
    found = read(kafka, topic, 8)
    assert stamps(found[:7]) == wanted()
    assert all(message.headers() == [("h", b"1")] for message in found[:7])
    assert (found[7].timestamp()[1] or 0) > 1_000_000


def test_what_sql_writes_keeps_it(kafka: Kafka) -> None:
    topic = kafka.topic(config=KEPT)
    cluster = KafkaCluster(kafka.client_config)
    for number, stamp in enumerate(STAMPS):
        cluster.write(topic, TopicRecord(b"k", str(number).encode(), stamp))
    cluster.flush()
    cluster.close()
    assert stamps(read(kafka, topic, 7)) == wanted()


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_keys_have_the_partition_that_librdkafka_gives_them(kafka: Kafka, codec: str) -> None:
    topic, other = (
        kafka.topic("ours", partitions=5, config=KEPT),
        kafka.topic("theirs", partitions=5, config=KEPT),
    )
    config = {**kafka.client_config, "partitioner": "murmur2_random", "compression.type": codec}
    told: list[tuple[str | None, int | None, int | None]] = []

    def on_delivery(error: Any, message: Message) -> None:
        assert error is None
        told.append((message.topic(), message.partition(), message.offset()))

    settings = {**config, "enable.idempotence": True, "on_delivery": on_delivery}
    producer = OrderedProducer(settings)
    for number in range(50):
        key = f"key-{number}".encode()
        producer.produce(topic, key * 20, key, timestamp=0)
    assert producer.flush(PATIENCE_S) == 0
    for number in range(50):
        key = f"key-{number}".encode()
        producer.produce(other, key * 20, key, timestamp=1)
    assert producer.flush(PATIENCE_S) == 0
    by_key = [
        {m.key(): (m.partition(), m.value()) for m in read(kafka, name, 50, 5)}
        for name in (topic, other)
    ]
    assert len(by_key[0]) == 50
    assert by_key[0] == by_key[1]
    assert len(told) == 100
    assert len(set(told)) == 100


@pytest.mark.parametrize("kind", ["consistent_random", "murmur2", "fnv1a"])
def test_each_partitioner_is_librdkafka_s(kafka: Kafka, kind: str) -> None:
    topic, other = (
        kafka.topic("ours", partitions=7, config=KEPT),
        kafka.topic("theirs", partitions=7, config=KEPT),
    )
    producer = OrderedProducer({**kafka.client_config, "partitioner": kind})
    for number in range(40):
        producer.produce(other, None, f"key-{number}")
    producer.flush(PATIENCE_S)
    for number in range(40):
        producer.produce(topic, None, f"key-{number}", timestamp=0)
    assert producer.flush(PATIENCE_S) == 0
    by_key = [{m.key(): m.partition() for m in read(kafka, name, 40, 7)} for name in (topic, other)]
    assert by_key[0] == by_key[1]


def test_a_lost_answer_doubles_nothing(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic(config=KEPT)
    call: Callable[..., Any] = Connection.call
    losses = itertools.count()

    def losing(self: Connection, api: Any, *more: Any) -> Any:
        answer = call(self, api, *more)
        if api is PRODUCE and next(losses) < 2:
            raise WireError("the answer is lost")
        return answer

    monkeypatch.setattr(wire.Connection, "call", losing)
    producer = WireProducer({**kafka.client_config, "enable.idempotence": True})
    for number in range(3):
        producer.produce(topic, str(number), timestamp=0)
        assert producer.flush(PATIENCE_S) == 0
    producer.purge()
    assert next(losses) > 3
    producer.produce(topic, "3", timestamp=0)
    producer.flush(PATIENCE_S)
    assert stamps(read(kafka, topic, 4)) == wanted([0, 0, 0, 0])


def test_a_record_that_is_refused_is_reported_and_no_other(kafka: Kafka) -> None:
    topic = kafka.topic(config=KEPT | {"max.message.bytes": "3000"})
    failed: list[tuple[str, bytes | None]] = []

    def on_delivery(error: Any, message: Message) -> None:
        if error is not None:
            failed.append((error.name(), message.value()))

    producer = WireProducer({**kafka.client_config, "on_delivery": on_delivery})
    values = [b"0", b"x" * 4000, *(str(n).encode() for n in range(1, 100))]
    for value in values:
        producer.produce(topic, value, timestamp=0)
    assert producer.flush(PATIENCE_S) == 0
    assert failed == [("MSG_SIZE_TOO_LARGE", b"x" * 4000)]
    assert stamps(read(kafka, topic, 100)) == wanted([0] * 100)


def test_no_broker_is_reported_when_the_time_is_over() -> None:
    told: list[str] = []
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "delivery.timeout.ms": 50,
        "on_delivery": lambda error, _: told.append(error.name()),
    }
    producer = WireProducer(settings)
    producer.produce("t", "v", timestamp=0)
    assert producer.flush(PATIENCE_S) == 0
    assert told == ["_MSG_TIMED_OUT"]


SPLITS = {"from the start": [0, 1, 2], "later": [1, 0, 2], "never": [1, 2, 3]}


IN_PARTITIONS: dict[str, Any] = {"partition": pyarrow.array([0], pyarrow.int32())}
"""A column with which rows are written one by one, not as columns."""


@pytest.mark.parametrize("more", [{}, IN_PARTITIONS], ids=["as columns", "one by one"])
@pytest.mark.parametrize("name", SPLITS)
def test_format_barnabas_keeps_it(kafka: Kafka, name: str, more: dict[str, Any]) -> None:
    topic, sink = kafka.topic(config=KEPT), kafka.name("sink")
    options = read_options(
        {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "topic": topic,
            "decisionTopic": kafka.name("decisions"),
        }
    )
    given = SPLITS[name]
    batches = [
        pyarrow.record_batch(
            {"value": [str(number)], "timestamp": pyarrow.array([stamp], pyarrow.int64()), **more}
        )
        for number, stamp in enumerate(given)
    ]
    place = TaskPlace(task_prefix(sink), 0, 0)
    prepared = write_rows(options, place, iter(batches), IdPool())
    assert len(prepared) == (2 if more and name == "later" else 1)
    committer = Committer(options, sink)
    committer.commit(0, prepared, was_retried=False)
    committer.close()
    assert stamps(read(kafka, topic, 3)) == wanted(given)


def test_a_failed_task_takes_both_its_transactions_back(kafka: Kafka) -> None:
    topic, prefix = kafka.topic(config=KEPT), task_prefix(kafka.name("sink"))
    options = read_options({"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic})
    stamps = [pyarrow.array([at], pyarrow.int64()) for at in (1, 0, -1)]
    batches = [
        pyarrow.record_batch({"value": ["x"], "timestamp": stamp, **IN_PARTITIONS})
        for stamp in stamps
    ]
    with pytest.raises(WriteError, match="the timestamp -1: the least is 0"):
        write_rows(options, TaskPlace(prefix, 0, 0), iter(batches), IdPool())
    kafka.produce(topic, ["after"])
    assert [message.value() for message in read(kafka, topic, 1)] == [b"after"]


def never() -> Any:
    raise AssertionError("no topic is to be created")


def test_a_source_connector_s_records_keep_it(kafka: Kafka) -> None:
    topic = kafka.topic(config=KEPT)
    output = KafkaOutput(dict(kafka.client_config), TopicCreation((), never), has_receipts=True)
    offsets: list[int] = []
    for number, stamp in enumerate(STAMPS):
        record = RawRecord(topic=topic, value=str(number).encode(), timestamp_ms=stamp)
        output.send(record, offsets.append)
    assert output.flush(Event()) == []
    output.close()
    assert offsets == list(range(7))
    assert stamps(read(kafka, topic, 7)) == wanted()


@pytest.mark.parametrize("name", SPLITS)
def test_an_exactly_once_source_connector_s_records_keep_it(kafka: Kafka, name: str) -> None:
    topic, offsets_topic = kafka.topic("out", config=KEPT), kafka.topic("offsets")
    settings = {**kafka.client_config, "transactional.id": kafka.name("task")}
    output = KafkaTransactions(settings, TopicCreation((), never), offsets_topic)

    def write_all(given: list[int]) -> None:
        for number, stamp in enumerate(given):
            value = str(number).encode()
            output.send(RawRecord(topic=topic, value=value, timestamp_ms=stamp))
        output.commit("c", [({"file": "a"}, {"line": len(given)})])

    given = SPLITS[name]
    if name == "later":
        with pytest.raises(BatchAbortedError, match="timestamp 0"):
            write_all(given)
        output.close()
        # The task is started again.
        output = KafkaTransactions(settings, TopicCreation((), never), offsets_topic)
    write_all(given)
    write_all(given)
    output.close()
    assert stamps(read(kafka, topic, 6)) == wanted(given) * 2
    assert len(read(kafka, offsets_topic, 2)) == 2


@pytest.mark.parametrize("security", ["scram", "plain", "mtls"])
def test_logins_and_certificates_are_those_of_librdkafka(security: str) -> None:
    with (
        barnabas.Cluster(security=security) as cluster,
        Kafka(cluster.bootstrap_servers, "secured", lambda _: cluster.client_config) as kafka,
    ):
        topic = kafka.topic(config=KEPT)
        writer = RecordWriter(cluster.bootstrap_servers, cluster.client_config)
        writer.write(0, [KafkaRecord(topic, b"k", b"0", 0)])
        writer.close()
        assert stamps(read(kafka, topic, 1)) == [(b"0", 0)]


def test_another_login_is_refused_plainly() -> None:
    with pytest.raises(KafkaException, match=r"timestamp 0 cannot .*GSSAPI is not supported"):
        WireProducer({"security.protocol": "SASL_SSL"})
    for more in ({}, {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.grant.type": "jwt"}):
        with pytest.raises(KafkaException, match="tokens come from oauth_cb here, or with"):
            WireProducer({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **more})

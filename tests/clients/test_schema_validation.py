"""Topics that validate schemas, with real producers and a registry behind real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

import barnabas
from barnabas.app.testing import Kafka
from support.fake_registry import FakeRegistry
from support.java_host import JavaHost
from support.patience import PATIENCE_S
from support.schema_world import id_of

VALUES = {"confluent.value.schema.validation": "true"}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"enable_idempotence": False},
    "idempotent": {"enable_idempotence": True},
    "compressed": {"compression_type": "lz4", "enable_idempotence": True},
}


@pytest.fixture(scope="module")
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry() as fake:
        yield fake


@pytest.fixture(scope="module")
def kafka(registry: FakeRegistry) -> Iterator[Kafka]:
    config = {"confluent.schema.registry.url": registry.url}
    with barnabas.Cluster(config=config) as cluster, Kafka(cluster.bootstrap_servers) as made:
        yield made


def send(producer: Producer, topic: str, *values: bytes | None) -> list[int]:
    """One by one; the error code of each."""
    codes = []
    for value in values:
        done: list[int] = []

        def delivered(error: KafkaError | None, _: object, done: list[int] = done) -> None:
            done.append(0 if error is None else error.code())

        producer.produce(topic, value, on_delivery=delivered)
        assert producer.flush(PATIENCE_S) == 0
        codes += done
    return codes


@pytest.mark.parametrize("kind", KINDS)
def test_records_of_one_producer(kafka: Kafka, registry: FakeRegistry, kind: str) -> None:
    topic = kafka.topic(kind, config=VALUES)
    good = id_of(registry.register(1, f"{topic}-value"))
    producer = kafka.producer(**KINDS[kind])
    values = [good + b"1", b"text", None, id_of(9), good + b"2", b"", good + b"3"]
    refused = KafkaError.INVALID_RECORD
    assert send(producer, topic, *values) == [0, refused, 0, refused, 0, refused, 0]
    assert kafka.consume(topic, 4) == [good + b"1", None, good + b"2", good + b"3"]


def test_schemas_that_are_registered_later(kafka: Kafka, registry: FakeRegistry) -> None:
    topic = kafka.topic(config=VALUES)
    producer = kafka.producer()
    assert send(producer, topic, id_of(20)) == [KafkaError.INVALID_RECORD]
    registry.register(20, f"{topic}-value")
    while send(producer, topic, id_of(20)) != [0]:
        """Until the broker asks again."""


def test_a_registry_that_fails_for_a_while(kafka: Kafka, registry: FakeRegistry) -> None:
    """Until then the producer's requests time out, and it retries them."""
    topic = kafka.topic(config=VALUES)
    registry.register(30, f"{topic}-value")
    producer = kafka.producer(request_timeout_ms=1000, enable_idempotence=True)
    registry.answer = (503, b"")
    delivered: list[object] = []
    for number in range(20):
        producer.produce(
            topic, id_of(30) + bytes([number]), on_delivery=lambda error, _: delivered.append(error)
        )
    asked = len(registry.asked)
    while len(registry.asked) < asked + 6:
        producer.poll(0.05)
    assert delivered == []
    registry.answer = None
    assert producer.flush(PATIENCE_S) == 0
    assert delivered == [None] * 20
    assert kafka.consume(topic, 20) == [id_of(30) + bytes([number]) for number in range(20)]


def test_other_producers_go_on_while_one_waits(kafka: Kafka, registry: FakeRegistry) -> None:
    checked, plain = kafka.topic("checked", config=VALUES), kafka.topic("plain")
    registry.register(40, f"{checked}-value")
    registry.may_answer.clear()
    try:
        waiting = kafka.producer()
        waiting.produce(checked, id_of(40))
        asked = len(registry.asked)
        while len(registry.asked) == asked:
            waiting.poll(0.01)
        assert send(kafka.producer(), plain, b"1", b"2") == [0, 0]
        assert len(waiting) == 1
    finally:
        registry.may_answer.set()
    assert waiting.flush(PATIENCE_S) == 0


def test_transactions(kafka: Kafka, registry: FakeRegistry) -> None:
    topic = kafka.topic(config=VALUES)
    good = id_of(registry.register(50, f"{topic}-value"))
    producer = kafka.producer(transactional_id=kafka.name("id"))
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    assert send(producer, topic, good + b"1") == [0]
    producer.commit_transaction(PATIENCE_S)
    producer.begin_transaction()
    assert send(producer, topic, good + b"2", b"text") == [0, KafkaError.INVALID_RECORD]
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_S)
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    while send(producer, topic, good + b"3") != [0]:
        # librdkafka gives up the next one as well, for any reason that makes a record invalid.
        producer.abort_transaction(PATIENCE_S)
        producer.begin_transaction()
    producer.commit_transaction(PATIENCE_S)
    assert kafka.consume(topic, 2) == [good + b"1", good + b"3"]


def alter(kafka: Kafka, kind: ResourceType, name: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    kafka.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def test_validation_is_turned_on_for_a_topic_in_use(kafka: Kafka, registry: FakeRegistry) -> None:
    topic = kafka.topic()
    producer = kafka.producer(linger_ms=0)
    assert send(producer, topic, *[b"text"] * 5) == [0] * 5
    alter(kafka, ResourceType.TOPIC, topic, "confluent.value.schema.validation", "true")
    while send(producer, topic, b"text") == [0]:
        """Until the partition's leader has heard of it."""
    alter(kafka, ResourceType.TOPIC, topic, "confluent.value.schema.validation", "false")
    while send(producer, topic, b"text") != [0]:
        """Likewise."""


def test_another_registry_at_run_time(kafka: Kafka, registry: FakeRegistry) -> None:
    topic = kafka.topic(config=VALUES)
    key = "confluent.schema.registry.url"
    with FakeRegistry() as other:
        other.register(60, f"{topic}-value")
        alter(kafka, ResourceType.BROKER, "1", key, other.url)
        try:
            while send(kafka.producer(), topic, id_of(60)) != [0]:
                """Until the broker has heard of it."""
        finally:
            alter(kafka, ResourceType.BROKER, "1", key, registry.url)
    with pytest.raises(KafkaException):
        alter(kafka, ResourceType.BROKER, "1", key, "ftp://registry")


def test_many_threads_and_one_new_schema(kafka: Kafka, registry: FakeRegistry) -> None:
    topic = kafka.topic(partitions=4, config=VALUES)
    registry.register(70, f"{topic}-value")
    codes: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: codes.extend(send(kafka.producer(), topic, *[id_of(70)] * 3))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 24
    assert registry.asked.count("/schemas/ids/70/subjects") == 1


def test_kafkas_own_producer(kafka: Kafka, registry: FakeRegistry, java: JavaHost) -> None:
    """One record of a batch is bad, and it says which."""
    topic = kafka.topic(config=VALUES)
    good = id_of(registry.register(80, f"{topic}-value")).decode() + "value"
    arguments = ("produce-validated", topic, good)
    result = java.run("client-steps", kafka.bootstrap_servers, *arguments)
    seen = json.loads(result.lines[-1])
    assert seen["beside a bad one"].startswith("KafkaException: Failed to append record")
    assert seen["bad"].startswith("InvalidRecordException: the value names no schema")
    assert (seen["alone"], seen["a tombstone"]) == ("done", "done")

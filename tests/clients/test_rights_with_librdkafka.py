"""librdkafka reports which right it lacks; the same client continues once it has the right."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.protocol.acls import Operation
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.rights import (
    RightsWorld,
    on_cluster,
    on_group,
    on_topic,
    on_transactional_id,
)

TOPIC, TXN_ID, GROUP = "orders", "txn", "g"
WRITE, READ = on_topic(Operation.WRITE, TOPIC), on_topic(Operation.READ, TOPIC)
WRITE_TXN = on_transactional_id(Operation.WRITE, TXN_ID)
DESCRIBE_TXN = on_transactional_id(Operation.DESCRIBE, TXN_ID)
NO_TOPIC = KafkaError.TOPIC_AUTHORIZATION_FAILED
REFRESH_MS = 100
"""librdkafka refuses to write to a topic that was refused until it next asks for metadata."""


@pytest.fixture
def world() -> Iterator[RightsWorld]:
    with RightsWorld() as world:
        with world.client() as client:
            client.create_topic(TOPIC)
        world.rights.set(
            on_topic(Operation.DESCRIBE, TOPIC),
            on_group(Operation.READ, GROUP),
            on_group(Operation.DESCRIBE, GROUP),
        )
        yield world


def producer_of(world: RightsWorld, **settings: Any) -> Producer:
    """`settings` with dots for underscores."""
    return Producer(
        {
            "bootstrap.servers": world.address,
            "linger.ms": 0,
            "topic.metadata.refresh.interval.ms": REFRESH_MS,
            "error_cb": lambda error: None,
        }
        | {name.replace("_", "."): value for name, value in settings.items()}
    )


def produce(producer: Producer) -> int:
    """The code of the outcome of one record."""
    outcome: list[int] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        outcome.append(0 if error is None else error.code())

    try:
        producer.produce(TOPIC, b"v", on_delivery=delivered)
        assert producer.flush(PATIENCE_S) == 0
    except KafkaException as refused:
        return int(refused.args[0].code())
    return outcome[0]


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_producer(world: RightsWorld, idempotent: bool) -> None:
    world.rights.give(on_cluster(Operation.IDEMPOTENT_WRITE))
    producer = producer_of(world, enable_idempotence=idempotent)
    for _ in range(2):
        assert produce(producer) == NO_TOPIC
        world.rights.give(WRITE)
        wait_until(lambda: produce(producer) == 0, "a record that is written")
        assert [produce(producer) for _ in range(3)] == [0] * 3
        world.rights.take(WRITE)


def test_an_idempotent_producer_that_may_write_nowhere(world: RightsWorld) -> None:
    producer = producer_of(world, enable_idempotence=True)
    codes: list[int] = []

    def is_told() -> bool:
        try:
            producer.poll(0.1)
        except KafkaException as fatal:
            codes.append(fatal.args[0].code())
        return bool(codes)

    wait_until(is_told, "a fatal error")
    assert codes == [KafkaError.CLUSTER_AUTHORIZATION_FAILED]


def test_a_transaction_that_may_not_write_must_be_aborted(world: RightsWorld) -> None:
    world.rights.give(WRITE, WRITE_TXN, DESCRIBE_TXN)
    producer = producer_of(world, transactional_id=TXN_ID)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    assert produce(producer) == 0
    producer.commit_transaction(PATIENCE_S)
    world.rights.take(WRITE)
    producer.begin_transaction()
    assert produce(producer) in (NO_TOPIC, KafkaError._PURGE_QUEUE)
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].txn_requires_abort()


def test_without_the_transactional_id_there_is_no_transaction(world: RightsWorld) -> None:
    world.rights.give(WRITE, DESCRIBE_TXN)
    producer = producer_of(world, transactional_id=TXN_ID)
    with pytest.raises(KafkaException) as caught:
        producer.init_transactions(PATIENCE_S)
    assert caught.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def poll(consumer: Consumer) -> Any:
    """The next record or error."""
    deadline = time.monotonic() + PATIENCE_S
    while (message := consumer.poll(0.1)) is None:
        assert time.monotonic() < deadline
    return message


def test_a_consumer(world: RightsWorld) -> None:
    world.rights.give(WRITE)
    producer = producer_of(world)
    assert produce(producer) == 0
    consumer = Consumer(
        {"bootstrap.servers": world.address, "group.id": GROUP, "fetch.error.backoff.ms": 50}
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        assert poll(consumer).error().code() == NO_TOPIC
        world.rights.give(READ)
        assert poll(consumer).value() == b"v"
        world.rights.take(READ)
        assert poll(consumer).error().code() == NO_TOPIC
        assert produce(producer) == 0
        world.rights.give(READ)
        assert poll(consumer).offset() == 1
    finally:
        consumer.close()

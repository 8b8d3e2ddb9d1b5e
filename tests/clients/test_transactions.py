"""Transactions through real clients: librdkafka, aiokafka, and Kafka's kafka-transactions tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.app.testing import Kafka
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from support import client_logins
from support.java_host import JavaHost
from support.patience import PATIENCE_S
from support.raw_client import RawClient

Settle = Callable[[], None]


def transactional(kafka: Kafka, name: str, **config: Any) -> Producer:
    """A producer that has taken the transactional id."""
    producer = kafka.producer(transactional_id=name, **config)
    producer.init_transactions(PATIENCE_S)
    return producer


def read(
    kafka: Kafka, topic: str, partitions: int = 1, isolation: str = "read_committed"
) -> list[str]:
    """Every record's value, by partition."""
    consumer = Consumer(
        {
            **kafka.client_config,
            "group.id": kafka.name("reader"),
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values = []
    ended = 0
    while ended < partitions:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "no end of a partition"
        if message.error():
            error = message.error()
            assert error is not None
            assert error.code() == KafkaError._PARTITION_EOF
            ended += 1
        else:
            values.append((message.value() or b"").decode())
    consumer.close()
    return sorted(values)


def test_committed_records_are_read_and_aborted_ones_are_not(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=3)
    producer = transactional(kafka, kafka.name())
    for number in range(6):
        producer.begin_transaction()
        for index in range(30):
            producer.produce(topic, f"{number}-{index:02}", partition=index % 3)
        if number % 2:
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)
    committed = sorted(f"{number}-{index:02}" for number in (0, 2, 4) for index in range(30))
    assert read(kafka, topic, 3) == committed
    assert len(read(kafka, topic, 3, "read_uncommitted")) == 180


def test_aborted_records_between_those_of_others_stay_hidden(kafka: Kafka) -> None:
    topic = kafka.topic()
    plain = kafka.producer(enable_idempotence=True)
    producers = [transactional(kafka, kafka.name()) for _ in range(3)]
    for producer in producers:
        producer.begin_transaction()
    for turn in range(4):
        for number, producer in enumerate(producers):
            producer.produce(topic, f"{number}-{turn}")
            producer.flush(PATIENCE_S)
        plain.produce(topic, f"plain-{turn}")
        plain.flush(PATIENCE_S)
    assert read(kafka, topic) == []  # the last stable offset is where the first one began
    producers[1].abort_transaction(PATIENCE_S)
    producers[0].commit_transaction(PATIENCE_S)
    producers[2].abort_transaction(PATIENCE_S)
    assert read(kafka, topic) == sorted(
        [f"0-{turn}" for turn in range(4)] + [f"plain-{turn}" for turn in range(4)]
    )


def test_a_second_instance_fences_the_first(kafka: Kafka) -> None:
    topic = kafka.topic()
    name = kafka.name()
    first = transactional(kafka, name)
    first.begin_transaction()
    first.produce(topic, "lost")
    first.flush(PATIENCE_S)
    second = transactional(kafka, name)
    with pytest.raises(KafkaException) as failure:
        first.commit_transaction(PATIENCE_S)
    assert failure.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    second.begin_transaction()
    second.produce(topic, "kept")
    second.commit_transaction(PATIENCE_S)
    assert read(kafka, topic) == ["kept"]


def test_an_overlong_timeout_is_refused(kafka: Kafka) -> None:
    producer = kafka.producer(transactional_id=kafka.name(), transaction_timeout_ms=2_000_000)
    with pytest.raises(KafkaException) as failure:
        producer.init_transactions(PATIENCE_S)
    assert failure.value.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT


def test_offsets_count_when_the_transaction_is_committed(kafka: Kafka) -> None:
    source, target = kafka.topic("in", partitions=2), kafka.topic("out")
    plain = kafka.producer()
    for number in range(40):
        plain.produce(source, str(number), partition=number % 2)
    plain.flush(PATIENCE_S)
    producer = transactional(kafka, kafka.name())
    group = kafka.name("group")
    attempts = 0
    done = 0
    while done < 40:
        # Each attempt begins where the last committed transaction ended, as after a crash.
        consumer = kafka.consumer(
            source, group_id=group, enable_auto_commit=False, isolation_level="read_committed"
        )
        messages: list[Any] = []
        while len(messages) < 10:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert not message.error()
            messages.append(message)
        attempts += 1
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), PATIENCE_S
        )
        if attempts % 2:
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)
            done += len(messages)
        consumer.close()
    assert read(kafka, target) == sorted(map(str, range(40)))


def test_a_stranger_to_the_group_may_not_commit_for_it(kafka: Kafka) -> None:
    topic = kafka.topic()
    group = kafka.name("group")
    member = kafka.consumer(topic, group_id=group)
    member.poll(1.0)
    while not member.assignment():
        member.poll(0.2)
    metadata = member.consumer_group_metadata()
    member.close()
    producer = transactional(kafka, kafka.name())
    producer.begin_transaction()
    producer.produce(topic, "x")
    with pytest.raises(KafkaException) as failure:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], metadata, PATIENCE_S)
    assert failure.value.args[0].txn_requires_abort()
    producer.abort_transaction(PATIENCE_S)


def test_an_unknown_producer_gets_kafkas_errors(kafka: Kafka) -> None:
    name = kafka.name()
    transactional(kafka, name)
    found = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    with RawClient(kafka.bootstrap_servers) as raw:
        (place,) = raw.call(found, FindCoordinatorResponse).coordinators
    with RawClient(f"{place.host}:{place.port}") as raw:

        def end(producer_id: int, epoch: int, version: int, transactional_id: str = name) -> int:
            request = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=True,
            )
            return raw.call(request, EndTxnResponse, version).error_code

        again = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
        given = raw.call(again, InitProducerIdResponse)
        producer_id, epoch = given.producer_id, given.producer_epoch
        for version, fenced in (
            (1, ErrorCode.INVALID_PRODUCER_EPOCH),
            (3, ErrorCode.PRODUCER_FENCED),
            (5, ErrorCode.PRODUCER_FENCED),
        ):
            assert end(producer_id, epoch - 1, version) == fenced
            assert end(producer_id, epoch, version) == ErrorCode.INVALID_TXN_STATE
            assert end(producer_id + 1, epoch, version) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
            assert end(producer_id, epoch, version, "") == ErrorCode.INVALID_REQUEST


async def test_aiokafka_commits_and_aborts(kafka: Kafka) -> None:
    import aiokafka

    topic = kafka.topic()
    producer = aiokafka.AIOKafkaProducer(
        **client_logins.python(kafka.bootstrap_servers), transactional_id=kafka.name()
    )
    await producer.start()
    try:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"kept")
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"lost")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"too")
    finally:
        await producer.stop()
    assert read(kafka, topic) == ["kept", "too"]


def test_the_tool_finds_describes_and_aborts(
    java: JavaHost, kafka: Kafka, node_ids: list[int]
) -> None:
    topic = kafka.topic()
    name = kafka.name()
    # The tools take their time, and nobody else is to abort it.
    producer = transactional(kafka, name, transaction_timeout_ms=900_000)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush(PATIENCE_S)

    def tool(*arguments: str) -> list[str]:
        server = ("--bootstrap-server", kafka.bootstrap_servers)
        return java.run("kafka-transactions", *server, *arguments).lines

    listed = [line.split() for line in tool("list")]
    assert listed[0] == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    (row,) = [line for line in listed if line[0] == name]
    producer_id = row[2]
    assert row[3] == "Ongoing"
    assert [
        line.split()[0] for line in tool("list", "--transactional-id-pattern", f"{name[:-1]}.")[1:]
    ] == [name]
    head, described = (line.split() for line in tool("describe", "--transactional-id", name))
    assert dict(zip(head, described, strict=False))["TransactionState"] == "Ongoing"
    head, found = (
        line.split() for line in tool("describe-producers", "--topic", topic, "--partition", "0")
    )
    state = dict(zip(head, found, strict=False))
    assert state["ProducerId"] == producer_id
    assert state["CurrentTransactionStartOffset"] == "0"
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert read(kafka, topic) == []
    assert read(kafka, topic, isolation="read_uncommitted") == ["open"]
    head, found = (
        line.split() for line in tool("describe-producers", "--topic", topic, "--partition", "0")
    )
    assert dict(zip(head, found, strict=False))["CurrentTransactionStartOffset"] == "None"
    assert len(tool("find-hanging", "--topic", topic)) == 1  # the head of an empty table
    for node_id in node_ids:  # it asks each for all its replicas, leaders or not
        assert len(tool("find-hanging", "--broker-id", str(node_id))) == 1
    producer.abort_transaction(PATIENCE_S)

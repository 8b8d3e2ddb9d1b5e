"""A compacted topic as clients see it: of each key the latest record, nothing else for long.

Most of its segments become empty, which fetches have to get over.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import barnabas
from support.eventually import eventually
from support.patience import PATIENCE_S

TOPIC = "prices"
KEYS = 50
RECORDS = 40_000

Found = list[tuple[bytes | None, bytes | None]]


def by_librdkafka(servers: str) -> Found:
    """Every record of the topic."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: Found = []
    try:
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            found.append((message.key(), message.value()))
    finally:
        consumer.close()


async def by_aiokafka(servers: str) -> Found:
    """The same."""
    partition = AioTopicPartition(TOPIC, 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        await consumer.seek_to_beginning(partition)
        found: Found = []
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                found += [(record.key, record.value) for record in records]
        return found
    finally:
        await consumer.stop()


def produce(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.01",
    }
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values():
        future.result()
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(TOPIC, key=b"%d" % (number % KEYS), value=b"%0500d" % number)
                break
            except BufferError:
                producer.poll(1)
    assert producer.flush(PATIENCE_S) == 0


READERS: dict[str, Callable[[str], Coroutine[Any, Any, Found]]] = {
    "librdkafka": lambda servers: asyncio.to_thread(by_librdkafka, servers),
    "aiokafka": by_aiokafka,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
async def test_the_latest_of_each_key_is_read(
    read: Callable[[str], Coroutine[Any, Any, Found]],
) -> None:
    async with barnabas.Cluster(config={"log.cleaner.backoff.ms": "100"}) as cluster:
        servers = cluster.bootstrap_servers
        await asyncio.to_thread(produce, servers)

        async def is_compacted() -> bool:
            found = await read(servers)
            assert dict(found) == {
                b"%d" % (number % KEYS): b"%0500d" % number
                for number in range(RECORDS - KEYS, RECORDS)
            }
            return len(found) < RECORDS // 8

        await eventually(is_compacted, "the removal of seven records of eight")

"""librdkafka, through confluent-kafka."""

from __future__ import annotations

from typing import Any, cast

import pytest
from client_matrix import ClientMatrix, Message
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from support import client_logins
from support.node_process import wait_until
from support.patience import PATIENCE_S


class ConfluentClient:
    """confluent-kafka's Producer, Consumer and AdminClient."""

    capabilities = frozenset(
        [
            "admin",
            "acks-0",
            "acks-1",
            "acks-all",
            "codec-gzip",
            "codec-lz4",
            "codec-none",
            "codec-snappy",
            "codec-zstd",
            "commit-metadata",
            "delete-records",
            "errors",
            "group-admin",
            "groups",
            "idempotence",
            "nulls",
            "times",
            "watermarks",
        ]
    )

    def __init__(self, bootstrap_servers: str) -> None:
        self.base = client_logins.librdkafka(bootstrap_servers)
        self.admin = AdminClient(self.base)

    def close(self) -> None:
        pass

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        self._settle(self.admin.create_topics([NewTopic(name, partitions, config=config)]))

    def _settle(self, futures: dict[Any, Any]) -> list[Any]:
        return [future.result(PATIENCE_S) for future in futures.values()]

    def produce(
        self,
        topic: str,
        messages: list[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        producer = Producer(
            self.base
            | {
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
            }
        )
        failures: list[Any] = []
        for message in messages:
            producer.produce(
                topic,
                message.value,
                message.key,
                message.partition,
                timestamp=message.timestamp_ms or 0,
                headers=list(message.headers),
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(PATIENCE_S) == 0
        if failures:
            raise KafkaException(failures[0])

    def _consumer(self, group: str, **config: Any) -> Consumer:
        return Consumer(
            self.base
            | {
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
            | config
        )

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        consumer = self._consumer("unused")
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            return self._consume(consumer, count)
        finally:
            consumer.close()

    def _consume(self, consumer: Consumer, count: int) -> list[Message]:
        received: list[Message] = []
        while len(received) < count:
            batch = consumer.consume(count - len(received), PATIENCE_S)
            assert batch, f"{len(received)} of {count} records arrived"
            for message in batch:
                if message.error():
                    raise KafkaException(message.error())
                kind, timestamp = message.timestamp()
                received.append(
                    Message(
                        value=message.value(),
                        key=message.key(),
                        headers=tuple(cast("Any", message.headers() or ())),
                        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
                        partition=cast("int", message.partition()),
                        offset=cast("int", message.offset()),
                    )
                )
        return received

    def read_in_group(self, topic: str, group: str, count: int) -> list[Message]:
        consumer = self._consumer(group)
        try:
            consumer.subscribe([topic])
            received = self._consume(consumer, count)
            consumer.commit(asynchronous=False)
            return received
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = self._consumer("unused")
        try:
            (found,) = consumer.offsets_for_times(
                [TopicPartition(topic, partition, timestamp_ms)], PATIENCE_S
            )
            return found.offset if found.offset >= 0 else None
        finally:
            consumer.close()

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer("unused")
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_S)
        finally:
            consumer.close()

    def commit(self, group: str, topic: str, offset: int, metadata: str) -> None:
        consumer = self._consumer(group)
        try:
            entry = TopicPartition(topic, 0, offset, metadata)
            consumer.commit(offsets=[entry], asynchronous=False)
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> tuple[int, str]:
        request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
        (result,) = self._settle(self.admin.list_consumer_group_offsets([request]))
        (entry,) = result.topic_partitions
        return entry.offset, entry.metadata

    def partition_count(self, topic: str) -> int:
        return len(self.admin.list_topics(topic, PATIENCE_S).topics[topic].partitions)

    def grow(self, topic: str, partitions: int) -> None:
        self._settle(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def topic_config(self, topic: str) -> dict[str, Any]:
        (config,) = self._settle(
            self.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
        )
        return {name: entry.value for name, entry in config.items()}

    def set_topic_config(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._settle(self.admin.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, offset: int) -> None:
        self._settle(self.admin.delete_records([TopicPartition(topic, 0, offset)]))

    def groups(self) -> set[str]:
        result = self.admin.list_consumer_groups().result(PATIENCE_S)
        assert not result.errors
        return {entry.group_id for entry in result.valid}

    def delete_group(self, group: str) -> None:
        self._settle(self.admin.delete_consumer_groups([group]))

    def delete_topic(self, topic: str) -> None:
        self._settle(self.admin.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=PATIENCE_S).topics)


class TestConfluentKafka(ClientMatrix):
    client_class = ConfluentClient

    def test_two_members_share_a_topic_and_one_takes_over(
        self, client: ConfluentClient, topic: str
    ) -> None:
        self.create_topic(client, topic, 4, {})
        strategy = {"partition.assignment.strategy": "cooperative-sticky"}
        first = client._consumer("pair-" + topic, **strategy)
        second = client._consumer("pair-" + topic, **strategy)
        try:
            first.subscribe([topic])
            second.subscribe([topic])
            self._until(
                lambda: (len(first.assignment()), len(second.assignment())), (2, 2), first, second
            )
            second.close()
            self._until(lambda: len(first.assignment()), 4, first)
        finally:
            first.close()

    def _until(self, state: Any, wanted: Any, *consumers: Consumer) -> None:
        def has_come() -> bool:
            for consumer in consumers:
                consumer.poll(0.05)
            return bool(state() == wanted)

        wait_until(has_come, f"{wanted}", shown=state)

    def test_a_topic_is_created_by_producing_to_it(
        self, client: ConfluentClient, topic: str
    ) -> None:
        client.produce(topic, [Message(value=b"first", timestamp_ms=1)])
        assert [m.value for m in client.read(topic, 0, OFFSET_BEGINNING, 1)] == [b"first"]

    def test_an_unknown_topic_stays_unknown_to_a_consumer(
        self, client: ConfluentClient, topic: str
    ) -> None:
        consumer = client._consumer("g", **{"allow.auto.create.topics": False})
        try:
            with pytest.raises(KafkaException, match=r"UNKNOWN_TOPIC|UNKNOWN_PARTITION|unknown"):
                consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
        finally:
            consumer.close()

"""kafka-python, the client in pure Python."""

from __future__ import annotations

from typing import Any

from client_matrix import ClientMatrix, Message
from kafka.admin import ConfigResource, ConfigResourceType

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from support import client_logins
from support.patience import PATIENCE_S


class KafkaPythonClient:
    """kafka-python's producer, consumer and admin client."""

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
        self.place = client_logins.python(bootstrap_servers)
        self.admin = KafkaAdminClient(**self.place)

    def close(self) -> None:
        self.admin.close()

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        options = {"num_partitions": partitions, "replication_factor": -1, "configs": config}
        self.admin.create_topics({name: options}, wait_for_metadata=True)

    def produce(
        self,
        topic: str,
        messages: list[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        producer = KafkaProducer(
            **self.place,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=20,
            max_block_ms=int(PATIENCE_S * 1000),
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=message.partition,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            producer.flush(PATIENCE_S)
            for future in futures:
                future.get(PATIENCE_S)
        finally:
            producer.close()

    def _consumer(self, group: str | None = None) -> KafkaConsumer:
        return KafkaConsumer(
            **self.place,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=int(PATIENCE_S * 1000),
        )

    def _consume(self, consumer: KafkaConsumer, count: int) -> list[Message]:
        received: list[Message] = []
        for record in consumer:
            received.append(
                Message(
                    value=record.value,
                    key=record.key,
                    headers=tuple(record.headers),
                    timestamp_ms=record.timestamp,
                    partition=record.partition,
                    offset=record.offset,
                )
            )
            if len(received) == count:
                break
        assert len(received) == count
        return received

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(topic, partition)])
            consumer.seek(TopicPartition(topic, partition), offset)
            return self._consume(consumer, count)
        finally:
            consumer.close()

    def read_in_group(self, topic: str, group: str, count: int) -> list[Message]:
        consumer = self._consumer(group)
        try:
            consumer.subscribe([topic])
            received = self._consume(consumer, count)
            consumer.commit()
            return received
        finally:
            consumer.close()

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = self._consumer()
        try:
            place = TopicPartition(topic, partition)
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
            return None if found is None else found.offset
        finally:
            consumer.close()

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer()
        try:
            place = TopicPartition(topic, partition)
            return (
                consumer.beginning_offsets([place])[place],
                consumer.end_offsets([place])[place],
            )
        finally:
            consumer.close()

    def commit(self, group: str, topic: str, offset: int, metadata: str) -> None:
        consumer = self._consumer(group)
        try:
            place = TopicPartition(topic, 0)
            consumer.assign([place])
            consumer.commit({place: OffsetAndMetadata(offset, metadata, -1)})
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> tuple[int, str]:
        entry = self.admin.list_group_offsets(group)[group][TopicPartition(topic, 0)]
        return entry.offset, entry.metadata

    def partition_count(self, topic: str) -> int:
        (described,) = self.admin.describe_topics([topic])
        return len(described["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions({topic: partitions})

    def topic_config(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = self.admin.describe_configs([resource], config_filter="all")
        (by_name,) = described.values()
        return {name: entry["value"] for name, entry in by_name[topic].items()}

    def set_topic_config(self, topic: str, name: str, value: str) -> None:
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})])

    def delete_records(self, topic: str, offset: int) -> None:
        self.admin.delete_records({TopicPartition(topic, 0): offset})

    def groups(self) -> set[str]:
        return {entry["group_id"] for entry in self.admin.list_groups()}

    def delete_group(self, group: str) -> None:
        self.admin.delete_groups([group])

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self.admin.list_topics())


class TestKafkaPython(ClientMatrix):
    client_class = KafkaPythonClient

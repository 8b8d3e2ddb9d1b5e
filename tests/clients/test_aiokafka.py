"""aiokafka, the asyncio client."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.structs import OffsetAndMetadata
from client_matrix import ClientMatrix, Message

from support import client_logins
from support.patience import PATIENCE_S


class AiokafkaClient:
    """aiokafka's coroutines, run one at a time on a loop of their own."""

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
            "groups",
            "idempotence",
            "nulls",
            "times",
            "watermarks",
        ]
    )

    def __init__(self, bootstrap_servers: str) -> None:
        self.place = client_logins.python(bootstrap_servers)
        self.runner = asyncio.Runner()

    def close(self) -> None:
        self.runner.close()

    def _run(self, coroutine: Any) -> Any:
        return self.runner.run(asyncio.wait_for(coroutine, PATIENCE_S))

    def _admin(self, step: Any) -> Any:
        async def run() -> Any:
            admin = AIOKafkaAdminClient(**self.place)
            await admin.start()
            try:
                return await step(admin)
            finally:
                await admin.close()

        return self._run(run())

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        copies = len(self.place["bootstrap_servers"].split(","))  # it has no word for the default
        topic = NewTopic(name, partitions, copies, topic_configs=config)
        response = self._admin(lambda admin: admin.create_topics([topic]))
        assert all(entry[1] == 0 for entry in response.topic_errors), response

    def produce(
        self,
        topic: str,
        messages: list[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        async def run() -> None:
            producer = AIOKafkaProducer(
                **self.place,
                compression_type=None if codec == "none" else codec,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=20,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=message.value,
                        key=message.key,
                        headers=list(message.headers),
                        partition=message.partition,
                        timestamp_ms=message.timestamp_ms,
                    )
                    for message in messages
                ]
                await producer.flush()
                await asyncio.gather(*futures)
            finally:
                await producer.stop()

        self._run(run())

    def _consuming(self, step: Any, group: str | None = None, topics: tuple[str, ...] = ()) -> Any:
        async def run() -> Any:
            consumer = AIOKafkaConsumer(
                *topics,
                **self.place,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            await consumer.start()
            try:
                return await step(consumer)
            finally:
                await consumer.stop()

        return self._run(run())

    async def _consume(self, consumer: AIOKafkaConsumer, count: int) -> list[Message]:
        received: list[Message] = []
        while len(received) < count:
            record = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
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
        return received

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        async def step(consumer: AIOKafkaConsumer) -> list[Message]:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek(place, offset)
            return await self._consume(consumer, count)

        return self._consuming(step)

    def read_in_group(self, topic: str, group: str, count: int) -> list[Message]:
        async def step(consumer: AIOKafkaConsumer) -> list[Message]:
            received = await self._consume(consumer, count)
            await consumer.commit()
            return received

        return self._consuming(step, group, (topic,))

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition)
        found = self._consuming(lambda c: c.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else found.offset

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)

        async def step(consumer: AIOKafkaConsumer) -> tuple[int, int]:
            first = await consumer.beginning_offsets([place])
            last = await consumer.end_offsets([place])
            return first[place], last[place]

        return self._consuming(step)

    def commit(self, group: str, topic: str, offset: int, metadata: str) -> None:
        async def step(consumer: AIOKafkaConsumer) -> None:
            place = TopicPartition(topic, 0)
            consumer.assign([place])
            await consumer.commit({place: OffsetAndMetadata(offset, metadata)})

        self._consuming(step, group)

    def committed(self, group: str, topic: str) -> tuple[int, str]:
        offsets = self._admin(lambda admin: admin.list_consumer_group_offsets(group))
        entry = offsets[TopicPartition(topic, 0)]
        return entry.offset, entry.metadata

    def partition_count(self, topic: str) -> int:
        (described,) = self._admin(lambda admin: admin.describe_topics([topic]))
        return len(described["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        growth = {topic: NewPartitions(partitions)}
        self._admin(lambda admin: admin.create_partitions(growth))

    def topic_config(self, topic: str) -> dict[str, Any]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (response,) = self._admin(lambda admin: admin.describe_configs([resource]))
        ((_, _, _, _, entries),) = response.resources
        return {entry[0]: entry[1] for entry in entries}

    def set_topic_config(self, topic: str, name: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        self._admin(lambda admin: admin.alter_configs([resource]))

    def delete_records(self, topic: str, offset: int) -> None:
        request = {TopicPartition(topic, 0): RecordsToDelete(offset)}
        self._admin(lambda admin: admin.delete_records(request, timeout_ms=int(PATIENCE_S * 1000)))

    def groups(self) -> set[str]:
        return {entry[0] for entry in self._admin(lambda admin: admin.list_consumer_groups())}

    def delete_group(self, group: str) -> None:
        raise AssertionError("aiokafka's admin client cannot delete groups")

    def delete_topic(self, topic: str) -> None:
        self._admin(lambda admin: admin.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._admin(lambda admin: admin.list_topics()))


class TestAiokafka(ClientMatrix):
    client_class = AiokafkaClient

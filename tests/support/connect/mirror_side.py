"""One of the clusters of a test of mirroring, with its clients."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from support.connect.tasks import WAIT_SECONDS, read_messages


class Side:
    """One cluster, with its clients."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers})

    def close(self) -> None:
        """Close the admin client before its cluster ends."""
        del self.admin

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        config = {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(topic, partitions, 1, config=config)
        self.admin.create_topics([new])[topic].result(WAIT_SECONDS)

    def topics(self) -> dict[str, int]:
        found = self.admin.list_topics(timeout=WAIT_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def produce(self, topic: str, records: range, partitions: int = 1) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for number in records:
            producer.produce(
                topic,
                b"value %d" % number,
                b"key %d" % number,
                partition=number % partitions,
                headers=[("number", b"%d" % number), ("none", None)],
                timestamp=1_700_000_000_000 + number,
            )
        assert producer.flush(WAIT_SECONDS) == 0

    def records(self, topic: str) -> list[tuple[Any, ...]]:
        if topic not in self.topics():
            return []
        found = read_messages(self.servers, topic)
        return [(m.partition(), m.key(), m.value(), m.headers(), m.timestamp()) for m in found]

    def commit(self, group: str, *offsets: tuple[str, int, int, str]) -> None:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        given = [
            TopicPartition(topic, number, at, text) if text else TopicPartition(topic, number, at)
            for topic, number, at, text in offsets
        ]
        consumer.commit(offsets=given, asynchronous=False)
        consumer.close()

    def committed(self, group: str, topic: str, partition: int) -> tuple[int, str]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=WAIT_SECONDS)
        consumer.close()
        return found.offset, found.metadata or ""

    def config(self, topic: str, name: str) -> ConfigEntry:
        asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found: dict[str, ConfigEntry] = self.admin.describe_configs([asked])[asked].result(30)
        return found[name]

    def set_config(self, topic: str, name: str, value: str) -> None:
        change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        asked = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
        self.admin.incremental_alter_configs([asked])[asked].result(WAIT_SECONDS)

    def give_right(
        self, topic: str, operation: AclOperation = AclOperation.READ, principal: str = "User:r"
    ) -> None:
        """Give a right on a topic."""
        binding = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            principal,
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        self.admin.create_acls([binding])[binding].result(WAIT_SECONDS)

    def rights(self, topic: str) -> set[tuple[str, AclOperation]]:
        """Return who may do what with a topic."""
        every = AclBindingFilter(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            None,  # type: ignore[arg-type]  # any
            None,  # type: ignore[arg-type]  # any
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        found = self.admin.describe_acls(every).result(WAIT_SECONDS)
        return {(one.principal, one.operation) for one in found}

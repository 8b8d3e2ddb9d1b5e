"""The object that the `kafka` fixture gives to a test."""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.kafka.admin import Admin
from barnabas.kafka.partitioners import JAVA_PARTITIONER

TIMEOUT_S = 60.0
"""For what comes at once, on a machine under load too."""
NAME_LENGTH_MAX = 100
Sendable = bytes | str | tuple[bytes | str | None, bytes | str | None]
"""A value, or a key and a value."""


class Kafka:
    """A cluster as one test sees it. Topics made through it are deleted at the end."""

    def __init__(
        self,
        bootstrap_servers: str,
        test_name: str = "test",
        config_of: Callable[[str], Mapping[str, str]] | None = None,
        user: str = "admin",
    ) -> None:
        """`config_of` says how clients of a user connect, where that takes more than addresses."""
        self.bootstrap_servers = bootstrap_servers
        self._config_of = config_of
        self._user = user
        self._prefix = re.sub(r"[^a-zA-Z0-9._-]+", "-", test_name)[:NAME_LENGTH_MAX].strip("-")
        self._topics: list[str] = []
        self._admin: Admin | None = None

    @property
    def client_config(self) -> dict[str, str]:
        """The settings that every confluent-kafka client needs to connect."""
        more = {} if self._config_of is None else self._config_of(self._user)
        return {"bootstrap.servers": self.bootstrap_servers, **more}

    def as_user(self, user: str) -> "Kafka":
        """The same secured cluster for another user. Topics made through it stay its own to delete.

        alice may do what she likes with names that begin with `alice-`, and names made for her do.
        """
        prefix = f"{user}-{self._prefix}"
        return Kafka(self.bootstrap_servers, prefix, self._config_of, user)

    @property
    def admin(self) -> AdminClient:
        """An AdminClient, made at first use."""
        if self._admin is None:
            self._admin = Admin(self.client_config)
        return self._admin.client

    def name(self, hint: str = "") -> str:
        """A name that no other test has, for topics, groups and transactional ids."""
        parts = [part for part in (self._prefix, hint, uuid.uuid4().hex[:8]) if part]
        return "-".join(parts)

    def topic(
        self, hint: str = "", partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic with a unique name and return that.

        Raises KafkaException if the broker refuses.
        """
        name = self.name(hint)
        new = NewTopic(name, num_partitions=partitions, config=dict(config or {}))
        self.admin.create_topics([new])[name].result(TIMEOUT_S)
        self._topics.append(name)
        return name

    def producer(self, **config: Any) -> Producer:
        """A Producer; `linger_ms=5` stands for `linger.ms`. Keys go where Java's would."""
        defaults = {**self.client_config, **JAVA_PARTITIONER}
        return Producer({**defaults, **_dotted(config)})

    def consumer(self, *topics: str, **config: Any) -> Consumer:
        """A Consumer in its own group that starts at the beginning; close it yourself."""
        defaults = {
            **self.client_config,
            "group.id": self.name("group"),
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer({**defaults, **_dotted(config)})
        if topics:
            consumer.subscribe(list(topics))
        return consumer

    def produce(self, topic: str, records: Iterable[Sendable]) -> None:
        """Send values, or (key, value) pairs, and wait until all are acknowledged.

        Raises KafkaException for the first record that was not.
        """
        failures: list[KafkaException] = []

        def done(error: Any, message: Any) -> None:
            if error is not None:
                failures.append(KafkaException(error))

        producer = self.producer()
        for record in records:
            key, value = record if isinstance(record, tuple) else (None, record)
            producer.produce(topic, value, key, on_delivery=done)
        producer.flush(TIMEOUT_S)
        if failures:
            raise failures[0]

    def consume(self, topic: str, count: int, timeout_s: float = TIMEOUT_S) -> list[bytes | None]:
        """The first `count` values of a topic. Raises AssertionError if fewer come in time."""
        consumer = self.consumer(topic)
        try:
            messages = consumer.consume(count, timeout_s)
        finally:
            consumer.close()
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
        assert len(messages) == count, f"{len(messages)} of {count} records came"
        return [message.value() for message in messages]

    def __enter__(self) -> "Kafka":
        return self

    def __exit__(self, *_: object) -> None:
        if self._topics:
            # An older client may wait for a controller that has gone.
            admin = Admin(self.client_config)
            for future in admin.client.delete_topics(self._topics).values():
                future.exception(TIMEOUT_S)
        self._admin = None


def _dotted(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in config.items()}

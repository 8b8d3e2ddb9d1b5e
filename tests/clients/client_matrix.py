"""The operations that every Kafka client must be able to do, as one set of tests.

A module for each real client implements the steps (`ClientUnderTest`) and inherits `ClientMatrix`,
whose tests check the results. The broker is the same for all.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

BASE_TIME_MS = 1_760_000_000_000
KEPT = {"retention.ms": "-1"}
"""For topics of old records."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Message:
    """A record as a client sends and receives it."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int = 0
    offset: int = field(default=-1, compare=False)


class ClientUnderTest(Protocol):
    """The steps that the matrix is made of. `capabilities` names what a client can do at all."""

    capabilities: frozenset[str]

    def __init__(self, bootstrap_servers: str) -> None: ...

    def close(self) -> None: ...

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None: ...

    def produce(
        self,
        topic: str,
        messages: list[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        """Send and wait for every acknowledgement; raises what the client raises."""
        ...

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        """`count` messages from `offset` on, without a group."""
        ...

    def read_in_group(self, topic: str, group: str, count: int) -> list[Message]:
        """`count` messages as the only member of `group`, committed before it leaves."""
        ...

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None: ...

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]: ...

    def commit(self, group: str, topic: str, offset: int, metadata: str) -> None: ...

    def committed(self, group: str, topic: str) -> tuple[int, str]: ...

    def partition_count(self, topic: str) -> int: ...

    def grow(self, topic: str, partitions: int) -> None: ...

    def topic_config(self, topic: str) -> dict[str, Any]: ...

    def set_topic_config(self, topic: str, name: str, value: str) -> None: ...

    def delete_records(self, topic: str, offset: int) -> None: ...

    def groups(self) -> set[str]: ...

    def delete_group(self, group: str) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def topics(self) -> set[str]: ...


def numbered(count: int, start: int = 0, size_bytes: int = 0) -> list[Message]:
    """Messages whose keys, values, times and headers all differ."""
    return [
        Message(
            value=b"value-%d" % n + b"." * size_bytes,
            key=b"key-%d" % n,
            headers=(("n", b"%d" % n), ("empty", b"")),
            timestamp_ms=BASE_TIME_MS + n * 1000,
        )
        for n in range(start, start + count)
    ]


class CoreMatrix:
    """What involves leaders, a coordinator and the controller; inherited by one class per client.

    `test_three_nodes.py` runs it against a cluster.
    """

    client_class: type[ClientUnderTest]

    @pytest.fixture(autouse=True)
    def _settle(self, settle: Any) -> None:
        self.settle = settle

    def create_topic(
        self, client: ClientUnderTest, topic: str, partitions: int, config: dict[str, str]
    ) -> None:
        """Create a topic that every node knows, and whose old records stay."""
        client.create_topic(topic, partitions, {**KEPT, **config})
        self.settle()

    @pytest.fixture
    def client(self, kafka: Any) -> Any:
        client = self.client_class(kafka.bootstrap_servers)
        yield client
        client.close()

    @pytest.fixture
    def topic(self) -> str:
        return f"topic-{uuid.uuid4().hex[:12]}"

    def needs(self, *capabilities: str) -> None:
        missing = set(capabilities) - self.client_class.capabilities
        if missing:
            pytest.skip(f"this client has no {', '.join(sorted(missing))}")

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    def test_every_kind_of_acknowledgement(
        self, client: ClientUnderTest, topic: str, acks: str
    ) -> None:
        self.needs(f"acks-{acks}")
        self.create_topic(client, topic, 1, {})
        sent = numbered(20)
        client.produce(topic, sent, acks=acks)
        assert client.read(topic, 0, 0, 20) == sent

    def test_watermarks_follow_produced_and_deleted_records(
        self, client: ClientUnderTest, topic: str
    ) -> None:
        self.needs("watermarks")
        self.create_topic(client, topic, 1, {})
        assert client.watermarks(topic, 0) == (0, 0)
        client.produce(topic, numbered(10))
        assert client.watermarks(topic, 0) == (0, 10)
        self.needs("delete-records")
        client.delete_records(topic, 4)
        assert client.watermarks(topic, 0) == (4, 10)
        assert client.read(topic, 0, 4, 6) == numbered(10)[4:]

    def test_a_group_goes_on_where_it_was(self, client: ClientUnderTest, topic: str) -> None:
        self.needs("groups")
        self.create_topic(client, topic, 1, {})
        client.produce(topic, numbered(30))
        group = f"group-{topic}"
        assert client.read_in_group(topic, group, 30) == numbered(30)
        client.produce(topic, numbered(10, start=30))
        assert client.read_in_group(topic, group, 10) == numbered(10, start=30)

    def test_commit_metadata_is_kept(self, client: ClientUnderTest, topic: str) -> None:
        self.needs("commit-metadata")
        self.create_topic(client, topic, 1, {})
        client.produce(topic, numbered(5))
        client.commit(f"group-{topic}", topic, 3, "up to three")
        assert client.committed(f"group-{topic}", topic) == (3, "up to three")

    def test_an_idempotent_producer(self, client: ClientUnderTest, topic: str) -> None:
        self.needs("idempotence")
        self.create_topic(client, topic, 1, {})
        client.produce(topic, numbered(200), idempotent=True)
        client.produce(topic, numbered(200, start=200), idempotent=True)
        assert client.read(topic, 0, 0, 400) == numbered(400)

    def test_topics_are_created_described_changed_and_deleted(
        self, client: ClientUnderTest, topic: str
    ) -> None:
        self.needs("admin")
        self.create_topic(client, topic, 2, {"retention.ms": "1234567"})
        assert topic in client.topics()
        assert client.partition_count(topic) == 2
        client.grow(topic, 5)
        self.settle()
        assert client.partition_count(topic) == 5
        config = client.topic_config(topic)
        assert config["retention.ms"] == "1234567"
        assert config["cleanup.policy"] == "delete"
        client.set_topic_config(topic, "retention.ms", "7654321")
        self.settle()
        assert client.topic_config(topic)["retention.ms"] == "7654321"
        client.delete_topic(topic)
        self.settle()
        assert topic not in client.topics()


class ClientMatrix(CoreMatrix):
    """Everything; inherited by one class per client."""

    @pytest.mark.parametrize("codec", CODECS)
    def test_records_come_back_as_sent(
        self, client: ClientUnderTest, topic: str, codec: str
    ) -> None:
        self.needs(f"codec-{codec}")
        self.create_topic(client, topic, 1, {})
        sent = numbered(50, size_bytes=200)
        client.produce(topic, sent, codec=codec)
        received = client.read(topic, 0, 0, 50)
        assert received == sent
        assert [message.offset for message in received] == list(range(50))

    def test_nulls_and_empty_bytes_are_kept_apart(
        self, client: ClientUnderTest, topic: str
    ) -> None:
        self.needs("nulls")
        self.create_topic(client, topic, 1, {})
        sent = [
            Message(value=b"", key=None, timestamp_ms=BASE_TIME_MS),
            Message(value=None, key=b"k", timestamp_ms=BASE_TIME_MS),
            Message(value=b"v", key=b"", timestamp_ms=BASE_TIME_MS),
        ]
        client.produce(topic, sent)
        assert client.read(topic, 0, 0, 3) == sent

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    def test_a_read_from_the_middle_of_a_batch(
        self, client: ClientUnderTest, topic: str, codec: str
    ) -> None:
        self.needs(f"codec-{codec}")
        self.create_topic(client, topic, 1, {})
        sent = numbered(100)
        client.produce(topic, sent, codec=codec)
        for offset in (1, 37, 99):
            received = client.read(topic, 0, offset, 100 - offset)
            assert received == sent[offset:]
            assert received[0].offset == offset

    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_times_are_looked_up_exact_to_the_record(
        self, client: ClientUnderTest, topic: str, codec: str
    ) -> None:
        self.needs("times", f"codec-{codec}")
        self.create_topic(client, topic, 1, {})
        client.produce(topic, numbered(100), codec=codec)
        for timestamp_ms, offset in (
            (BASE_TIME_MS - 1, 0),
            (BASE_TIME_MS + 41_000, 41),
            (BASE_TIME_MS + 41_001, 42),
            (BASE_TIME_MS + 99_000, 99),
            (BASE_TIME_MS + 99_001, None),
        ):
            assert client.offset_for_time(topic, 0, timestamp_ms) == offset

    def test_groups_are_listed_and_deleted(self, client: ClientUnderTest, topic: str) -> None:
        self.needs("group-admin", "groups")
        self.create_topic(client, topic, 1, {})
        client.produce(topic, numbered(3))
        group = f"group-{topic}"
        client.read_in_group(topic, group, 3)
        assert group in client.groups()
        client.delete_group(group)
        assert group not in client.groups()

    def test_a_record_above_the_topics_limit_is_refused(
        self, client: ClientUnderTest, topic: str
    ) -> None:
        self.needs("errors")
        self.create_topic(client, topic, 1, {"max.message.bytes": "2000"})
        client.produce(topic, numbered(1))
        with pytest.raises(Exception, match=r"(?i)large|size"):
            client.produce(topic, [Message(value=b"x" * 5000, timestamp_ms=BASE_TIME_MS)])
        client.produce(topic, numbered(1, start=1))
        assert client.read(topic, 0, 0, 2) == numbered(2)

    def test_a_record_without_key_is_refused_on_a_compacted_topic(
        self, client: ClientUnderTest, topic: str
    ) -> None:
        self.needs("errors")
        self.create_topic(client, topic, 1, {"cleanup.policy": "compact"})
        # aiokafka has no name for error 87 and calls it unknown.
        with pytest.raises(Exception, match=r"(?i)invalid.?record|validat|broker|UnknownError"):
            client.produce(topic, [Message(value=b"no key", timestamp_ms=BASE_TIME_MS)])
        client.produce(topic, numbered(1))
        assert client.read(topic, 0, 0, 1) == numbered(1)

"""Settings of tasks' clients, and groups of topics that are created."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.connect.tasks.clients import (
    admin_settings,
    consumer_settings,
    producer_settings,
)
from barnabas.connect.tasks.topics import read_groups
from barnabas.schemas.data.errors import ConfigError

WORKER = {
    "bootstrap.servers": "127.0.0.1:9",
    "group.id": "workers",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="worker" password="secret";'
    ),
    "offset.storage.topic": "offsets",
    "producer.linger.ms": "7",
    "producer.buffer.memory": "1048576",
    "producer.max.block.ms": "1000",
    "producer.interceptor.classes": "some.Java",
    "consumer.fetch.max.wait.ms": "9",
    "consumer.max.poll.records": "3",
}


def test_connector_overrides_worker_which_overrides_defaults() -> None:
    connector = {
        "producer.override.linger.ms": "8",
        "producer.override.compression.type": "zstd",
        "producer.override.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="own" password="other";'
        ),
        "producer.override.sasl.mechanism": "PLAIN",
    }
    found = producer_settings("client", connector, WORKER)
    expected = {
        "bootstrap.servers": "127.0.0.1:9",
        "client.id": "client",
        "linger.ms": "8",
        "compression.type": "zstd",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "own",
        "sasl.password": "other",
        "queue.buffering.max.kbytes": "1024",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
    }
    assert expected.items() <= found.items()
    assert "max.block.ms" not in found
    Producer(found)


def test_consumers_are_of_the_connectors_group() -> None:
    connector = {
        "consumer.override.auto.offset.reset": "none",
        "consumer.override.partition.assignment.strategy": (
            "org.apache.kafka.clients.consumer.RangeAssignor"
        ),
    }
    found = consumer_settings("shop", connector, WORKER)
    assert found["group.id"] == "connect-shop"
    assert found["auto.offset.reset"] == "error"
    assert found["partition.assignment.strategy"] == "range"
    assert found["fetch.wait.max.ms"] == "9"
    assert found["sasl.username"] == "worker"
    Consumer(found).close()


@pytest.mark.parametrize("group", ["", " "])
def test_a_group_without_a_name_is_refused(group: str) -> None:
    """librdkafka's consumer would end the whole worker."""
    with pytest.raises(ConfigError, match="should not be an empty string or whitespace"):
        consumer_settings("shop", {"consumer.override.group.id": group}, WORKER)


def test_transactional_producers_ack_all_and_write_in_time() -> None:
    given = {**WORKER, "producer.acks": "1", "producer.transaction.timeout.ms": "20000"}
    found = producer_settings("client", {}, given, transactional_id="t")
    assert found["transactional.id"] == "t"
    assert found["delivery.timeout.ms"] == 20_000
    assert "acks" not in found
    assert producer_settings("client", {}, given)["enable.idempotence"] is False


def test_clients_tell_our_log_what_they_have_to_say(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1"}
    producer = Producer(producer_settings("client", {}, nobody))
    consumer = Consumer(consumer_settings("shop", {}, nobody))
    deadline = time.monotonic() + 30
    kinds: set[str] = set()
    while len(kinds) < 2 and time.monotonic() < deadline:
        producer.poll(0.05)
        consumer.poll(0.05)
        kinds = set(re.findall("#(producer|consumer)-.*Connection refused", caplog.text))
    consumer.close()
    assert kinds == {"producer", "consumer"}
    # Clients of other tests, whose brokers are gone, may still write to the same stream.
    assert "127.0.0.1:1/" not in capfd.readouterr().err


def test_wrong_settings_name_themselves() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        admin_settings({}, {})
    with pytest.raises(ConfigError, match=r"security\.protocol"):
        admin_settings({}, {"bootstrap.servers": "a:1", "security.protocol": "NONE"})


GROUPS = {
    "topic.creation.default.replication.factor": "3",
    "topic.creation.default.partitions": "5",
    "topic.creation.groups": "a, b",
    "topic.creation.a.include": r"a\p{Lower}*, x",
    "topic.creation.a.exclude": "ab.*",
    "topic.creation.a.cleanup.policy": "compact",
    "topic.creation.b.include": "b",
    "topic.creation.b.partitions": "-1",
}


def test_first_group_that_has_a_topic_creates_it() -> None:
    groups = read_groups(GROUPS, {})
    chosen = {
        topic: next(one for one in groups if one.has(topic)) for topic in ("ac", "abc", "x", "b")
    }
    assert {topic: group.name for topic, group in chosen.items()} == {
        "ac": "a",
        "abc": "default",
        "x": "a",
        "b": "b",
    }
    assert (chosen["ac"].partitions, chosen["ac"].replicas) == (5, 3)
    assert chosen["ac"].configs == {"cleanup.policy": "compact"}
    assert chosen["b"].partitions == -1


def test_no_group_where_creation_is_off_or_not_asked_for() -> None:
    assert read_groups({}, {}) == ()
    assert read_groups(GROUPS, {"topic.creation.enable": "false"}) == ()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"topic.creation.default.partitions": "0"}, "default.partitions"),
        ({"topic.creation.default.replication.factor": "x"}, "default.replication.factor"),
        ({"topic.creation.a.include": "("}, "a.include"),
    ],
)
def test_wrong_groups(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        read_groups({**GROUPS, **change}, {})

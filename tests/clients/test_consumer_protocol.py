"""Groups of the consumer protocol (KIP-848) with Kafka's own consumer and with librdkafka.

The Java steps get the same results from Apache Kafka (`--barnabas-bootstrap`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from barnabas.app.testing import Kafka
from support.java_host import JavaHost

TIMEOUT_S = 60


def step(java: JavaHost, kafka: Kafka, *arguments: str) -> dict[str, Any]:
    """Run a step against the cluster; returns what it saw."""
    run = java.start("group-steps", kafka.bootstrap_servers, *arguments)
    result = run.wait(2 * TIMEOUT_S)
    assert result.exit_code == 0, result.err
    seen: dict[str, Any] = json.loads(result.lines[-1])
    return seen


def test_java_consumers_share(java: JavaHost, kafka: Kafka) -> None:
    assert step(java, kafka, "share", kafka.topic(partitions=6), kafka.name("group")) == {
        "alone": 6,
        "shared": 6,
        "type": "Consumer",
        "state": "Stable",
        "members": 2,
        "upgraded": [True],
        "epochs": [0],
        "assignor": "range",
        "grown": 8,
        "committed": 660,
        "empty": "Empty",
        "deleted": True,
        "duplicates": 0,
    }


def test_java_pattern_is_resolved_by_the_broker(java: JavaHost, kafka: Kafka) -> None:
    assert step(java, kafka, "pattern", kafka.name("p"), kafka.name("group")) == {
        "assigned": 5,
        "invalid": "InvalidRegularExpression",
    }


def test_java_consumers_change_protocols(java: JavaHost, kafka: Kafka) -> None:
    assert step(java, kafka, "migrate", kafka.topic(partitions=6), kafka.name("group")) == {
        "classic": "Classic",
        "mixed": "Consumer",
        "upgraded": [False, False, True],
        "modern": True,
        "back": "Classic",
        "read": 240,
    }


class Crowd:
    """Consumers of librdkafka in one group, polled in turn."""

    def __init__(self, kafka: Kafka, topic: str, group: str) -> None:
        self.kafka, self.topic, self.group = kafka, topic, group
        self.consumers: list[Consumer] = []
        self.values: list[str] = []

    def add(self, protocol: str, **extra: Any) -> Consumer:
        consumer = Consumer(
            {
                **self.kafka.client_config,
                "group.id": self.group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **({"heartbeat.interval.ms": 300} if protocol == "classic" else {}),
                **extra,
            }
        )
        consumer.subscribe([self.topic])
        self.consumers.append(consumer)
        return consumer

    def drop(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        consumer.close()

    def until(self, condition: Callable[[], bool]) -> None:
        end_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < end_s, [len(c.assignment()) for c in self.consumers]
            for consumer in self.consumers:
                message = consumer.poll(0.05)
                if message is not None:
                    assert message.error() is None, message.error()
                    self.values.append((message.value() or b"").decode())

    def shares(self, *sizes: int) -> None:
        self.until(lambda: sorted(len(c.assignment()) for c in self.consumers) == list(sizes))

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.close()


@pytest.fixture
def crowd(kafka: Kafka) -> Any:
    crowd = Crowd(kafka, kafka.topic(partitions=6), kafka.name("group"))
    yield crowd
    crowd.close()


def test_librdkafka_shares_and_describes(crowd: Crowd, java: JavaHost) -> None:
    producer = Producer(dict(crowd.kafka.client_config))
    for number in range(60):
        producer.produce(crowd.topic, f"v{number}", partition=number % 6)
    producer.flush()
    first = crowd.add("consumer")
    crowd.until(lambda: len(crowd.values) == 60)
    first.commit(asynchronous=False)
    crowd.add("consumer")
    crowd.shares(3, 3)
    assert sorted(crowd.values) == sorted({f"v{number}" for number in range(60)})
    admin = AdminClient(dict(crowd.kafka.client_config))

    def described() -> tuple[str, str, int]:
        group = admin.describe_consumer_groups([crowd.group])[crowd.group].result(TIMEOUT_S)
        return group.state.name, group.type.name, len(group.members)

    # The coordinator hears of what a member has taken by its next heartbeat.
    crowd.until(lambda: described() == ("STABLE", "CONSUMER", 2))
    bootstrap = ("--bootstrap-server", crowd.kafka.bootstrap_servers)
    tool = java.run("kafka-consumer-groups", *bootstrap, "--describe", "--group", crowd.group)
    rows = [row for row in tool.table if row[0] == crowd.group]
    assert len(rows) == 6
    assert {row[5] for row in rows} == {"0"}, "the lag of each partition"
    state = java.run(
        "kafka-consumer-groups", *bootstrap, "--describe", "--group", crowd.group, "--state"
    )
    assert state.table[-1][-2:] == ["Stable", "2"]


def test_librdkafka_changes_protocols(crowd: Crowd) -> None:
    classic = crowd.add("classic"), crowd.add("classic")
    crowd.shares(3, 3)
    modern = crowd.add("consumer")
    crowd.shares(2, 2, 2)
    crowd.drop(classic[0])
    crowd.shares(3, 3)
    crowd.drop(modern)
    crowd.shares(6)


def test_librdkafka_pattern_is_resolved_by_the_broker(kafka: Kafka) -> None:
    names = [kafka.topic(hint, partitions=2) for hint in ("one", "two")]
    kafka.topic("three")
    crowd = Crowd(kafka, f"^({'|'.join(names)})$", kafka.name("group"))
    crowd.add("consumer")
    crowd.shares(4)
    crowd.close()


def test_a_static_member_comes_back(crowd: Crowd) -> None:
    first = crowd.add("consumer", **{"group.instance.id": "one"})
    crowd.add("consumer")
    crowd.shares(3, 3)
    owned = set(map(str, first.assignment()))
    crowd.drop(first)
    again = crowd.add("consumer", **{"group.instance.id": "one"})
    crowd.shares(3, 3)
    assert set(map(str, again.assignment())) == owned

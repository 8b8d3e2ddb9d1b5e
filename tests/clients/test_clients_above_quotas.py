"""Clients above their quotas: librdkafka hears of it, Kafka's tool sets and lists the limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import barnabas
from barnabas.app.testing import Kafka
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support.client_quotas import alter
from support.java_host import JavaHost
from support.patience import PATIENCE_S
from support.raw_client import RawClient

LIMIT = 150_000
MESSAGES = 30
VALUE = bytes(10_000)


@pytest.fixture
def cluster() -> Iterator[barnabas.Cluster]:
    """A second counts as elapsed at first: what is above a quota soon is made up for."""
    with barnabas.Cluster(config={"quota.window.num": "2"}) as running:
        yield running


def limit(cluster: barnabas.Cluster, client_id: str, **values: float) -> None:
    with RawClient(cluster.bootstrap_servers) as client:
        alter(client, {"client-id": client_id}, **values)


def figures(cluster: barnabas.Cluster, kind: str, client_id: str) -> dict[str, float]:
    """Return the broker's measurements of a client."""
    (node,) = cluster._running()._running.values()
    assert node.broker is not None
    return {
        figure.name: figure.value
        for figure in list(node.broker.quotas.figures())
        if figure.kind == kind and figure.tags.get("client-id") == client_id
    }


def throttled(config: dict[str, Any], told: list[float]) -> dict[str, Any]:
    return {**config, "throttle_cb": lambda event: told.append(event.throttle_time)}


def test_librdkafka_is_told_and_all_arrives(cluster: barnabas.Cluster) -> None:
    """More is sent and read until the client is told: a machine may be too slow to be above."""
    limit(cluster, "noisy", producer_byte_rate=LIMIT, consumer_byte_rate=LIMIT)
    base = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "noisy"}

    told: list[float] = []
    delivered: list[int | None] = []
    config = throttled({**base, "batch.num.messages": 5, "linger.ms": 0}, told)
    producer = Producer(config)
    sent = 0
    began = time.monotonic()
    while not told or is_free(cluster, "Produce", "noisy"):
        for number in range(MESSAGES):
            producer.produce(
                "quota-topic",
                VALUE,
                key=b"%d" % number,
                on_delivery=lambda error, message: delivered.append(message.offset()),
            )
            producer.poll(0)
        producer.flush(PATIENCE_S)
        sent += MESSAGES
    took_s = time.monotonic() - began
    assert len(delivered) == sent
    # A second's worth is free; what is left of it takes as long as the limit says, with the pause
    # that the last answer asks for.
    assert took_s + told[-1] > 0.8 * (sent * len(VALUE) - LIMIT) / LIMIT

    told.clear()
    got = 0
    consumer = Consumer(
        throttled(
            {
                **base,
                "group.id": "quota-group",
                "auto.offset.reset": "earliest",
                "fetch.max.bytes": 100_000,
                "message.max.bytes": 100_000,
            },
            told,
        )
    )
    consumer.subscribe(["quota-topic"])
    while got < sent or not told or is_free(cluster, "Fetch", "noisy"):
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        got += 1
        if got % sent == 0:
            consumer.seek(TopicPartition("quota-topic", 0, 0))
    consumer.close()


def is_free(cluster: barnabas.Cluster, kind: str, client_id: str) -> bool:
    """Return whether the broker has not throttled a client lately."""
    measured = figures(cluster, kind, client_id)
    return not (measured["throttle-time"] > 0 and measured["byte-rate"] > 0)


def test_topic_changes_count_together_whichever_broker_is_asked() -> None:
    with barnabas.Cluster(nodes=3) as three:
        # A burst of one partition; then the first topic's twenty count for three minutes.
        limit(three, "raw", controller_mutation_rate=0.1)
        answers = []
        for number, server in enumerate(three.bootstrap_servers.split(",")):
            topic = CreatableTopic(name=f"t-{number}", num_partitions=20, replication_factor=1)
            with RawClient(server) as client:
                request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
                answer = client.call(request, CreateTopicsResponse)
            answers.append((answer.topics[0].error_code, answer.throttle_time_ms > 0))
        refused = (ErrorCode.THROTTLING_QUOTA_EXCEEDED, True)
        assert answers == [(ErrorCode.NONE, False), refused, refused]


def test_kafka_configs_sets_lists_and_removes_quotas(java: JavaHost, kafka: Kafka) -> None:
    def configs(*arguments: str) -> str:
        server = ("--bootstrap-server", kafka.bootstrap_servers)
        return java.run("kafka-configs", *server, *arguments).out

    alice = ("--entity-type", "users", "--entity-name", "alice=1")
    app = ("--entity-type", "clients", "--entity-default")
    configs(
        "--alter", *alice, *app, "--add-config", "producer_byte_rate=1024,request_percentage=12.5"
    )
    told = configs("--describe", *alice, *app)
    assert "producer_byte_rate=1024.0" in told
    assert "request_percentage=12.5" in told
    assert "user-principal 'alice=1'" in told
    address = ("--entity-type", "ips", "--entity-name", "10.1.2.3")
    configs("--alter", *address, "--add-config", "connection_creation_rate=7")
    assert "connection_creation_rate=7.0" in configs("--describe", *address)
    configs("--alter", *address, "--delete-config", "connection_creation_rate")
    configs("--alter", *alice, *app, "--delete-config", "producer_byte_rate,request_percentage")
    assert "rate=" not in configs("--describe", *address)
    assert "rate=" not in configs("--describe", *alice, *app)

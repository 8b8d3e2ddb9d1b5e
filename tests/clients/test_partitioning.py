"""A key goes to the partition that a Java producer sends it to, whichever of our producers does."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.app.testing import Kafka
from support.cli import run_cli

JAVA_PARTITIONS = {
    "": 3,
    "a": 4,
    "ab": 2,
    "abc": 3,
    "abcd": 2,
    "order-1": 4,
    "order-2": 3,
    "order-7": 1,
    "21": 0,
    "foobar": 0,
    "a-little-bit-longer-string": 5,
    "Zähler": 3,
    "user:42": 1,
}
"""Of six partitions: Kafka 4.3.1's BuiltInPartitioner.partitionForKey."""


def _through_produce(kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [(key, key) for key in JAVA_PARTITIONS])


def _through_a_producer(kafka: Kafka, topic: str) -> None:
    producer = kafka.producer(linger_ms=1)
    _send(producer, topic)


def _through_the_command_line(kafka: Kafka, topic: str) -> None:
    server = ("-b", kafka.bootstrap_servers)
    for key in JAVA_PARTITIONS:
        assert run_cli("produce", topic, "-k", key, "-v", key, *server).code == 0


def _through_long_input(kafka: Kafka, topic: str) -> None:
    lines = "".join(f"{key}\t{key}\n" for key in JAVA_PARTITIONS)
    server = ("-b", kafka.bootstrap_servers)
    assert run_cli("produce", topic, "-K", "\t", *server, stdin=lines.encode()).code == 0


def _send(producer: Producer, topic: str) -> None:
    for key in JAVA_PARTITIONS:
        producer.produce(topic, key, key)
    assert producer.flush(60) == 0


WAYS = {
    "Kafka.produce": _through_produce,
    "Kafka.producer": _through_a_producer,
    "barnabas produce -k": _through_the_command_line,
    "barnabas produce -K": _through_long_input,
}


@pytest.mark.parametrize("send", WAYS.values(), ids=WAYS)
def test_keys_go_where_java_sends_them(kafka: Kafka, send: Callable[[Kafka, str], None]) -> None:
    topic = kafka.topic(partitions=6)
    send(kafka, topic)
    consumer = kafka.consumer(topic)
    found: dict[str, int] = {}
    try:
        for message in consumer.consume(len(JAVA_PARTITIONS), 60):
            value = message.value()
            assert value is not None
            found[value.decode()] = message.partition() or 0
    finally:
        consumer.close()
    assert found == JAVA_PARTITIONS


def test_every_producer_of_ours_takes_that_partitioner() -> None:
    """A Producer made elsewhere must name it too."""
    texts = [
        path.read_text("utf-8")
        for path in Path(__file__).parents[2].joinpath("src/barnabas").rglob("*.py")
    ]
    makers = [text for text in texts if re.search(r"(self\._producer =|return) Producer\(", text)]
    assert len(makers) >= 4
    assert all("JAVA_PARTITIONER" in text for text in makers)

"""kafkajs with its registry client, `@kafkajs/confluent-schema-registry`, through a topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.app.testing import Kafka
from support.foreign_programs import node_program, output_of
from support.patience import PATIENCE_S
from support.registry_process import registry_url

__all__ = ["registry_url"]


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    """Runs a scenario and returns the values that it read."""
    program = node_program("registry_client.js")
    return lambda *arguments: json.loads(output_of(["node", program, *arguments], PATIENCE_S))


def test_avro(run: Any, registry_url: str, kafka: Kafka) -> None:
    topic = kafka.topic()
    first = {"place": {"x": 1}}
    second = {"place": {"x": 2}, "colour": "red"}
    assert run("avro", registry_url, kafka.bootstrap_servers, topic) == [first, second]
    with SchemaRegistryClient({"url": registry_url}) as client:
        context = SerializationContext(topic, MessageField.VALUE)
        read = AvroDeserializer(client)
        assert [read(value, context) for value in kafka.consume(topic, 2)] == [first, second]


def test_json_schema(run: Any, registry_url: str, kafka: Kafka) -> None:
    topic = kafka.topic()
    first = {"part": {"id": 1}}
    second = {"part": {"id": 2}, "size": 2.5}
    assert run("json", registry_url, kafka.bootstrap_servers, topic) == [first, second]
    with SchemaRegistryClient({"url": registry_url}) as client:
        context = SerializationContext(topic, MessageField.VALUE)
        read = JSONDeserializer(None, schema_registry_client=client)
        assert [read(value, context) for value in kafka.consume(topic, 2)] == [first, second]


def test_protobuf(run: Any, registry_url: str, kafka: Kafka) -> None:
    """It writes no message index, so only it reads what it writes."""
    topic = kafka.topic()
    expected = [{"place": {"x": 1}}, {"place": {"x": 2}, "colour": "red"}]
    assert run("protobuf", registry_url, kafka.bootstrap_servers, topic) == expected

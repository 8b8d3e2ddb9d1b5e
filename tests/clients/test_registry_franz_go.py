"""franz-go with its registry client, `pkg/sr`: its methods, and its Serde through a topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.app.testing import Kafka
from support.foreign_programs import go_program, output_of
from support.patience import PATIENCE_S
from support.registry_process import registry_url

__all__ = ["registry_url"]
pytestmark = pytest.mark.timeout(900)  # the first run compiles the client


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    """Runs a scenario, which fails by itself."""
    program = go_program("registry")
    return lambda *arguments: output_of([program, *arguments], PATIENCE_S)


@pytest.mark.parametrize("scenario", ["client", "json", "protobuf"])
def test_scenario(run: Any, registry_url: str, kafka: Kafka, scenario: str) -> None:
    run(scenario, registry_url, kafka.bootstrap_servers, kafka.topic())


def test_avro_is_read_by_confluent_kafka_too(run: Any, registry_url: str, kafka: Kafka) -> None:
    topic = kafka.topic()
    run("avro", registry_url, kafka.bootstrap_servers, topic)
    with SchemaRegistryClient({"url": registry_url}) as client:
        context = SerializationContext(topic, MessageField.VALUE)
        read = AvroDeserializer(client)
        first, second = (read(value, context) for value in kafka.consume(topic, 2))
    assert (first, second) == ({"place": {"x": 1}}, {"place": {"x": 2}, "colour": "red"})

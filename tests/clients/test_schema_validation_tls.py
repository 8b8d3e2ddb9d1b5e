"""Topics that validate schemas, with the registry of this project behind https."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

import barnabas
from barnabas.app.testing import Kafka
from support.certificates import Authority
from support.patience import PATIENCE_S
from support.registry_process import registry_process
from support.schema_world import id_of

NODE = "1"


def ask_registry(kafka: Kafka, **keys: str) -> None:
    """Set `confluent.<key>` on the broker, while it serves."""
    entries = [
        ConfigEntry(
            f"confluent.{name.replace('_', '.')}", text, incremental_operation=AlterConfigOpType.SET
        )
        for name, text in keys.items()
    ]
    resource = ConfigResource(ResourceType.BROKER, NODE, incremental_configs=entries)
    kafka.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def send(kafka: Kafka, topic: str, value: bytes) -> list[KafkaError | None]:
    """Send one record, which waits while the broker does not know the schema; return errors."""
    done: list[KafkaError | None] = []
    producer = kafka.producer(request_timeout_ms=1000)
    producer.produce(topic, value, on_delivery=lambda error, _: done.append(error))
    producer.flush(PATIENCE_S)
    return done


@pytest.mark.parametrize("asks_for_certificates", [False, True], ids=["one way", "both ways"])
def test_records_are_held_against_a_registry_behind_https(
    tmp_path: Path, asks_for_certificates: bool
) -> None:
    authority = Authority(tmp_path)
    tls = {"ssl_keystore_location": authority.issue("registry")}
    own = authority.issue("client")
    if asks_for_certificates:
        tls["ssl_truststore_location"] = authority.file
        tls["ssl_client_authentication"] = "REQUIRED"
    address = {"listeners": "https://127.0.0.1:0", "inter_instance_protocol": "https"}
    trust = {"ssl.ca.location": authority.file}
    if asks_for_certificates:
        trust |= {"ssl.certificate.location": own, "ssl.key.location": own}
    with (
        barnabas.Cluster() as cluster,
        Kafka(cluster.bootstrap_servers) as kafka,
        registry_process(cluster.bootstrap_servers, **address, **tls) as registry,
        SchemaRegistryClient({"url": registry.url, **trust}) as client,
    ):
        topic = kafka.topic(config={"confluent.value.schema.validation": "true"})
        number = client.register_schema(f"{topic}-value", Schema('"string"', "AVRO"))
        ask_registry(
            kafka,
            schema_registry_url=registry.url,
            ssl_truststore_location=authority.file,
            ssl_keystore_location=own,
        )
        assert send(kafka, topic, id_of(number) + b"\x02a") == [None]
        (refused,) = send(kafka, topic, id_of(number + 1))
        assert refused is not None
        assert refused.code() == KafkaError.INVALID_RECORD

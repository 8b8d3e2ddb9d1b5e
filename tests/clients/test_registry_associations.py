"""Associations with confluent-kafka's client, whose serializers ask for them by default."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import schema_registry
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from support.registry_process import registry_process, registry_url

__all__ = ["registry_url"]

pytestmark = pytest.mark.skipif(
    not hasattr(schema_registry, "AssociationCreateOrUpdateRequest"),
    reason="this confluent-kafka knows no associations",
)


def associate(client: SchemaRegistryClient, topic: str, subject: str) -> str:
    """Point the values of a topic at a subject; returns the resource's id."""
    resource_id = str(uuid.uuid4())
    made = client.create_association(
        schema_registry.AssociationCreateOrUpdateRequest(
            resource_name=topic,
            resource_namespace="-",
            resource_id=resource_id,
            resource_type="topic",
            associations=[
                schema_registry.AssociationCreateOrUpdateInfo(
                    subject=subject, association_type="value", lifecycle="WEAK"
                )
            ],
        )
    )
    assert made.associations is not None
    assert [one.subject for one in made.associations] == [subject]
    return resource_id


def test_a_serializer_takes_the_subject_of_the_topic(registry_url: str) -> None:
    topic, subject = str(uuid.uuid4()), str(uuid.uuid4())
    with SchemaRegistryClient({"url": registry_url}) as client:
        client.register_schema(subject, Schema('"string"', "AVRO"))
        resource_id = associate(client, topic, subject)
        context = SerializationContext(topic, MessageField.VALUE)
        AvroSerializer(client, '{"type": "string"}')("x", context)
        assert client.get_versions(subject) == [1]
        assert f"{topic}-value" not in client.get_subjects()
        with pytest.raises(SchemaRegistryError) as caught:
            client.delete_subject(subject)
        assert caught.value.error_code == 40904
        client.delete_associations(resource_id)
        assert client.get_associations_by_resource_name(topic, "-") == []
        AvroSerializer(client, '"long"')(1, context)
        assert client.get_versions(f"{topic}-value") == [1]


def test_associations_outlast_a_restart(kafka_bootstrap_servers: str) -> None:
    with registry_process(kafka_bootstrap_servers) as first:
        with SchemaRegistryClient({"url": first.url}) as client:
            client.register_schema("s", Schema('"string"', "AVRO"))
            associate(client, "t", "s")
            (before,) = client.get_associations_by_resource_name("t", "-")
        first.stop()
        with (
            registry_process(kafka_bootstrap_servers, first.topic) as second,
            SchemaRegistryClient({"url": second.url}) as client,
        ):
            assert client.get_associations_by_resource_name("t", "-") == [before]

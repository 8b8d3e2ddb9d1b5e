"""confluent-kafka's SchemaRegistryClient, method by method, against a registry's process.

Its `deleted_only` and `reference_format` are left out: it sends them under names that no registry
knows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)

from support.metadata_tags import needs_tags
from support.registry_process import registry_process, registry_url

__all__ = ["registry_url"]


@pytest.fixture
def client(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client


@pytest.fixture
def subject() -> str:
    """A name that no other test has, with all that paths and queries are tripped by."""
    return f"s/é %2F+?#&;=:{uuid.uuid4().hex[:8]}"


def record(*fields: str, name: str = "Order", **attributes: Any) -> str:
    """An Avro record of ints; a field after the first has a default."""
    return json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [
                {"name": field, "type": "int"} | ({"default": 0} if at else {})
                for at, field in enumerate(fields)
            ],
        }
        | attributes,
        separators=(",", ":"),
    )


def avro(*fields: str, **attributes: Any) -> Schema:
    return Schema(record(*fields, **attributes), "AVRO")


def refused(code: int, call: Any, *arguments: Any, **options: Any) -> str:
    """The message with which a call is refused for the given numeric code."""
    with pytest.raises(SchemaRegistryError) as caught:
        call(*arguments, **options)
    assert caught.value.error_code == code, caught.value
    assert caught.value.http_status_code == code // (100 if code > 999 else 1)
    return str(caught.value.error_message)


def test_schemas_are_registered_and_found(client: SchemaRegistryClient, subject: str) -> None:
    first, second = avro("id"), avro("id", "size")
    made = client.register_schema_full_response(subject, first)
    assert (made.subject, made.version) in {(subject, 1), (None, 1)}
    assert client.register_schema(subject, first) == made.schema_id
    later = client.register_schema(subject, second)
    assert later > made.schema_id

    assert client.get_schema(later, subject).schema_str == record("id", "size")
    client.clear_caches()
    found = client.lookup_schema(subject, second)
    assert (found.subject, found.version, found.schema_id) == (subject, 2, later)
    assert found.guid is not None
    client.clear_caches()
    assert client.get_schema_by_guid(found.guid).schema_str == record("id", "size")
    assert client.get_schema(later, fmt="resolved").schema_str == record("id", "size")
    assert client.get_version(subject, 1).schema_id == made.schema_id
    assert client.get_version(subject, 2, fmt="resolved").guid == found.guid
    assert client.get_version(subject, "latest").version == 2
    assert client.get_latest_version(subject).schema.schema_str == record("id", "size")
    assert client.get_versions(subject) == [1, 2]
    assert client.get_versions(subject, offset=1, limit=1) == [2]
    assert set(client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}

    other = f"{subject}-other"
    assert client.register_schema(other, second) == later
    assert sorted(client.get_subjects_by_schema_id(later)) == sorted([subject, other])
    named = client.get_subjects_by_schema_id(later, subject_name=other)
    assert len(named) == 2  # a subject says where to look, it is no filter
    versions = client.get_schema_versions(later)
    assert {(one.subject, one.version) for one in versions} == {(subject, 2), (other, 1)}
    assert client.get_subjects(subject_prefix=other) == [other]
    assert set(client.get_subjects()) >= {subject, other}
    assert len(client.get_subjects(offset=0, limit=1)) == 1


def test_what_is_not_there_is_said(client: SchemaRegistryClient, subject: str) -> None:
    refused(40401, client.get_versions, subject)
    refused(40401, client.get_latest_version, subject)
    refused(40401, client.lookup_schema, subject, avro("id"))
    refused(40403, client.get_schema, 1_000_000)
    refused(40403, client.get_schema_by_guid, str(uuid.uuid4()))
    client.register_schema(subject, avro("id"))
    refused(40402, client.get_version, subject, 7)
    refused(42202, client.get_version, subject, -3)
    refused(40403, client.lookup_schema, subject, avro("other"))
    refused(40409, client.get_mode, subject)
    nonsense = Schema('{"type": "nonsense"}', "AVRO")
    message = refused(42201, client.register_schema, subject, nonsense)
    assert "nonsense" in message
    refused(42201, client.register_schema, subject, Schema("syntax = ", "PROTOBUF"))
    refused(42201, client.register_schema, subject, Schema('{"type": 7}', "JSON"))


def test_deletion_is_soft_then_permanent(client: SchemaRegistryClient, subject: str) -> None:
    ids = [client.register_schema(subject, avro(*fields)) for fields in (["id"], ["id", "a"])]
    refused(40407, client.delete_version, subject, 1, permanent=True)
    assert client.delete_version(subject, 2) == 2
    assert client.get_versions(subject) == [1]
    assert client.get_versions(subject, deleted=True) == [1, 2]
    client.clear_caches()
    assert client.get_latest_version(subject).version == 1
    assert client.get_version(subject, 2, deleted=True).schema_id == ids[1]
    assert client.lookup_schema(subject, avro("id", "a"), deleted=True).version == 2
    assert client.delete_version(subject, 2, permanent=True) == 2
    client.clear_caches()
    refused(40403, client.get_schema, ids[1])

    assert client.delete_subject(subject) == [1]
    assert subject not in client.get_subjects()
    assert subject in client.get_subjects(deleted=True)
    assert client.get_subjects(subject_prefix=subject, deleted=True) == [subject]
    client.clear_caches()
    assert client.register_schema(subject, avro("id")) == ids[0]  # its old id
    assert client.get_versions(subject) == [3]
    refused(40405, client.delete_subject, subject, permanent=True)
    assert client.delete_subject(subject) == [3]
    assert client.delete_subject(subject, permanent=True) == [3]  # 1 went with its id
    refused(40401, client.get_versions, subject, deleted=True)


def test_compatibility_is_asked_and_held(client: SchemaRegistryClient, subject: str) -> None:
    assert client.get_compatibility() == "BACKWARD"
    client.register_schema(subject, avro("id"))
    wider = Schema(json.dumps({"type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "int"}, {"name": "due", "type": "int"}]}), "AVRO")  # fmt: skip
    assert client.test_compatibility(subject, avro("id", "more"))
    assert not client.test_compatibility(subject, wider)
    assert not client.test_compatibility(subject, wider, 1, normalize=True, verbose=True)
    assert not client.test_compatibility_all_versions(subject, wider, verbose=True)
    message = refused(409, client.register_schema, subject, wider)
    assert "due" in message

    assert client.set_compatibility(subject, "FORWARD") == {"compatibility": "FORWARD"}
    assert client.get_compatibility(subject) == "FORWARD"
    assert client.test_compatibility(subject, wider)
    config = client.get_config(subject)
    assert config.compatibility_level is ConfigCompatibilityLevel.FORWARD
    client.delete_config(subject)
    refused(40408, client.get_config, subject)
    refused(42203, client.set_compatibility, subject, "SIDEWAYS")


@needs_tags
def test_a_configuration_keeps_metadata_and_rules(
    client: SchemaRegistryClient, subject: str
) -> None:
    rule = Rule(
        name="checkId",
        doc="ids are positive",
        kind=RuleKind.CONDITION,
        mode=RuleMode.WRITE,
        type="CEL",
        tags=["PII"],
        params=RuleParams({"key": "value"}),
        expr="message.id > 0",
        on_success="NONE",
        on_failure="ERROR",
        disabled=False,
    )
    tags = MetadataTags({"**.ssn": ["PII"]})
    default = Metadata(tags, MetadataProperties({"owner": "team a"}), ["owner"])
    override = Metadata(None, MetadataProperties({"stage": "test"}), None)
    asked = ServerConfig(
        compatibility=ConfigCompatibilityLevel.FULL_TRANSITIVE,
        compatibility_group="major",
        default_metadata=default,
        override_metadata=override,
        default_rule_set=RuleSet([], [rule]),
    )
    client.set_config(subject, asked)
    kept = client.get_config(subject)
    assert kept.compatibility_level is ConfigCompatibilityLevel.FULL_TRANSITIVE
    assert kept.compatibility_group == "major"
    assert kept.default_metadata == default
    assert kept.override_metadata is not None
    assert kept.override_metadata.properties == override.properties
    assert kept.default_rule_set is not None
    assert kept.default_rule_set.domain_rules == [rule]

    client.register_schema(subject, avro("id"))
    made = client.get_latest_version(subject).schema
    assert made.metadata is not None
    assert made.metadata.properties == MetadataProperties({"owner": "team a", "stage": "test"})
    assert made.metadata.tags == tags
    assert made.rule_set is not None
    assert made.rule_set.domain_rules == [rule]
    latest = client.get_latest_with_metadata(subject, {"stage": "test"})
    assert latest.version == 1
    refused(40403, client.get_latest_with_metadata, subject, {"stage": "none"})


def test_references_are_resolved_and_keep_what_they_name(
    client: SchemaRegistryClient, subject: str
) -> None:
    part, whole = f"{subject}-part", f"{subject}-whole"
    part_id = client.register_schema(part, avro("id", name="Part", namespace="a.b"))
    using = Schema(
        json.dumps({"type": "record", "name": "Whole", "fields": [
            {"name": "part", "type": "a.b.Part"}]}),
        "AVRO",
        [SchemaReference("a.b.Part", part, 1)],
    )  # fmt: skip
    whole_id = client.register_schema(whole, using)
    found = client.get_schema(whole_id)
    assert found.references == using.references
    assert client.get_referenced_by(part, 1) == [whole_id]
    assert client.get_referenced_by(part, 1, offset=1) == []
    resolved = client.get_version(whole, 1, fmt="resolved").schema.schema_str
    assert '"fields"' in str(resolved).partition("Part")[2]
    refused(42206, client.delete_subject, part)
    refused(42206, client.delete_version, part, 1)
    client.delete_subject(whole)
    client.delete_subject(whole, permanent=True)
    assert client.delete_subject(part) == [1]
    client.clear_caches()
    refused(42201, client.register_schema, whole, Schema(using.schema_str, "AVRO", []))
    missing = Schema(using.schema_str, "AVRO", [SchemaReference("a.b.Part", "nobody", 1)])
    refused(42201, client.register_schema, whole, missing)
    assert part_id < whole_id


def test_normalisation_finds_the_same_schema(client: SchemaRegistryClient, subject: str) -> None:
    plain = Schema('syntax = "proto3";\nmessage A {\n  int32 b = 2;\n  int32 a = 1;\n}', "PROTOBUF")
    other = Schema('syntax = "proto3"; message A { int32 a = 1; int32 b = 2; }', "PROTOBUF")
    first = client.register_schema(subject, plain, normalize_schemas=True)
    assert client.register_schema(subject, other, normalize_schemas=True) == first
    assert client.lookup_schema(subject, other, normalize_schemas=True).version == 1
    asked = client.lookup_schema(subject, other, normalize_schemas=True, fmt="serialized")
    assert asked.schema_id == first


def test_modes_are_set_inherited_and_deleted(client: SchemaRegistryClient, subject: str) -> None:
    assert client.get_global_mode() == "READWRITE"
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    refused(42205, client.register_schema, subject, avro("id"))
    assert client.delete_mode(subject) == "READONLY"
    client.register_schema(subject, avro("id"))
    refused(42205, client.update_mode, subject, "IMPORT")
    assert client.update_mode(subject, "IMPORT", force=True) == "IMPORT"
    refused(42204, client.update_mode, subject, "SIDEWAYS")
    client.delete_mode(subject)
    assert client.update_global_mode("READONLY_OVERRIDE") == "READONLY_OVERRIDE"
    refused(42205, client.register_schema, subject, avro("id", "b"))
    assert client.update_global_mode("READWRITE", force=True) == "READWRITE"


def test_contexts_have_ids_of_their_own(client: SchemaRegistryClient, subject: str) -> None:
    context = f".c{uuid.uuid4().hex[:8]}"
    qualified = f":{context}:{subject.replace(':', '')}"
    first = client.register_schema(qualified, avro("in", "context"))
    assert first == 1
    assert client.get_schema(first, qualified).schema_str == record("in", "context")
    assert context in client.get_contexts()
    assert "." in client.get_contexts()
    assert client.get_contexts(offset=0, limit=1) == ["."]
    assert client.get_subjects(subject_prefix=f":{context}:") == [qualified]


def test_a_topic_without_associations_has_an_empty_list(client: SchemaRegistryClient) -> None:
    """The name strategy that is the default asks for them."""
    assert client.get_associations_by_resource_name("topic", "-", "topic", ["value"]) == []


async def test_the_client_for_asyncio(registry_url: str, subject: str) -> None:
    async with AsyncSchemaRegistryClient({"url": registry_url}) as client:
        first = await client.register_schema(subject, avro("id"))
        assert (await client.get_latest_version(subject)).schema_id == first
        assert (await client.get_schema(first)).schema_str == record("id")


def test_the_next_url_is_tried_where_one_is_dead(
    registry_url: str, subject: str, kafka_bootstrap_servers: str
) -> None:
    with registry_process(kafka_bootstrap_servers) as other:
        dead = other.url
    urls = f"{dead},{registry_url}"
    with SchemaRegistryClient({"url": urls, "max.retries": 0}) as client:
        assert client.register_schema(subject, avro("id")) > 0

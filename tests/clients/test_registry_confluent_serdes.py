"""confluent-kafka's serialisers through a topic: formats, references, evolution, contracts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from barnabas.app.testing import Kafka
from support.metadata_tags import needs_tags
from support.patience import PATIENCE_S
from support.registry_process import registry_url

__all__ = ["registry_url"]

LATEST = {"auto.register.schemas": False, "use.latest.version": True}


@dataclass
class Topic:
    """A topic and what goes through it."""

    kafka: Kafka
    name: str
    producer: Producer
    consumer: Consumer

    def subject(self) -> str:
        return f"{self.name}-value"

    def through(
        self, serializer: Any, value: Any, *deserializers: Any, field: Any = MessageField.VALUE
    ) -> Any:
        """What each deserialiser makes of a value; one alone gives its value, not a list."""
        headers: list[tuple[str, Any]] = []
        context = SerializationContext(self.name, field, headers)
        self.producer.produce(self.name, value=serializer(value, context), headers=headers)
        assert self.producer.flush(PATIENCE_S) == 0
        found = self.consumer.poll(PATIENCE_S)
        assert found is not None
        assert found.error() is None
        read = SerializationContext(self.name, field, found.headers() or [])
        values = [deserializer(found.value(), read) for deserializer in deserializers]
        return values[0] if len(values) == 1 else values


@contextmanager
def new_topic(kafka: Kafka) -> Iterator[Topic]:
    name = kafka.topic()
    consumer = kafka.consumer()
    consumer.assign([TopicPartition(name, 0, 0)])
    try:
        yield Topic(kafka, name, kafka.producer(), consumer)
    finally:
        consumer.close()


@pytest.fixture
def topic(kafka: Kafka) -> Iterator[Topic]:
    with new_topic(kafka) as topic:
        yield topic


@pytest.fixture
def new_client(registry_url: str) -> Iterator[Callable[[], SchemaRegistryClient]]:
    """Makes clients that know nothing yet."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(SchemaRegistryClient({"url": registry_url}))


@pytest.fixture
def client(new_client: Callable[[], SchemaRegistryClient]) -> SchemaRegistryClient:
    """The client that registers."""
    return new_client()


@pytest.fixture
def reader(new_client: Callable[[], SchemaRegistryClient]) -> SchemaRegistryClient:
    """The client of deserialisers.

    One that registered a Protobuf schema keeps the text of the answer, where its deserialiser
    expects a descriptor.
    """
    return new_client()


# Avro

USER = {
    "type": "record",
    "name": "User",
    "namespace": "org.shop",
    "fields": [{"name": "name", "type": "string"}, {"name": "size", "type": "int"}],
}
WIDER_USER = USER | {
    "fields": [
        *USER["fields"],  # type: ignore[misc]
        {"name": "colour", "type": ["null", "string"], "default": None},
    ]
}


def test_avro_evolves(client: SchemaRegistryClient, topic: Topic) -> None:
    old, new = json.dumps(USER), json.dumps(WIDER_USER)
    by_old, by_new = AvroDeserializer(client, old), AvroDeserializer(client, new)
    by_writer = AvroDeserializer(client)
    value = {"name": "Ann", "size": 1}
    wide = value | {"colour": None}
    read = topic.through(AvroSerializer(client, old), value, by_old, by_new, by_writer)
    assert read == [value, wide, value]
    bright = value | {"colour": "red"}
    read = topic.through(AvroSerializer(client, new), bright, by_old, by_new, by_writer)
    assert read == [value, bright, bright]
    assert client.get_versions(topic.subject()) == [1, 2]

    fields = [{"name": "size", "type": "int"}, {"name": "b", "type": "int"}]
    narrow = json.dumps(USER | {"fields": fields})
    with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema"):
        topic.through(AvroSerializer(client, narrow), {"size": 1, "b": 2})


def test_avro_uses_the_latest_version(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    client.register_schema(topic.subject(), Schema(json.dumps(USER), "AVRO"))
    client.register_schema(topic.subject(), Schema(json.dumps(WIDER_USER), "AVRO"))
    serializer = AvroSerializer(client, None, conf=LATEST)
    value = {"name": "Ann", "size": 1, "colour": "red"}
    assert topic.through(serializer, value, AvroDeserializer(reader)) == value
    other = json.dumps(USER | {"name": "X"})
    unknown = AvroSerializer(client, other, conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError) as caught:
        topic.through(unknown, value)
    assert caught.value.error_code == 40403


def test_avro_with_references_to_references(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    place = {"type": "record", "name": "org.shop.Place", "fields": [{"name": "x", "type": "int"}]}
    home = {"type": "record", "name": "org.shop.Home", "fields": [
        {"name": "place", "type": "org.shop.Place"}]}  # fmt: skip
    owner = {"type": "record", "name": "org.shop.Owner", "fields": [
        {"name": "homes", "type": {"type": "array", "items": "org.shop.Home"}},
        {"name": "born", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}  # fmt: skip
    names = [f"{topic.name}-place", f"{topic.name}-home"]
    client.register_schema(names[0], Schema(json.dumps(place), "AVRO"))
    place_reference = SchemaReference("org.shop.Place", names[0], 1)
    client.register_schema(names[1], Schema(json.dumps(home), "AVRO", [place_reference]))
    references = [place_reference, SchemaReference("org.shop.Home", names[1], 1)]
    serializer = AvroSerializer(client, Schema(json.dumps(owner), "AVRO", references))
    value = {"homes": [{"place": {"x": 7}}, {"place": {"x": 8}}], "born": 1_000}
    read = topic.through(serializer, value, AvroDeserializer(reader))
    assert read["homes"] == value["homes"]
    assert read["born"].timestamp() == 1


def test_avro_of_one_name_in_two_texts_is_normalised(
    client: SchemaRegistryClient, topic: Topic
) -> None:
    spelled = USER | {
        "fields": [
            {"type": {"type": "string"}, "name": "name"},
            {"type": {"type": "int"}, "name": "size"},
        ]
    }
    normal = {"normalize.schemas": True}
    value = {"name": "Ann", "size": 1}
    for schema in (USER, spelled):
        serializer = AvroSerializer(client, json.dumps(schema), conf=normal)
        assert topic.through(serializer, value, AvroDeserializer(client)) == value
    assert client.get_versions(topic.subject()) == [1]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"subject.name.strategy": record_subject_name_strategy}, "{record}"),
        ({"subject.name.strategy": topic_record_subject_name_strategy}, "{topic}-{record}"),
        ({"subject.name.strategy.type": "TOPIC"}, "{topic}-value"),
        ({"subject.name.strategy.type": "RECORD"}, "{record}"),
        ({"subject.name.strategy.type": "ASSOCIATED"}, "{topic}-value"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_avro_subjects_are_named_as_asked(
    client: SchemaRegistryClient, topic: Topic, strategy: dict[str, Any], expected: str
) -> None:
    record = f"org.shop.R{uuid.uuid4().hex[:8]}"
    schema = json.dumps(USER | {"name": record})
    value = {"name": "Ann", "size": 1}
    read = AvroDeserializer(client, conf=dict(strategy))
    assert topic.through(AvroSerializer(client, schema, conf=dict(strategy)), value, read) == value
    assert expected.format(topic=topic.name, record=record) in client.get_subjects()


def test_keys_have_their_own_subject(client: SchemaRegistryClient, topic: Topic) -> None:
    serializer = AvroSerializer(client, '"string"')
    read = topic.through(serializer, "k", AvroDeserializer(client), field=MessageField.KEY)
    assert read == "k"
    assert client.get_versions(f"{topic.name}-key") == [1]


# Ids in headers

PERSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_ids_travel_in_headers(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    """By GUID, which a client that never saw the schema asks for."""
    writes = {"schema.id.serializer": header_schema_id_serializer}
    reads = {"schema.id.deserializer": dual_schema_id_deserializer}
    serializer: Any = AvroSerializer(client, json.dumps(USER), conf=dict(writes))
    value = {"name": "Annabel", "size": 1}  # the client refuses bodies of five bytes
    assert topic.through(serializer, value, AvroDeserializer(reader, conf=dict(reads))) == value
    plain = AvroSerializer(client, json.dumps(USER))
    assert topic.through(plain, value, AvroDeserializer(reader, conf=dict(reads))) == value

    serializer = JSONSerializer(json.dumps(PERSON), client, conf=dict(writes))
    read: Any = JSONDeserializer(None, schema_registry_client=reader, conf=dict(reads))
    with new_topic(topic.kafka) as jsons:
        assert jsons.through(serializer, value, read) == value

    order = messages(file("order.proto", message("Order", total=1, size=2)))("Order")
    serializer = ProtobufSerializer(order, client, conf=dict(writes))
    read = ProtobufDeserializer(order, dict(reads), reader)
    with new_topic(topic.kafka) as protos:
        assert protos.through(serializer, order(total=999, size=999), read).size == 999


# JSON Schema


def test_json_evolves(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    wider = PERSON | {
        "properties": PERSON["properties"] | {"mail": {"type": "string"}}  # type: ignore[operator]
    }
    first, second = json.dumps(PERSON), json.dumps(wider)
    read = JSONDeserializer(None, schema_registry_client=reader)
    value = {"name": "Ann", "size": 1}
    assert topic.through(JSONSerializer(first, client), value, read) == value
    mailed = value | {"mail": "a@b"}
    assert topic.through(JSONSerializer(second, client), mailed, read) == mailed
    with pytest.raises(SerializationError):
        topic.through(JSONSerializer(first, client), {"size": 1})
    other = json.dumps(PERSON | {"required": ["name", "size"]})
    with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema"):
        topic.through(JSONSerializer(other, client), value)


DRAFTS = ["draft-07/schema#", "draft/2019-09/schema", "draft/2020-12/schema"]


@pytest.mark.parametrize("draft", DRAFTS)
def test_json_with_references(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic, draft: str
) -> None:
    scheme = "https" if "20" in draft else "http"
    dialect = {"$schema": f"{scheme}://json-schema.org/{draft}"}
    part = dialect | {
        "$id": "http://shop.org/part.json",
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
    whole = dialect | {
        "$id": "http://shop.org/whole.json",
        "title": "Whole",
        "type": "object",
        "properties": {
            "part": {"$ref": "part.json"},
            "parts": {"type": "array", "items": {"$ref": "http://shop.org/part.json"}},
        },
    }
    client.register_schema(f"{topic.name}-part", Schema(json.dumps(part), "JSON"))
    references = [SchemaReference("http://shop.org/part.json", f"{topic.name}-part", 1)]
    schema = Schema(json.dumps(whole), "JSON", references)
    serializer = JSONSerializer(schema, client)
    read = JSONDeserializer(None, schema_registry_client=reader)
    value = {"part": {"id": 1}, "parts": [{"id": 2}]}
    assert topic.through(serializer, value, read) == value
    with pytest.raises(SerializationError):
        topic.through(serializer, {"part": {}})


# Protobuf

TYPE = descriptor_pb2.FieldDescriptorProto


def message(
    name: str, *nested: descriptor_pb2.DescriptorProto, **fields: int | str
) -> descriptor_pb2.DescriptorProto:
    """A message; a field is an int32 of a number, or a message: `part="2 .a.Part"`."""
    made = descriptor_pb2.DescriptorProto(name=name, nested_type=nested)
    for field, text in fields.items():
        number, _, of = str(text).partition(" ")
        kind = TYPE.TYPE_MESSAGE if of else TYPE.TYPE_INT32
        label = TYPE.LABEL_OPTIONAL
        made.field.add(name=field, number=int(number), type=kind, type_name=of or None, label=label)
    return made


def file(
    name: str,
    *messages: descriptor_pb2.DescriptorProto,
    package: str = "shop",
    imports: tuple[str, ...] = (),
) -> descriptor_pb2.FileDescriptorProto:
    return descriptor_pb2.FileDescriptorProto(
        name=name, package=package, syntax="proto3", dependency=imports, message_type=messages
    )


def messages(*files: descriptor_pb2.FileDescriptorProto) -> Callable[[str], Any]:
    """Classes by name out of files that know nothing of other tests' files."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for one in files:
        pool.Add(one)
    return lambda name: message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"{files[-1].package}.{name}")
    )


def test_protobuf_evolves(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    old = messages(file("user.proto", message("User", size=1)))("User")
    new = messages(file("user.proto", message("User", size=1, colour=2)))("User")
    by_old = ProtobufDeserializer(old, schema_registry_client=reader)
    by_new = ProtobufDeserializer(new, schema_registry_client=reader)
    read = topic.through(ProtobufSerializer(old, client), old(size=1), by_old, by_new)
    assert [one.size for one in read] == [1, 1]
    read = topic.through(ProtobufSerializer(new, client), new(size=1, colour=2), by_old, by_new)
    assert (read[0].size, read[1]) == (1, new(size=1, colour=2))
    assert client.get_versions(topic.subject()) == [1, 2]
    client.clear_caches()
    text = client.get_version(topic.subject(), 2).schema.schema_str
    assert text is not None
    assert "message User" in text


@pytest.mark.parametrize("name", ["A", "B", "B.Inner", "B.Inner.Deep", "B.Other"])
def test_protobuf_messages_by_their_index(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic, name: str
) -> None:
    deep = message("Inner", message("Deep", number=1), number=1)
    classes = messages(
        file(
            "all.proto",
            message("A", number=1),
            message("B", deep, message("Other", number=1), number=1),
        )
    )
    kind = classes(name)
    read = ProtobufDeserializer(kind, schema_registry_client=reader)
    assert topic.through(ProtobufSerializer(kind, client), kind(number=5), read).number == 5


@pytest.mark.parametrize("skips", [True, False])
def test_protobuf_with_imports(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic, skips: bool
) -> None:
    stamp = "google/protobuf/timestamp.proto"
    base, middle = f"{topic.name}/base.proto", f"{topic.name}/middle.proto"
    files = [
        file(base, message("Base", number=1), package="a.b"),
        file(
            *(middle, message("Middle", base="1 .a.b.Base", at="2 .google.protobuf.Timestamp")),
            package="shop",
            imports=(base, stamp),
        ),
        file(
            *("top.proto", message("Top", middle="1 .shop.Middle", base="2 .a.b.Base")),
            imports=(base, middle),
        ),
    ]
    top = messages(*files)("Top")
    value = top(base={"number": 1}, middle={"at": {"seconds": 7}, "base": {"number": 2}})
    serializer = ProtobufSerializer(top, client, conf={"skip.known.types": skips})
    read = ProtobufDeserializer(top, schema_registry_client=reader)
    assert topic.through(serializer, value, read) == value
    references = client.get_latest_version(topic.subject()).schema.references or []
    assert {one.name for one in references} == {base, middle}
    assert (stamp in client.get_subjects(subject_prefix="google/")) or skips


def test_protobuf_uses_the_latest_version(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    text = 'syntax = "proto3"; package shop; message User { int32 size = 1; int32 more = 2; }'
    client.register_schema(topic.subject(), Schema(text, "PROTOBUF"))
    user = messages(file("user.proto", message("User", size=1)))("User")
    serializer = ProtobufSerializer(user, client, conf=dict(LATEST))
    read = ProtobufDeserializer(user, schema_registry_client=reader)
    assert topic.through(serializer, user(size=4), read).size == 4
    assert client.get_versions(topic.subject()) == [1]


# Data contracts


@pytest.fixture(autouse=True)
def executors() -> None:
    CelExecutor.register()
    CelFieldExecutor.register()
    JsonataExecutor.register()


def rule(name: str, kind: RuleKind, mode: RuleMode, by: str, expression: str, **more: Any) -> Rule:
    values = dict.fromkeys(("doc", "tags", "params", "on_success", "on_failure", "disabled"))
    return Rule(name=name, kind=kind, mode=mode, type=by, expr=expression, **{**values, **more})


def test_a_condition_keeps_bad_records_out(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    check = rule("positive", RuleKind.CONDITION, RuleMode.WRITE, "CEL", "message.size > 0")
    schema = Schema(json.dumps(USER), "AVRO", [], None, RuleSet([], [check]))
    client.register_schema(topic.subject(), schema)
    serializer = AvroSerializer(reader, None, conf=dict(LATEST))
    value = {"name": "Ann", "size": 1}
    assert topic.through(serializer, value, AvroDeserializer(client)) == value
    with pytest.raises(SerializationError) as caught:
        topic.through(serializer, value | {"size": 0})
    assert "message.size > 0" in str(caught.value.__cause__)


@needs_tags
def test_fields_with_a_tag_are_transformed(
    client: SchemaRegistryClient, reader: SchemaRegistryClient, topic: Topic
) -> None:
    """Tags of the schema's text and of its metadata."""
    mask = rule(
        *("mask", RuleKind.TRANSFORM, RuleMode.WRITE, "CEL_FIELD"),
        "typeName == 'STRING' ; value + '-masked'",
        tags=["PII"],
    )
    fields = [
        {"name": "name", "type": "string", "confluent:tags": ["PII"]},
        {"name": "city", "type": "string"},
        {"name": "street", "type": "string"},
    ]
    metadata = Metadata(MetadataTags({"org.shop.User.street": ["PII"]}), None, None)
    text = json.dumps(USER | {"fields": fields})
    client.register_schema(topic.subject(), Schema(text, "AVRO", [], metadata, RuleSet([], [mask])))
    serializer = AvroSerializer(reader, None, conf=dict(LATEST))
    value = {"name": "Ann", "city": "Ulm", "street": "Gate"}
    read = topic.through(serializer, value, AvroDeserializer(reader))
    assert read == {"name": "Ann-masked", "city": "Ulm", "street": "Gate-masked"}


@pytest.mark.parametrize("form", ["AVRO", "JSON"])
def test_migration_rules_carry_records_between_major_versions(
    client: SchemaRegistryClient,
    new_client: Callable[[], SchemaRegistryClient],
    topic: Topic,
    form: str,
) -> None:
    def schema(major: str, field: str, rules: RuleSet | None) -> Schema:
        metadata = Metadata(None, MetadataProperties({"major": major}), None)
        if form == "AVRO":
            fields = [{"name": field, "type": "string"}]
            return Schema(json.dumps(USER | {"fields": fields}), form, [], metadata, rules)
        body = PERSON | {"properties": {field: {"type": "string"}}, "required": [field]}
        return Schema(json.dumps(body), form, [], metadata, rules)

    def renamed(old: str, new: str) -> str:
        return f"$merge([$sift($, function($v, $k) {{$k != '{old}'}}), {{'{new}': $.'{old}'}}])"

    client.set_config(topic.subject(), ServerConfig(compatibility_group="major"))
    client.register_schema(topic.subject(), schema("1", "name", None))
    up = rule("up", RuleKind.TRANSFORM, RuleMode.UPGRADE, "JSONATA", renamed("name", "title"))
    down = rule("down", RuleKind.TRANSFORM, RuleMode.DOWNGRADE, "JSONATA", renamed("title", "name"))
    client.register_schema(topic.subject(), schema("2", "title", RuleSet([up, down], [])))

    def serde(kind: Any, major: str, writes: bool) -> Any:
        conf: dict[str, Any] = {"use.latest.with.metadata": {"major": major}}
        if writes:
            conf["auto.register.schemas"] = False
        return kind(schema_str=None, schema_registry_client=new_client(), conf=conf)

    serializer, deserializer = (
        (AvroSerializer, AvroDeserializer) if form == "AVRO" else (JSONSerializer, JSONDeserializer)
    )
    readers = [serde(deserializer, major, writes=False) for major in "12"]
    read = topic.through(serde(serializer, "1", writes=True), {"name": "Ann"}, *readers)
    assert read == [{"name": "Ann"}, {"title": "Ann"}]
    read = topic.through(serde(serializer, "2", writes=True), {"title": "Bob"}, *readers)
    assert read == [{"name": "Bob"}, {"title": "Bob"}]

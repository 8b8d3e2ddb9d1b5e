"""Records are those of Confluent's serialisers: each side reads what the other wrote."""

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.schemas.protobuf.messages import load, message_class
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.schema import Column
from barnabas.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Array, SqlType

CONTEXT = SerializationContext("topic", MessageField.VALUE)
SUBJECT = "topic-value"
TYPES: list[SqlType] = [INTEGER, BIGINT, DOUBLE, BOOLEAN, STRING, Array(STRING)]
COLUMNS = [Column(name, sql_type) for name, sql_type in zip("ABCDEF", TYPES, strict=True)]
ROW = [-1, 2**40, 1.5, True, "ü", ["x", ""]]
VALUE = dict(zip("ABCDEF", ROW, strict=True))


class ConfluentStore:
    """The registry that confluent-kafka has for tests, as formats want it."""

    def __init__(self) -> None:
        self.client = SchemaRegistryClient.new_client({"url": "mock://formats"})

    def register(self, subject: str, schema_type: str, text: str) -> int:
        return self.client.register_schema(subject, Schema(text, schema_type))

    def by_id(self, schema_id: int) -> StoredSchema:
        schema = self.client.get_schema(schema_id)
        assert schema.schema_type is not None
        assert schema.schema_str is not None
        return StoredSchema(schema_id, schema.schema_type, schema.schema_str)

    def latest(self, subject: str) -> None:
        raise AssertionError("not asked")


def serde(name, store):
    made = format_named(name)
    part = RecordPart(COLUMNS, {}, SUBJECT, store, wraps=True)
    return made.serializer(part), made.deserializer(part)


def text_of(name, store):
    return format_named(name).schemas.text(COLUMNS, {}, wraps=True)


@pytest.mark.parametrize(
    ("name", "serializer", "deserializer"),
    [
        (
            "AVRO",
            lambda store, text: AvroSerializer(store.client, text),
            lambda store, _: AvroDeserializer(store.client),
        ),
        (
            "JSON_SR",
            lambda store, text: JSONSerializer(text, store.client),
            lambda store, text: JSONDeserializer(text, schema_registry_client=store.client),
        ),
    ],
)
def test_avro_and_json(name, serializer, deserializer) -> None:
    store = ConfluentStore()
    serialize, deserialize = serde(name, store)
    ours = serialize(ROW)
    text = text_of(name, store)
    assert deserializer(store, text)(ours, CONTEXT) == VALUE
    theirs = serializer(store, text)(VALUE, CONTEXT)
    assert deserialize(theirs) == ROW
    if name == "AVRO":
        assert theirs == ours


def test_protobuf() -> None:
    store = ConfluentStore()
    serialize, deserialize = serde("PROTOBUF", store)
    ours = serialize(ROW)
    kind = message_class(load(text_of("PROTOBUF", store), {}).message(None))
    options = {"use.deprecated.format": False}
    read = ProtobufDeserializer(kind, options)(ours, CONTEXT)
    assert read == kind(**VALUE)
    prefix, data = ours[:6], ours[6:]
    assert data == kind(**VALUE).SerializeToString(deterministic=True)
    theirs = ProtobufSerializer(kind, store.client, options)(kind(**VALUE), CONTEXT)
    assert theirs[5:] == prefix[5:] + data
    assert deserialize(theirs[:1] + prefix[1:5] + theirs[5:]) == ROW

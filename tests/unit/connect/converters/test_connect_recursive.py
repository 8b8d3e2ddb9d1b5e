"""Schemas of structs that contain themselves, through each converter and from one to another."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as StoredSchema
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.connect.connectors.storage.formats.base import plain
from barnabas.connect.connectors.storage.formats.parquet import arrow_type
from barnabas.connect.plugins import load
from barnabas.connect.record import ConnectRecord
from barnabas.schemas.data.builder import (
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    array_of,
    map_of,
    struct_of,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import SchemaReference, reference
from barnabas.schemas.data.schema import Schema, Struct
from support.connect.registry import registry_converter

AVRO = "io.confluent.connect.avro.AvroConverter"
JSON = "io.confluent.connect.json.JsonSchemaConverter"
PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"
PLAIN_JSON = "org.apache.kafka.connect.json.JsonConverter"


def tree_of(number: Schema = INT32) -> Schema:
    """Trees with one branch, with many, and with branches by name."""
    one, many, named = (reference(is_optional=optional) for optional in (True, False, False))
    tree = struct_of(
        {
            "n": number,
            "one": one,
            "many": array_of(many, optional=True),
            "named": map_of(STRING, named, optional=True),
        },
        name="forest.Tree",
    )
    for inner in (one, many, named):
        inner.bind(tree)
    return tree


TREE = tree_of()


def tree(schema: Schema, n: int, one: Any = None, many: Any = (), **named: Any) -> Struct:
    """A tree of tuples: (n, one, many)."""
    parts = {field.name: field.schema for field in schema.fields}
    items, values = parts["many"].value_schema, parts["named"].value_schema
    assert items is not None
    assert values is not None
    return Struct.of(
        schema,
        {
            "n": n,
            "one": None if one is None else tree(parts["one"], *one),
            "many": [tree(items, *item) for item in many],
            "named": {name: tree(values, *item) for name, item in named.items()},
        },
    )


BIG = tree(TREE, 1, (2, (3,), [(4,), (5, (6,))]), [(7,)], left=(8, None, [(9,)]))


def converter(class_name: str, url: str) -> Any:
    return registry_converter(class_name, url, enhanced_protobuf_schema_support="true")


def shape(value: Any) -> Any:
    """A value without its schemas."""
    if isinstance(value, Struct):
        pairs = zip(value.schema.fields, value.values, strict=True)
        return {field.name: shape(item) for field, item in pairs}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return {k: shape(v) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("class_name", [AVRO, JSON, PROTOBUF])
def test_a_tree_makes_the_round_trip(url: str, class_name: str) -> None:
    made = converter(class_name, url)
    topic = f"trees-{class_name}"
    data = made.from_connect(topic, TREE, BIG)
    schema, value = made.to_connect(topic, data)
    assert shape(value) == shape(BIG)
    value.validate()
    # Data that was read is written back unchanged.
    assert made.from_connect(f"{topic}-again", schema, value)[5:] == data[5:]
    again = made.to_connect(topic, made.from_connect(topic, schema, value))
    assert again == (schema, value)


@pytest.mark.parametrize("source", [AVRO, JSON, PROTOBUF])
@pytest.mark.parametrize("target", [AVRO, JSON, PROTOBUF])
def test_what_one_converter_reads_another_writes(url: str, source: str, target: str) -> None:
    topic = f"{source}-to-{target}"
    first, second = converter(source, url), converter(target, url)
    schema, value = first.to_connect(topic, first.from_connect(f"from-{topic}", TREE, BIG))
    _, found = second.to_connect(topic, second.from_connect(topic, schema, value))
    assert shape(found) == shape(BIG)
    # A branch on its own, as ExtractField gives it.
    inner = schema.field("one").schema
    assert type(inner) is SchemaReference
    branch = value.get("one")
    _, found = second.to_connect(topic, second.from_connect(f"{topic}-one", inner, branch))
    assert shape(found) == shape(branch)


def test_confluents_client_reads_and_writes_the_same_list(url: str) -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "Item",
            "namespace": "lists",
            "fields": [
                {"name": "v", "type": "string"},
                {"name": "next", "type": ["null", "Item"], "default": None},
            ],
        }
    )
    given = {"v": "a", "next": {"v": "b", "next": None}}
    context = SerializationContext("theirs", MessageField.VALUE)
    made = registry_converter(AVRO, url)
    with SchemaRegistryClient({"url": url}) as client:
        data = AvroSerializer(client, text)(given, context)
        assert data is not None
        schema, value = made.to_connect("theirs", data)
        assert shape(value) == given
        assert schema.field("next").schema.optional
        ours = made.from_connect("ours", schema, value)
        assert AvroDeserializer(client)(ours, context) == given
    assert ours[5:] == data[5:]


def test_records_that_contain_each_other(url: str) -> None:
    text = """{"type": "record", "name": "A", "fields": [
        {"name": "b", "type": {"type": "record", "name": "B", "fields": [
            {"name": "a", "type": ["null", "A"]},
            {"name": "either", "type": ["null", "string", "B", "A"]}]}}]}"""
    given = {"b": {"a": {"b": {"a": None, "either": "x"}}, "either": {"a": None, "either": None}}}
    made = registry_converter(AVRO, url)
    context = SerializationContext("each", MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as client:
        data = AvroSerializer(client, text)(given, context)
    schema, value = made.to_connect("each", data)
    value.validate()
    assert value.get("b").get("a").get("b").get("either").get("string") == "x"
    assert value.get("b").get("either").get("B").get("a") is None
    assert made.from_connect("each-again", schema, value)[5:] == (data or b"")[5:]


def test_a_part_of_a_json_schema_that_contains_itself(url: str) -> None:
    part = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "boss": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/person"}]},
            "staff": {"type": "array", "items": {"$ref": "#/definitions/person"}},
        },
    }
    whole = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "who": {"$ref": "#/definitions/person"}},
        "definitions": {"person": part},
    }
    with SchemaRegistryClient({"url": url}) as client:
        number = client.register_schema("people", StoredSchema(json.dumps(whole), "JSON"))
    given = {"id": 1, "who": {"name": "a", "boss": {"name": "b", "boss": None, "staff": []}}}
    given["who"]["staff"] = [{"name": "c", "boss": None, "staff": []}]  # type: ignore[index]
    made = registry_converter(JSON, url)
    data = b"\0" + number.to_bytes(4, "big") + json.dumps(given).encode()
    schema, value = made.to_connect("people", data)
    assert shape(value) == given
    who = schema.field("who").schema
    assert who.parameters["io.confluent.connect.json.Id"] == "#id2"
    ours = made.from_connect("ours-of-people", schema, value)
    assert json.loads(ours[5:]) == given
    assert made.to_connect("people", ours)[1] == value


def test_several_parts_that_contain_themselves(url: str) -> None:
    pair = struct_of({"small": TREE, "large": tree_of(INT64), "rows": array_of(TREE)}, name="P")
    small, large = (field.schema for field in pair.fields[:2])
    value = Struct(pair, [tree(small, 1, (2,)), tree(large, 3, None, [(2**40,)]), [BIG]])
    made = converter(JSON, url)
    _, found = made.to_connect("pairs", made.from_connect("pairs", pair, value))
    assert shape(found) == shape(value)
    found.validate()
    _, found = made.to_connect("rows", made.from_connect("rows", array_of(TREE), [BIG, BIG]))
    assert shape(found) == shape([BIG, BIG])


def test_json_has_values_of_such_schemas_and_not_the_schemas() -> None:
    assert json.loads(plain_json(BIG)) == shape(BIG)
    with pytest.raises(DataError, match="contains itself"):
        plain_json(BIG, has_schemas="true")


def test_references_are_equal_where_what_they_refer_to_is() -> None:
    same, other = tree_of(), tree_of(INT64)
    assert (same, hash(same)) == (TREE, hash(TREE))
    assert other != TREE
    inner, theirs, others = (one.field("one").schema for one in (TREE, same, other))  # type: ignore[union-attr]
    assert (inner, hash(inner)) == (theirs, hash(theirs))
    assert inner not in (others, TREE)
    assert TREE not in (inner, OPTIONAL_STRING)
    for copied in (pickle.loads(pickle.dumps(BIG)), copy.deepcopy(BIG)):
        assert copied == BIG
        copied.validate()
        assert plain_json(copied) == plain_json(BIG)


def plain_json(value: Struct, has_schemas: str = "false") -> bytes:
    made = load(PLAIN_JSON)()
    made.configure({"schemas.enable": has_schemas}, is_key=False)
    found: bytes = made.from_connect("t", value.schema, value)
    return found


def test_what_has_no_such_types_refuses_them() -> None:
    flatten = load("org.apache.kafka.connect.transforms.Flatten$Value")()
    flatten.configure({})
    record = ConnectRecord(topic="t", value_schema=TREE, value=BIG)
    for refuse in (
        lambda: flatten.apply(record),
        lambda: arrow_type(TREE),
        lambda: plain(TREE, maps_as_pairs=True),
    ):
        with pytest.raises(DataError, match="contains itself"):
            refuse()
    vectors = load("io.debezium.transforms.VectorToJsonConverter")()
    vectors.configure({})
    assert shape(vectors.apply(record).value) == shape(BIG)

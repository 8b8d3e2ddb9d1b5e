"""JSON Schema through a registry, beside Confluent's own client for Python."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as StoredSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings

from barnabas.schemas.data.builder import (
    INT8,
    INT32,
    OPTIONAL_STRING,
    STRING,
    array_of,
    decimal,
    map_of,
    optional,
    struct_of,
    with_default,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct
from support.connect.registry import registry_converter
from support.connect.typed_values import typed_values
from support.effort import examples

VALUE = SerializationContext("theirs", MessageField.VALUE)
POINT = struct_of(
    {
        "small": INT8,
        "n": with_default(INT32, 7),
        "s": OPTIONAL_STRING,
        "pairs": map_of(INT32, STRING),
        "map": map_of(STRING, array_of(optional(STRING))),
        "amount": decimal(2),
    },
    name="geo.Point",
    version=3,
    doc="a point",
)
FIELDS = {
    "small": -1,
    "n": 8,
    "pairs": {5: "x"},
    "map": {"k": ["a", None]},
    "amount": Decimal("-12.30"),
}


def converter(url: str, **more: str) -> Any:
    return registry_converter("io.confluent.connect.json.JsonSchemaConverter", url, **more)


def test_a_struct_makes_the_round_trip_with_its_schema(url: str) -> None:
    point = Struct.of(POINT, FIELDS)
    for decimals in ("BASE64", "NUMERIC"):
        made = converter(url, decimal_format=decimals)
        data = made.from_connect(f"points-{decimals}", POINT, point)
        assert made.to_connect("points", data) == (POINT, point)


def test_half_a_pair_of_utf_16_is_refused_as_data(url: str) -> None:
    with pytest.raises(DataError):
        converter(url).from_connect("texts", STRING, "\ud800")


def test_the_registered_schema_is_as_confluents_converter_writes_it(url: str) -> None:
    converter(url).from_connect("shown", POINT, Struct.of(POINT, FIELDS))
    with SchemaRegistryClient({"url": url}) as client:
        text = client.get_latest_version("shown-value").schema.schema_str
    assert text is not None
    found = json.loads(text)
    properties = found.pop("properties")
    assert found == {
        "type": "object",
        "title": "geo.Point",
        "connect.version": 3,
        "description": "a point",
    }
    assert properties["small"] == {"type": "integer", "connect.type": "int8", "connect.index": 0}
    assert properties["s"] == {
        "oneOf": [{"type": "null"}, {"type": "string"}],
        "connect.index": 2,
    }
    assert properties["pairs"]["items"]["properties"]["key"]["connect.type"] == "int32"
    assert properties["amount"] == {
        "type": "string",
        "connect.type": "bytes",
        "title": "org.apache.kafka.connect.data.Decimal",
        "connect.version": 1,
        "connect.parameters": {"scale": "2"},
        "connect.index": 5,
    }


def test_confluents_client_reads_what_we_write(url: str) -> None:
    data = converter(url).from_connect("points", POINT, Struct.of(POINT, FIELDS))
    with SchemaRegistryClient({"url": url}) as client:
        found = JSONDeserializer(None, schema_registry_client=client)(data, VALUE)
    assert found["map"] == {"k": ["a", None]}
    assert found["s"] is None


def test_we_read_what_confluents_client_writes(url: str) -> None:
    text = json.dumps(
        {
            "title": "R",
            "type": "object",
            "definitions": {"part": {"type": "object", "properties": {"x": {"type": "number"}}}},
            "properties": {
                "u": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
                "color": {"enum": ["RED", "X"]},
                "p": {"$ref": "#/definitions/part"},
                "maybe": {"type": ["null", "boolean"]},
            },
            "required": ["color"],
        }
    )
    with SchemaRegistryClient({"url": url}) as client:
        write = JSONSerializer(text, client)
        data = write({"u": "a", "color": "RED", "p": {"x": 1.5}, "maybe": None}, VALUE)
    schema, value = converter(url, use_optional_for_nonrequired="true").to_connect("t", data)
    assert schema.name == "R"
    assert value.get("u").values == [None, "a"]
    assert value.get("p").get("x") == 1.5
    assert [f.name for f in schema.fields if f.schema.optional] == ["u", "p", "maybe"]
    parameters = schema.field("color").schema.parameters
    assert list(parameters) == [f"io.confluent.connect.json.Enum{s}" for s in ("", ".RED", ".X")]


def registered(url: str, schema: Any) -> bytes:
    """Register a schema; return the prefix of its bytes."""
    with SchemaRegistryClient({"url": url}) as client:
        number = client.register_schema(str(schema)[:99], StoredSchema(json.dumps(schema), "JSON"))
    return b"\0" + number.to_bytes(4, "big")


def test_an_object_of_a_choice_is_known_by_its_properties(url: str) -> None:
    narrow = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    wide = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    prefix = registered(url, {"oneOf": [narrow, wide]})
    made = converter(url, use_optional_for_nonrequired="true")
    found = [made.to_connect("t", prefix + text)[1] for text in (b'{"a":1}', b'{"a":1,"b":2}')]
    assert [value.values[0] is None for value in found] == [False, True]
    assert found[1].values[1].values == [1, 2]
    with pytest.raises(DataError, match=r"is of none of the choices"):
        made.to_connect("t", prefix + b'{"b":1}')


def test_fields_stand_in_the_order_that_connect_gave_them(url: str) -> None:
    properties: dict[str, Any] = {
        "b": {"type": "boolean", "connect.index": 1},
        "a": {"$ref": "#/$defs/x~1y~0", "connect.index": 0},
    }
    schema = {"type": "object", "properties": properties, "$defs": {"x/y~": {"type": "string"}}}
    found, value = converter(url).to_connect("t", registered(url, schema) + b'{"b":true,"a":"x"}')
    assert [field.name for field in found.fields] == ["a", "b"]
    assert value.values == ["x", True]


def test_parts_of_one_document_are_joined(url: str) -> None:
    part = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    whole = {
        "allOf": [{"$ref": "#/definitions/part"}, {"properties": {"b": {"type": "boolean"}}}],
        "definitions": {"part": part},
    }
    data = registered(url, whole) + b'{"a":"x","b":true}'
    assert converter(url).to_connect("t", data)[1].values == ["x", True]
    with SchemaRegistryClient({"url": url}) as client:
        client.register_schema("part", StoredSchema(json.dumps(part), "JSON"))
        inner = {**part, "properties": {"a": {"$ref": "#/definitions/a"}}}
        text = json.dumps({**inner, "definitions": {"a": {"type": "string"}}})
        client.register_schema("refers", StoredSchema(text, "JSON"))
        numbers = []
        for name in ("part", "refers"):
            reference = SchemaReference(f"{name}.json", name, 1)
            text = json.dumps({"allOf": [{"$ref": f"{name}.json"}]})
            stored = StoredSchema(text, "JSON", [reference])
            numbers.append(client.register_schema(f"of-{name}", stored))
    joined, refused = (b"\0" + number.to_bytes(4, "big") + b'{"a":"x"}' for number in numbers)
    assert converter(url).to_connect("t", joined)[1].values == ["x"]
    with pytest.raises(DataError, match=r"allOf with references to other schemas$"):
        converter(url).to_connect("t", refused)


def test_parts_that_contain_themselves_are_refused(url: str) -> None:
    itself = {"type": "object", "allOf": [{"$ref": "#"}]}
    with pytest.raises(DataError, match=r"contain themselves"):
        converter(url).to_connect("t", registered(url, itself) + b"{}")


def test_what_cannot_be_is_refused(url: str) -> None:
    made = converter(url)
    with SchemaRegistryClient({"url": url}) as client:
        itself = '{"type":"array","items":{"$ref":"#"}}'
        first = client.register_schema("itself", StoredSchema(itself, "JSON"))
        plain = client.register_schema("plain", StoredSchema('{"type":"integer"}', "JSON"))
        avro = client.register_schema("avro", StoredSchema('"int"', "AVRO"))
    for number, text in (
        (first, "contain themselves"),
        (plain, "Failed to deserialize data for topic t to JSON"),
        (avro, "is of type AVRO, not JSON"),
    ):
        with pytest.raises(DataError, match=text):
            made.to_connect("t", b"\0" + number.to_bytes(4, "big") + b"{")


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(typed_values())
def test_values_of_any_schema_make_the_round_trip(url: str, typed: tuple[Schema, Any]) -> None:
    schema = struct_of({"v": typed[0]})
    value = Struct(schema, [typed[1]])
    made = converter(url)
    topic = f"any-{abs(hash(schema))}"
    data = made.from_connect(topic, schema, value)
    assert made.to_connect(topic, data) == (schema, value)

"""Protobuf through a registry, beside Confluent's own client for Python."""

from __future__ import annotations

import re
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as StoredSchema
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.struct_pb2 import ListValue, Value
from hypothesis import HealthCheck, given, settings

from barnabas.schemas.converters.protobuf_reading import ProtobufReading
from barnabas.schemas.converters.protobuf_writing import ProtobufOptions
from barnabas.schemas.data.builder import (
    INT8,
    INT32,
    INT64,
    STRING,
    array_of,
    map_of,
    optional,
    struct_of,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct
from barnabas.schemas.protobuf.messages import load as load_text
from barnabas.schemas.protobuf.messages import message_class
from support.connect.registry import registry_converter
from support.connect.samples import INNER, TYPES, VALUES
from support.connect.typed_values import typed_values
from support.effort import examples

VALUE = SerializationContext("theirs", MessageField.VALUE)
POINT = struct_of(TYPES, name="geo.Point")


def converter(url: str, **more: str) -> Any:
    return registry_converter("io.confluent.connect.protobuf.ProtobufConverter", url, **more)


def values_of(struct: Struct) -> dict[str, Any]:
    return {
        field.name: values_of(value) if isinstance(value, Struct) else value
        for field, value in zip(struct.schema.fields, struct.values, strict=True)
    }


@pytest.mark.parametrize("mode", ["", "optional_for_nullables", "wrapper_for_nullables"])
def test_a_struct_makes_the_round_trip(url: str, mode: str) -> None:
    made = converter(url, **({mode: "true"} if mode else {}))
    point = Struct.of(POINT, VALUES)
    topic = f"points-{mode}"
    schema, value = made.to_connect(topic, made.from_connect(topic, POINT, point))
    # Without more, Protobuf cannot tell null from nothing.
    expected = {**values_of(point), "s": None if mode else ""}
    assert values_of(value) == expected
    assert schema.name == "Point"
    assert schema.field("small").schema.type is INT8.type
    assert schema.field("n").schema.parameters == {"io.confluent.connect.protobuf.Tag": "2"}
    again = made.to_connect(topic, made.from_connect(f"{topic}-again", schema, value))
    assert values_of(again[1]) == expected
    value.validate()


def test_confluents_client_reads_what_we_write(url: str) -> None:
    data = converter(url).from_connect("points", POINT, Struct.of(POINT, VALUES))
    with SchemaRegistryClient({"url": url}) as client:
        text = client.get_latest_version("points-value").schema.schema_str
        assert text is not None
        kind = message_class(load_text(text, {}).message(None))
        settings = {"use.deprecated.format": False}
        found = ProtobufDeserializer(kind, settings, client)(data, VALUE)
    assert found is not None
    assert (found.n, found.list[:], found.inner.a) == (8, [1, 2], "i")
    assert (found.day.year, found.amount.scale) == (2020, 2)


def test_we_read_what_confluents_client_writes(url: str) -> None:
    with SchemaRegistryClient({"url": url}) as client:
        write = ProtobufSerializer(
            Value, client, {"use.deprecated.format": False, "skip.known.types": True}
        )
        inner = ListValue(values=[Value(number_value=2.5), Value(string_value="y")])
        schema, value = converter(url).to_connect("t", write(Value(list_value=inner), VALUE))
    assert schema.name == "Value"
    [found] = [part for part in value.get("kind_0").values if part is not None]
    texts = [part.get("kind_0").get("string_value") for part in found.get("values")]
    assert texts == [None, "y"]
    value.validate()


def test_oneofs_enums_and_unsigned_numbers_are_read(url: str) -> None:
    text = """
        syntax = "proto3";
        message First { int32 x = 1; }
        message R {
          enum Color { RED = 0; BLUE = 5; }
          oneof choice { int32 number = 1; string word = 2; }
          Color color = 3;
          uint64 big = 4;
          map<string, int32> counts = 5;
          repeated First parts = 6;
        }
    """
    loaded = load_text(text, {})
    build = message_class(loaded.message("R"))
    with SchemaRegistryClient({"url": url}) as client:
        number = client.register_schema("all", StoredSchema(text, "PROTOBUF"))
    message = build(word="w", color=5, big=2**64 - 1, counts={"a": 1}, parts=[{"x": 3}])
    data = b"\0" + number.to_bytes(4, "big") + b"\x02\x02" + message.SerializeToString()
    made = converter(url)
    schema, value = made.to_connect("t", data)
    assert schema.name == "R"
    assert values_of(value.get("choice_0")) == {"number": None, "word": "w"}
    assert (value.get("color"), value.get("big"), value.get("counts")) == ("BLUE", -1, {"a": 1})
    assert [values_of(part) for part in value.get("parts")] == [{"x": 3}]
    value.validate()
    flat = converter(url, flatten_unions="true").to_connect("t", data)[1]
    assert (flat.get("number"), flat.get("word")) == (None, "w")
    first = b"\0" + number.to_bytes(4, "big") + b"\0\x08\x07"
    assert values_of(made.to_connect("t", first)[1]) == {"x": 7}


def test_a_number_with_two_names_has_the_first(url: str) -> None:
    text = """
        syntax = "proto3";
        message R { enum E { option allow_alias = true; A = 0; B = 1; C = 1; } E e = 1; }
    """
    with SchemaRegistryClient({"url": url}) as client:
        number = client.register_schema("aliases", StoredSchema(text, "PROTOBUF"))
    prefix = b"\0" + number.to_bytes(4, "big") + b"\0"
    found = [converter(url).to_connect("t", prefix + data)[1] for data in (b"\x08\1", b"\x08\5")]
    assert [value.get("e") for value in found] == ["B", "UNKNOWN_ENUM_VALUE_E_5"]


def test_numbers_that_are_too_large_for_their_type_are_cut(url: str) -> None:
    made = converter(url)
    schema = struct_of({"n": INT8})
    data = made.from_connect("cut", schema, Struct.of(schema, {"n": 127}))
    assert data.endswith(b"\x08\x7f")
    assert made.to_connect("cut", data[:-1] + b"\x80\x01")[1].values == [-128]


LISTS = struct_of({"a": array_of(optional(STRING))})
NOT_IN_PROTOBUF = "Array cannot|Protobuf has no null"


def parts_of(value: Any) -> Any:
    """A value without its schema, which Protobuf changes."""
    match value:
        case Struct():
            return [parts_of(part) for part in value.values]
        case list():
            return [parts_of(item) for item in value]
        case dict():
            return {key: parts_of(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("mode", ["optional_for_nullables", "wrapper_for_nullables"])
@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(typed=typed_values())
def test_values_of_any_schema_make_the_round_trip(
    url: str, mode: str, typed: tuple[Schema, Any]
) -> None:
    schema = struct_of({"v": typed[0]})
    made = converter(url, **{mode: "true"})
    topic = f"any-{mode}-{abs(hash(schema))}"
    try:
        data = made.from_connect(topic, schema, Struct(schema, [typed[1]]))
    except DataError as error:
        if re.match(NOT_IN_PROTOBUF, str(error)):
            return
        raise
    found = made.to_connect(topic, data)[1]
    assert parts_of(found) == [parts_of(typed[1])]
    found.validate()


def test_values_of_maps_may_be_lists_and_maps(url: str) -> None:
    maps = map_of(STRING, map_of(INT32, array_of(INT64)))
    schema = struct_of({"m": maps, "o": map_of(STRING, optional(INT64))})
    value = Struct.of(schema, {"m": {"a": {1: [2, 3]}, "b": {}}, "o": {"x": None, "y": 0}})
    made = converter(url, optional_for_nullables="true")
    found = made.to_connect("maps", made.from_connect("maps", schema, value))[1]
    assert found.values == value.values
    found.validate()


def test_optional_is_a_word_of_proto2_too() -> None:
    text = """syntax = "proto2";
        message A { optional int32 may = 1; required int32 must = 2; repeated int32 many = 3; }"""
    loaded = load_text(text, {})
    reading = ProtobufReading(loaded, ProtobufOptions(has_optional=True))
    schema, _ = reading.root(loaded.message(None))
    assert [field.schema.optional for field in schema.fields] == [True, False, True]


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (STRING, "x", "Unsupported root schema of type STRING"),
        (struct_of({"a-b": STRING}), None, "illegal name: .a-b."),
        (struct_of({"a": array_of(array_of(STRING))}), None, "Array cannot be nested"),
        (struct_of({"a": array_of(map_of(STRING, STRING))}), None, "Array cannot have maps"),
        (LISTS, Struct.of(LISTS, {"a": ["x", None]}), "Protobuf has no null in arrays"),
        (INNER, Struct.of(INNER), "null used for required"),
    ],
)
def test_what_cannot_be_is_refused(url: str, schema: Any, value: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        converter(url).from_connect(f"refused: {text}", schema, value)


def test_broken_messages_are_refused(url: str) -> None:
    made = converter(url)
    data = made.from_connect("points", POINT, Struct.of(POINT, VALUES))
    for broken in (data[:-3], data[:5], data[:5] + b"\x02\x09" + data[6:]):
        with pytest.raises(DataError, match=r"^Failed to deserialize data for topic t to Protobuf"):
            made.to_connect("t", broken)

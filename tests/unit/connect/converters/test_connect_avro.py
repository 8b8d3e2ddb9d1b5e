"""Avro through a registry, beside Confluent's own client for Python."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as StoredSchema
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings

from barnabas.schemas.converters import avro_any
from barnabas.schemas.converters.avro_plain import AvroNames
from barnabas.schemas.converters.avro_reading import AvroReading
from barnabas.schemas.converters.avro_schemas import AvroOptions, AvroSchemas
from barnabas.schemas.data.builder import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    INT8,
    INT32,
    INT64,
    STRING,
    array_of,
    decimal,
    map_of,
    optional,
    struct_of,
    with_default,
)
from barnabas.schemas.data.errors import ConfigError, DataError, RetriableError
from barnabas.schemas.data.schema import Schema, Struct, Type
from barnabas.schemas.registry_client import StoredSchema as Stored
from support.connect.registry import registry_converter
from support.connect.samples import INNER, TYPES, VALUES
from support.connect.typed_values import typed_values
from support.effort import examples

PREFIX_PLACE = "io.confluent.kafka.serializers.schema.id."
VALUE = SerializationContext("theirs", MessageField.VALUE)


def converter(url: str, **more: str) -> Any:
    return registry_converter("io.confluent.connect.avro.AvroConverter", url, **more)


POINT = struct_of(
    {
        **TYPES,
        "n": with_default(INT32, 7),
        "list": array_of(optional(INT64)),
        "map": map_of(STRING, BOOLEAN),
        "again": INNER,
        "dflt": optional(with_default(STRING, "x")),
    },
    name="geo.Point",
    version=3,
    doc="a point",
)
FIELDS: dict[str, Any] = {
    **VALUES,
    "list": [1, None],
    "map": {"k": True},
    "again": Struct.of(INNER, {"a": "j"}),
    "dflt": "y",
}
POINT_VALUE = Struct.of(POINT, FIELDS)


@pytest.mark.parametrize(
    ("name", "header"), [("value", "__value_schema_id"), ("key", "__key_schema_id")]
)
def test_a_guid_in_a_header_names_the_schema(url: str, name: str, header: str) -> None:
    config = {"schema.id.serializer": header_schema_id_serializer}
    headers: dict[str, Any] = {}
    field = MessageField.VALUE if name == "value" else MessageField.KEY
    with SchemaRegistryClient({"url": url}) as client:
        write = AvroSerializer(client, '"string"', conf=config)
        data = write("x", SerializationContext("guids", field, headers))
    assert data == b"\2x"
    assert len(headers[header]) == 17
    made = converter(url)
    made.configure({"schema.registry.url": url}, is_key=name == "key")
    assert made.to_connect("guids", data, list(headers.items())) == (STRING, "x")
    plain = f"{PREFIX_PLACE}PrefixSchemaIdDeserializer"
    given = {"schema.registry.url": url, f"{name}.schema.id.deserializer": plain}
    made.configure(given, is_key=name == "key")
    with pytest.raises(DataError, match="Unknown magic byte!"):
        made.to_connect("guids", data, list(headers.items()))


def test_a_struct_makes_the_round_trip_with_its_schema(url: str) -> None:
    avro = converter(url, connect_meta_data="true")
    data = avro.from_connect("points", POINT, POINT_VALUE)
    assert data[0] == 0
    schema, value = avro.to_connect("points", data)
    assert value == POINT_VALUE
    assert schema == POINT


def test_the_registered_schema_is_as_confluents_converter_writes_it(url: str) -> None:
    converter(url).from_connect("points", POINT, POINT_VALUE)
    with SchemaRegistryClient({"url": url}) as client:
        text = client.get_latest_version("points-value").schema.schema_str
    assert text is not None
    found = json.loads(text)
    assert {k: v for k, v in found.items() if k != "fields"} == {
        "type": "record",
        "name": "Point",
        "namespace": "geo",
        "connect.doc": "a point",
        "connect.version": 3,
        "connect.name": "geo.Point",
    }
    by_name = {field.pop("name"): field for field in found["fields"]}
    assert by_name["small"] == {"type": {"type": "int", "connect.type": "int8"}}
    assert by_name["n"] == {"type": {"type": "int", "connect.default": 7}, "default": 7}
    assert by_name["s"] == {"type": ["null", "string"], "default": None}
    assert by_name["amount"]["type"] == {
        "type": "bytes",
        "scale": 2,
        "precision": 64,
        "connect.version": 1,
        "connect.parameters": {"scale": "2"},
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }
    assert by_name["day"]["type"]["logicalType"] == "date"
    assert by_name["pairs"]["type"]["items"]["name"] == "MapEntry"
    assert by_name["again"]["type"] == "Inner"
    assert by_name["dflt"] == {
        "type": [{"type": "string", "connect.default": "x"}, "null"],
        "default": "x",
    }


def test_confluents_client_reads_what_we_write(url: str) -> None:
    data = converter(url).from_connect("points", POINT, POINT_VALUE)
    with SchemaRegistryClient({"url": url}) as client:
        found = AvroDeserializer(client)(data, VALUE)
    assert found["inner"] == {"a": "i"}
    assert found["amount"] == Decimal("-12.30")
    assert found["ts"] == VALUES["ts"]
    assert found["list"] == [1, None]


def test_we_read_what_confluents_client_writes(url: str) -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "namespace": "ns",
            "doc": "of all kinds",
            "fields": [
                {"name": "color", "type": {"type": "enum", "name": "C", "symbols": ["RED", "X"]}},
                {"name": "id", "type": {"type": "fixed", "name": "F", "size": 2}},
                {"name": "u", "type": ["null", "int", "string", "C"], "default": None},
                {"name": "d", "type": ["null", "long"], "default": None, "doc": "of d"},
                {"name": "n", "type": "int", "default": 3},
            ],
        }
    )
    values = [None, 5, "text"]
    with SchemaRegistryClient({"url": url}) as client:
        write = AvroSerializer(client, text)
        records = [
            write({"color": "RED", "id": b"ab", "u": u, "d": 1, "n": 1}, VALUE) for u in values
        ]
    avro = converter(url, enhanced_avro_schema_support="true")
    found = [avro.to_connect("t", data) for data in records]
    schema = found[0][0]
    assert schema.name == "ns.R"
    assert schema.field("color").schema.parameters == {
        "io.confluent.connect.avro.Enum": "ns.C",
        "io.confluent.connect.avro.Enum.RED": "RED",
        "io.confluent.connect.avro.Enum.X": "X",
    }
    assert schema.field("n").schema.default == 3
    assert schema.parameters == {"avro.record.doc": "of all kinds", "avro.field.doc.d": "of d"}
    assert found[0][1].get("id") == b"ab"
    unions = [value.get("u") for _, value in found]
    assert [u and u.values for u in unions] == [None, [5, None, None], [None, "text", None]]
    again = [avro.from_connect("copy", schema, value) for _, value in found]
    assert [avro.to_connect("copy", data)[1] for data in again] == [value for _, value in found]


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    text = '{"type":"array","items":' * 400 + '"int"' + "}" * 400
    with pytest.raises(DataError, match=r"^The Avro schema is nested too deeply$"):
        AvroNames(Stored(1, "AVRO", text, ()))


def test_a_number_too_large_for_an_int_is_a_long(url: str) -> None:
    text = json.dumps({"type": "record", "name": "N", "fields": [{"name": "u", "type": NUMBERS}]})
    with SchemaRegistryClient({"url": url}) as client:
        write = AvroSerializer(client, text)
        context = SerializationContext("numbers", MessageField.VALUE)
        data = [write({"u": number}, context) for number in (2**31 - 1, 2**31)]
    found = [converter(url).to_connect("t", one)[1] for one in data]
    assert [value.get("u").values for value in found] == [[2**31 - 1, None], [None, 2**31]]
    for value in found:
        value.validate()


NUMBERS = ["int", "long"]


def test_schemas_may_refer_to_others(url: str) -> None:
    inner = '{"type":"record","name":"other.Part","fields":[{"name":"x","type":"int"}]}'
    outer = '{"type":"record","name":"Whole","fields":[{"name":"p","type":"other.Part"}]}'
    with SchemaRegistryClient({"url": url}) as client:
        client.register_schema("part", StoredSchema(inner, "AVRO"))
        reference = SchemaReference("other.Part", "part", 1)
        found = client.register_schema("whole", StoredSchema(outer, "AVRO", [reference]))
    schema, value = converter(url).to_connect("t", bytes([0]) + found.to_bytes(4, "big") + b"\x0e")
    assert schema.name == "Whole"
    assert value.get("p").get("x") == 7


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "named-value"),
        ("RecordNameStrategy", "geo.Inner"),
        ("TopicRecordNameStrategy", "named-geo.Inner"),
    ],
)
def test_subjects_are_named_by_the_strategy(url: str, strategy: str, subject: str) -> None:
    full = f"io.confluent.kafka.serializers.subject.{strategy}"
    avro = converter(url, value_subject_name_strategy=full)
    avro.from_connect("named", INNER, Struct.of(INNER, {"a": "x"}))
    with SchemaRegistryClient({"url": url}) as client:
        assert subject in client.get_subjects()
    if strategy != "TopicNameStrategy":
        with pytest.raises(DataError, match=r"is not a record"):
            avro.from_connect("named", STRING, "x")


def test_schemas_are_registered_only_where_they_may_be(url: str) -> None:
    strict = converter(url, auto_register_schemas="false")
    value = Struct.of(INNER, {"a": "x"})
    with pytest.raises(DataError, match=r"is not registered under strict-value$"):
        strict.from_connect("strict", INNER, value)
    first = converter(url).from_connect("strict", INNER, value)
    assert strict.from_connect("strict", INNER, value) == first
    latest = converter(url, auto_register_schemas="false", use_latest_version="true")
    wider = struct_of({"a": STRING, "new": optional(INT32)}, name="geo.Inner")
    data = converter(url).from_connect("strict", wider, Struct.of(wider, {"a": "x", "new": 1}))
    assert latest.from_connect("strict", INNER, value)[:5] == data[:5]
    read = converter(url).to_connect("strict", latest.from_connect("strict", INNER, value))[1]
    assert read.values == ["x", None]


def test_a_schema_may_be_chosen_by_its_id(url: str) -> None:
    wide = struct_of({"a": STRING, "new": optional(INT32)}, name="geo.Inner")
    with SchemaRegistryClient({"url": url}) as client:
        text = json.dumps(AvroSchemas(AvroOptions()).of(wide))
        number = client.register_schema("elsewhere", StoredSchema(text, "AVRO"))
    fixed = converter(url, use_schema_id=str(number))
    data = fixed.from_connect("by-id", INNER, Struct.of(INNER, {"a": "x"}))
    assert data[1:5] == number.to_bytes(4, "big")
    assert fixed.to_connect("by-id", data)[1].values == ["x", None]
    with pytest.raises(DataError, match=r"is not in the schema registry$"):
        converter(url, use_schema_id="0").from_connect("by-id", STRING, "x")


def test_null_is_nothing_unless_the_schema_has_a_default(url: str) -> None:
    avro = converter(url)
    assert avro.from_connect("null", optional(STRING), None) is None
    defaulted = optional(with_default(STRING, "x"))
    assert avro.to_connect("null", avro.from_connect("null", defaulted, None))[1] == "x"


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        (map_of(INT32, STRING), {1: "x"}),
        (map_of(STRING, decimal(2)), {"k": Decimal("1.50")}),
        (array_of(optional(BYTES)), [b"\0\xff", None]),
        (array_of(FLOAT32), [1.0]),
    ],
)
def test_defaults_make_the_round_trip(url: str, schema: Schema, default: Any) -> None:
    whole = struct_of({"v": with_default(schema, default)}, name="with.Default")
    avro = converter(url)
    topic = f"default-{abs(hash(schema))}"
    data = avro.from_connect(topic, whole, Struct.of(whole))
    found, value = avro.to_connect(topic, data)
    assert found == whole
    assert value.get("v") == default


def test_numbers_that_are_too_large_for_their_type_are_cut(url: str) -> None:
    text = json.dumps({"type": "array", "items": {"type": "int", "connect.type": "int8"}})
    with SchemaRegistryClient({"url": url}) as client:
        number = client.register_schema("cut", StoredSchema(text, "AVRO"))
    prefix = b"\0" + number.to_bytes(4, "big")
    schema, value = converter(url).to_connect("t", prefix + b"\x04\xfe\x01\x80\x02\0")
    assert (schema, value) == (array_of(INT8), [127, -128])


def test_defaults_that_do_not_fit_are_left_out(url: str) -> None:
    field = {"name": "a", "type": {"type": "array", "items": "int"}, "default": [["x"]]}
    record = {"type": "record", "name": "Odd", "fields": [field]}
    names = AvroNames(Stored(1, "AVRO", json.dumps(record), ()))
    schema, _ = AvroReading(names, AvroOptions()).of(names.root)
    assert schema == struct_of({"a": array_of(INT32)}, name="Odd")


def test_names_of_the_same_namespace_are_short() -> None:
    fields = AvroSchemas(AvroOptions()).of(POINT)["fields"]
    assert next(field["type"] for field in fields if field["name"] == "again") == "Inner"
    outside = struct_of({"one": INNER, "two": INNER}, name="other.Pair")
    assert AvroSchemas(AvroOptions()).of(outside)["fields"][1]["type"] == "geo.Inner"


def test_what_cannot_be_is_refused(url: str) -> None:
    avro = converter(url)
    assert avro.to_connect("t", None) == (None, None)
    for data in (b"", b"\1\0\0\0\1x", b"text"):
        with pytest.raises(DataError, match=r"Unknown magic byte!$"):
            avro.to_connect("t", data)
    with pytest.raises(DataError, match=r"^Failed to deserialize Avro data from topic t: Schema"):
        avro.to_connect("t", b"\0\0\xff\xff\xff")
    with pytest.raises(DataError, match=r"null used for required"):
        avro.from_connect("t", INNER, Struct.of(INNER))
    other = struct_of({"b": STRING}, name="x.Y")
    both = struct_of({"one": struct_of({"a": STRING}, name="x.Y"), "two": other})
    with pytest.raises(DataError, match=r"Can't redefine: x\.Y$"):
        avro.from_connect("t", both, None)
    with pytest.raises(DataError, match=r"^Illegal character in: a-b$"):
        avro.from_connect("t", struct_of({"a-b": STRING}), None)
    with pytest.raises(RetriableError, match=r"does not answer"):
        converter("http://127.0.0.1:1").from_connect("t", STRING, "x")
    with pytest.raises(ConfigError, match=r"subject name strategy"):
        converter(url, value_subject_name_strategy="x.Unknown")


ANYTHING: dict[str, Any] = {
    "null": None,
    "b": True,
    "n": -(2**63),
    "f": 1.5,
    "s": "ä",
    "bytes": b"\0\xff",
    "list": [1, None, ["x"], {}],
    "map": {1: {"k": [None]}, None: 2.0},
}


def test_data_without_a_schema_makes_the_round_trip(url: str) -> None:
    avro = converter(url)
    assert avro.from_connect("any", None, None) is None
    for value in (ANYTHING, *(value for value in ANYTHING.values() if value is not None)):
        assert avro.to_connect("any", avro.from_connect("any", None, value)) == (None, value)
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(DataError, match=r"nested too deeply$"):
        avro.from_connect("any", None, deep)
    for wrong in (2**63, Decimal(1), {"a": datetime(2020, 1, 1, tzinfo=UTC)}):
        with pytest.raises(DataError, match=r"does not have corresponding schema type\.$"):
            avro.from_connect("any", None, wrong)


def test_data_without_a_schema_is_as_confluents_converter_has_it(url: str) -> None:
    avro = converter(url)
    data = avro.from_connect("any", None, {"k": 7})
    with SchemaRegistryClient({"url": url}) as client:
        text = client.get_latest_version("any-value").schema.schema_str
        assert text is not None
        found = AvroDeserializer(client)(data, VALUE)
        write = AvroSerializer(client, text)
        theirs = write({"array": [{"int": 3}, {"float": 0.5}, {}]}, VALUE)
    assert json.loads(text) == avro_any.SCHEMA
    assert found["map"][0]["key"]["string"] == "k"
    assert found["map"][0]["value"]["long"] == 7
    assert avro.to_connect("t", theirs) == (None, [3, 0.5, None])
    with pytest.raises(DataError, match=r"a list or a map as a key$"):
        avro_any.from_any(EMPTY | {"map": [{"key": LIST, "value": EMPTY}]})


EMPTY: dict[str, Any] = dict.fromkeys([field["name"] for field in avro_any.SCHEMA["fields"]])  # type: ignore[index]
LIST: dict[str, Any] = {**EMPTY, "array": []}


def test_names_that_avro_does_not_take_are_replaced(url: str) -> None:
    avro = converter(url, scrub_invalid_names="true")
    schema = struct_of({"a-b": STRING, "1c": STRING}, name="my.na-me")
    data = avro.from_connect("scrubbed", schema, Struct.of(schema, {"a-b": "x", "1c": "y"}))
    found = avro.to_connect("scrubbed", data)[0]
    assert [field.name for field in found.fields] == ["a_b", "x1c"]


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(typed_values())
def test_values_of_any_schema_make_the_round_trip(url: str, typed: tuple[Schema, Any]) -> None:
    schema, value = typed
    if schema.type is not Type.STRUCT:
        schema, value = struct_of({"v": schema}), Struct(struct_of({"v": schema}), [value])
    avro = converter(
        url, value_subject_name_strategy="io.confluent.kafka.serializers.subject.TopicNameStrategy"
    )
    topic = f"any-{abs(hash(schema))}"
    if "MapEntry" in _entry_maps(schema):
        return  # entries of different types would have the same name
    data = avro.from_connect(topic, schema, value)
    assert avro.to_connect(topic, data) == (schema, value)


def _entry_maps(schema: Schema) -> list[str]:
    """Names of the records that maps with other keys than texts become, but for the first."""
    return _entries(schema)[1:]


def _entries(schema: Schema) -> list[str]:
    parts = [part for part in (schema.value_schema, *(f.schema for f in schema.fields)) if part]
    inner = [name for part in parts for name in _entries(part)]
    return inner if schema.key_schema in (None, STRING) else ["MapEntry", *inner]

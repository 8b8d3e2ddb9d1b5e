"""JSON_SR: the JSON Schemas that ksqlDB registers, and data read by their writers' schemas."""

import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import FormatError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.schema import Column, Part
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
)
from support.effort import examples

JSON_SR = format_named("JSON_SR")
SUBJECT = "topic-value"
INT = {"type": "integer", "connect.type": "int32"}
NULL = {"type": "null"}


def serde(types, store=None, *, wraps=True, names=None, properties=None):
    names = names or [f"C{index}" for index in range(len(types))]
    columns = [Column(name, sql_type) for name, sql_type in zip(names, types, strict=True)]
    part = RecordPart(columns, properties or {}, SUBJECT, store or MemoryRegistry(), wraps)
    return JSON_SR.serializer(part), JSON_SR.deserializer(part)


@pytest.mark.parametrize(
    ("sql_type", "schema"),
    [
        (BOOLEAN, {"type": "boolean"}),
        (INTEGER, INT),
        (BIGINT, {"type": "integer", "connect.type": "int64"}),
        (DOUBLE, {"type": "number", "connect.type": "float64"}),
        (STRING, {"type": "string"}),
        (BYTES, {"type": "string", "connect.type": "bytes"}),
        (
            Decimal(4, 2),
            {
                "type": "number",
                "title": "org.apache.kafka.connect.data.Decimal",
                "connect.version": 1,
                "connect.type": "bytes",
                "connect.parameters": {"scale": "2", "connect.decimal.precision": "4"},
            },
        ),
        (Array(INTEGER), {"type": "array", "items": {"oneOf": [NULL, INT]}}),
        (
            Map(STRING, INTEGER),
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"connect.index": 0, "oneOf": [NULL, {"type": "string"}]},
                        "value": {"connect.index": 1, "oneOf": [NULL, INT]},
                    },
                },
                "connect.type": "map",
            },
        ),
        (
            Struct((Field("F", INTEGER),)),
            {"type": "object", "properties": {"F": {"connect.index": 0, "oneOf": [NULL, INT]}}},
        ),
    ],
)
def test_schemas_of_types(sql_type, schema) -> None:
    column = Column("V", sql_type)
    bare = {"oneOf": [NULL, schema]}
    place = {"connect.index": 0, "oneOf": [NULL, schema]}
    wrapped = {"type": "object", "properties": {"V": place}}
    for made, wraps in ((bare, False), (wrapped, True)):
        text = JSON_SR.schemas.text([column], {}, wraps=wraps)
        assert text == json.dumps(made, separators=(",", ":"))  # a registry compares texts
        stored = StoredSchema(1, "JSON", text)
        [read] = JSON_SR.schemas.columns(stored, {}, Part.VALUE, wraps=wraps)
        assert read.type == sql_type


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
STRUCT = Struct((Field("A", INTEGER), Field("B", Array(STRING))))
ROW = [
    (BOOLEAN, st.booleans()),
    (INTEGER, st.integers(-(2**31), 2**31 - 1)),
    (BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (DOUBLE, st.floats(allow_nan=False, allow_infinity=False)),
    (STRING, TEXT),
    (BYTES, st.binary()),
    (Decimal(9, 3), st.decimals("-999999", "999999", places=3)),
    (DATE, st.integers(-9999, 9999)),
    (TIME, st.integers(0, 86_399_999)),
    (TIMESTAMP, st.integers(-(2**40), 2**40)),
    (Array(STRING), st.lists(st.none() | TEXT)),
    (Map(STRING, BIGINT), st.dictionaries(TEXT, st.none() | st.integers(0, 9))),
    (STRUCT, st.fixed_dictionaries({"A": st.none() | st.integers(0, 9), "B": st.lists(TEXT)})),
]


@settings(max_examples=examples(15))
@given(st.tuples(*(st.none() | values for _, values in ROW)))
def test_rows_come_back_and_fit_their_schema(row) -> None:
    store = MemoryRegistry()
    serialize, deserialize = serde([sql_type for sql_type, _ in ROW], store)
    data = serialize(row)
    assert deserialize(data) == list(row)
    jsonschema.validate(json.loads(data[5:]), json.loads(store.schemas[1].text))


def test_bytes() -> None:
    store = MemoryRegistry()
    serialize, deserialize = serde([INTEGER, Map(STRING, INTEGER)], store)
    data = serialize([None, {"a": 1}])
    assert data == b'\0\0\0\0\1{"C0":null,"C1":[{"key":"a","value":1}]}'
    assert store.subjects == {SUBJECT: [1]}
    assert serialize(None) is None
    assert deserialize(None) is None
    with pytest.raises(FormatError, match="Unknown magic byte!"):
        deserialize(data[5:])


def read(schema, value, sql_type):
    store = MemoryRegistry()
    text = json.dumps({"type": "object", "properties": {"c1": schema}})
    store.add("other", "JSON", text)
    data = b"\0\0\0\0\1" + json.dumps({"c1": value}).encode()
    [result] = serde([sql_type], store, names=["C1"])[1](data)
    return result


@pytest.mark.parametrize(
    ("schema", "value", "sql_type", "expected"),
    [
        ({"type": "integer"}, 5, BIGINT, 5),
        ({"type": "integer"}, 5, STRING, "5"),
        ({"type": "integer"}, "x", BIGINT, 0),
        ({"type": "number"}, 5, DOUBLE, 5.0),
        ({"type": "number"}, 1e10, STRING, "1.0E10"),
        ({"type": "string"}, 5, STRING, None),
        ({"enum": ["A", "B"]}, "A", STRING, "A"),
        ({"type": ["null", "string"]}, None, STRING, None),
        ({"oneOf": [{"type": "null", "title": "n"}, {"type": "string"}]}, "x", STRING, "x"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "x", STRING, "x"),
        ({"type": "number", "allOf": [{"type": "integer"}, {"type": "number"}]}, 5, BIGINT, 5),
        (
            {
                "allOf": [
                    {"type": "object", "properties": {"x": {"type": "string"}}},
                    {"type": "string"},
                ]
            },
            {"x": "y"},
            Struct((Field("X", STRING),)),
            {"X": "y"},
        ),
        ({"type": "integer", "default": 7}, None, BIGINT, 7),
        (
            {"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}},
            {"a": 1},
            Map(STRING, BIGINT),
            {"a": 1},
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "x",
            Struct(
                (
                    Field("IO.CONFLUENT.CONNECT.JSON.ONEOF.FIELD.0", BIGINT),
                    Field("IO.CONFLUENT.CONNECT.JSON.ONEOF.FIELD.1", STRING),
                )
            ),
            {
                "IO.CONFLUENT.CONNECT.JSON.ONEOF.FIELD.0": None,
                "IO.CONFLUENT.CONNECT.JSON.ONEOF.FIELD.1": "x",
            },
        ),
    ],
)
def test_other_writers_schemas(schema, value, sql_type, expected) -> None:
    assert read(schema, value, sql_type) == expected


@pytest.mark.parametrize(
    ("schema", "value", "sql_type", "message"),
    [
        ({"type": "integer"}, 5, INTEGER, "Cannot deserialize type int64 as type int32"),
        ({"type": "integer"}, None, BIGINT, "Invalid null value for required INT64 field"),
        ({"type": "array", "items": {"type": "integer"}}, 5, Array(BIGINT), "JSON arrays"),
        ({"type": "object", "properties": {}}, 5, Struct((Field("A", INTEGER),)), "JSON objects"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 1.5, Struct(()), "matching oneof"),
    ],
)
def test_misfits(schema, value, sql_type, message) -> None:
    with pytest.raises(FormatError, match=message):
        read(schema, value, sql_type)


def test_columns_of_schemas() -> None:
    shared = {"definitions": {"Name": {"type": "string"}}}
    text = json.dumps(
        {
            "type": "object",
            "properties": {
                "b": {"type": "integer", "connect.index": 1},
                "a": {"$ref": "#/definitions/Point", "connect.index": 0},
                "c": {"$ref": "names.json#/definitions/Name"},
                "d": {"allOf": [{"type": "object", "properties": {"e": {"type": "boolean"}}}]},
            },
            "definitions": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        }
    )
    stored = StoredSchema(1, "JSON", text, (("names.json", json.dumps(shared)),))
    columns = JSON_SR.schemas.columns(stored, {}, Part.VALUE, wraps=True)
    assert ", ".join(map(str, columns)) == (
        "`A` STRUCT<`X` DOUBLE>, `B` BIGINT, `C` STRING, `D` STRUCT<`E` BOOLEAN>"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "true",
        '{"type": "array"}',
        '{"$ref": "#/definitions/None"}',
        '{"type": "object", "properties": {"a": {"$ref": "#"}}}',
        '{"type": "string"}',
        '{"type": "object"}',
    ],
)
def test_what_is_no_row(text) -> None:
    with pytest.raises(AnalysisError):
        JSON_SR.schemas.columns(StoredSchema(1, "JSON", text), {}, Part.VALUE, wraps=True)


def test_writing_with_a_schema_that_was_there() -> None:
    store = MemoryRegistry()
    properties = {"c2": {"type": "integer"}, "c1": INT, "c3": {"oneOf": [NULL, INT]}, "c4": INT}
    properties["c4"] = INT | {"default": 4}
    text = json.dumps({"type": "object", "properties": properties})
    store.add(SUBJECT, "JSON", text)
    asked = {"schemaId": "1"}
    serialize, _ = serde([INTEGER], store, names=["c1"], properties=asked)
    assert serialize([5]) == b'\0\0\0\0\1{"c1":5,"c3":null,"c4":4}'
    with pytest.raises(FormatError, match="null used for required field"):
        serialize([None])
    with pytest.raises(FormatError, match="misses field with name: X"):
        serde([INTEGER], store, names=["X"], properties=asked)[0]([5])

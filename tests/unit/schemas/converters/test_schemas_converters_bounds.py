"""Schemas and data that would take a reader's time or stack are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.schemas.converters import base
from barnabas.schemas.converters.avro import AvroFormat
from barnabas.schemas.converters.avro_schemas import AvroOptions
from barnabas.schemas.converters.base import SchemaFormat
from barnabas.schemas.converters.json_schema import JsonSchemaFormat, JsonSchemaOptions
from barnabas.schemas.converters.protobuf import ProtobufFormat
from barnabas.schemas.converters.protobuf_writing import ProtobufOptions
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Struct
from barnabas.schemas.registry_client import StoredSchema

AVRO = AvroFormat(AvroOptions())
JSON = JsonSchemaFormat(JsonSchemaOptions())
PROTOBUF = ProtobufFormat(ProtobufOptions())
LEVELS = 30


def stored(schema_type: str, schema: Any) -> StoredSchema:
    return StoredSchema(1, schema_type, schema if isinstance(schema, str) else json.dumps(schema))


def doubling_avro() -> Any:
    schema: Any = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    for level in range(1, LEVELS):
        again = {"name": "b", "type": f"R{level - 1}"}
        fields = [{"name": "a", "type": schema}, again]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return schema


def doubling_json(join: str) -> Any:
    last = {"type": "object", "properties": {"x": {"type": "string"}}}
    definitions: dict[str, Any] = {"p0": last}
    for level in range(1, LEVELS):
        inner = {"$ref": f"#/definitions/p{level - 1}"}
        definitions[f"p{level}"] = (
            {"allOf": [inner, inner]}
            if join == "allOf"
            else {"type": "object", "properties": {"a": inner, "b": inner}}
        )
    return {"$ref": f"#/definitions/p{LEVELS - 1}", "definitions": definitions}


def doubling_protobuf() -> str:
    messages = [
        f"message M{level} {{ M{level + 1} a = 1; M{level + 1} b = 2; }}" for level in range(LEVELS)
    ]
    return "\n".join(['syntax = "proto3";', *messages, f"message M{LEVELS} {{ int32 x = 1; }}"])


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (AVRO, doubling_avro()),
        (JSON, doubling_json("properties")),
        (JSON, doubling_json("allOf")),
        (PROTOBUF, doubling_protobuf()),
    ],
    ids=["avro", "properties", "allOf", "protobuf"],
)
def test_schemas_that_double_with_each_level(
    kind: SchemaFormat, schema: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "PARTS_MAX", 1_000)
    with pytest.raises(DataError, match="more than 1000 parts"):
        kind.reading(stored(kind.schema_type, schema))


LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
TREE = {
    "type": "record",
    "name": "T",
    "fields": [{"name": "branches", "type": {"type": "array", "items": "T"}}],
}


def depth_of(value: Struct | None) -> int:
    depth = 0
    while value is not None:
        value, depth = value.values[0], depth + 1
    return depth


@pytest.mark.parametrize("schema", [LIST, TREE])
@pytest.mark.parametrize("levels", [900, 200_000])
def test_deep_data_in_avro_do_not_overrun_the_stack(schema: Any, levels: int) -> None:
    with pytest.raises(DataError, match="nested too deeply"):
        AVRO.reading(stored("AVRO", schema)).read(b"\2" * levels + b"\0" * (levels + 1))


def test_data_in_avro_of_some_depth_are_read() -> None:
    reading = AVRO.reading(stored("AVRO", LIST))
    assert depth_of(reading.read(b"\2" * 100 + b"\0")) == 101


def test_long_data_of_a_record_that_contains_itself_are_read() -> None:
    fields = [*LIST["fields"], {"name": "s", "type": "string"}]
    reading = AVRO.reading(stored("AVRO", {**LIST, "fields": fields}))
    value = reading.read(b"\2\0\2a" + b"\xa0\x1f" + b"b" * 2_000)
    assert value.values[0].values == [None, "a"]
    assert value.values[1] == "b" * 2_000


@pytest.mark.parametrize("between", [[], ["M"]])
def test_a_record_without_an_end(between: list[str]) -> None:
    schema: Any = "L"
    for name in between:
        schema = {"type": "record", "name": name, "fields": [{"name": "l", "type": schema}]}
    endless = {"type": "record", "name": "L", "fields": [{"name": "next", "type": schema}]}
    with pytest.raises(DataError, match="without end"):
        AVRO.reading(stored("AVRO", endless))

"""Texts of JSON as structs, whose schemas are those that the values look like.

Source: io.debezium.transforms.outbox.JsonSchemaData (Debezium 3.3).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from barnabas.schemas.data.builder import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    array_of,
    struct_of,
    with_fields,
)
from barnabas.schemas.data.errors import ConnectError
from barnabas.schemas.data.schema import Schema, Struct, Type


def expand(text: str, name: str | None, *, keeps_null: bool) -> tuple[Schema, Any]:
    """The schema and value of a JSON object. Raises ValueError or ConnectError for others."""
    if not text.startswith(("{", "[")):
        raise ValueError("the payload begins with neither { nor [")
    node = json.loads(text)
    schema = _schema(name, node, keeps_null=keeps_null)
    if schema is None or schema.type is not Type.STRUCT:
        raise ConnectError(f"Not a struct schema: {schema}")
    return schema, _value(node, schema)


def _schema(name: str | None, node: Any, *, keeps_null: bool) -> Schema | None:
    match node:
        case bool():
            return OPTIONAL_BOOLEAN
        case str():
            return OPTIONAL_STRING
        case int():
            bits = node.bit_length()
            return (
                OPTIONAL_INT32 if bits < 32 else OPTIONAL_INT64 if bits < 64 else OPTIONAL_FLOAT64
            )
        case float():
            return OPTIONAL_FLOAT64
        case list():
            if not node:
                return None
            items = _item_schema(name, node, keeps_null=keeps_null)
            return array_of(items, optional=True)
        case dict():
            fields = []
            for key, item in node.items():
                inner = _schema(f"{name}.{key}" if name else key, item, keeps_null=keeps_null)
                if inner is not None:
                    fields.append((key, inner))
            return struct_of(fields, name=name, optional=True)
    return OPTIONAL_BYTES if keeps_null else None


def _item_schema(name: str | None, items: list[Any], *, keeps_null: bool) -> Schema:
    given = [item for item in items if item is not None]
    sample = given[0] if given else None
    for item in given:
        if _kind(item) != _kind(sample):
            raise ConnectError(f"Field is not a homogenous array ({sample} x {item}).")
    if isinstance(sample, dict):
        merged: Schema | None = None
        seen: list[Schema] = []
        for item in given:
            schema = _schema(name, item, keeps_null=keeps_null)
            assert schema is not None
            if schema not in seen:
                seen.append(schema)
                merged = schema if merged is None else _merged(merged, schema)
        assert merged is not None
        return merged
    schema = _schema(None, sample, keeps_null=keeps_null)
    if schema is None:
        raise ConnectError("Array '' has unrecognized member schema.")
    for item in given:
        if _schema(None, item, keeps_null=keeps_null) != schema and not isinstance(item, list):
            raise ConnectError(
                f"Field is not a homogenous array ({sample} x {item}), different number types"
            )
    return schema


def _kind(node: Any) -> type:
    return float if type(node) is int else type(node)


def _merged(left: Schema, right: Schema) -> Schema:
    fields = {field.name: field.schema for field in left.fields}
    for field in right.fields:
        known = fields.get(field.name)
        if known is None or (known.type is Type.BYTES and field.schema.type is not Type.BYTES):
            fields[field.name] = field.schema
    return with_fields(replace(left, optional=False), fields.items())


def _value(node: Any, schema: Schema) -> Any:
    if isinstance(node, dict):
        return Struct.of(
            schema,
            {f.name: _value(node[f.name], f.schema) for f in schema.fields if f.name in node},
        )
    if isinstance(node, list):
        assert schema.value_schema is not None
        return [_value(item, schema.value_schema) for item in node]
    return float(node) if schema.type is Type.FLOAT64 and type(node) is int else node

"""Connect's data in JSON with JSON Schema, as Confluent's JsonSchemaConverter translates them.

Values differ from JsonConverter's for maps whose keys are not strings (entries are objects), and
for choices (only the value is written).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from barnabas.schemas.converters import json_nodes
from barnabas.schemas.converters.base import Reading, SchemaFormat, Writing
from barnabas.schemas.converters.json_schema_documents import (
    JsonSchemaReader,
    JsonSchemaWriter,
    has_text_keys,
    is_union,
)
from barnabas.schemas.converters.json_text import JsonText, Write, encode_json
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import SchemaReference, when_needed
from barnabas.schemas.data.schema import DECIMAL, Schema, Struct, Type, validate_value
from barnabas.schemas.registry_client import StoredSchema

Read = Callable[[Any], Any]
References = dict[Schema, Read]
"""Readers of recursive structs."""


@dataclass(slots=True, frozen=True)
class JsonSchemaOptions:
    """Settings of JsonSchemaData."""

    is_decimal_numeric: bool = False
    makes_optional: bool = False
    """True if properties that are not required become optional fields."""
    allows_more: bool = True
    """True if written schemas allow properties that they do not name."""
    ignores_defaults: bool = False


class JsonSchemaFormat(SchemaFormat):
    """JSON whose schemas are JSON Schema."""

    schema_type, title = "JSON", "JSON"

    def __init__(self, options: JsonSchemaOptions) -> None:
        self._options = options

    def writing(self, schema: Schema | None, target: StoredSchema | None = None) -> Writing:
        assert schema is not None
        text = JsonSchemaText(
            is_decimal_numeric=self._options.is_decimal_numeric,
            replaces_null=not self._options.ignores_defaults,
        )
        schemas = JsonSchemaWriter(
            lambda part: json.loads(text.writer(part)(part.default)),
            is_decimal_numeric=self._options.is_decimal_numeric,
            allows_more=self._options.allows_more,
        )
        write = text.writer(schema)
        name = schema.name if schema.type is Type.STRUCT else None
        made = json.dumps(schemas.whole(schema), ensure_ascii=False, separators=(",", ":"))
        return Writing(made, name, lambda value: encode_json(write(value)))

    def reading(self, stored: StoredSchema) -> Reading:
        schema = JsonSchemaReader(
            stored,
            lambda part, node: reader(part)(node),
            makes_optional=self._options.makes_optional,
        ).schema()
        read = reader(schema)
        if DECIMAL not in stored.text and not stored.references:
            return Reading(schema, lambda data: read(json.loads(data)))
        return Reading(schema, lambda data: read(json.loads(data, parse_float=Decimal)))


class JsonSchemaText(JsonText):
    """Writes values."""

    def _struct(self, schema: Schema) -> Write:
        if not is_union(schema):
            return super()._struct(schema)
        parts = [self.writer(field.schema) for field in schema.fields]

        def write(value: Struct) -> str:
            for part, item in zip(parts, value.values, strict=True):
                if item is not None:
                    return part(item)
            raise DataError("A choice needs one field with a value")

        return write

    def _map(self, schema: Schema) -> Write:
        keys, values = self.writer(schema.key_schema), self.writer(schema.value_schema)
        if has_text_keys(schema):
            return super()._map(schema)

        def write(value: Mapping[Any, Any]) -> str:
            entries = [f'{{"key":{keys(k)},"value":{values(v)}}}' for k, v in value.items()]
            return f"[{','.join(entries)}]"

        return write


def reader(schema: Schema, references: References | None = None) -> Read:
    """Return the function that reads parsed JSON of a schema, null too; it raises DataError."""
    read = _reader(schema, {} if references is None else references)

    def checked(node: Any) -> Any:
        if node is not None:
            return read(node)
        if schema.default is not None:
            return schema.default
        if not schema.optional:
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return None

    return checked


def _reader(schema: Schema, references: References) -> Read:
    match schema.type:
        case Type.STRUCT:
            make = _union if is_union(schema) else _struct
            if type(schema) is not SchemaReference:
                return make(schema, references)
            if schema not in references:
                references[schema] = when_needed(lambda: make(schema, references))
            return references[schema]
        case Type.ARRAY:
            assert schema.value_schema is not None
            item = reader(schema.value_schema, references)
            return lambda node: [item(one) for one in _list(node)]
        case Type.MAP:
            return _map(schema, references)
    return json_nodes.reader(schema, replaces_null=True)


def _struct(schema: Schema, references: References) -> Read:
    parts = [(field.name, field, reader(field.schema, references)) for field in schema.fields]

    def read(node: Any) -> Struct:
        if type(node) is not dict:
            raise DataError(
                f"Structs should be encoded as JSON objects, but found {json_nodes.node_type(node)}"
            )
        values = []
        for name, field, part in parts:
            value = part(node.get(name))
            if value is None and not field.schema.optional:
                validate_value(field.schema, None, name)
            values.append(value)
        return Struct(schema, values)

    return read


def _map(schema: Schema, references: References) -> Read:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    keys = reader(schema.key_schema, references)
    values = reader(schema.value_schema, references)
    if has_text_keys(schema):
        return json_nodes.object_reader(values)

    def read_entries(node: Any) -> dict[Any, Any]:
        return {keys(entry["key"]): values(entry["value"]) for entry in _list(node)}

    return read_entries


def _list(node: Any) -> list[Any]:
    if type(node) is not list:
        raise DataError(
            f"Arrays should be encoded as JSON arrays, but found {json_nodes.node_type(node)}"
        )
    return node


def _union(schema: Schema, references: References) -> Read:
    parts = [(field.schema, reader(field.schema, references)) for field in schema.fields]

    def read(node: Any) -> Struct:
        for place, (branch, part) in enumerate(parts):
            if _fits(branch, node):
                values: list[Any] = [None] * len(parts)
                values[place] = part(node)
                return Struct(schema, values)
        raise DataError(f"The value is of none of the choices: {json_nodes.node_type(node)}")

    return read


def _fits(schema: Schema, node: Any) -> bool:
    kind = type(node)
    match schema.type:
        case Type.BOOLEAN:
            return kind is bool
        case Type.STRING:
            return kind is str
        case Type.BYTES:
            return kind in (str, int, float, Decimal)
        case Type.FLOAT32 | Type.FLOAT64:
            return kind in (int, float, Decimal)
        case Type.ARRAY:
            return kind is list
        case Type.MAP:
            return kind is (dict if has_text_keys(schema) else list)
        case Type.STRUCT:
            names = {field.name for field in schema.fields}
            needed = {f.name for f in schema.fields if not f.schema.optional}
            return kind is dict and needed <= node.keys() <= names
    return kind is int

"""Schemas as JsonConverter writes them into its envelope, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.java.numbers import low_bits
from barnabas.schemas.converters.json_nodes import Read
from barnabas.schemas.converters.json_text import Write, quoted
from barnabas.schemas.data.builder import array_of, map_of, struct_of, with_default
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import Schema, Type


def schema_text(
    schema: Schema | None, writer: Callable[[Schema], Write], field: str | None = None
) -> str:
    """The JSON of a schema; `writer` makes what writes its default. Raises DataError."""
    if schema is None:
        return "null"
    refuse_recursion(schema, "a schema of JsonConverter")
    parts = [f'"type":"{schema.type.value}"']
    match schema.type:
        case Type.ARRAY:
            parts.append(f'"items":{schema_text(schema.value_schema, writer)}')
        case Type.MAP:
            parts.append(f'"keys":{schema_text(schema.key_schema, writer)}')
            parts.append(f'"values":{schema_text(schema.value_schema, writer)}')
        case Type.STRUCT:
            fields = ",".join(schema_text(f.schema, writer, f.name) for f in schema.fields)
            parts.append(f'"fields":[{fields}]')
    parts.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        parts.append(f'"name":{quoted(schema.name)}')
    if schema.version is not None:
        parts.append(f'"version":{schema.version}')
    if schema.doc is not None:
        parts.append(f'"doc":{quoted(schema.doc)}')
    if schema.parameters:
        pairs = [f"{quoted(name)}:{quoted(text)}" for name, text in schema.parameters.items()]
        parts.append(f'"parameters":{{{",".join(pairs)}}}')
    if schema.default is not None:
        parts.append(f'"default":{writer(schema)(schema.default)}')
    if field is not None:
        parts.append(f'"field":{quoted(field)}')
    return f"{{{','.join(parts)}}}"


def schema_of(node: Any, reader: Callable[[Schema], Read]) -> Schema | None:
    """The schema that parsed JSON describes; `reader` makes what reads its default.

    Raises DataError.
    """
    if node is None:
        return None
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        raise DataError("Schema must contain 'type' field")
    schema = _typed(kind, node, reader)
    if "default" in node:
        return with_default(schema, reader(schema)(node["default"]))
    return schema


def _typed(kind: str, node: dict[str, Any], reader: Callable[[Schema], Read]) -> Schema:
    rest = _rest
    match kind:
        case "array":
            items = schema_of(node.get("items"), reader)
            if items is None:
                raise DataError("Array schema did not specify the element type")
            return array_of(items, **rest(node))
        case "map":
            if "keys" not in node:
                raise DataError("Map schema did not specify the key type")
            if "values" not in node:
                raise DataError("Map schema did not specify the value type")
            keys, values = schema_of(node["keys"], reader), schema_of(node["values"], reader)
            if keys is None or values is None:
                name = "keySchema" if keys is None else "valueSchema"
                raise DataError(f"{name} cannot be null.")
            return map_of(keys, values, **rest(node))
        case "struct":
            return struct_of(_fields(node, reader), **rest(node))
    try:
        return Schema(Type(kind), **rest(node))
    except ValueError:
        raise DataError(f"Unknown schema type: {kind}") from None


def _fields(node: dict[str, Any], reader: Callable[[Schema], Read]) -> list[tuple[str, Schema]]:
    fields = node.get("fields")
    if not isinstance(fields, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    made = []
    for field in fields:
        name = field.get("field") if isinstance(field, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = schema_of(field, reader)
        assert schema is not None
        made.append((name, schema))
    return made


def _rest(node: dict[str, Any]) -> dict[str, Any]:
    name, version, doc = node.get("name"), node.get("version"), node.get("doc")
    parameters = node.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {}
    if not all(isinstance(text, str) for text in parameters.values()):
        raise DataError("Schema parameters must have string values.")
    return {
        "optional": node.get("optional") is True,
        "name": name if isinstance(name, str) else None,
        "version": low_bits(version, 32) if type(version) is int else None,
        "doc": doc if isinstance(doc, str) else None,
        "parameters": parameters,
    }

"""Connect's data in JSON with JSON Schema, as Confluent's JsonSchemaConverter translates them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal

from barnabas.schemas.converters.base import Reading, SchemaFormat, Writing
from barnabas.schemas.converters.json_schema_documents import JsonSchemaReader, JsonSchemaWriter
from barnabas.schemas.converters.json_schema_values import JsonSchemaText, reader
from barnabas.schemas.converters.json_text import encode_json
from barnabas.schemas.data.schema import DECIMAL, Schema, Type
from barnabas.schemas.registry_client import StoredSchema


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

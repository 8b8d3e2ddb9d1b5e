"""JSON Schemas of columns and back, by the converters of `schemas/`."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

from barnabas.schemas.converters.json_schema_documents import (
    JsonSchemaReader,
    JsonSchemaWriter,
    has_text_keys,
    is_union,
)
from barnabas.schemas.converters.json_schema_values import reader
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import date_to_days, time_to_ms, timestamp_to_ms
from barnabas.schemas.data.recursive import SchemaReference
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.data.schema import Struct as StructValue
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import (
    ENTRIES,
    MISSING,
    OMITTED,
    UNION,
    ConnectField,
    ConnectSchema,
)

_FLOATS = {Type.FLOAT32: "float32", Type.FLOAT64: "float64"}


def to_text(schema: Schema) -> str:
    """The JSON Schema as text; decimals are numbers."""
    writer = JsonSchemaWriter(lambda part: part.default, is_decimal_numeric=True, allows_more=True)
    return json.dumps(writer.whole(schema), ensure_ascii=False, separators=(",", ":"))


def parsed(stored: StoredSchema) -> ConnectSchema:
    """Connect's schema of one in the registry. Raises AnalysisError."""
    try:
        made = JsonSchemaReader(
            stored, lambda part, node: reader(part)(node), makes_optional=False
        ).schema()
        return _connect(made)
    except DataError as error:
        raise AnalysisError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AnalysisError(f"Schema {stored.id} is not a JSON Schema: {error}") from error


def _connect(schema: Schema) -> ConnectSchema:
    if type(schema) is SchemaReference:
        raise AnalysisError("The JSON Schema is recursive")
    key, value, kind = schema.key_schema, schema.value_schema, ""
    fields = tuple(ConnectField(field.name, _connect(field.schema)) for field in schema.fields)
    if is_union(schema):
        kind = UNION
    elif schema.type is Type.STRUCT:
        fields = tuple(ConnectField(one.name, _may_be_omitted(one.schema)) for one in fields)
    elif schema.type is Type.MAP and not has_text_keys(schema):
        kind = ENTRIES
    return ConnectSchema(
        _FLOATS.get(schema.type, schema.type.value),
        optional=schema.optional,
        name=schema.name,
        version=schema.version,
        parameters=tuple((name, str(one)) for name, one in schema.parameters.items()),
        default=MISSING if schema.default is None else _plain(schema.default),
        fields=fields,
        key=None if key is None else _connect(key),
        value=None if value is None else _connect(value),
        kind=kind,
    )


def _may_be_omitted(schema: ConnectSchema) -> ConnectSchema:
    """A field's schema: one that has no default and allows no null may be left out."""
    if schema.default is MISSING and not schema.optional:
        return replace(schema, default=OMITTED)
    return schema


def _plain(value: Any) -> Any:
    """A default as JSON's values, of which dates and times are numbers."""
    match value:
        case StructValue():
            pairs = zip(value.schema.fields, value.values, strict=True)
            return {field.name: _plain(one) for field, one in pairs}
        case datetime():
            return timestamp_to_ms(value)
        case date():
            return date_to_days(value)
        case time():
            return time_to_ms(value)
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {key: _plain(one) for key, one in value.items()}
    return value

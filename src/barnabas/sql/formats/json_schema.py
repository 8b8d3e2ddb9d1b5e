"""JSON Schemas of columns and back, by the converters of `schemas/`."""

from __future__ import annotations

import json
from dataclasses import replace

from barnabas.schemas.converters.json_schema_documents import (
    JsonSchemaReader,
    JsonSchemaWriter,
    has_text_keys,
    is_union,
)
from barnabas.schemas.converters.json_schema_values import reader
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import (
    ENTRIES,
    MISSING,
    OMITTED,
    UNION,
    ConnectField,
    ConnectSchema,
    Facts,
    connect_of,
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
        return connect_of(made, _facts, lambda _, value: value)
    except DataError as error:
        raise AnalysisError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AnalysisError(f"Schema {stored.id} is not a JSON Schema: {error}") from error


def _facts(schema: Schema, fields: tuple[ConnectField, ...]) -> Facts:
    """A required field of an object may be left out where it has no default."""
    if is_union(schema):
        return UNION, fields
    if schema.type is Type.STRUCT:
        return "", tuple(ConnectField(one.name, _may_be_omitted(one.schema)) for one in fields)
    is_list = schema.type is Type.MAP and not has_text_keys(schema)
    return ENTRIES if is_list else "", fields


def _may_be_omitted(schema: ConnectSchema) -> ConnectSchema:
    if schema.default is MISSING and not schema.optional:
        return replace(schema, default=OMITTED)
    return schema

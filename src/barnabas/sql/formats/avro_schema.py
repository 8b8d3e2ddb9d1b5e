"""Avro schemas from Connect's and back, as Connect's AvroData translates them.

Every named type of a row bears the row's full name and the path to it
(`io.confluent.ksql.avro_schemas.KsqlDataSourceSchema_FIELD`). Maps are arrays of records `key` and
`value`, as ksqlDB's keys of maps may be null, which Avro's cannot.
"""

from __future__ import annotations

import json
from dataclasses import replace

import fastavro
from fastavro.types import Schema as AvroSchema

from barnabas.schemas.converters.avro_plain import AvroNames
from barnabas.schemas.converters.avro_reading import AvroReading
from barnabas.schemas.converters.avro_schemas import ENTRIES as ENTRIES_MARK
from barnabas.schemas.converters.avro_schemas import (
    AvroOptions,
    AvroSchemas,
    encoded,
    is_union,
)
from barnabas.schemas.data.builder import struct_of
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import (
    ENTRIES,
    UNION,
    ConnectField,
    ConnectSchema,
    Facts,
    connect_of,
)

NAMESPACE = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME = f"{NAMESPACE}.KsqlDataSourceSchema"


def to_text(schema: Schema, full_name: str) -> str:
    """The Avro schema of a row, as text. Raises AnalysisError for names that Avro forbids."""
    row = _named(schema, full_name)
    if row.optional:
        # A bare row keeps its logical type's name, but loses the version.
        row = replace(row, optional=False, version=None)
    try:
        avro = AvroSchemas(AvroOptions()).of(row)
    except DataError as error:
        raise AnalysisError(f"Schema is not compatible with Avro: {error}") from error
    return json.dumps(avro, ensure_ascii=False, separators=(",", ":"))


def _named(schema: Schema, name: str) -> Schema:
    """The schema with names for all that must have one."""
    key, value = schema.key_schema, schema.value_schema
    match schema.type:
        case Type.STRUCT:
            fields = [
                (field.name.replace(".", "_"), _named(field.schema, f"{name}_{field.name}"))
                for field in schema.fields
            ]
            made = struct_of(fields, name=schema.name or name)
            return replace(made, optional=schema.optional)
        case Type.ARRAY:
            assert value is not None
            return replace(schema, value_schema=_named(value, name))
        case Type.MAP:
            assert key is not None
            assert value is not None
            return replace(
                schema,
                name=name,
                key_schema=_named(key, f"{name}_MapKey"),
                value_schema=_named(value, f"{name}_MapValue"),
            )
    return schema


def parsed(stored: StoredSchema) -> tuple[ConnectSchema, AvroSchema]:
    """Connect's schema of one in the registry, and the codec's. Raises AnalysisError."""
    try:
        names = AvroNames(stored)
        schema, _ = AvroReading(names, _READ).of(names.root)
        return connect_of(schema, _facts, encoded), fastavro.parse_schema(names.plain())
    except DataError as error:
        raise AnalysisError(str(error)) from error
    except (
        fastavro.schema.SchemaParseException,
        *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
    ) as error:
        raise AnalysisError(f"Schema {stored.id} is not an Avro schema: {error}") from error


_READ = AvroOptions(flattens_singletons=False, marks_entries=True)


def _facts(schema: Schema, fields: tuple[ConnectField, ...]) -> Facts:
    if is_union(schema):
        return UNION, fields
    is_list = schema.type is Type.MAP and ENTRIES_MARK in schema.parameters
    return ENTRIES if is_list else "", fields

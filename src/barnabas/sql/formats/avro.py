"""The format AVRO: rows as Avro's binary data, their schemas in a registry.

Every named type of a row bears the row's full name and the path to it
(`io.confluent.ksql.avro_schemas.KsqlDataSourceSchema_FIELD`). Maps are arrays of records `key` and
`value`, as ksqlDB's keys of maps may be null, which Avro's cannot.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import fastavro
from fastavro.types import Schema as AvroSchema

from barnabas.java.numbers import scaled, to_byte_array, unscaled
from barnabas.schemas.converters.avro_plain import AvroNames
from barnabas.schemas.converters.avro_reading import AvroReading
from barnabas.schemas.converters.avro_schemas import (
    ENTRIES,
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
from barnabas.sql.formats.connect_data import Convert, Writing, row_reader, row_writer, writer
from barnabas.sql.formats.connect_schema import finite, is_decimal, of_columns, scale_of
from barnabas.sql.formats.format import (
    Deserializer,
    Format,
    RecordPart,
    SchemaTranslator,
    Serializer,
    check_properties,
    has_other_than_string_keys,
)
from barnabas.sql.formats.registry_wire import (
    FULL_SCHEMA_NAME,
    SCHEMA_ID,
    RowReader,
    RowWriter,
    asked_id,
    of_kind,
    store_of,
    wire_deserializer,
    wire_serializer,
)
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.types import SqlType, Value

NAMESPACE = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME = f"{NAMESPACE}.KsqlDataSourceSchema"


class AvroTranslator(SchemaTranslator):
    """Columns and Avro schemas."""

    schema_type = "AVRO"

    def text(self, columns: Sequence[Column], properties: Mapping[str, str], *, wraps: bool) -> str:
        return _text(columns, properties, wraps=wraps)

    def connect_schema(self, schema: StoredSchema, properties: Mapping[str, str]) -> Schema:
        return parsed(schema)[0]


class AvroFormat(Format):
    """Avro with schemas in a registry."""

    name = "AVRO"
    can_wrap = True
    can_unwrap = True
    properties = frozenset({FULL_SCHEMA_NAME, SCHEMA_ID})
    schemas = AvroTranslator()

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        if has_other_than_string_keys(columns):
            raise AnalysisError("Avro only supports MAPs with STRING keys")
        _text(columns, properties, wraps=True)

    def serializer(self, part: RecordPart) -> Serializer:
        store_of(part.schemas, self.name)
        asked_id(part.properties)

        def prepare() -> tuple[int, RowWriter]:
            schema_id, connect, avro = written_schema(part)
            return schema_id, avro_writer(part.columns, connect, avro, wraps=part.wraps)

        return wire_serializer(part, prepare)

    def deserializer(self, part: RecordPart) -> Deserializer:
        def prepare(schema: StoredSchema) -> RowReader:
            return avro_reader(part.columns, *parsed(schema), wraps=part.wraps)

        return wire_deserializer(part.subject, store_of(part.schemas, self.name), "AVRO", prepare)


def written_schema(part: RecordPart) -> tuple[int, Schema, AvroSchema]:
    """The schema that rows are written with: its id, Connect's schema and the codec's.

    One that the statement does not name is registered. Raises AnalysisError, FormatError.
    """
    store, schema_id = store_of(part.schemas, "AVRO"), asked_id(part.properties)
    if schema_id is not None:
        return schema_id, *parsed(of_kind(store.by_id(schema_id), "AVRO"))
    text = _text(part.columns, part.properties, wraps=part.wraps)
    connect, avro = parsed(StoredSchema(-1, "AVRO", text))
    return store.register(part.subject, "AVRO", text), connect, avro


def _text(columns: Sequence[Column], properties: Mapping[str, str], *, wraps: bool) -> str:
    full_name = properties.get(FULL_SCHEMA_NAME, DEFAULT_NAME).strip()
    return to_text(of_columns(columns, wraps=wraps), full_name)


def avro_writer(
    columns: Sequence[Column], connect: Schema, avro: AvroSchema, *, wraps: bool
) -> RowWriter:
    """Rows to Avro's binary data."""
    convert = row_writer(columns, connect, _WRITING, wraps=wraps)
    encode = fastavro.schemaless_writer

    def write(row: Row) -> bytes:
        out = io.BytesIO()
        encode(out, avro, convert(row))
        return out.getvalue()

    return write


def field_writer(sql_type: SqlType, connect: Schema, avro: AvroSchema) -> Callable[[Value], bytes]:
    """Values of a column, also NULL, to the bytes that they are within a row. `avro`: the type of
    the row's field. Raises FormatError; ValueError for a type that is defined elsewhere."""
    convert = writer(sql_type, connect, _WRITING)
    # The bytes of a record are those of its fields.
    field = {"name": "value", "type": avro}
    whole = fastavro.parse_schema({"type": "record", "name": "OneField", "fields": [field]})
    encode = fastavro.schemaless_writer

    def write(value: Value) -> bytes:
        if value is not None and convert is not None:
            value = convert(value)
        out = io.BytesIO()
        encode(out, whole, {"value": value})
        return out.getvalue()

    return write


def avro_reader(
    columns: Sequence[Column], connect: Schema, avro: AvroSchema, *, wraps: bool
) -> RowReader:
    """Rows from Avro's binary data."""
    convert = row_reader(columns, connect, _from_avro, wraps=wraps)
    decode = fastavro.schemaless_reader

    def read(data: bytes) -> Row | None:
        return convert(decode(_Data(data), avro, None))

    return read


class _Data(io.BytesIO):
    """Data as fastavro's errors name them: not by their address in memory."""

    def __repr__(self) -> str:
        return "the data"


def _has_entries(schema: Schema) -> bool:
    return schema.type is Type.MAP and ENTRIES in schema.parameters


def _to_avro(schema: Schema) -> Convert | None:
    if is_decimal(schema):
        return lambda value: to_byte_array(unscaled(value))
    if _has_entries(schema):
        return lambda pairs: [{"key": key, "value": value} for key, value in pairs]
    return None


_WRITING = Writing(_to_avro, encoded)


def _from_avro(schema: Schema) -> Convert | None:
    if is_decimal(schema):
        scale = scale_of(schema)
        return lambda data: scaled(int.from_bytes(data, "big", signed=True), scale)
    if _has_entries(schema):
        return lambda entries: [(entry["key"], entry["value"]) for entry in entries]
    if is_union(schema):
        return _branches(schema)
    return None


_PYTHON_TYPES: dict[Type, Any] = {
    Type.BOOLEAN: bool,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.ARRAY: list,
    Type.MAP: dict,
    Type.STRUCT: dict,
}


def _branches(schema: Schema) -> Convert:
    """A union's value as a struct in which one field, its branch, is not null."""

    def is_of(value: Any, branch: Schema) -> bool:
        if type(value) is not _PYTHON_TYPES[branch.type]:
            return False
        return branch.type is not Type.STRUCT or value.keys() == {f.name for f in branch.fields}

    def convert(value: Any) -> dict[str, Any]:
        result: dict[str, Any] = {field.name: None for field in schema.fields}
        for field in schema.fields:
            if is_of(value, field.schema):
                result[field.name] = value
                break
        return result

    return convert


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


def parsed(stored: StoredSchema) -> tuple[Schema, AvroSchema]:
    """Connect's schema of one in the registry, and the codec's. Raises AnalysisError."""
    try:
        names = AvroNames(stored)
        schema, _ = AvroReading(names, _READ).of(names.root)
        return finite(schema), fastavro.parse_schema(names.plain())
    except DataError as error:
        raise AnalysisError(str(error)) from error
    except (
        fastavro.schema.SchemaParseException,
        *(ValueError, KeyError, TypeError, AttributeError, RecursionError),
    ) as error:
        raise AnalysisError(f"Schema {stored.id} is not an Avro schema: {error}") from error


_READ = AvroOptions(flattens_singletons=False, tells_apart=True, marks_entries=True)

"""Kafka Connect's schemas: what columns become between SQL and the formats with a schema registry.

ksqlDB translates columns to Connect's schemas and these, with Connect's converters, to Avro, JSON
Schema and Protobuf, so the texts in a registry are Connect's: `of_columns` makes schemas of
columns, and `schemas/converters` texts of these.

A registry's schema is read as such a schema too. Values that its codec reads and writes are plainer
than Connect's: dict of a struct's fields, dict, list, Decimal, and numbers for DATE, TIME and
TIMESTAMP, as a date of SQL may lie beyond Python's. `connect_data` makes rows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal as Number
from typing import Any

from barnabas.schemas.converters.avro_schemas import PRECISION, PRECISION_DEFAULT
from barnabas.schemas.data.builder import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    array_of,
    map_of,
    optional,
    struct_of,
)
from barnabas.schemas.data.logical import date_to_days, time_to_ms, timestamp_to_ms
from barnabas.schemas.data.recursive import SchemaReference
from barnabas.schemas.data.schema import DATE as DATE_NAME
from barnabas.schemas.data.schema import DECIMAL as DECIMAL_NAME
from barnabas.schemas.data.schema import SCALE, Schema, Type
from barnabas.schemas.data.schema import TIME as TIME_NAME
from barnabas.schemas.data.schema import TIMESTAMP as TIMESTAMP_NAME
from barnabas.schemas.data.schema import Struct as StructValue
from barnabas.sql.errors import AnalysisError
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
    BaseType,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

_SIMPLE = {
    BaseType.BOOLEAN: OPTIONAL_BOOLEAN,
    BaseType.INTEGER: OPTIONAL_INT32,
    BaseType.BIGINT: OPTIONAL_INT64,
    BaseType.DOUBLE: OPTIONAL_FLOAT64,
    BaseType.STRING: OPTIONAL_STRING,
    BaseType.BYTES: OPTIONAL_BYTES,
    BaseType.DATE: Schema(Type.INT32, optional=True, name=DATE_NAME, version=1),
    BaseType.TIME: Schema(Type.INT32, optional=True, name=TIME_NAME, version=1),
    BaseType.TIMESTAMP: Schema(Type.INT64, optional=True, name=TIMESTAMP_NAME, version=1),
}


def of_type(sql_type: SqlType) -> Schema:
    """The schema that values of a type are written with; all of them are optional."""
    if isinstance(sql_type, Decimal):
        parameters = {SCALE: str(sql_type.scale), PRECISION: str(sql_type.precision)}
        return Schema(
            Type.BYTES, optional=True, name=DECIMAL_NAME, version=1, parameters=parameters
        )
    if isinstance(sql_type, Array):
        return optional(array_of(of_type(sql_type.item)))
    if isinstance(sql_type, Map):
        return optional(map_of(of_type(sql_type.key), of_type(sql_type.value)))
    if isinstance(sql_type, Struct):
        return optional(struct_of([(field.name, of_type(field.type)) for field in sql_type.fields]))
    return _SIMPLE[sql_type.base]


def of_columns(columns: Sequence[Column], *, wraps: bool) -> Schema:
    """The schema that rows are written with: a struct, or that of its only column."""
    if len(columns) == 1 and not wraps:
        return of_type(columns[0].type)
    return struct_of([(column.name, of_type(column.type)) for column in columns])


def sql_type_of(columns: Sequence[Column], *, wraps: bool) -> SqlType:
    """The type of a row as one value: a STRUCT, or the type of its only column."""
    if len(columns) == 1 and not wraps:
        return columns[0].type
    return Struct(tuple(Field(column.name, column.type) for column in columns))


class UnsupportedError(Exception):
    """No SQL type is like the schema's."""


def to_columns(schema: Schema, part: Part, *, wraps: bool, upper_case: bool) -> tuple[Column, ...]:
    """The columns of a row with the schema; fields of types that SQL has not are left out."""
    if not wraps:
        name = "ROWKEY" if part is Part.KEY else "ROWVAL"
        schema = struct_of([(name, schema)])
    if schema.type is not Type.STRUCT:
        raise AnalysisError(
            "Schema returned from schema registry is anonymous type. To use this schema with "
            "ksqlDB, set 'WRAP_SINGLE_VALUE=false' in the WITH clause properties."
        )
    row = _struct_type(schema, upper_case=upper_case)
    if not row.fields:
        raise AnalysisError("Schema does not include any columns with types that ksqlDB supports.")
    return tuple(Column(field.name, field.type, part) for field in row.fields)


def to_type(schema: Schema, *, upper_case: bool) -> SqlType:
    """The type of values with the schema. Raises UnsupportedError."""
    match schema.type:
        case Type.INT8 | Type.INT16:
            return INTEGER
        case Type.INT32:
            return {TIME_NAME: TIME, DATE_NAME: DATE}.get(schema.name or "", INTEGER)
        case Type.INT64:
            return TIMESTAMP if schema.name == TIMESTAMP_NAME else BIGINT
        case Type.FLOAT32 | Type.FLOAT64:
            return DOUBLE
        case Type.STRING:
            return STRING
        case Type.BOOLEAN:
            return BOOLEAN
        case Type.BYTES:
            return decimal_type(schema) if is_decimal(schema) else BYTES
        case Type.ARRAY:
            return Array(to_type(item_of(schema), upper_case=upper_case))
        case Type.MAP:
            key = key_of(schema)
            if key.type not in _KEYS:
                raise UnsupportedError(f"Unsupported type for map key: {name_of(key)}")
            return Map(STRING, to_type(item_of(schema), upper_case=upper_case))
    return _struct_type(schema, upper_case=upper_case)


def _struct_type(schema: Schema, *, upper_case: bool) -> Struct:
    fields = []
    for field in schema.fields:
        try:
            sql_type = to_type(field.schema, upper_case=upper_case)
        except UnsupportedError:
            continue
        fields.append(Field(field.name.upper() if upper_case else field.name, sql_type))
    return Struct(tuple(fields))


_KEYS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING)
_JAVA_NAMES = {Type.FLOAT32: "float32", Type.FLOAT64: "float64"}


def name_of(schema: Schema) -> str:
    """A type's name in messages."""
    return _JAVA_NAMES.get(schema.type, schema.type.value)


def item_of(schema: Schema) -> Schema:
    """The schema of an array's items or of a map's values."""
    assert schema.value_schema is not None
    return schema.value_schema


def key_of(schema: Schema) -> Schema:
    """The schema of a map's keys."""
    assert schema.key_schema is not None
    return schema.key_schema


def is_decimal(schema: Schema) -> bool:
    """Return whether values are decimal numbers."""
    return schema.name == DECIMAL_NAME


def scale_of(schema: Schema) -> int:
    """The digits after the point of a decimal number."""
    return int(schema.parameters.get(SCALE) or 0)


def decimal_type(schema: Schema) -> Decimal:
    """The type of decimal numbers with the schema."""
    return Decimal(int(schema.parameters.get(PRECISION) or PRECISION_DEFAULT), scale_of(schema))


def finite(schema: Schema) -> Schema:
    """The schema. Raises AnalysisError for one that contains itself: no columns are like it."""
    if type(schema) is SchemaReference:
        raise AnalysisError("The schema contains itself, which no columns are like")
    for part in (schema.key_schema, schema.value_schema, *(one.schema for one in schema.fields)):
        if part is not None:
            finite(part)
    return schema


def plain_default(schema: Schema, decimal: Callable[[Schema, Any], Any]) -> Any:
    """A schema's default as the codec has it; None where it has none."""
    return _plain(schema, schema.default, decimal)


def _plain(schema: Schema, value: Any, decimal: Callable[[Schema, Any], Any]) -> Any:
    """A default as the codec has it: dates and times are numbers."""
    match value:
        case StructValue():
            pairs = zip(value.schema.fields, value.values, strict=True)
            return {field.name: _plain(field.schema, one, decimal) for field, one in pairs}
        case Number():
            return decimal(schema, value)
        case datetime():
            return timestamp_to_ms(value)
        case date():
            return date_to_days(value)
        case time():
            return time_to_ms(value)
        case list() if schema.value_schema is not None:
            return [_plain(schema.value_schema, one, decimal) for one in value]
        case dict() if schema.value_schema is not None:
            return {key: _plain(schema.value_schema, one, decimal) for key, one in value.items()}
    return value

"""Kafka Connect's schemas: what columns become between SQL and the formats with a schema registry.

ksqlDB translates columns to Connect's schemas and these, with Connect's converters, to Avro, JSON
Schema and Protobuf, so the texts in a registry are Connect's: `of_columns` makes schemas of
columns, and `schemas/converters` texts of these.

What a registry has is read as a ConnectSchema. Types have Connect's names in lower case. Values are
Python's own: dict of a struct's fields, dict, list, Decimal, and plain numbers for DATE, TIME and
TIMESTAMP, as a date of SQL may lie beyond Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

ENTRIES = "entries"
"""The kind of a map whose format has entries of key and value, and no map."""
UNION = "union"
"""The kind of a struct that has a field for each branch of a union."""

MISSING: Any = object()
"""The default of a schema that has none."""
OMITTED: Any = object()
"""The default of a field that a format leaves out if it is not given."""


@dataclass(frozen=True, slots=True)
class ConnectField:
    """A field of a struct; `presence` says how a format knows whether it is there."""

    name: str
    schema: ConnectSchema
    presence: str = ""


@dataclass(frozen=True, slots=True)
class ConnectSchema:
    """A schema of Connect; `kind` says how a format writes it, where it has several ways."""

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    default: Any = MISSING
    fields: tuple[ConnectField, ...] = ()
    key: ConnectSchema | None = None
    value: ConnectSchema | None = None
    kind: str = ""

    def parameter(self, name: str) -> str | None:
        """The parameter of that name."""
        return dict(self.parameters).get(name)

    def item(self) -> ConnectSchema:
        """The schema of an array's items or of a map's values."""
        assert self.value is not None
        return self.value

    def map_key(self) -> ConnectSchema:
        """The schema of a map's keys."""
        assert self.key is not None
        return self.key

    @property
    def is_decimal(self) -> bool:
        """Whether values are decimal numbers."""
        return self.name == DECIMAL_NAME

    @property
    def scale(self) -> int:
        """The digits after the point of a decimal number."""
        return int(self.parameter(SCALE) or 0)

    @property
    def precision(self) -> int:
        """The digits of a decimal number."""
        return int(self.parameter(PRECISION) or PRECISION_DEFAULT)


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


def to_columns(
    schema: ConnectSchema, part: Part, *, wraps: bool, upper_case: bool
) -> tuple[Column, ...]:
    """The columns of a row with the schema; fields of types that SQL has not are left out."""
    if not wraps:
        name = "ROWKEY" if part is Part.KEY else "ROWVAL"
        schema = ConnectSchema("struct", fields=(ConnectField(name, schema),))
    if schema.type != "struct":
        raise AnalysisError(
            "Schema returned from schema registry is anonymous type. To use this schema with "
            "ksqlDB, set 'WRAP_SINGLE_VALUE=false' in the WITH clause properties."
        )
    row = _struct_type(schema, upper_case=upper_case)
    if not row.fields:
        raise AnalysisError("Schema does not include any columns with types that ksqlDB supports.")
    return tuple(Column(field.name, field.type, part) for field in row.fields)


def to_type(schema: ConnectSchema, *, upper_case: bool) -> SqlType:
    """The type of values with the schema. Raises UnsupportedError."""
    match schema.type:
        case "int8" | "int16":
            return INTEGER
        case "int32":
            return {TIME_NAME: TIME, DATE_NAME: DATE}.get(schema.name or "", INTEGER)
        case "int64":
            return TIMESTAMP if schema.name == TIMESTAMP_NAME else BIGINT
        case "float32" | "float64":
            return DOUBLE
        case "string":
            return STRING
        case "boolean":
            return BOOLEAN
        case "bytes":
            return Decimal(schema.precision, schema.scale) if schema.is_decimal else BYTES
        case "array":
            return Array(to_type(schema.item(), upper_case=upper_case))
        case "map":
            key = schema.map_key()
            if key.type not in ("int8", "int16", "int32", "int64", "boolean", "string"):
                raise UnsupportedError(f"Unsupported type for map key: {key.type}")
            return Map(STRING, to_type(schema.item(), upper_case=upper_case))
    return _struct_type(schema, upper_case=upper_case)


def _struct_type(schema: ConnectSchema, *, upper_case: bool) -> Struct:
    fields = []
    for field in schema.fields:
        try:
            sql_type = to_type(field.schema, upper_case=upper_case)
        except UnsupportedError:
            continue
        fields.append(Field(field.name.upper() if upper_case else field.name, sql_type))
    return Struct(tuple(fields))


Facts = tuple[str, tuple[ConnectField, ...]]
_FLOATS = {Type.FLOAT32: "float32", Type.FLOAT64: "float64"}


def connect_of(
    schema: Schema,
    facts: Callable[[Schema, tuple[ConnectField, ...]], Facts],
    decimal: Callable[[Schema, Any], Any],
) -> ConnectSchema:
    """A schema that a converter has read, for reading and writing rows.

    `facts` gives the kind of a schema and its fields, `decimal` a default as the format has it.
    Raises AnalysisError for a schema that contains itself: no columns are like it.
    """
    if type(schema) is SchemaReference:
        raise AnalysisError("The schema contains itself, which no columns are like")
    key, value = schema.key_schema, schema.value_schema
    kind, fields = facts(
        schema,
        tuple(
            ConnectField(field.name, connect_of(field.schema, facts, decimal))
            for field in schema.fields
        ),
    )
    return ConnectSchema(
        _FLOATS.get(schema.type, schema.type.value),
        optional=schema.optional,
        name=schema.name,
        version=schema.version,
        parameters=tuple((name, str(one)) for name, one in schema.parameters.items()),
        default=MISSING if schema.default is None else _plain(schema, schema.default, decimal),
        fields=fields,
        key=None if key is None else connect_of(key, facts, decimal),
        value=None if value is None else connect_of(value, facts, decimal),
        kind=kind,
    )


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

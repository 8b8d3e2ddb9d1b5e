"""Connect's schemas as Arrow's, and back; for Parquet and for tables of lakes."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from barnabas.connect.connectors.storage.formats.avro_schema import decimal_precision
from barnabas.connect.connectors.storage.formats.plain import part
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import decimal_scale
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type

_DECIMAL128_DIGITS: Final = 38
_PRIMITIVES: Final = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}


def arrow_type(schema: Schema) -> Any:
    """Return the type of a schema's values. Raises DataError."""
    refuse_recursion(schema, "Parquet")
    match schema.type:
        case Type.STRUCT:
            if not schema.fields:
                raise DataError("A struct without fields has no counterpart in Parquet")
            return pa.struct([arrow_field(field.name, field.schema) for field in schema.fields])
        case Type.ARRAY:
            return pa.list_(arrow_field("element", part(schema.value_schema)))
        case Type.MAP:
            keys = arrow_field("key", builder.required(part(schema.key_schema)))
            return pa.map_(keys, arrow_field("value", part(schema.value_schema)))
    if schema.name == DECIMAL:
        digits = min(decimal_precision(schema), _DECIMAL128_DIGITS)
        return pa.decimal128(digits, decimal_scale(schema))
    return _LOGICAL.get(schema.name or "", _PRIMITIVES[schema.type])


def arrow_field(name: str, schema: Schema) -> Any:
    """Return a named column of a schema's values. Raises DataError."""
    return pa.field(name, arrow_type(schema), nullable=schema.optional)


def arrow_schema(schema: Schema) -> Any:
    """Return the columns of a struct's schema. Raises DataError."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Parquet stores structs only, not {schema.type.name}")
    arrow_type(schema)
    return pa.schema([arrow_field(field.name, field.schema) for field in schema.fields])


def connect_of(type_: Any, *, optional: bool = False) -> Schema:
    """Return Arrow's type as Connect's schema. Raises DataError."""
    made = _connect(type_)
    return builder.optional(made) if optional else made


def connect_struct(columns: Any, name: str | None = None) -> Schema:
    """Return Arrow's columns as the schema of a struct. Raises DataError."""
    return builder.struct_of(
        [(one.name, connect_of(one.type, optional=one.nullable)) for one in columns], name=name
    )


def _connect(type_: Any) -> Schema:
    types = pa.types
    if types.is_struct(type_):
        return connect_struct([type_.field(i) for i in range(type_.num_fields)])
    if types.is_list(type_) or types.is_large_list(type_):
        return builder.array_of(connect_of(type_.value_type, optional=type_.value_field.nullable))
    if types.is_map(type_):
        values = connect_of(type_.item_type, optional=type_.item_field.nullable)
        return builder.map_of(connect_of(type_.key_type), values)
    if types.is_dictionary(type_):
        return _connect(type_.value_type)
    if types.is_decimal(type_):
        return builder.decimal(type_.scale)
    if types.is_date(type_):
        return builder.DATE_SCHEMA
    if types.is_time(type_):
        return builder.TIME_SCHEMA
    if types.is_timestamp(type_):
        return builder.TIMESTAMP_SCHEMA
    schema = _BY_ARROW.get(str(type_))
    if schema is None:
        raise DataError(f"Arrow's type {type_} has no counterpart in Connect")
    return schema


_LOGICAL: Final = {
    DATE: pa.date32(),
    TIME: pa.time32("ms"),
    TIMESTAMP: pa.timestamp("ms", tz="UTC"),
}
_BY_ARROW: Final = {
    "int8": builder.INT8,
    "int16": builder.INT16,
    "int32": builder.INT32,
    "int64": builder.INT64,
    "uint8": builder.INT16,
    "uint16": builder.INT32,
    "uint32": builder.INT64,
    "uint64": builder.INT64,
    "halffloat": builder.FLOAT32,
    "float": builder.FLOAT32,
    "double": builder.FLOAT64,
    "bool": builder.BOOLEAN,
    "string": builder.STRING,
    "large_string": builder.STRING,
    "binary": builder.BYTES,
    "large_binary": builder.BYTES,
}

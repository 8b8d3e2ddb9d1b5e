"""Short functions that build schemas.

    POINT = struct_of({"x": FLOAT64, "y": FLOAT64, "label": optional(STRING)}, name="geo.Point")
    Struct.of(POINT, {"x": 1.0, "y": 2.0})

Source: org.apache.kafka.connect.data.SchemaBuilder (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from barnabas.schemas.data.errors import DataError, SchemaBuilderError
from barnabas.schemas.data.schema import (
    DATE,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    validate_value,
)

INT8: Final = Schema(Type.INT8)
INT16: Final = Schema(Type.INT16)
INT32: Final = Schema(Type.INT32)
INT64: Final = Schema(Type.INT64)
FLOAT32: Final = Schema(Type.FLOAT32)
FLOAT64: Final = Schema(Type.FLOAT64)
BOOLEAN: Final = Schema(Type.BOOLEAN)
STRING: Final = Schema(Type.STRING)
BYTES: Final = Schema(Type.BYTES)
OPTIONAL_INT16: Final = Schema(Type.INT16, optional=True)
OPTIONAL_INT32: Final = Schema(Type.INT32, optional=True)
OPTIONAL_INT64: Final = Schema(Type.INT64, optional=True)
OPTIONAL_FLOAT32: Final = Schema(Type.FLOAT32, optional=True)
OPTIONAL_FLOAT64: Final = Schema(Type.FLOAT64, optional=True)
OPTIONAL_BOOLEAN: Final = Schema(Type.BOOLEAN, optional=True)
OPTIONAL_STRING: Final = Schema(Type.STRING, optional=True)
OPTIONAL_BYTES: Final = Schema(Type.BYTES, optional=True)
DATE_SCHEMA: Final = Schema(Type.INT32, name=DATE, version=1)
TIME_SCHEMA: Final = Schema(Type.INT32, name=TIME, version=1)
TIMESTAMP_SCHEMA: Final = Schema(Type.INT64, name=TIMESTAMP, version=1)


def optional(schema: Schema) -> Schema:
    """The schema, which also allows null."""
    return schema if schema.optional else replace(schema, optional=True)


def required(schema: Schema) -> Schema:
    """The schema, which does not allow null."""
    return replace(schema, optional=False) if schema.optional else schema


def with_default(schema: Schema, default: Any) -> Schema:
    """The schema with a default. Raises SchemaBuilderError for one that it does not allow."""
    try:
        validate_value(schema, default)
    except DataError as error:
        raise SchemaBuilderError("Invalid default value") from error
    return replace(schema, default=default)


def decimal(scale: int, **rest: Any) -> Schema:
    """Decimals with `scale` digits after the point; `rest` are further parts of the schema."""
    parameters = {SCALE: str(scale), **rest.pop("parameters", {})}
    return Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters, **rest)


def array_of(items: Schema, **rest: Any) -> Schema:
    """Arrays; `rest` are further parts of the schema."""
    return Schema(Type.ARRAY, value_schema=items, **rest)


def map_of(keys: Schema, values: Schema, **rest: Any) -> Schema:
    """Maps; `rest` are further parts of the schema."""
    return Schema(Type.MAP, key_schema=keys, value_schema=values, **rest)


def struct_of(fields: Mapping[str, Schema] | Iterable[tuple[str, Schema]], **rest: Any) -> Schema:
    """Structs with these fields, in order; `rest` are further parts of the schema.

    Raises SchemaBuilderError for a name that is empty or there twice.
    """
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    made: dict[str, Field] = {}
    for name, schema in pairs:
        if not name:
            raise SchemaBuilderError("fieldName cannot be null.")
        if name in made:
            raise SchemaBuilderError(
                f"Cannot create field because of field name duplication {name}"
            )
        made[name] = Field(name, len(made), schema)
    return Schema(Type.STRUCT, fields=tuple(made.values()), **rest)


def with_fields(schema: Schema, fields: Iterable[tuple[str, Schema]]) -> Schema:
    """The struct's schema with other fields and all else kept."""
    return replace(schema, fields=struct_of(fields).fields)

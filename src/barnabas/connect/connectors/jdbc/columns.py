"""A query's columns as fields: which types they are, and how the driver's values are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from barnabas.connect.connectors.jdbc.dialects import Dialect, SqliteDialect
from barnabas.schemas.data.builder import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    decimal,
    optional,
)
from barnabas.schemas.data.schema import Schema, Type

_OF_POSTGRES: Final[dict[str, Schema]] = {
    "bool": BOOLEAN,
    "int2": INT16,
    "int4": INT32,
    "int8": INT64,
    "oid": INT64,
    "float4": FLOAT32,
    "float8": FLOAT64,
    "bytea": BYTES,
    "date": DATE_SCHEMA,
    "time": TIME_SCHEMA,
    "timetz": TIME_SCHEMA,
    "timestamp": TIMESTAMP_SCHEMA,
    "timestamptz": TIMESTAMP_SCHEMA,
}
_OF_SQLITE: Final[tuple[tuple[str, Schema], ...]] = (
    ("BOOL", BOOLEAN),
    ("INT", INT64),
    ("CHAR", STRING),
    ("CLOB", STRING),
    ("TEXT", STRING),
    ("BLOB", BYTES),
    ("REAL", FLOAT64),
    ("FLOA", FLOAT64),
    ("DOUB", FLOAT64),
    ("NUMERIC", FLOAT64),
    ("DEC", FLOAT64),
)
_OF_VALUES: Final[dict[type, Schema]] = {int: INT64, float: FLOAT64, bytes: BYTES}
_WIDE: Final = Context(prec=1000)
LONG: Final = 19
"""Whole numbers with fewer digits fit into INT64."""
UNSCALED: Final = 127
"""The scale of numeric without one, as Confluent's source has it."""


@dataclass(slots=True, frozen=True)
class FieldColumn:
    """One column; values without a time zone are of `zone`."""

    name: str
    schema: Schema
    zone: str = "UTC"

    def make(self, value: Any) -> Any:
        """Return what a record holds of the driver's value."""
        schema = self.schema
        if isinstance(value, datetime):
            zoned = value if value.tzinfo else value.replace(tzinfo=ZoneInfo(self.zone))
            moment = zoned.astimezone(UTC)
            return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        if schema.name is not None and isinstance(value, Decimal):
            unit = Decimal(1).scaleb(-int(schema.parameters["scale"]))
            return value.quantize(unit, context=_WIDE)
        if schema.type is Type.BOOLEAN:
            return bool(value)
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            return float(value)
        if schema.type is Type.BYTES and not schema.name:
            return value.encode() if isinstance(value, str) else bytes(value)
        if schema.type is Type.STRING and not isinstance(value, str):
            return json.dumps(value) if isinstance(value, dict | list) else str(value)
        return value


def fields_of(
    dialect: Dialect,
    connection: Any,
    table: str,
    cursor: Any,
    settings: Mapping[str, Any],
    first: Sequence[Any],
) -> tuple[FieldColumn, ...]:
    """Return the fields of a query's rows; those of a query that is no table's are optional."""
    needed = dialect.needed_columns(connection, table) if table else {}
    zone = settings["db.timezone"]
    made: list[FieldColumn] = []
    for description in cursor.description:
        name = description[0]
        if isinstance(dialect, SqliteDialect):
            declared = (dialect.declared_types(connection, table) if table else {}).get(name, "")
            place = len(made)
            schema = _sqlite_schema(declared.upper(), first[0][place] if first else None)
        else:
            schema = _postgres_schema(connection, description, settings["numeric.mapping"])
        made.append(FieldColumn(name, schema if name in needed else optional(schema), zone))
    return tuple(made)


def _sqlite_schema(declared: str, value: Any) -> Schema:
    """By the declared type; a column without one is as its first value."""
    if not declared:
        return _OF_VALUES.get(type(value), STRING)
    return next((schema for part, schema in _OF_SQLITE if part in declared), STRING)


def _postgres_schema(connection: Any, description: Any, mapping: str) -> Schema:
    info = connection.adapters.types.get(description.type_code)
    name = "text" if info is None else info.name
    if name == "numeric":
        scale = description.scale
        if mapping == "best_fit":
            is_whole = scale == 0 and (description.precision or LONG) < LONG
            return INT64 if is_whole else FLOAT64
        return decimal(UNSCALED if scale is None else scale)
    return _OF_POSTGRES.get(name, STRING)

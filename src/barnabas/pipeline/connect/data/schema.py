"""Schemas of Connect's data, and structs, the values that have fields.

How each type's values look in Python:

    INT8 … INT64     int          BOOLEAN  bool     ARRAY    list
    FLOAT32, FLOAT64 float        STRING   str      MAP      dict
    BYTES            bytes        STRUCT   Struct

and of the logical types, which are a name on another type:

    Decimal (BYTES)  decimal.Decimal      Date (INT32)       datetime.date
    Time (INT32)     datetime.time        Timestamp (INT64)  datetime.datetime, aware, UTC

Decimal's scale is the parameter `scale`. Data without a schema (schema None) is made of None, bool,
int, float, str, bytes, list and dict.

Source: org.apache.kafka.connect.data (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class Type(StrEnum):
    """The types of schemas; the values are the names that JsonConverter writes."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
SCALE: Final = "scale"


@dataclass(slots=True, frozen=True)
class Field:
    """One field of a struct's schema, at a place of its own."""

    name: str
    index: int
    schema: Schema


@dataclass(slots=True, frozen=True)
class Schema:
    """The schema of a value. Equal schemas may be cached by identity.

    `key_schema` is of maps, `value_schema` of maps and arrays, `fields` of structs.
    """

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None


@dataclass(slots=True)
class Struct:
    """A value with fields. `values` are in the order of the schema's fields."""

    schema: Schema
    values: list[Any]

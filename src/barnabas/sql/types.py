"""SQL types of streams and tables, as ksqlDB has them, and how values of each are held in Python.

    BOOLEAN bool   INTEGER, BIGINT int (range checked by what makes them)   DOUBLE float
    DECIMAL(p, s) decimal.Decimal with s digits after the point             STRING str   BYTES bytes
    DATE int, days since 1970-01-01   TIME int, milliseconds of the day
    TIMESTAMP int, milliseconds since the epoch (UTC)
    ARRAY list   MAP dict   STRUCT dict of field name to value, every field present, in order
    NULL None, of any type

A type prints as ksqlDB's messages print it: STRUCT<`A` INTEGER, `b` ARRAY<STRING>>;
`syntax.printer` prints it as a statement needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from barnabas.sql.names import backquoted

Value: TypeAlias = Any
"""A value of any SQL type, as the head of this module says."""


class BaseType(Enum):
    """The kinds of types, by ksqlDB's names."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"

    @property
    def is_number(self) -> bool:
        """True if values can be calculated with."""
        return self in NUMBERS

    @property
    def is_time(self) -> bool:
        """True if values are dates or times."""
        return self in (BaseType.DATE, BaseType.TIME, BaseType.TIMESTAMP)


NUMBERS = (BaseType.INTEGER, BaseType.BIGINT, BaseType.DECIMAL, BaseType.DOUBLE)
"""From narrow to wide: a calculation with two of them has the wider type."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters."""

    base: BaseType

    def __str__(self) -> str:
        return self.base.value


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal number with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    @property
    def base(self) -> BaseType:
        return BaseType.DECIMAL

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values of one type."""

    item: SqlType

    @property
    def base(self) -> BaseType:
        return BaseType.ARRAY

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class Map:
    """A mapping; most formats want STRING as the type of keys."""

    key: SqlType
    value: SqlType

    @property
    def base(self) -> BaseType:
        return BaseType.MAP

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a STRUCT."""

    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"{backquoted(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields, in order."""

    fields: tuple[Field, ...]

    @property
    def base(self) -> BaseType:
        return BaseType.STRUCT

    def field(self, name: str) -> Field | None:
        """The field of that exact name."""
        return next((field for field in self.fields if field.name == name), None)

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(map(str, self.fields))}>"


SqlType: TypeAlias = Primitive | Decimal | Array | Map | Struct

BOOLEAN = Primitive(BaseType.BOOLEAN)
INTEGER = Primitive(BaseType.INTEGER)
BIGINT = Primitive(BaseType.BIGINT)
DOUBLE = Primitive(BaseType.DOUBLE)
STRING = Primitive(BaseType.STRING)
BYTES = Primitive(BaseType.BYTES)
DATE = Primitive(BaseType.DATE)
TIME = Primitive(BaseType.TIME)
TIMESTAMP = Primitive(BaseType.TIMESTAMP)

"""The columns of a stream or table: of the key, of the value, and those that take headers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from barnabas.sql.names import backquoted
from barnabas.sql.types import BIGINT, INTEGER, SqlType

ROWTIME = "ROWTIME"
ROWPARTITION = "ROWPARTITION"
ROWOFFSET = "ROWOFFSET"
WINDOWSTART = "WINDOWSTART"
WINDOWEND = "WINDOWEND"

PSEUDO_COLUMNS: dict[str, SqlType] = {ROWTIME: BIGINT, ROWPARTITION: INTEGER, ROWOFFSET: BIGINT}
"""Columns that each record has without being asked."""

WINDOW_BOUNDS: dict[str, SqlType] = {WINDOWSTART: BIGINT, WINDOWEND: BIGINT}
"""Columns that each record of a windowed source has."""


class Part(Enum):
    """The part of a record that holds a column."""

    KEY = "KEY"
    VALUE = "VALUE"
    HEADERS = "HEADERS"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `header` names the one header whose value it takes (None: all of them)."""

    name: str
    type: SqlType
    part: Part = Part.VALUE
    header: str | None = None

    def __str__(self) -> str:
        return f"{backquoted(self.name)} {self.type}"


@dataclass(frozen=True)
class Schema:
    """Columns in their order: those of the key first."""

    columns: tuple[Column, ...]

    @cached_property
    def key(self) -> tuple[Column, ...]:
        """The columns of the key."""
        return tuple(column for column in self.columns if column.part is Part.KEY)

    @cached_property
    def value(self) -> tuple[Column, ...]:
        """The columns of the value, without those of headers."""
        return tuple(column for column in self.columns if column.part is Part.VALUE)

    @cached_property
    def headers(self) -> tuple[Column, ...]:
        """The columns that headers fill."""
        return tuple(column for column in self.columns if column.part is Part.HEADERS)

    def find(self, name: str) -> Column | None:
        """The column of that exact name."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        """Columns by name; of two with one name the first counts."""
        return {column.name: column for column in reversed(self.columns)}

    def __str__(self) -> str:
        # Columns from headers are before the value's columns here, though not in rows.
        inner = [column for column in self.columns if column.part is Part.HEADERS]
        if inner:
            bounds = sum(column.part is Part.KEY for column in self.columns)
            rest = [column for column in self.columns if column.part is not Part.HEADERS]
            return ", ".join(map(_declared, (*rest[:bounds], *inner, *rest[bounds:])))
        return ", ".join(map(_declared, self.columns))


def _declared(column: Column) -> str:
    if column.part is Part.KEY:
        return f"{column} KEY"
    if column.part is Part.HEADERS:
        which = "HEADERS" if column.header is None else f"HEADER('{column.header}')"
        return f"{column} {which}"
    return str(column)

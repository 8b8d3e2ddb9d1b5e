"""Tables, their columns, and rows of the log. Pickled to executors: plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import InvalidOperation
from typing import Any, Final

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct, Type

PARSE_ERRORS: Final = (ValueError, InvalidOperation, DataError, IndexError, AssertionError)
"""Exceptions that `ColumnType.parse` may raise for an unknown value."""


@dataclass(slots=True, frozen=True)
class TypeName:
    """A type of the database, domains resolved. Arrays have `element`; enums have `labels`.

    `modifier` is length, precision and scale as the database writes them in one number; -1: none.
    """

    name: str
    modifier: int = -1
    labels: tuple[str, ...] = ()
    element: TypeName | None = None


@dataclass(slots=True, frozen=True)
class Column:
    """A column. `default` is the expression of its DEFAULT; `parameters` are added to its schema's
    own."""

    name: str
    type: TypeName
    is_optional: bool
    default: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, frozen=True)
class Table:
    """A table at one time. `columns` are in the log's order; `kept` are the places of those that
    records have, `key` the names of those that make the record's key.

    `oid` is the database's number of it, `schema` what its name is unique in; `topic` is where its
    records go.
    """

    oid: int
    schema: str
    name: str
    topic: str
    columns: tuple[Column, ...]
    kept: tuple[int, ...]
    key: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """The name in Debezium's lists of tables."""
        return f"{self.schema}.{self.name}"


@dataclass(slots=True, frozen=True)
class ColumnType:
    """The representation of a column's values.

    `schema` is of values that are there; `parse` reads them. `zero` replaces a missing value of a
    required field.
    """

    schema: Schema
    parse: Callable[[Any], Any]
    zero: Any = None

    def under(self, schema: Schema) -> Callable[[Any], Any]:
        """Return what reads values for a field with this schema: a struct names its own."""
        if schema.type is not Type.STRUCT:
            return self.parse
        return lambda raw: Struct(schema, self.parse(raw).values)


class _Unchanged:
    """The type of UNCHANGED; one instance, also after pickling."""

    def __reduce__(self) -> str:
        return "UNCHANGED"

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = _Unchanged()
"""Stands in a row for a value that the change did not touch and the log does not repeat."""
Row = Sequence[Any]
"""Values in the order of a table's columns, as the log has them: None, UNCHANGED, or what
`ColumnType.parse` reads. Bytes are text in UTF-8."""


@dataclass(slots=True)
class RowChange:
    """A row before and after a change. `old_is_key`: `old` has the key's columns alone."""

    old: Row | None
    new: Row | None
    old_is_key: bool = False

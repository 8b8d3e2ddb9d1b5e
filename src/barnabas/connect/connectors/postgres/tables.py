"""What a table is made of, as far as its records need it. Pickled to executors: plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class TypeName:
    """A type, domains resolved. Arrays have `element`; enums have `labels`.

    `modifier` is PostgreSQL's atttypmod: length, precision and scale; -1 where there is none.
    """

    name: str
    modifier: int = -1
    labels: tuple[str, ...] = ()
    element: TypeName | None = None


@dataclass(slots=True, frozen=True)
class Column:
    """A column. `default` is the expression of its DEFAULT; `parameters` are the schema's more."""

    name: str
    type: TypeName
    is_optional: bool
    default: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, frozen=True)
class Table:
    """A table at one time. `columns` are in the log's order; `kept` are the places of those that
    records have, `key` the names of those that make the record's key.

    `topic` is where its records go.
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
        """As Debezium's lists of tables say it."""
        return f"{self.schema}.{self.name}"

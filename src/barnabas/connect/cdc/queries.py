"""SQL of an incremental snapshot: its chunks, and the marks that it writes.

Values are parameters with the place holder %s, so a percent sign of the text is written twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from barnabas.connect.cdc.signals import CLOSE, OPEN
from barnabas.connect.cdc.tables import Column, Table
from barnabas.java.object_stream import Key


class ChunkDialect(Protocol):
    """The SQL dialect of a database."""

    has_nulls_last: bool
    """True if nulls come last in ascending order."""

    def quoted(self, name: str) -> str:
        """Return an identifier in quotes."""

    def relation(self, schema: str, name: str) -> str:
        """Return what follows FROM to read a table's own rows."""

    def limit(self, size: int) -> str:
        """Return the clause that ends a query after so many rows.

        Keys that are not unique need one that also takes all rows with the last one's key.
        """


@dataclass(slots=True, frozen=True)
class Query:
    """SQL and its parameters; without parameters (None) percent signs are literal."""

    text: str
    values: tuple[str | None, ...] | None = None


def last_query(
    dialect: ChunkDialect, table: Table, keys: Sequence[Column], condition: str
) -> Query:
    """Return the query of the greatest key."""
    listed = ", ".join(_name(dialect, column) for column in keys)
    order = ", ".join(f"{_name(dialect, column)} DESC" for column in keys)
    where = f" WHERE {_escaped(condition)}" if condition else ""
    source = _escaped(dialect.relation(table.schema, table.name))
    return Query(f"SELECT {listed} FROM {source}{where} ORDER BY {order} LIMIT 1", ())


def chunk_query(
    dialect: ChunkDialect,
    table: Table,
    keys: Sequence[Column],
    condition: str,
    after: Key | None,
    last: Key,
    size: int,
) -> Query:
    """Return the query of the rows after a key up to another, `size` of them."""
    columns = ", ".join(_name(dialect, column) for column in table.columns)
    beyond = _greater(dialect, keys, last)
    parts, values = [f"({beyond.text}) IS NOT TRUE"], beyond.values or ()
    if after is not None:
        greater = _greater(dialect, keys, after)
        parts.insert(0, greater.text)
        values = (greater.values or ()) + values
    if condition:
        parts.append(_escaped(condition))
    order = ", ".join(_name(dialect, column) for column in keys)
    source = _escaped(dialect.relation(table.schema, table.name))
    text = f"SELECT {columns} FROM {source} WHERE {' AND '.join(parts)}"
    return Query(f"{text} ORDER BY {order} {dialect.limit(size)}", values)


def _greater(dialect: ChunkDialect, keys: Sequence[Column], key: Key) -> Query:
    """The condition that a row comes after a key. Nulls, which a surrogate key may have, come where
    the database sorts them."""
    if not any(column.is_optional for column in keys):
        names = ", ".join(_name(dialect, column) for column in keys)
        places = ", ".join("%s" for _ in keys)
        return Query(f"({names}) > ({places})", key)  # an index has it
    options = []
    values: list[str | None] = []
    for place, (column, value) in enumerate(zip(keys, key, strict=True)):
        if value is None and dialect.has_nulls_last:
            continue  # nothing is greater
        parts = []
        for before, known in zip(keys[:place], key[:place], strict=True):
            name = _name(dialect, before)
            parts.append(f"{name} IS NULL" if known is None else f"{name} = %s")
            values += () if known is None else (known,)
        name = _name(dialect, column)
        if value is None:
            parts.append(f"{name} IS NOT NULL")
        else:
            more = f" OR {name} IS NULL" if dialect.has_nulls_last else ""
            parts.append(f"({name} > %s{more})")
            values.append(value)
        options.append(f"({' AND '.join(parts)})")
    return Query(f"({' OR '.join(options)})" if options else "FALSE", tuple(values))


def _name(dialect: ChunkDialect, column: Column) -> str:
    return _escaped(dialect.quoted(column.name))


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


# Marks: rows in the table of signals.


def open_mark(dialect: ChunkDialect, table: tuple[str, str], chunk: str, open_us: int) -> Query:
    """Return the statement that writes the first mark of a chunk."""
    return _insert(dialect, table, f"{chunk}-open", OPEN, _mark_data(open_us))


def close_mark(
    dialect: ChunkDialect, table: tuple[str, str], chunk: str, open_us: int, close_us: int
) -> Query:
    """Return the statement that writes the second mark of a chunk."""
    return _insert(dialect, table, f"{chunk}-close", CLOSE, _mark_data(open_us, close_us))


def delete_mark(dialect: ChunkDialect, table: tuple[str, str], chunk: str) -> Query:
    """Return the statement that deletes the first mark of a chunk."""
    return Query(f"DELETE FROM {_target(dialect, table)} WHERE id = %s", (f"{chunk}-open",))


def _insert(dialect: ChunkDialect, table: tuple[str, str], *values: str) -> Query:
    return Query(f"INSERT INTO {_target(dialect, table)} VALUES (%s, %s, %s)", values)


def _target(dialect: ChunkDialect, table: tuple[str, str]) -> str:
    return _escaped(".".join(map(dialect.quoted, table)))


def instant(time_us: int) -> str:
    """Return a time in microseconds since 1970 as Java's Instant writes it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)
    digits = 0 if not time_us % 1_000_000 else 3 if not time_us % 1000 else 6
    fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _mark_data(open_us: int, close_us: int | None = None) -> str:
    times = {"openWindowTimestamp": instant(open_us)}
    if close_us is not None:
        times["closeWindowTimestamp"] = instant(close_us)
    return json.dumps(times)

"""The queries of an incremental snapshot, and the marks that it writes (pure).

Keys are compared as PostgreSQL sorts them: nulls, which a surrogate key may have, come last.
Texts go into a query as parameters of an unknown type, which become that of the column.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from barnabas.connect.connectors.postgres.adhoc.java_objects import Key
from barnabas.connect.connectors.postgres.server import quoted
from barnabas.connect.connectors.postgres.tables import Column, Table

TIES_SINCE: Final = 130_000
"""The server's version that can read all rows with the last one's key."""


@dataclass(slots=True, frozen=True)
class Query:
    """SQL and its parameters."""

    text: str
    values: tuple[str | None, ...] = ()


def last_query(source: str, keys: Sequence[Column], condition: str) -> Query:
    """Return the query of the greatest key."""
    listed = ", ".join(_name(column) for column in keys)
    order = ", ".join(f"{_name(column)} DESC" for column in keys)
    where = f" WHERE {_escaped(condition)}" if condition else ""
    return Query(f"SELECT {listed} FROM {_escaped(source)}{where} ORDER BY {order} LIMIT 1")


def chunk_query(
    source: str,
    table: Table,
    keys: Sequence[Column],
    condition: str,
    after: Key | None,
    last: Key,
    size: int,
    *,
    has_ties: bool,
) -> Query:
    """Return the query of the rows after a key up to another, `size` of them.

    Keys that are not unique need `has_ties`: rows with the last one's key come all at once.
    """
    columns = ", ".join(_name(column) for column in table.columns)
    beyond = _greater(keys, last)
    parts, values = [f"({beyond.text}) IS NOT TRUE"], beyond.values
    if after is not None:
        greater = _greater(keys, after)
        parts.insert(0, greater.text)
        values = greater.values + values
    if condition:
        parts.append(_escaped(condition))
    order = ", ".join(_name(column) for column in keys)
    limit = f"FETCH FIRST {size} ROWS WITH TIES" if has_ties else f"LIMIT {size}"
    text = f"SELECT {columns} FROM {_escaped(source)} WHERE {' AND '.join(parts)}"
    return Query(f"{text} ORDER BY {order} {limit}", values)


def _greater(keys: Sequence[Column], key: Key) -> Query:
    """The condition that a row comes after a key."""
    if not any(column.is_optional for column in keys):
        names = ", ".join(_name(column) for column in keys)
        places = ", ".join("%s" for _ in keys)
        return Query(f"({names}) > ({places})", key)  # an index has it
    options = []
    values: list[str | None] = []
    for place, (column, value) in enumerate(zip(keys, key, strict=True)):
        if value is None:
            continue  # nothing is greater
        parts = []
        for before, known in zip(keys[:place], key[:place], strict=True):
            parts.append(f"{_name(before)} IS NULL" if known is None else f"{_name(before)} = %s")
            values += () if known is None else (known,)
        parts.append(f"({_name(column)} > %s OR {_name(column)} IS NULL)")
        values.append(value)
        options.append(f"({' AND '.join(parts)})")
    return Query(f"({' OR '.join(options)})" if options else "FALSE", tuple(values))


def _name(column: Column) -> str:
    return _escaped(quoted(column.name))


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def instant(time_us: int) -> str:
    """Return a time in microseconds since 1970 as Java's Instant writes it."""

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)
    digits = 0 if not time_us % 1_000_000 else 3 if not time_us % 1000 else 6
    fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def mark_data(open_us: int, close_us: int | None = None) -> str:
    """Return the data of a mark."""
    times = {"openWindowTimestamp": instant(open_us)}
    if close_us is not None:
        times["closeWindowTimestamp"] = instant(close_us)
    return json.dumps(times)


@dataclass(slots=True, frozen=True)
class Seen:
    """Which transactions a query has seen, by PostgreSQL's text of a snapshot."""

    end: int
    running: frozenset[int]

    @staticmethod
    def of(text: str) -> Seen:
        _begin, end, running = text.split(":")
        return Seen(int(end), frozenset(map(int, filter(None, running.split(",")))))

    def has(self, xid: int) -> bool:
        """Whether it has seen a transaction, whose number is the log's: of 32 bits.

        Such a number means the transaction that is nearest to the snapshot's end.
        """
        behind = (self.end - xid) % 2**32
        if behind == 0 or behind >= 2**31:
            return False
        return self.end - behind not in self.running

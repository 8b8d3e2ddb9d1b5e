"""Schemas during planning, and names for columns that a statement leaves without one.

While a query is planned, key columns, pseudo columns and bounds of windows also stand among the
columns of the value, where expressions and `SELECT *` find them: `planning_schema` adds them,
`plain_schema` takes them away again. Steps of a plan have plain schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Part, Schema
from barnabas.sql.syntax.expressions import Dereference, Expression
from barnabas.sql.types import BYTES, STRING, Array, Field, SqlType, Struct

SYSTEM_COLUMNS = frozenset(PSEUDO_COLUMNS) | frozenset(WINDOW_BOUNDS)
"""Names that no declared column can have."""

HEADERS_TYPE = Array(Struct((Field("KEY", STRING), Field("VALUE", BYTES))))
"""The type of a HEADERS column."""


def build_schema(columns: Iterable[Column]) -> Schema:
    """A schema of the columns; raises AnalysisError if two of one part have the same name."""
    schema = Schema(tuple(columns))
    seen: set[tuple[Part, str]] = set()
    headers: set[str | None] = set()
    for column in schema.columns:
        if (column.part, column.name) in seen:
            part = column.part.name.lower()
            raise AnalysisError(f"Duplicate {part} columns found in schema: {column}")
        seen.add((column.part, column.name))
        if column.part is Part.HEADERS:
            if None in headers:
                raise AnalysisError("Schema already contains a HEADERS column.")
            if column.header in headers:
                raise AnalysisError(f"Schema already contains a HEADER('{column.header}') column.")
            headers.add(column.header)
    return schema


def check_clash(schema: Schema) -> None:
    """Raise AnalysisError if columns of key and value have the same name."""
    clashing = {column.name for column in schema.key} & {column.name for column in schema.value}
    if clashing:
        names = ", ".join(map(backquoted, sorted(clashing)))
        raise AnalysisError(f"Value columns clash with key columns: {names}")


def key_column(name: str, sql_type: SqlType) -> Column:
    return Column(name, sql_type, Part.KEY)


def value_column(name: str, sql_type: SqlType) -> Column:
    return Column(name, sql_type)


def planning_schema(schema: Schema, *, is_windowed: bool) -> Schema:
    """The schema with headers, pseudo columns, key and bounds of windows in the value, too."""
    copies = [value_column(c.name, c.type) for c in schema.headers]
    copies += [value_column(name, sql_type) for name, sql_type in PSEUDO_COLUMNS.items()]
    copies += [value_column(c.name, c.type) for c in schema.key]
    if is_windowed:
        copies += [value_column(name, sql_type) for name, sql_type in WINDOW_BOUNDS.items()]
    return build_schema((*schema.key, *_own_values(schema), *schema.headers, *copies))


def plain_schema(schema: Schema) -> Schema:
    """The schema without what `planning_schema` added."""
    return build_schema((*schema.key, *schema.headers, *_own_values(schema)))


def _own_values(schema: Schema) -> tuple[Column, ...]:
    elsewhere = {column.name for column in schema.columns if column.part is not Part.VALUE}
    return tuple(c for c in schema.value if c.name not in SYSTEM_COLUMNS | elsewhere)


def is_key(schema: Schema, name: str) -> bool:
    """Return whether the key has a column of that name."""
    return any(column.name == name for column in schema.key)


def value_named(schema: Schema, name: str) -> Column | None:
    """The value's column of that name."""
    known = schema.find(name)
    if known is None or known.part is Part.VALUE:
        return known
    return next((column for column in schema.value if column.name == name), None)


def star_order(columns: Sequence[Column], schema: Schema) -> list[str]:
    """Names of the columns that `*` stands for: the key's, bounds of windows, the others."""
    names = [column.name for column in columns]
    keys = [column.name for column in schema.key]
    bounds = [name for name in names if name in WINDOW_BOUNDS]
    others = [name for name in names if name not in SYSTEM_COLUMNS and name not in keys]
    return [name for name in keys if name in names] + bounds + others


def columns_list(columns: Iterable[Column]) -> str:
    """Columns in brackets, as messages show them."""
    return f"[{', '.join(map(column_text, columns))}]"


def column_text(column: Column) -> str:
    """A column, as messages show it."""
    return f"{column} KEY" if column.part is Part.KEY else str(column)


# --- names -----------------------------------------------------------------------------------

_NUMBERED = re.compile(r"(.*?)(?:_([0-9]+))?\Z", re.DOTALL)
_GENERATED = "KSQL_COL"
_SYNTHETIC_KEY = "ROWKEY"


class AliasGenerator:
    """Makes names that no column of the given schemas has: KSQL_COL_0, …, or for a field of a
    struct the field's name, with a number behind it if that is taken."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        self._used: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}
        for schema in schemas:
            for column in schema.columns:
                name, number = _split(column.name)
                self._used.setdefault(name, set()).add(number)

    def alias_for(self, expression: Expression) -> str:
        """A name for the expression's values."""
        if isinstance(expression, Dereference):
            return self.next(_split(expression.name)[0])
        return self.next(_GENERATED)

    def next(self, prefix: str) -> str:
        """The next free name that begins so."""
        number = self._next.get(prefix, 0)
        while number in self._used.get(prefix, ()):
            number += 1
        self._next[prefix] = number + 1
        return prefix if number == 0 and prefix != _GENERATED else f"{prefix}_{number}"


def _split(name: str) -> tuple[str, int]:
    match = _NUMBERED.match(name)
    assert match is not None
    return match.group(1), int(match.group(2) or 0)


def synthetic_key_name(schemas: Iterable[Schema]) -> str:
    """A name for the key of a join that no column of the sources gives."""
    return AliasGenerator(schemas).next(_SYNTHETIC_KEY)


def could_be_synthetic_key(name: str) -> bool:
    """Return whether `synthetic_key_name` could have made the name."""
    return name.startswith(_SYNTHETIC_KEY)


def joined_name(alias: str, column: str) -> str:
    """Return the name of a source's column after a join."""
    return f"{alias}_{column}"


def joined_words(words: Sequence[str], last: str) -> str:
    """`a, b and c`; `last` is the word before the last one."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])}{last}{words[-1]}"


def quoted_names(names: Iterable[str]) -> list[str]:
    """The names in back quotes."""
    return [backquoted(name) for name in names]

"""Columns of tables: what the log does not say about them comes from the server's catalog.

The catalog describes the present, the log the past: a column that is gone by now counts as
optional, without a default. Parameters of a schema describe a column's type in the database.

Source: Debezium's documentation, `column.propagate.source.type`; how its JDBC driver counts
lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg

from barnabas.connect.cdc.tables import Column, Table, TypeName
from barnabas.connect.connectors.postgres.pgoutput import Relation, RelationColumn
from barnabas.connect.connectors.postgres.settings import PostgresSettings

_TABLES: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n
  ON n.oid = c.relnamespace
WHERE n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
  AND c.relpersistence = 'p'
  AND (CASE WHEN %s THEN c.relkind IN ('r', 'p') AND NOT c.relispartition ELSE c.relkind = 'r' END)
ORDER BY n.nspname, c.relname
"""
_COLUMNS: Final = """
SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull,
  CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END, a.attgenerated
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEYS: Final = """
SELECT i.indisprimary, array_agg(a.attname::text ORDER BY k.place),
  bool_and(a.attnotnull)
FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
  AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
GROUP BY i.indexrelid, i.indisprimary ORDER BY i.indisprimary DESC, i.indexrelid
"""
_TYPE: Final = """
SELECT t.typname, t.typtype, t.typbasetype, t.typtypmod, t.typelem, t.typcategory, t.typlen,
  ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder)
FROM pg_type t WHERE t.oid = %s
"""
_PREFIX: Final = "__debezium.source.column."
_UNLIMITED: Final = 2_147_483_647
_LENGTHS: Final = {
    "int2": 5,
    "int4": 10,
    "oid": 10,
    "int8": 19,
    "float4": 8,
    "float8": 17,
    "char": 1,
    "bool": 1,
    "date": 13,
    "interval": 49,
}
_SCALES: Final = {"float4": 8, "float8": 17}
_TIMES: Final = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
"""Number of characters of a time without its fraction of a second."""
_HEADER: Final = 4
"""Sizes of numeric, varchar and char are reported with so much more."""


@dataclass(slots=True, frozen=True)
class _Attribute:
    name: str
    type_oid: int
    modifier: int
    is_optional: bool
    default: str | None


class Catalog:
    """Asks one connection, which may be in a snapshot's transaction."""

    def __init__(self, connection: psycopg.Connection[Any], settings: PostgresSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._types: dict[int, Any] = {}

    def captured(self) -> list[Table]:
        """Return the tables that there are and that are wanted, by schema and name."""
        rows = self._rows(_TABLES, self._settings["publish.via.partition.root"])
        return [
            self.table(oid, schema, name)
            for oid, schema, name, _kind in rows
            if self._settings.wants_table(schema, name)
        ]

    def table(self, oid: int, schema: str, name: str) -> Table:
        """Return a table as it is now."""
        attributes = self._attributes(oid)
        columns = [
            self._column(a.type_oid, a.modifier, a.name, attributes) for a in attributes.values()
        ]
        return self._made(oid, schema, name, columns, list(attributes.values()))

    def logged(self, relation: Relation) -> Table | None:
        """Return a table as the log describes it; None if it is not wanted."""
        if not self._settings.wants_table(relation.schema, relation.table):
            return None
        self._types.clear()  # types may have been altered too
        attributes = self._attributes(relation.id)
        columns = [
            self._column(c.type_oid, c.modifier, c.name, attributes) for c in relation.columns
        ]
        return self._made(
            *(relation.id, relation.schema, relation.table, columns),
            relation.columns,
            logged_key=tuple(column.name for column in relation.columns if column.is_key),
        )

    def _made(
        self,
        oid: int,
        schema: str,
        name: str,
        columns: list[Column],
        described: Sequence[_Attribute | RelationColumn],
        logged_key: tuple[str, ...] = (),
    ) -> Table:
        settings = self._settings
        key = settings.key_columns(schema, name) or self._key(oid)
        if not set(key) <= {column.name for column in columns}:
            key = logged_key
        kept = tuple(
            place
            for place, column in enumerate(columns)
            if column.name in key or settings.wants_column(schema, name, column.name)
        )
        topic = settings.topic(schema, name)
        columns = [
            self._with_source(schema, name, column, one.type_oid, one.modifier)
            for column, one in zip(columns, described, strict=True)
        ]
        return Table(oid, schema, name, topic, tuple(columns), kept, key)

    def _with_source(
        self, schema: str, table: str, column: Column, type_oid: int, modifier: int
    ) -> Column:
        """The column, with parameters of its schema that describe its type, if they are wanted."""
        row = self._type_row(type_oid)
        if row is None or not self._settings.describes_type(schema, table, column.name, row[0]):
            return column
        shown = base = str(row[0])
        while row is not None and row[1] == "d":
            modifier = row[3] if row[3] >= 0 else modifier
            row = self._type_row(row[2])
            base = base if row is None else row[0]
        parameters = source_parameters(column.name, shown, base, modifier)
        return replace(column, parameters=parameters)

    def _attributes(self, oid: int) -> dict[str, _Attribute]:
        return {
            name: _Attribute(name, type_oid, modifier, not not_null, default)
            for name, type_oid, modifier, not_null, default, generated in self._rows(_COLUMNS, oid)
            if not generated  # the log lacks them
        }

    def _column(
        self, type_oid: int, modifier: int, name: str, attributes: dict[str, _Attribute]
    ) -> Column:
        kind = self._type(type_oid, modifier) or TypeName(f"type {type_oid}")
        attribute = attributes.get(name)
        if attribute is None:
            return Column(name, kind, is_optional=True)
        default = attribute.default if attribute.type_oid == type_oid else None
        return Column(name, kind, attribute.is_optional, default)

    def _key(self, oid: int) -> tuple[str, ...]:
        """The primary key, else the first unique index over columns that are never null."""
        for is_primary, names, is_never_null in self._rows(_KEYS, oid):
            if is_primary or is_never_null:
                return tuple(names)
        return ()

    def _type(self, oid: int, modifier: int) -> TypeName | None:
        row = self._type_row(oid)
        if row is None:
            return None
        name, kind, base, base_modifier, element, category, size, labels = row
        if kind == "d":
            return self._type(base, base_modifier if base_modifier >= 0 else modifier)
        if category == "A" and element and size == -1:
            return TypeName(name, modifier, element=self._type(element, modifier))
        return TypeName(name, _modifier(name, modifier), tuple(labels))

    def _type_row(self, oid: int) -> Any:
        if oid not in self._types:
            rows = self._rows(_TYPE, oid)
            self._types[oid] = rows[0] if rows else None
        return self._types[oid]

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.encode(), values).fetchall()


def _modifier(name: str, modifier: int) -> int:
    """Only what representations depend on, so that a longer varchar is not another table."""
    return modifier if name in _MODIFIED else -1


_MODIFIED: Final = frozenset(
    ("numeric", "time", "timestamp", "timestamptz", "timetz", "bit", "varbit", "interval")
)


def source_parameters(
    column: str, type_name: str, base: str, modifier: int
) -> tuple[tuple[str, str], ...]:
    """Return the parameters; `modifier` is PostgreSQL's atttypmod, -1 for none.

    `base` is what a domain is made of; any other type itself.
    """
    base = base.removeprefix("_")  # of an array
    told = {
        "type": type_name.upper(),
        "length": str(_length(base, modifier)),
        "scale": str(_scale(base, modifier)),
        "name": column,
    }
    if base == "numeric" and modifier < 0:
        del told["scale"]  # any
    if told["length"] == "-1":
        del told["length"]
    return tuple((f"{_PREFIX}{name}", text) for name, text in told.items())


def _length(name: str, modifier: int) -> int:
    if name in _LENGTHS:
        return _LENGTHS[name]
    if name in _TIMES:
        digits = 6 if modifier < 0 else 2 if modifier == 1 else modifier
        return _TIMES[name] + (digits + 1 if digits else 0)
    if name == "numeric":
        return 0 if modifier < 0 else (modifier - _HEADER) >> 16
    if name in ("bpchar", "varchar") and modifier >= 0:
        return modifier - _HEADER
    if name == "bit" or (name == "varbit" and modifier >= 0):
        return modifier
    return _UNLIMITED


def _scale(name: str, modifier: int) -> int:
    if name in _SCALES:
        return _SCALES[name]
    if name in _TIMES:
        return 6 if modifier < 0 else modifier
    if name == "interval":
        return 6 if modifier < 0 else modifier & 0xFFFF
    if name == "numeric":
        return 0 if modifier < 0 else (modifier - _HEADER) & 0xFFFF
    return 0

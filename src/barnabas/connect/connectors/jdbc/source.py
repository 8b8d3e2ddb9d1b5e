"""Reads tables: all rows each time (bulk), or those that are new by a number, a time, or both.

One query of a table is open at a time on the driver, and is read in pieces: a piece is a
micro-batch's split, with its rows in it. What a time orders may share it: the stored time is that
before the last row's until a later row has been seen, so a restart repeats rows and loses none. A
query's columns become fields by the types that the driver names, and by their values.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from barnabas.connect.connectors.base import SourceReader, TaskContext
from barnabas.connect.connectors.jdbc.definition import SOURCE
from barnabas.connect.connectors.jdbc.dialects import (
    DRIVER_ERRORS,
    Dialect,
    SqliteDialect,
    dialect_of,
)
from barnabas.connect.record import JsonMap, SourceRecord
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
    struct_of,
)
from barnabas.schemas.data.errors import ConfigError, ConnectError
from barnabas.schemas.data.schema import Schema, Struct, Type

TABLES: Final = "tables"
"""A task's own setting: the tables it reads, separated by commas."""
ROWS_MIN: Final = 1000
"""Rows of one split, if `batch.max.rows` is not above."""
Offset = dict[str, Any]
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
class RowsSplit:
    """Rows of one table, each with the offset after it."""

    topic: str
    name: str
    partition: JsonMap
    columns: tuple[FieldColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    offsets: tuple[Offset, ...]


@dataclass(slots=True)
class _Query:
    """A query that is being read. `held` is the row after those that were given."""

    table: str
    cursor: Any
    columns: tuple[FieldColumn, ...]
    held: tuple[Any, ...] | None
    offset: Offset


class JdbcSourceReader(SourceReader):
    """Reads the tables of one task."""

    def __init__(self, context: TaskContext) -> None:
        self._settings = SOURCE.parse(context.settings)
        check(self._settings)
        self._mode = self._settings["mode"].lower()
        self._tables = [name for name in context.settings.get(TABLES, "").split(",") if name]
        if self._settings["query"]:
            self._tables = [""]
        stored = context.offsets
        self._stored: dict[str, Offset] = {}
        for table in self._tables:
            offset = stored.offset(self._partition(table)) if stored else None
            self._stored[table] = dict(offset or {})
        self._connection: Any = None
        self._query: _Query | None = None
        self._planned: tuple[RowsSplit, dict[str, Any]] | None = None
        self._turn = 0
        self._due = dict.fromkeys(self._tables, 0.0)
        self._count = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        return {"rows": 0}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        if self._planned is None:
            try:
                self._plan()
            except DRIVER_ERRORS as error:
                self.stop()
                raise self._dialect.error(error) from error
        return {"rows": self._count}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[RowsSplit]:
        return () if self._planned is None else (self._planned[0],)

    def read(self, partition: RowsSplit) -> Iterator[SourceRecord]:
        schema = struct_of(
            [(column.name, column.schema) for column in partition.columns], name=partition.name
        )
        makers = [column.make for column in partition.columns]
        for row, offset in zip(partition.rows, partition.offsets, strict=True):
            values = [
                None if value is None else make(value)
                for make, value in zip(makers, row, strict=True)
            ]
            yield SourceRecord(
                topic=partition.topic,
                value_schema=schema,
                value=Struct(schema, values),
                source_partition=partition.partition,
                source_offset=offset,
            )

    def sent(self, end: dict[str, Any]) -> bool:
        self.commit(end)
        return True

    def commit(self, end: dict[str, Any]) -> None:
        if end["rows"] == self._count:  # else what is planned came later
            self._planned = None

    def stop(self) -> None:
        if self._query is not None:
            with contextlib.suppress(*DRIVER_ERRORS):  # a lost server has closed it
                self._query.cursor.close()
            self._query = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Queries.

    @property
    def _dialect(self) -> Dialect:
        return dialect_of(self._settings)

    def _plan(self) -> None:
        """Give the next rows of the open query, else of the next table that is due."""
        for _ in self._tables:
            if self._query is None:
                self._open(self._tables[self._turn % len(self._tables)])
            if self._query is not None:
                self._take(self._query)
                if self._planned is not None:
                    return
            self._turn += 1

    def _open(self, table: str) -> None:
        now = time.monotonic()
        if now < self._due[table]:
            return
        self._due[table] = now + self._settings["poll.interval.ms"] / 1000
        if self._connection is None:
            self._connection = self._dialect.connect()
        self._connection.rollback()  # a new transaction sees what is new
        statement, values = self._statement(table)
        cursor = self._dialect.cursor(self._connection)
        cursor.execute(statement, values)
        first = cursor.fetchmany(1)
        columns = fields_of(self._dialect, self._connection, table, cursor, self._settings, first)
        held = first[0] if first else None
        if held is None:
            self._check_times(table)
        self._query = _Query(table, cursor, columns, held, self._stored[table])

    def _check_times(self, table: str) -> None:
        """Raises ConfigError where rows would never be read, and nobody would know why."""
        if not table or not self._mode.startswith("timestamp"):
            return
        for column in self._settings["timestamp.column.name"]:
            if self._dialect.has_text(self._connection, table, column):
                raise ConfigError(
                    f"timestamp.column.name: {column} of {table} has texts; SQLite's times are "
                    "milliseconds since 1970 here, as with its JDBC driver"
                )

    def _take(self, query: _Query) -> None:
        size = max(ROWS_MIN, self._settings["batch.max.rows"])
        rows = [] if query.held is None else [query.held]
        rows += query.cursor.fetchmany(size)
        query.held = rows.pop() if len(rows) > size else None
        if query.held is None:
            self._query = None
            query.cursor.close()
        if not rows:
            return
        following = [*rows[1:], query.held]
        offsets = tuple(
            self._after(query, row, after) for row, after in zip(rows, following, strict=True)
        )
        self._stored[query.table] = offsets[-1]
        table = query.table
        name = table.rpartition(".")[2]
        topic = self._settings["topic.prefix"] + name
        self._planned = (
            RowsSplit(
                *(topic, name or "query", self._partition(table)),
                *(query.columns, tuple(map(tuple, rows)), offsets),
            ),
            offsets[-1],
        )
        self._count += len(rows)

    def _after(self, query: _Query, row: Sequence[Any], following: Sequence[Any] | None) -> Offset:
        """The offset after a row; of the query's last rows it is theirs."""
        names = [column.name for column in query.columns]
        offset = dict(query.offset)
        if self._mode.endswith("incrementing"):
            offset["incrementing"] = row[names.index(self._settings["incrementing.column.name"])]
        if self._mode.startswith("timestamp"):
            ms, nanos = self._time_of(names, row)
            is_safe = (
                "incrementing" in self._mode
                or following is None
                or self._time_of(names, following) != (ms, nanos)
            )
            if is_safe:
                offset |= {"timestamp": ms, "timestamp_nanos": nanos}
        query.offset = offset
        return offset

    def _time_of(self, names: Sequence[str], row: Sequence[Any]) -> tuple[int, int]:
        """Milliseconds, and the nanoseconds within their second."""
        for name in self._settings["timestamp.column.name"]:
            value = row[names.index(name)]
            if value is None:
                continue
            if not isinstance(value, datetime):
                ms = int(value)  # SQLite's
                return ms, ms % 1000 * 1_000_000
            zoned = value if value.tzinfo else value.replace(tzinfo=self._dialect.zone)
            us = round((zoned - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
            return us // 1000, us % 1_000_000 * 1000
        raise ConnectError("timestamp.column.name: a row has null in all of its columns")

    def _statement(self, table: str) -> tuple[str, list[Any]]:
        dialect, settings, offset = self._dialect, self._settings, self._stored[table]
        query = settings["query"] or f"SELECT * FROM {dialect.table(table)}"
        number = settings["incrementing.column.name"]
        times = settings["timestamp.column.name"]
        conditions: list[str] = []
        values: list[Any] = []
        order: list[str] = []
        if self._mode.startswith("timestamp"):
            quoted = [dialect.quote(name) for name in times]
            moment = quoted[0] if len(quoted) == 1 else f"COALESCE({', '.join(quoted)})"
            end = time.time() * 1000 - settings["timestamp.delay.interval.ms"]
            begin = offset.get("timestamp", settings["timestamp.initial"] or 0)
            nanos = offset.get("timestamp_nanos", 0)
            start = dialect.moment(begin, nanos)
            conditions.append(f"{moment} < {dialect.mark}")
            values.append(dialect.moment(int(end), 0))
            if self._mode == "timestamp":
                conditions.append(f"{moment} > {dialect.mark}")
                values.append(start)
            else:
                column = dialect.quote(number)
                conditions.append(
                    f"(({moment} = {dialect.mark} AND {column} > {dialect.mark})"
                    f" OR {moment} > {dialect.mark})"
                )
                values += [start, offset.get("incrementing", -1), start]
            order.append(moment)
        elif self._mode == "incrementing" and "incrementing" in offset:
            conditions.append(f"{dialect.quote(number)} > {dialect.mark}")
            values.append(offset["incrementing"])
        if self._mode.endswith("incrementing"):
            order.append(dialect.quote(number))
        if conditions:
            query += f" WHERE {' AND '.join(conditions)}"
        if order:
            query += f" ORDER BY {', '.join(order)}"
        return f"{query} {settings['query.suffix']}".strip(), values

    def _partition(self, table: str) -> JsonMap:
        if not table:
            return {"query": "query"}
        return {"protocol": "1", "table": table}


def check(settings: Mapping[str, Any]) -> None:
    """Raises ConfigError for what does not go together."""
    mode = settings["mode"].lower()
    if mode.endswith("incrementing") and not settings["incrementing.column.name"]:
        raise ConfigError(f"incrementing.column.name is needed by mode {mode}")
    if mode.startswith("timestamp") and not settings["timestamp.column.name"]:
        raise ConfigError(f"timestamp.column.name is needed by mode {mode}")
    if settings["table.whitelist"] and settings["table.blacklist"]:
        raise ConfigError("table.whitelist and table.blacklist are exclusive.")
    if settings["query"] and (settings["table.whitelist"] or settings["table.blacklist"]):
        raise ConfigError("query may not be combined with whole-table copying settings.")


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

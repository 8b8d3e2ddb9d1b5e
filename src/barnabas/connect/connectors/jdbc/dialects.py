"""Differences between databases: connections, types of new columns, statements, values."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

import psycopg

from barnabas.connect.connectors.postgres.server import failure
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type

Row = Sequence[Any]
VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"
"""A struct of scale and unscaled value: each value of a numeric without a scale has its own."""
COPY_FROM: Final = 50
"""From so many rows on, COPY is faster than statements in a pipeline."""


@dataclass(slots=True, frozen=True)
class ColumnSpec:
    """A column to make: of a field, or of a record's place in its topic."""

    name: str
    schema: Schema
    is_key: bool = False


class Dialect(ABC):
    """One database's ways. Raises RetriableError and ConnectError alone."""

    types: ClassVar[Mapping[Type | str, str]]
    mark: ClassVar[str]
    """Stands for a value in statements."""

    def __init__(self, url: str, user: str | None, password: str | None, zone: str) -> None:
        self.url, self._user, self._password = url, user, password
        self.zone = ZoneInfo(zone)
        self.is_quoting = True

    @abstractmethod
    def connect(self) -> Any:
        """Open a connection; statements begin a transaction."""

    @abstractmethod
    def columns(self, connection: Any, table: str) -> dict[str, bool] | None:
        """Return a table's columns and which are of its primary key; None: no such table."""

    @abstractmethod
    def bind(self, schema: Schema, value: Any) -> Any:
        """Return a value as the driver takes it."""

    @abstractmethod
    def error(self, error: Exception) -> ConnectError:
        """Return what a driver's error means."""

    @abstractmethod
    def tables(self, connection: Any) -> list[str]:
        """Return the names of all tables of users."""

    @abstractmethod
    def needed_columns(self, connection: Any, table: str) -> set[str]:
        """Return a table's columns that are never null."""

    def has_text(self, connection: Any, table: str, column: str) -> bool:
        """Return whether a column of times has texts, which never compare with moments."""
        return False

    def declared_types(self, connection: Any, table: str) -> dict[str, str]:
        """Return the types of a table's columns as they were declared, where the driver tells
        none with a query's rows."""
        return {}

    @abstractmethod
    def cursor(self, connection: Any) -> Any:
        """Return a cursor whose rows stay with the server until they are fetched."""

    @abstractmethod
    def moment(self, ms: int, nanos: int) -> Any:
        """Return a time to compare columns with; `nanos` are those of the whole second."""

    def quote(self, name: str) -> str:
        """Return a name as statements have it."""
        return '"' + name.replace('"', '""') + '"' if self.is_quoting else name

    def table(self, name: str) -> str:
        """Return a table's name, with its schema's if it has points."""
        return ".".join(self.quote(part) for part in name.split("."))

    def type_of(self, schema: Schema) -> str:
        """Return the type of a new column. Raises ConnectError if no type fits."""
        sql_type = self.types.get(schema.name or "") or self.types.get(schema.type)
        if sql_type is None and schema.type is Type.ARRAY and schema.value_schema is not None:
            sql_type = f"{self.type_of(schema.value_schema)}[]"
        if sql_type is None:
            raise ConnectError(
                f"{schema.name or schema.type} ({schema.type.name}) type doesn't have a mapping to "
                "the SQL database column type"
            )
        return sql_type

    def column(self, spec: ColumnSpec) -> str:
        """Return a column as CREATE TABLE and ALTER TABLE have it."""
        end = "NULL" if spec.schema.optional and not spec.is_key else "NOT NULL"
        if spec.schema.default is not None:
            end = f"DEFAULT {self.literal(self.bind(spec.schema, spec.schema.default))}"
        try:
            return f"{self.quote(spec.name)} {self.type_of(spec.schema)} {end}"
        except ConnectError as error:
            raise ConnectError(
                f"Field {spec.name}: {error}; leave it out by fields.whitelist, or at its source"
            ) from None

    def literal(self, value: Any) -> str:
        """Return a default's value as statements have it."""
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, int | float | Decimal):
            return str(value)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        return "'" + str(value).replace("'", "''") + "'"

    def create(self, table: str, specs: Sequence[ColumnSpec]) -> str:
        """Return the statement that makes a table."""
        parts = [self.column(spec) for spec in specs]
        if keys := [self.quote(spec.name) for spec in specs if spec.is_key]:
            parts.append(f"PRIMARY KEY({', '.join(keys)})")
        return f"CREATE TABLE {self.table(table)} ({', '.join(parts)})"

    def insert(self, table: str, columns: Sequence[str]) -> str:
        names = ", ".join(map(self.quote, columns))
        return (
            f"INSERT INTO {self.table(table)} ({names}) VALUES"
            f" ({', '.join([self.mark] * len(columns))})"
        )

    def on_conflict(self, keys: Sequence[str], others: Sequence[str]) -> str:
        """Return what makes an insert an upsert."""
        target = f" ON CONFLICT ({', '.join(map(self.quote, keys))})"
        if not others:
            return f"{target} DO NOTHING"
        sets = ", ".join(f"{self.quote(name)} = EXCLUDED.{self.quote(name)}" for name in others)
        return f"{target} DO UPDATE SET {sets}"

    def update(self, table: str, keys: Sequence[str], others: Sequence[str]) -> str:
        sets = ", ".join(f"{self.quote(name)} = {self.mark}" for name in others)
        return f"UPDATE {self.table(table)} SET {sets}{self._where(keys)}"

    def delete(self, table: str, keys: Sequence[str]) -> str:
        return f"DELETE FROM {self.table(table)}{self._where(keys)}"

    def truncate(self, table: str) -> str:
        """Return the statement that empties a table."""
        return f"TRUNCATE TABLE {self.table(table)}"

    def _where(self, keys: Sequence[str]) -> str:
        return " WHERE " + " AND ".join(f"{self.quote(name)} = {self.mark}" for name in keys)

    def run_many(self, connection: Any, statement: str, rows: Iterable[Row]) -> None:
        """Run a statement with each row's values."""
        connection.cursor().executemany(statement, rows)

    def insert_many(
        self, connection: Any, table: str, columns: Sequence[str], end: str, rows: Sequence[Row]
    ) -> None:
        """Insert rows; `end` is what `on_conflict` returns, or empty."""
        self.run_many(connection, self.insert(table, columns) + end, rows)


class PostgresDialect(Dialect):
    """PostgreSQL through psycopg."""

    mark = "%s"
    types: ClassVar = {
        DECIMAL: "DECIMAL",
        VARIABLE_DECIMAL: "DECIMAL",
        DATE: "DATE",
        TIME: "TIME",
        TIMESTAMP: "TIMESTAMP",
        Type.INT8: "SMALLINT",
        Type.INT16: "SMALLINT",
        Type.INT32: "INT",
        Type.INT64: "BIGINT",
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "DOUBLE PRECISION",
        Type.BOOLEAN: "BOOLEAN",
        Type.STRING: "TEXT",
        Type.BYTES: "BYTEA",
    }

    def connect(self) -> Any:
        parts = urlsplit(self.url.removeprefix("jdbc:"))
        known = {"user", "password", "sslmode", "sslcert", "sslkey", "sslrootcert", "options"}
        given = {"user": self._user, "password": self._password}
        options: dict[str, Any] = {
            **{name: value for name, value in parse_qsl(parts.query) if name in known},
            **{name: value for name, value in given.items() if value},
        }
        try:
            connection = psycopg.connect(
                host=parts.hostname or "localhost",
                port=parts.port or 5432,
                dbname=parts.path.lstrip("/") or self._user,
                connect_timeout=10,
                **options,
            )
            connection.execute("SELECT set_config('TimeZone', %s, false)", (self.zone.key,))
            connection.commit()
            return connection
        except psycopg.Error as error:
            raise failure(error) from error

    def columns(self, connection: Any, table: str) -> dict[str, bool] | None:
        rows = connection.execute(
            "SELECT a.attname, coalesce(a.attnum = ANY(i.indkey), false) FROM pg_attribute a"
            " LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary"
            " WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped"
            " ORDER BY a.attnum",
            (self.table(table),),
        ).fetchall()
        return dict(rows) or None

    def bind(self, schema: Schema, value: Any) -> Any:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(self.zone).replace(tzinfo=None)
        return value

    def tables(self, connection: Any) -> list[str]:
        rows = connection.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid ="
            " c.relnamespace WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname"
            " <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2"
        ).fetchall()
        return [name if schema == "public" else f"{schema}.{name}" for schema, name in rows]

    def needed_columns(self, connection: Any, table: str) -> set[str]:
        rows = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnotnull",
            (self.table(table),),
        ).fetchall()
        return {name for (name,) in rows}

    def cursor(self, connection: Any) -> Any:
        return connection.cursor("barnabas_rows")

    def moment(self, ms: int, nanos: int) -> Any:
        us = max(nanos // 1000, ms % 1000 * 1000)
        return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=us)

    def literal(self, value: Any) -> str:
        return f"'\\x{value.hex()}'" if isinstance(value, bytes) else super().literal(value)

    def error(self, error: Exception) -> ConnectError:
        assert isinstance(error, psycopg.Error), error
        return failure(error)

    def insert_many(
        self, connection: Any, table: str, columns: Sequence[str], end: str, rows: Sequence[Row]
    ) -> None:
        """Many rows go by COPY: to the table, or to one beside it that is then merged."""
        if len(rows) < COPY_FROM:
            return super().insert_many(connection, table, columns, end, rows)
        names = ", ".join(map(self.quote, columns))
        target = self.table(table)
        if end:
            connection.execute(
                f"CREATE TEMP TABLE barnabas_rows ON COMMIT DROP AS SELECT {names} FROM {target}"
                " LIMIT 0"
            )
        into = "barnabas_rows" if end else target
        with connection.cursor().copy(f"COPY {into} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        if end:
            connection.execute(
                f"INSERT INTO {target} ({names}) SELECT {names} FROM barnabas_rows{end}"
            )
            connection.execute("DROP TABLE barnabas_rows")
        return None


class SqliteDialect(Dialect):
    """SQLite through Python's own module. Times are milliseconds, as its JDBC driver has them."""

    mark = "?"
    types: ClassVar = {
        **dict.fromkeys((DECIMAL, VARIABLE_DECIMAL, DATE, TIME, TIMESTAMP), "NUMERIC"),
        **dict.fromkeys((Type.BOOLEAN, Type.INT8, Type.INT16, Type.INT32, Type.INT64), "INTEGER"),
        Type.FLOAT32: "REAL",
        Type.FLOAT64: "REAL",
        Type.STRING: "TEXT",
        Type.BYTES: "BLOB",
    }

    def connect(self) -> Any:
        path = self.url.removeprefix("jdbc:sqlite:").partition("?")[0]
        try:
            return sqlite3.connect(path, timeout=30)
        except sqlite3.Error as error:
            raise self.error(error) from error

    def columns(self, connection: Any, table: str) -> dict[str, bool] | None:
        rows = connection.execute(f"PRAGMA table_info({self.quote(table)})").fetchall()
        return {row[1]: bool(row[5]) for row in rows} or None

    def tables(self, connection: Any) -> list[str]:
        rows = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " ORDER BY name"
        ).fetchall()
        return [name for (name,) in rows]

    def needed_columns(self, connection: Any, table: str) -> set[str]:
        rows = connection.execute(f"PRAGMA table_info({self.quote(table)})").fetchall()
        return {row[1] for row in rows if row[3] or row[5]}

    def declared_types(self, connection: Any, table: str) -> dict[str, str]:
        rows = connection.execute(f"PRAGMA table_info({self.quote(table)})").fetchall()
        return {row[1]: row[2] for row in rows}

    def has_text(self, connection: Any, table: str, column: str) -> bool:
        name = self.quote(column)
        query = f"SELECT typeof({name}) FROM {self.table(table)} WHERE {name} IS NOT NULL LIMIT 1"
        return bool(connection.execute(query).fetchone() == ("text",))

    def cursor(self, connection: Any) -> Any:
        return connection.cursor()

    def moment(self, ms: int, nanos: int) -> Any:
        return ms

    def bind(self, schema: Schema, value: Any) -> Any:
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, datetime):
            return round(value.timestamp() * 1000)
        if isinstance(value, date):
            return (value.toordinal() - date(1970, 1, 1).toordinal()) * 86_400_000
        if isinstance(value, time):
            day = datetime.combine(date(1970, 1, 1), value, UTC)
            return round(day.timestamp() * 1000)
        return value

    def table(self, name: str) -> str:
        return self.quote(name)

    def truncate(self, table: str) -> str:
        return f"DELETE FROM {self.table(table)}"

    def error(self, error: Exception) -> ConnectError:
        text = f"SQLite: {error}"
        heals = "locked" in text or "busy" in text
        return RetriableError(text) if heals else ConnectError(text)


def dialect_of(settings: Mapping[str, Any]) -> Dialect:
    """Return the dialect that parsed settings name. Raises ConfigError."""
    url, zone = settings["connection.url"], settings["db.timezone"]
    password = getattr(settings["connection.password"], "value", None)
    for prefix, kind in (("jdbc:postgresql:", PostgresDialect), ("jdbc:sqlite:", SqliteDialect)):
        if url.startswith(prefix):
            try:
                made: Dialect = kind(url, settings["connection.user"], password, zone)
            except (KeyError, ValueError) as error:
                raise ConfigError(f"db.timezone: no such time zone: {zone}") from error
            made.is_quoting = settings["quote.sql.identifiers"].lower() == "always"
            return made
    raise ConfigError(
        "Invalid value for configuration connection.url: it begins with neither "
        "jdbc:postgresql: nor jdbc:sqlite:"
    )


DRIVER_ERRORS: Final = (psycopg.Error, sqlite3.Error)

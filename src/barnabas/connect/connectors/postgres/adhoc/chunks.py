"""Reads the chunks of an incremental snapshot, and writes their marks."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg.errors import InvalidSchemaName

from barnabas.connect.connectors.postgres.adhoc.java_objects import Key
from barnabas.connect.connectors.postgres.adhoc.queries import (
    TIES_SINCE,
    Query,
    Seen,
    chunk_query,
    last_query,
    mark_data,
)
from barnabas.connect.connectors.postgres.adhoc.signals import CLOSE, OPEN
from barnabas.connect.connectors.postgres.adhoc.steps import (
    NO_PRIMARY_KEY,
    SQL_EXCEPTION,
    UNKNOWN_SCHEMA,
    ChunkRead,
    Failed,
    FindLast,
    LastFound,
    ReadChunk,
    Wanted,
)
from barnabas.connect.connectors.postgres.catalog import Catalog
from barnabas.connect.connectors.postgres.positions import lsn_of
from barnabas.connect.connectors.postgres.server import failure, quoted
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.connectors.postgres.tables import Column, Table
from barnabas.schemas.data.errors import RetriableError

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
Row = list["bytes | None"]
_AGAIN_S: Final = 0.01
_IDENTITY: Final = """
SELECT array_agg(a.attname::text ORDER BY k.place)
FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid
CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
WHERE c.oid = %s AND k.place <= i.indnkeyatts
  AND CASE WHEN c.relreplident = 'i' THEN i.indisreplident ELSE i.indisprimary END
"""
"""What the log tells of rows that are gone: the replica identity."""
_LOG_END: Final = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
  ELSE pg_current_wal_insert_lsn() END::text
"""
_UNSEEN_MAX_S: Final = 60.0


class _NotReadableError(Exception):
    """A table cannot be read; the argument is Debezium's word for it."""


class Chunks:
    """Reads on one connection at a time; `connected` gives it."""

    def __init__(
        self,
        settings: PostgresSettings,
        connected: Callable[[], psycopg.Connection[Any]],
        told: deque[int],
    ) -> None:
        """`told` are the transactions that the log has told, the last of them at least; those that
        are seen are taken out."""
        self._settings = settings
        self._connected = connected
        self._told = told
        self._opened_us = 0
        self.table: Table | None = None
        """Of the last chunk."""
        self.named_by: Sequence[str] = ()
        """The columns by which the log names that table's rows."""

    def write_open_mark(self, chunk: str) -> None:
        """Raises RetriableError, ConnectError."""
        self._opened_us = time.time_ns() // 1000
        self._insert(f"{chunk}-open", OPEN, mark_data(self._opened_us))

    def write_close_mark(self, chunk: str) -> None:
        """Raises RetriableError, ConnectError."""
        if self._settings.marks_are_deleted:
            self._delete(f"{chunk}-open")
        else:
            now_us = time.time_ns() // 1000
            self._insert(f"{chunk}-close", CLOSE, mark_data(self._opened_us, now_us))

    def log_end(self) -> int:
        """Return a place behind all commits that the last chunk has seen. Raises RetriableError."""
        try:
            row = self._connected().execute(_LOG_END.encode()).fetchone()
        except psycopg.Error as error:
            raise failure(error) from error
        assert row is not None
        return lsn_of(row[0])

    def find_last(self, wanted: FindLast) -> LastFound | Failed:
        """Find a table's greatest key. Raises RetriableError."""

        def find(table: Table, keys: Sequence[Column]) -> LastFound:
            query = last_query(self._source(table), keys, wanted.wanted.condition)
            rows = self._rows(query)
            types = tuple(column.type.name for column in keys)
            return LastFound(_key(rows[0], range(len(keys))) if rows else None, types)

        return self._reading(wanted.wanted, find)

    def read(self, wanted: ReadChunk) -> ChunkRead | Failed:
        """Read a chunk, which sees all that the log has told. Raises RetriableError."""
        size = self._settings["incremental.snapshot.chunk.size"]
        has_ties = self._connected().info.server_version >= TIES_SINCE

        def read(table: Table, keys: Sequence[Column]) -> ChunkRead:
            if len(wanted.last) != len(keys):
                _log.warning("%s has another key than the snapshot began with", table.full_name)
                raise _NotReadableError(SQL_EXCEPTION)
            condition = wanted.wanted.condition
            rows = self._rows(
                chunk_query(
                    *(self._source(table), table, keys, condition, wanted.after, wanted.last, size),
                    has_ties=has_ties,
                )
            )
            names = [column.name for column in table.columns]
            self.named_by = self._named_by(table) or [column.name for column in keys]
            named_by = [names.index(name) for name in self.named_by]
            ordered_by = [names.index(column.name) for column in keys]
            end = _key(rows[-1], ordered_by) if rows else None
            self.table = table
            return ChunkRead([(_key(row, named_by), row) for row in rows], end)

        return self._reading(wanted.wanted, read)

    def _reading(
        self, wanted: Wanted, read: Callable[[Table, Sequence[Column]], _Answer]
    ) -> _Answer | Failed:
        """Do it in a transaction that sees one state of a table that nobody alters."""
        until = time.monotonic() + _UNSEEN_MAX_S
        try:
            while True:
                with self._connected().transaction():
                    self._begin(wanted)
                    if self._sees_all_told():
                        table = self._table(wanted)
                        return read(table, self._keys(table, wanted))
                if time.monotonic() > until:
                    raise RetriableError("A transaction that the log has told is not visible yet")
                time.sleep(_AGAIN_S)  # its commit is on its way
        except _NotReadableError as error:
            return Failed(str(error))
        except psycopg.Error as error:
            kind = failure(error)
            if isinstance(kind, RetriableError):
                raise kind from error
            _log.warning(
                "The incremental snapshot passes over %s, which cannot be read: %s",
                *(wanted.table, kind),
            )
            is_gone = isinstance(error, psycopg.errors.UndefinedTable | InvalidSchemaName)
            return Failed(UNKNOWN_SCHEMA if is_gone else SQL_EXCEPTION)

    def _begin(self, wanted: Wanted) -> None:
        """What the transaction sees is not settled before it has its lock."""
        schema, _, name = wanted.table.partition(".")
        if not self._settings.wants_table(schema, name):
            _log.warning(
                "The incremental snapshot passes over %s: it is not captured", wanted.table
            )
            raise _NotReadableError(UNKNOWN_SCHEMA)
        connection = self._connected()
        connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        lock = f"LOCK TABLE ONLY {quoted(schema)}.{quoted(name)} IN ACCESS SHARE MODE"
        connection.execute(lock.encode())

    def _sees_all_told(self) -> bool:
        """A commit may be in the log shortly before others see it."""
        row = self._connected().execute(b"SELECT txid_current_snapshot()::text").fetchone()
        assert row is not None
        seen = Seen.of(row[0])
        if not all(map(seen.has, self._told)):
            return False
        self._told.clear()
        return True

    def _table(self, wanted: Wanted) -> Table:
        connection = self._connected()
        schema, _, name = wanted.table.partition(".")
        row = connection.execute(
            b"SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            b" WHERE n.nspname = %s AND c.relname = %s",
            (schema, name),
        ).fetchone()
        assert row is not None  # it is locked
        return Catalog(connection, self._settings).table(row[0], schema, name)

    def _keys(self, table: Table, wanted: Wanted) -> Sequence[Column]:
        names = (wanted.surrogate_key,) if wanted.surrogate_key else table.key
        by_name = {column.name: column for column in table.columns}
        if not names:
            _log.warning("The incremental snapshot passes over %s: it has no key", wanted.table)
            raise _NotReadableError(NO_PRIMARY_KEY)
        if not set(names) <= by_name.keys():
            _log.warning(
                "The incremental snapshot passes over %s: it has no column %s",
                *(wanted.table, ", ".join(names)),
            )
            raise _NotReadableError(SQL_EXCEPTION)
        return [by_name[name] for name in names]

    def _named_by(self, table: Table) -> Sequence[str]:
        row = self._connected().execute(_IDENTITY.encode(), (table.oid,)).fetchone()
        return table.key if row is None or row[0] is None else row[0]

    def _source(self, table: Table) -> str:
        only = "" if self._settings["publish.via.partition.root"] else "ONLY "
        return f"{only}{quoted(table.schema)}.{quoted(table.name)}"

    def _rows(self, query: Query) -> list[Row]:
        """Return rows as the server writes them."""
        with self._connected().cursor() as cursor:
            cursor.execute(query.text.encode(), query.values)
            result = cursor.pgresult
            assert result is not None
            places = range(result.nfields)
            return [[result.get_value(row, at) for at in places] for row in range(result.ntuples)]

    # Marks.

    def _insert(self, name: str, kind: str, data: str) -> None:
        self._run("INSERT INTO {} VALUES (%s, %s, %s)", (name, kind, data))

    def _delete(self, name: str) -> None:
        self._run("DELETE FROM {} WHERE id = %s", (name,))

    def _run(self, text: str, values: tuple[str, ...]) -> None:
        schema, table = self._settings.signal_table or ("", "")
        target = f"{quoted(schema)}.{quoted(table)}".replace("%", "%%")
        try:
            self._connected().execute(text.replace("{}", target).encode(), values)
        except psycopg.Error as error:
            raise failure(error) from error


def _key(row: Row, places: Sequence[int]) -> Key:
    return tuple(None if (value := row[at]) is None else value.decode() for at in places)

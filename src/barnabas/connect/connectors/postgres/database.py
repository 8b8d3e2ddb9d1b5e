"""The database as change capture asks it on the driver: tables, chunks, marks, the log's end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.errors import InvalidSchemaName, UndefinedTable

from barnabas.connect.cdc.chunks import NotReadableError
from barnabas.connect.cdc.queries import Query
from barnabas.connect.cdc.steps import SQL_EXCEPTION, UNKNOWN_SCHEMA
from barnabas.connect.cdc.tables import Table
from barnabas.connect.connectors.postgres import pgoutput
from barnabas.connect.connectors.postgres.catalog import Catalog
from barnabas.connect.connectors.postgres.positions import lsn_of
from barnabas.connect.connectors.postgres.server import failure, quoted
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.schemas.data.errors import RetriableError

LOGGED_MAX: Final = 4096
"""The last transactions of the log, which a chunk is checked to see."""
TIES_SINCE: Final = 130_000
"""The server's version that can read all rows with the last one's key."""
_AGAIN_S: Final = 0.01
_IDENTITY: Final = """
SELECT array_agg(a.attname::text ORDER BY k.place)
FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid
CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
WHERE c.oid = %s AND k.place <= i.indnkeyatts
  AND CASE WHEN c.relreplident = 'i' THEN i.indisreplident ELSE i.indisprimary END
"""
"""The columns of the replica identity, which is all that the log has of a deleted row."""
_LOG_END: Final = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
  ELSE pg_current_wal_insert_lsn() END::text
"""
_UNSEEN_MAX_S: Final = 60.0


class PostgresChunkDialect:
    """How PostgreSQL's SQL is written."""

    has_nulls_last = True

    def __init__(self, settings: PostgresSettings, server_version: int) -> None:
        self._only = "" if settings["publish.via.partition.root"] else "ONLY "
        self._has_ties = server_version >= TIES_SINCE

    def quoted(self, name: str) -> str:
        """Return an identifier in quotes."""
        return quoted(name)

    def relation(self, schema: str, name: str) -> str:
        """Return what follows FROM to read a table's own rows."""
        return f"{self._only}{quoted(schema)}.{quoted(name)}"

    def limit(self, size: int) -> str:
        """Return the clause that ends a query after so many rows, or with the last one's key."""
        return f"FETCH FIRST {size} ROWS WITH TIES" if self._has_ties else f"LIMIT {size}"


class OpenPostgresTable:
    """A table in a transaction that sees one state of it and locks out ALTER TABLE."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        settings: PostgresSettings,
        schema: str,
        name: str,
    ) -> None:
        self._connection = connection
        row = connection.execute(
            b"SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            b" WHERE n.nspname = %s AND c.relname = %s",
            (schema, name),
        ).fetchone()
        assert row is not None  # it is locked
        self.table = Catalog(connection, settings).table(row[0], schema, name)
        identity = connection.execute(_IDENTITY.encode(), (self.table.oid,)).fetchone()
        named_by = None if identity is None else identity[0]
        self.named_by: Sequence[str] = self.table.key if named_by is None else named_by
        """The columns by which the log names rows that are gone."""

    def rows(self, query: Query) -> list[list[bytes | None]]:
        """Return rows as the server writes them."""
        with self._connection.cursor() as cursor:
            cursor.execute(query.text.encode(), query.values)
            result = cursor.pgresult
            assert result is not None
            places = range(result.nfields)
            return [[result.get_value(row, at) for at in places] for row in range(result.ntuples)]


class PostgresDatabase:
    """Asks on one connection, which `connected` gives."""

    def __init__(
        self, settings: PostgresSettings, connected: Callable[[], psycopg.Connection[Any]]
    ) -> None:
        self._settings = settings
        self._connected = connected
        self._logged: deque[int] = deque(maxlen=LOGGED_MAX)
        """The last transactions that were read from the log and that no chunk has seen yet."""

    @property
    def dialect(self) -> PostgresChunkDialect:
        """The dialect of its SQL."""
        return PostgresChunkDialect(self._settings, self._connected().info.server_version)

    def captured(self) -> Sequence[Table]:
        """Return the tables that are there and wanted."""
        return Catalog(self._connected(), self._settings).captured()

    def described(self, message: bytes) -> tuple[int, Table | None]:
        """Read a Relation: the log's number of a table, and the table if it is wanted."""
        relation = pgoutput.relation(message)
        return relation.id, Catalog(self._connected(), self._settings).logged(relation)

    def transaction_begun(self, transaction: int) -> None:
        """The log has this transaction: chunks that are read from now on show its changes."""
        self._logged.append(transaction)

    def execute(self, query: Query) -> None:
        """Run a statement."""
        try:
            self._connected().execute(query.text.encode(), query.values)
        except psycopg.Error as error:
            raise failure(error) from error

    def log_end(self) -> int:
        """Return a place behind all commits that the last chunk has seen."""
        try:
            row = self._connected().execute(_LOG_END.encode()).fetchone()
        except psycopg.Error as error:
            raise failure(error) from error
        assert row is not None
        return lsn_of(row[0])

    @contextmanager
    def open_table(self, schema: str, name: str) -> Iterator[OpenPostgresTable]:
        """Open a table for one chunk, which sees all transactions that the log has."""
        until = time.monotonic() + _UNSEEN_MAX_S
        try:
            while True:
                with self._connected().transaction():
                    self._lock(schema, name)
                    if self._sees_all_logged():
                        yield OpenPostgresTable(self._connected(), self._settings, schema, name)
                        return
                if time.monotonic() > until:
                    raise RetriableError("A transaction that the log has is not visible yet")
                time.sleep(_AGAIN_S)  # its commit is on its way
        except psycopg.Error as error:
            kind = failure(error)
            if isinstance(kind, RetriableError):
                raise kind from error
            is_gone = isinstance(error, UndefinedTable | InvalidSchemaName)
            status = UNKNOWN_SCHEMA if is_gone else SQL_EXCEPTION
            raise NotReadableError(status, f"it cannot be read: {kind}") from error

    def _lock(self, schema: str, name: str) -> None:
        """The transaction's snapshot is not fixed before it has its lock."""
        connection = self._connected()
        connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        lock = f"LOCK TABLE ONLY {quoted(schema)}.{quoted(name)} IN ACCESS SHARE MODE"
        connection.execute(lock.encode())

    def _sees_all_logged(self) -> bool:
        """A commit may be in the log shortly before others see it."""
        row = self._connected().execute(b"SELECT txid_current_snapshot()::text").fetchone()
        assert row is not None
        seen = SeenTransactions.of(row[0])
        if not all(map(seen.has, self._logged)):
            return False
        self._logged.clear()
        return True


@dataclass(slots=True, frozen=True)
class SeenTransactions:
    """Which transactions a query has seen, by PostgreSQL's text of a snapshot."""

    end: int
    running: frozenset[int]

    @staticmethod
    def of(text: str) -> SeenTransactions:
        _begin, end, running = text.split(":")
        return SeenTransactions(int(end), frozenset(map(int, filter(None, running.split(",")))))

    def has(self, xid: int) -> bool:
        """Return whether it has seen a transaction, whose number is the log's: of 32 bits.

        Such a number means the transaction that is nearest to the snapshot's end.
        """
        behind = (self.end - xid) % 2**32
        if behind == 0 or behind >= 2**31:
            return False
        return self.end - behind not in self.running

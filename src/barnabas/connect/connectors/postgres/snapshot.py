"""The tables' rows as of one point of the log, in splits that are read side by side.

A temporary replication slot gives the point: its snapshot shows what was committed before, its log
would begin with what was committed after. One transaction holds the snapshot while executors read;
no locks are taken. Where that transaction is lost, the snapshot begins again, and the log is read
from before the first.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import psycopg

from barnabas.connect.cdc.snapshot import (
    SnapshotPlan,
    SnapshotRecords,
    SnapshotSplit,
    SnapshotTables,
)
from barnabas.connect.cdc.steps import Wanted
from barnabas.connect.cdc.tables import Table
from barnabas.connect.connectors.postgres.catalog import Catalog
from barnabas.connect.connectors.postgres.log import PostgresLog, SnapshotPoint
from barnabas.connect.connectors.postgres.positions import LogPosition, lsn_of
from barnabas.connect.connectors.postgres.server import (
    command,
    connect,
    connect_for_replication,
    failure,
    literal,
    quoted,
)
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.record import SourceRecord
from barnabas.schemas.data.errors import RetriableError

PAGE_SIZE: Final = 8192
Pages = tuple[int, "int | None"]
"""Pages of a table that a split reads: from the first up to but without the second; None: to its
end."""


class HeldSnapshot:
    """Holds a snapshot and plans its splits."""

    def __init__(
        self,
        settings: PostgresSettings,
        log_begin: LogPosition | None = None,
        wanted: Sequence[Wanted] = (),
        *,
        wait: Callable[[float], bool | None] = time.sleep,
    ) -> None:
        """Take it. Raises RetriableError, ConnectError.

        `wanted` are tables that a signal asks for, perhaps by a SELECT of their rows; else all.
        `log_begin` is before it where an earlier snapshot may have written rows: only the log since
        then tells which of them were deleted before this one. None: the log begins with it. `wait`
        is TaskContext's.
        """
        self._settings = settings
        self._log_begin = log_begin
        self._tables = SnapshotTables(settings, wanted)
        if settings["snapshot.delay.ms"] and wait(settings["snapshot.delay.ms"] / 1000):
            raise RetriableError("the task ends before its snapshot is due")
        slot = connect_for_replication(settings)
        try:
            name = f"barnabas_snapshot_{secrets.token_hex(8)}"
            row = command(
                slot, f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT"
            )[0]
            self._connection = connect(settings)
            try:
                self._hold(row[2] or "")
                self.point = self._point(lsn_of(row[1] or "0/0"))
                self._plan = SnapshotPlan(settings, self.point, self._with_rows())
            except psycopg.Error as error:
                self.close()
                raise failure(error) from error
        finally:
            slot.finish()  # its slot ends with it; the transaction holds the snapshot

    def next_splits(self) -> Sequence[SnapshotSplit]:
        """Return the splits of the next micro-batch; none are left: an empty sequence.

        Raises RetriableError where the snapshot is lost.
        """
        self.check()
        return self._plan.next_splits()

    def check(self) -> None:
        """Raises RetriableError where the snapshot is lost."""
        try:
            self._connection.execute(b"SELECT 1")
        except psycopg.Error as error:
            raise failure(error) from error

    def offset(self) -> dict[str, Any]:
        """Return what is stored behind the splits that `next_splits` has given."""
        state = PostgresLog.snapshot_offset(self.point, is_last=self.is_planned_out)
        return state | {"barnabas_splits": self._plan.count_planned}

    @property
    def is_planned_out(self) -> bool:
        """True if `next_splits` has given all."""
        return self._plan.is_planned_out

    def close(self) -> None:
        """Let the snapshot go."""
        self._connection.close()

    def _hold(self, name: str) -> None:
        _share(self._connection, name)
        self._connection.execute(b"SET LOCAL idle_in_transaction_session_timeout = 0")

    def _point(self, lsn: int) -> SnapshotPoint:
        row = self._connection.execute(
            b"SELECT pg_export_snapshot(), txid_snapshot_xmax(txid_current_snapshot())"
        ).fetchone()
        assert row is not None
        begin = self._log_begin or LogPosition(lsn)
        return SnapshotPoint(row[0], lsn, begin, row[1], time.time_ns() // 1000)

    def _with_rows(self) -> Iterator[tuple[Table, Sequence[Pages], str]]:
        """The wanted tables that have rows, each with its splits and its override."""
        for table in Catalog(self._connection, self._settings).captured():
            if not self._tables.wants(table):
                continue
            override = self._tables.override(table)
            query = f"SELECT 1 FROM ({select(table, self._settings, override=override)}) q LIMIT 1"
            if self._connection.execute(query.encode()).fetchone():
                yield table, self._pages(table, override), override

    def _pages(self, table: Table, override: str) -> list[Pages]:
        row = self._connection.execute(
            b"SELECT pg_relation_size(oid), relkind FROM pg_class WHERE oid = %s", (table.oid,)
        ).fetchone()
        assert row is not None
        pages = row[0] // PAGE_SIZE
        step = self._settings["snapshot.split.pages"]
        starts = [0]
        if row[1] == "r" and not override:
            starts = list(range(0, max(1, pages), step))
        return list(itertools.zip_longest(starts, starts[1:]))


def select(table: Table, settings: PostgresSettings, where: str = "", override: str = "") -> str:
    """Return the SELECT of a table's rows, columns in its own order."""
    columns = ", ".join(quoted(column.name) for column in table.columns) or "NULL"
    if override:
        return f"SELECT {columns} FROM ({override}) q"
    only = "" if settings["publish.via.partition.root"] else "ONLY "
    return f"SELECT {columns} FROM {only}{quoted(table.schema)}.{quoted(table.name)}{where}"


def _share(connection: psycopg.Connection[Any], snapshot: str) -> None:
    """Begin a transaction that sees what another one's snapshot shows."""
    connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute(f"SET TRANSACTION SNAPSHOT {literal(snapshot)}".encode())


class SnapshotReader:
    """Reads one split; runs on executors."""

    def __init__(self, settings: PostgresSettings, task: int) -> None:
        self._settings = settings
        self._records = SnapshotRecords(settings, task, PostgresLog(settings, time), time)

    def read(self, split: SnapshotSplit) -> Iterator[SourceRecord]:
        try:
            with connect(self._settings) as connection:
                _share(connection, split.point.id)
                yield from self._records.records(split, self._rows(connection, split))
        except psycopg.Error as error:
            raise failure(error) from error

    def _rows(
        self, connection: psycopg.Connection[Any], split: SnapshotSplit
    ) -> Iterator[tuple[Any, ...]]:
        start, end = split.bounds
        bounds = []
        if start:
            bounds.append(f"ctid >= '({start},0)'")
        if end is not None:
            bounds.append(f"ctid < '({end},0)'")
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        query = select(split.table, self._settings, where, split.override)
        with connection.cursor().copy(f"COPY ({query}) TO STDOUT".encode()) as copy:
            yield from copy.rows()

"""The tables' rows as of one point of the log, in splits that are read side by side.

A temporary replication slot gives the point: its snapshot shows what was committed before, its log
would begin with what was committed after. One transaction holds the snapshot while executors read;
no locks are taken. Where that transaction is lost, the snapshot begins anew, and the log is read
from before the first.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg

from barnabas.connect.connectors.postgres.adhoc.steps import Wanted
from barnabas.connect.connectors.postgres.catalog import Catalog
from barnabas.connect.connectors.postgres.positions import (
    SNAPSHOT_RUNS,
    Position,
    lsn_of,
)
from barnabas.connect.connectors.postgres.records import RecordMaker, records_of
from barnabas.connect.connectors.postgres.server import (
    command,
    connect,
    connect_for_replication,
    failure,
    literal,
    quoted,
)
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.record import SourceRecord
from barnabas.schemas.data.errors import RetriableError

PAGE_SIZE: Final = 8192
SPLITS_MIN: Final = 4
"""Splits of one micro-batch, if `snapshot.max.threads` is not above."""


@dataclass(slots=True, frozen=True)
class SnapshotPoint:
    """Where a snapshot was taken. `log_begin` is where the log is read from afterwards."""

    id: str
    lsn: int
    log_begin: Position
    xid: int
    time_us: int

    def offset(self, *, is_last: bool) -> dict[str, Any]:
        """Return what is stored of a snapshot that runs, or that has ended."""
        state = {"snapshot_completed": True} if is_last else dict(SNAPSHOT_RUNS)
        return {
            **state,
            "last_snapshot_record": is_last,
            "lsn": self.lsn,
            "txId": self.xid,
            "ts_usec": self.time_us,
            **self.log_begin.json(),
        }


@dataclass(slots=True, frozen=True)
class SnapshotSplit:
    """Pages of one table, from `start` up to but without `end`; None: to its end.

    `first` and `last` mark its first and its last row; `override` is a SELECT of its rows.
    """

    point: SnapshotPoint
    table: Table
    start: int = 0
    end: int | None = None
    first: str = "true"
    last: str = "true"
    is_final: bool = False
    override: str = ""


class Snapshot:
    """Holds a snapshot and plans its splits."""

    def __init__(
        self,
        settings: PostgresSettings,
        log_begin: Position | None = None,
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
        self._wanted = {one.table: one.condition for one in wanted}
        self.is_asked_for = bool(wanted)
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
                self.splits = self._plan()
            except psycopg.Error as error:
                self.close()
                raise failure(error) from error
        finally:
            slot.finish()  # its slot ends with it; the transaction holds the snapshot
        self._next = 0

    def next_splits(self) -> Sequence[SnapshotSplit]:
        """Return the splits of the next micro-batch; none are left: an empty sequence.

        Raises RetriableError where the snapshot is lost.
        """
        self.check()
        count = max(SPLITS_MIN, self._settings["snapshot.max.threads"])
        taken = self.splits[self._next : self._next + count]
        self._next += count
        return taken

    def check(self) -> None:
        """Raises RetriableError where the snapshot is lost."""
        try:
            self._connection.execute(b"SELECT 1")
        except psycopg.Error as error:
            raise failure(error) from error

    @property
    def is_planned_out(self) -> bool:
        """Whether `next_splits` has given all."""
        return self._next >= len(self.splits)

    @property
    def count_planned(self) -> int:
        """How many splits `next_splits` has given."""
        return min(self._next, len(self.splits))

    def close(self) -> None:
        """Let the snapshot go."""
        self._connection.close()

    def _hold(self, name: str) -> None:
        self._connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        self._connection.execute(f"SET TRANSACTION SNAPSHOT {literal(name)}".encode())
        self._connection.execute(b"SET LOCAL idle_in_transaction_session_timeout = 0")

    def _point(self, lsn: int) -> SnapshotPoint:
        row = self._connection.execute(
            b"SELECT pg_export_snapshot(), txid_snapshot_xmax(txid_current_snapshot())"
        ).fetchone()
        assert row is not None
        begin = self._log_begin or Position(lsn)
        return SnapshotPoint(row[0], lsn, begin, row[1], time.time_ns() // 1000)

    def _plan(self) -> list[SnapshotSplit]:
        tables = [
            table
            for table in Catalog(self._connection, self._settings).captured()
            if self._wants(table)
            and self._connection.execute(
                f"SELECT 1 FROM ({self._select(table)}) q LIMIT 1".encode()
            ).fetchone()
        ]
        splits = [split for table in tables for split in self._of_table(table)]
        if splits:
            splits[0] = replace(splits[0], first="first")
            splits[-1] = replace(splits[-1], last="last", is_final=True)
        return splits

    def _wants(self, table: Table) -> bool:
        if self.is_asked_for:
            is_of_signals = (table.schema, table.name) == self._settings.signal_table
            return table.full_name in self._wanted and not is_of_signals
        return self._settings.wants_rows(table.schema, table.name)

    def _override(self, table: Table) -> str:
        """The SELECT that reads the table instead; empty: none."""
        if self.is_asked_for:
            return self._wanted[table.full_name]
        return self._settings.select_override(table.schema, table.name) or ""

    def _select(self, table: Table) -> str:
        return select(table, self._settings, override=self._override(table))

    def _of_table(self, table: Table) -> list[SnapshotSplit]:
        row = self._connection.execute(
            b"SELECT pg_relation_size(oid), relkind FROM pg_class WHERE oid = %s", (table.oid,)
        ).fetchone()
        assert row is not None
        pages = row[0] // PAGE_SIZE
        step = self._settings["snapshot.split.pages"]
        starts = [0]
        override = self._override(table)
        if row[1] == "r" and not override:
            starts = list(range(0, max(1, pages), step))
        splits = [
            SnapshotSplit(self.point, table, start, end, override=override)
            for start, end in itertools.zip_longest(starts, starts[1:])
        ]
        splits[0] = replace(splits[0], first="first_in_data_collection")
        splits[-1] = replace(splits[-1], last="last_in_data_collection")
        return splits


def select(table: Table, settings: PostgresSettings, where: str = "", override: str = "") -> str:
    """Return the SELECT of a table's rows, columns in its own order."""
    columns = ", ".join(quoted(column.name) for column in table.columns) or "NULL"
    if override:
        return f"SELECT {columns} FROM ({override}) q"
    only = "" if settings["publish.via.partition.root"] else "ONLY "
    return f"SELECT {columns} FROM {only}{quoted(table.schema)}.{quoted(table.name)}{where}"


class SnapshotReader(RecordMaker):
    """Reads one split; runs on executors."""

    def read(self, split: SnapshotSplit) -> Iterator[SourceRecord]:
        try:
            with connect(self.settings) as connection:
                connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                name = literal(split.point.id)
                connection.execute(f"SET TRANSACTION SNAPSHOT {name}".encode())
                yield from self._records(split, self._rows(connection, split))
        except psycopg.Error as error:
            raise failure(error) from error

    def _rows(
        self, connection: psycopg.Connection[Any], split: SnapshotSplit
    ) -> Iterator[tuple[Any, ...]]:
        bounds = []
        if split.start:
            bounds.append(f"ctid >= '({split.start},0)'")
        if split.end is not None:
            bounds.append(f"ctid < '({split.end},0)'")
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        query = select(split.table, self.settings, where, split.override)
        with connection.cursor().copy(f"COPY ({query}) TO STDOUT".encode()) as copy:
            yield from copy.rows()

    def _records(
        self, split: SnapshotSplit, rows: Iterator[tuple[Any, ...]]
    ) -> Iterator[SourceRecord]:
        records = records_of(split.table, self.settings)
        running = split.point.offset(is_last=False)
        mark = split.first
        previous = next(rows, None)
        if previous is None:
            return
        for row in rows:
            yield self._record(records, previous, split, mark, running)
            mark, previous = "true", row
        if mark != "first" and split.last != "true":
            mark = split.last  # of a table's only row, the last mark says more
        offset = split.point.offset(is_last=True) if split.is_final else running
        yield self._record(records, previous, split, mark, offset)

    def _record(
        self, records: Any, row: Sequence[Any], split: SnapshotSplit, mark: str, offset: Any
    ) -> SourceRecord:
        point = split.point
        sequence = f'[null,"{point.lsn}"]'
        source = self.source(split.table, point.time_us, mark, sequence, point.xid, point.lsn)
        return self.record(records, "r", None, records.row(row), source, offset)

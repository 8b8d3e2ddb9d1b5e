"""Snapshots: tables as of one point of the log, in splits that are read side by side.

This is the part that all databases share: which tables are read, in which order their splits are,
and the records of their rows. A database holds the point, a transaction or a lock, and reads rows.

A snapshot is initial, or a blocking one: a signal asks for tables, perhaps by a SELECT of their
rows, and the log waits while they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.connect.cdc.database import ChangeLog, Clock
from barnabas.connect.cdc.envelopes import RecordMaker, TableRecords, records_of
from barnabas.connect.cdc.settings import CaptureSettings
from barnabas.connect.cdc.steps import Wanted
from barnabas.connect.cdc.tables import Row, Table
from barnabas.connect.record import SourceRecord

SPLITS_MIN: Final = 4
"""Splits of one micro-batch, if `snapshot.max.threads` is not above."""


@dataclass(slots=True, frozen=True)
class SnapshotSplit:
    """A part of one table: `bounds` are the database's own, None for the whole table.

    `point` is the database's too. `first` and `last` mark its first and its last row; `override`
    is a SELECT of its rows.
    """

    point: Any
    table: Table
    bounds: Any = None
    first: str = "true"
    last: str = "true"
    is_final: bool = False
    override: str = ""


class SnapshotTables:
    """Which tables a snapshot reads. `wanted` are those that a signal asks for; none: initial."""

    def __init__(self, settings: CaptureSettings, wanted: Sequence[Wanted] = ()) -> None:
        self._settings = settings
        self._wanted = {one.table: one.condition for one in wanted}

    def wants(self, table: Table) -> bool:
        """Return whether a captured table is read."""
        if self._wanted:
            is_of_signals = (table.schema, table.name) == self._settings.signal_table
            return table.full_name in self._wanted and not is_of_signals
        return self._settings.wants_rows(table.schema, table.name)

    def override(self, table: Table) -> str:
        """Return the SELECT that reads the table instead; empty: none."""
        if self._wanted:
            return self._wanted[table.full_name]
        return self._settings.select_override(table.schema, table.name) or ""


class SnapshotPlan:
    """The splits of a snapshot, given out for one micro-batch after the other.

    `tables` are tables that have rows, each with the bounds of its splits and its override.
    """

    def __init__(
        self,
        settings: CaptureSettings,
        point: Any,
        tables: Iterable[tuple[Table, Sequence[Any], str]],
    ) -> None:
        self._count = max(SPLITS_MIN, settings["snapshot.max.threads"])
        self._next = 0
        self.splits: list[SnapshotSplit] = []
        for table, bounds, override in tables:
            splits = [SnapshotSplit(point, table, one, override=override) for one in bounds]
            splits[0] = replace(splits[0], first="first_in_data_collection")
            splits[-1] = replace(splits[-1], last="last_in_data_collection")
            self.splits += splits
        if self.splits:
            self.splits[0] = replace(self.splits[0], first="first")
            self.splits[-1] = replace(self.splits[-1], last="last", is_final=True)

    def next_splits(self) -> Sequence[SnapshotSplit]:
        """Return the splits of the next micro-batch; none are left: an empty sequence."""
        taken = self.splits[self._next : self._next + self._count]
        self._next += self._count
        return taken

    @property
    def is_planned_out(self) -> bool:
        """True if `next_splits` has given all."""
        return self._next >= len(self.splits)

    @property
    def count_planned(self) -> int:
        """The number of splits that `next_splits` has returned."""
        return min(self._next, len(self.splits))


class SnapshotRecords(RecordMaker):
    """Makes the records of a split's rows, on executors."""

    def __init__(self, settings: CaptureSettings, task: int, log: ChangeLog, clock: Clock) -> None:
        super().__init__(settings, task, clock)
        self._log = log

    def records(self, split: SnapshotSplit, rows: Iterator[Row]) -> Iterator[SourceRecord]:
        """Yield the records of a split, whose rows are given."""
        records = records_of(split.table, self.settings)
        running = self._log.snapshot_offset(split.point, is_last=False)
        mark = split.first
        previous = next(rows, None)
        if previous is None:
            return
        for row in rows:
            yield self._record(records, previous, split, mark, running)
            mark, previous = "true", row
        if mark != "first" and split.last != "true":
            mark = split.last  # of a table's only row, the last mark says more
        is_last = split.is_final
        offset = self._log.snapshot_offset(split.point, is_last=True) if is_last else running
        yield self._record(records, previous, split, mark, offset)

    def _record(
        self, records: TableRecords, row: Row, split: SnapshotSplit, mark: str, offset: Any
    ) -> SourceRecord:
        source = self._log.snapshot_source(split.point, split.table, mark)
        return self.record(records, "r", None, records.row(row), source, offset)

"""The sink of a lake's tables, exactly once by offsets that are part of each commit.

A commit adds a table's rows and says, for each partition of the topics, which offset comes next.
What is read again after a failure is cut at those offsets, table by table, before it is added.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.base import SinkRange, SinkWriter, TopicPartition
from barnabas.connect.connectors.lake.rows import (
    IS_DELETE,
    OFFSET,
    RangeRows,
    read_stream,
    rows_of,
)
from barnabas.connect.connectors.lake.settings import LakeSettings, TableSettings
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConnectError, RetriableError

RECORDS_PER_COMMIT: Final = 100_000
"""Of each partition: a micro-batch's rows pass the driver."""

Offsets = Mapping[TopicPartition, int]


@dataclass(slots=True)
class Change:
    """The changes of one commit to one table.

    `rows` are added, or replace those with the same `ids`; of `deleted` only the ids count.
    """

    table: str
    rows: Any
    deleted: Any
    ids: tuple[str, ...]
    offsets: Offsets
    known: Offsets = field(default_factory=dict)
    settings: TableSettings = field(default_factory=TableSettings)

    def check(self, offsets: Offsets) -> None:
        """Raise RetriableError where the table's offsets are not those that rows were cut at.

        Another task has the partition now, or had it. The next try cuts the rows again.
        """
        moved = [place for place in self.offsets if offsets.get(place, -1) != self.known[place]]
        if moved:
            places = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(moved))
            raise RetriableError(f"table {self.table}: another task has written {places} meanwhile")


class Tables(ABC):
    """The tables of one lake, on the driver."""

    @abstractmethod
    def offsets(self, table: str, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return which offsets come next, as the table's commits say; empty where it is not there.

        Raises RetriableError, ConnectError.
        """

    @abstractmethod
    def commit(self, change: Change) -> None:
        """Carry out a change in one commit. Raises RetriableError, ConnectError."""

    def close(self) -> None:  # noqa: B027  # not all hold anything
        """Close what is open."""


class LakeWriter(SinkWriter):
    """Writes a task's records to tables."""

    report: Callable[[SinkRecord, Exception], None] | None = None

    def __init__(self, settings: LakeSettings, tables: Tables | None) -> None:
        self._settings = settings
        self._tables = tables
        self._known: dict[str, dict[TopicPartition, int]] = {}
        self._due_ms = -1

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_tables": None, "_known": {}, "_due_ms": -1}

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Forget what tables said: others write them now."""
        self._known.clear()

    def plan(self, ranges: Sequence[SinkRange], now_ms: int) -> Sequence[SinkRange]:
        """Wait for the next commit's time, or for as many records as one takes."""
        if not ranges:
            return ()
        if self._due_ms < 0:
            self._due_ms = now_ms + self._settings.interval_ms
        is_full = any(one.end - one.start >= RECORDS_PER_COMMIT for one in ranges)
        if now_ms < self._due_ms and not is_full:
            return ()
        return [replace(one, end=min(one.end, one.start + RECORDS_PER_COMMIT)) for one in ranges]

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> RangeRows:
        """Return a range's rows. Raises ConnectError."""
        return rows_of(self._settings, records, where, self.report)

    def commit(self, ranges: Sequence[SinkRange], messages: Sequence[RangeRows]) -> Offsets:
        """Commit each table's rows with the offsets that come next."""
        assert self._tables is not None
        ends = {(one.topic, one.partition): one.end for one in messages}
        for table in sorted({name for message in messages for name in message.tables}):
            try:
                self._commit_table(table, messages, ends)
            except BaseException:
                self._known.pop(table, None)  # it may have been committed
                raise
        self._due_ms = -1
        return ends

    def _commit_table(self, table: str, messages: Sequence[RangeRows], ends: Offsets) -> None:
        assert self._tables is not None
        known = self._known.setdefault(table, {})
        missing = [place for place in ends if place not in known]
        if missing:
            stored = self._tables.offsets(table, missing)
            known.update({place: stored.get(place, -1) for place in missing})
        pieces = []
        for message in messages:
            next_offset = known[message.topic, message.partition]
            for data in message.tables.get(table, ()):
                piece = read_stream(data)
                pieces.append(piece.filter(pc.greater_equal(piece[OFFSET], next_offset)))
        rows = _together(table, pieces)
        # An offset never goes back: what is read again is known already.
        offsets = {place: max(end, known[place]) for place, end in ends.items()}
        if rows.num_rows:
            before = {place: known[place] for place in offsets}
            self._tables.commit(self._change(table, rows, offsets, before))
            known.update(offsets)

    def _change(self, table: str, rows: Any, offsets: Offsets, known: Offsets) -> Change:
        settings = self._settings.of_table(table)
        if not self._settings.has_ids:
            rows = rows.drop_columns([OFFSET, IS_DELETE])
            return Change(table, rows, rows.slice(0, 0), (), offsets, known, settings)
        ids = settings.id_columns
        if not ids or any(name not in rows.column_names for name in ids):
            raise ConnectError(
                f"table {table}: upserts need id columns that records have, not {list(ids)}"
            )
        rows = latest(rows, ids)
        is_delete = rows[IS_DELETE]
        rows = rows.drop_columns([OFFSET, IS_DELETE])
        return Change(
            table,
            rows.filter(pc.invert(is_delete)),
            rows.filter(is_delete).select(list(ids)),
            ids,
            offsets,
            known,
            settings,
        )

    def stop(self) -> None:
        """Close the tables."""
        if self._tables is not None:
            self._tables.close()


_REFUSED: Final = re.compile(
    r"AccessDenied|InvalidAccessKeyId|NoSuchBucket|SignatureDoesNotMatch|\b40[13]\b|PermissionDenied"
)


def is_refused(text: str) -> bool:
    """Return whether a store has denied access, which time alone does not change."""
    return _REFUSED.search(text) is not None


def latest(rows: Any, ids: Sequence[str]) -> Any:
    """Return the last row of each id, in the order in which they came."""
    columns = [rows[name].to_pylist() for name in ids]
    last = {key: number for number, key in enumerate(zip(*columns, strict=True))}
    return rows.take(pa.array(sorted(last.values()), pa.int64()))


def _together(table: str, pieces: Sequence[Any]) -> Any:
    try:
        return pa.concat_tables(pieces, promote_options="permissive")
    except pa.ArrowException as error:
        raise ConnectError(f"table {table}: records' schemas do not fit: {error}") from error

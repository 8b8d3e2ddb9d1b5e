"""Reads the chunks of an incremental snapshot, and writes their marks, through a `Database`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from barnabas.connect.cdc.database import Clock, Database, OpenTable, Place
from barnabas.connect.cdc.queries import (
    chunk_query,
    close_mark,
    delete_mark,
    last_query,
    open_mark,
)
from barnabas.connect.cdc.settings import CaptureSettings
from barnabas.connect.cdc.steps import (
    NO_PRIMARY_KEY,
    SQL_EXCEPTION,
    UNKNOWN_SCHEMA,
    ChunkRead,
    FindLast,
    LastFound,
    ReadChunk,
    ReadFailed,
    Wanted,
)
from barnabas.connect.cdc.tables import Column, Row, Table
from barnabas.java.object_stream import Key

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


class NotReadableError(Exception):
    """A table cannot be read. `status` is Debezium's status for it; the message is logged."""

    def __init__(self, status: str, message: object) -> None:
        super().__init__(message)
        self.status = status


class Chunks:
    """Reads one chunk at a time. All may raise RetriableError."""

    def __init__(self, settings: CaptureSettings, database: Database, clock: Clock) -> None:
        self._settings = settings
        self._database = database
        self._clock = clock
        self._opened_us = 0
        self.table: Table | None = None
        """Of the last chunk."""
        self.named_by: Sequence[str] = ()
        """The columns by which the log names that table's rows."""

    def write_open_mark(self, chunk: str) -> None:
        """Write the first mark of a chunk. Raises ConnectError."""
        self._opened_us = self._clock.time_ns() // 1000
        dialect = self._database.dialect
        self._database.execute(open_mark(dialect, self._signals, chunk, self._opened_us))

    def write_close_mark(self, chunk: str) -> None:
        """Write the second mark of a chunk. Raises ConnectError."""
        dialect = self._database.dialect
        if self._settings.marks_are_deleted:
            query = delete_mark(dialect, self._signals, chunk)
        else:
            now_us = self._clock.time_ns() // 1000
            query = close_mark(dialect, self._signals, chunk, self._opened_us, now_us)
        self._database.execute(query)

    def log_end(self) -> Place:
        """Return a place behind all commits that the last chunk has seen."""
        return self._database.log_end()

    @property
    def _signals(self) -> tuple[str, str]:
        return self._settings.signal_table or ("", "")

    def find_last(self, wanted: FindLast) -> LastFound | ReadFailed:
        """Find a table's greatest key."""

        def find(opened: OpenTable, keys: Sequence[Column]) -> LastFound:
            condition = wanted.wanted.condition
            rows = opened.rows(last_query(self._database.dialect, opened.table, keys, condition))
            key_class = self._settings.types.key_class
            classes = tuple(map(key_class, keys))
            return LastFound(_key(rows[0], range(len(keys))) if rows else None, classes)

        return self._reading(wanted.wanted, find)

    def read(self, wanted: ReadChunk) -> ChunkRead | ReadFailed:
        """Read a chunk, which sees all transactions that the log has."""
        size = self._settings["incremental.snapshot.chunk.size"]

        def read(opened: OpenTable, keys: Sequence[Column]) -> ChunkRead:
            table = opened.table
            if len(wanted.last) != len(keys):
                message = f"{table.full_name} has another key than the snapshot began with"
                raise NotReadableError(SQL_EXCEPTION, message)
            condition = wanted.wanted.condition
            rows = opened.rows(
                chunk_query(
                    *(self._database.dialect, table, keys, condition),
                    *(wanted.after, wanted.last, size),
                )
            )
            names = [column.name for column in table.columns]
            self.named_by = opened.named_by or [column.name for column in keys]
            named_by = [names.index(name) for name in self.named_by]
            ordered_by = [names.index(column.name) for column in keys]
            end = _key(rows[-1], ordered_by) if rows else None
            self.table = table
            return ChunkRead([(_key(row, named_by), row) for row in rows], end)

        return self._reading(wanted.wanted, read)

    def _reading(
        self, wanted: Wanted, read: Callable[[OpenTable, Sequence[Column]], _Answer]
    ) -> _Answer | ReadFailed:
        schema, _, name = wanted.table.partition(".")
        try:
            if not self._settings.wants_table(schema, name):
                raise NotReadableError(UNKNOWN_SCHEMA, "it is not captured")
            with self._database.open_table(schema, name) as opened:
                return read(opened, _keys(opened.table, wanted))
        except NotReadableError as error:
            _log.warning("The incremental snapshot skips %s: %s", wanted.table, error)
            return ReadFailed(error.status)


def _keys(table: Table, wanted: Wanted) -> Sequence[Column]:
    names = (wanted.surrogate_key,) if wanted.surrogate_key else table.key
    by_name = {column.name: column for column in table.columns}
    if not names:
        raise NotReadableError(NO_PRIMARY_KEY, "it has no key")
    if not set(names) <= by_name.keys():
        raise NotReadableError(SQL_EXCEPTION, f"it has no column {', '.join(names)}")
    return [by_name[name] for name in names]


def _key(row: Row, places: Sequence[int]) -> Key:
    return tuple(key_text(row[at]) for at in places)


def key_text(value: Any) -> str | None:
    """Return a value of a key's column as a text."""
    if value is None or isinstance(value, str):
        return value
    return value.decode() if isinstance(value, bytes) else str(value)

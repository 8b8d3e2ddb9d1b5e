"""Incremental snapshots: a table's rows, chunk by chunk, between the log's changes (pure).

A chunk is read between two marks in the log. Until the second mark is read from the log, its rows
wait in the window, and each change of a row in the log takes that row out: the change is as new
as the row, or newer. At the mark the rest of the rows is written. So no row hides a newer
change, and the topic, replayed by key, equals the table, without locks and while changes go on.

The window opens when the chunk is read, not at its first mark: a transaction whose commit the log
has before that mark may not have been seen by the chunk. Taking a row out is never wrong, since the
log has every later change of it.

`step` takes an event and returns effects, in order. `FindLast` and `ReadChunk` are answered by the
next event, and are the last effect of a step.

Source: Andreakis and Papapanagiotou, "DBLog: A Watermark Based Change-Data-Capture Framework";
Debezium's documentation, "Incremental snapshots", and its notifications.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.connect.cdc.steps import (
    ABORTED,
    COMPLETED,
    EMPTY,
    IN_PROGRESS,
    PAUSED,
    RESUMED,
    STARTED,
    SUCCEEDED,
    TABLE_SCAN_COMPLETED,
    Altered,
    Asked,
    Begun,
    Changed,
    ChunkRead,
    Effect,
    Emit,
    Emptied,
    Event,
    FindLast,
    LastFound,
    MarkRead,
    Notify,
    PauseAsked,
    ReadChunk,
    ReadFailed,
    ResumeAsked,
    SnapshotProgress,
    StopAsked,
    Wanted,
    WriteCloseMark,
    WriteOpenMark,
)
from barnabas.java.object_stream import Key
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError


@dataclass(slots=True)
class _Window:
    """A chunk whose second mark is not read from the log yet."""

    chunk: str
    table: str = ""
    rows: dict[Key, list[Any]] = field(default_factory=dict)
    end: Key | None = None


class IncrementalSnapshot:
    """Follows signals, chunks and the log. `ids` gives a new name for each chunk."""

    def __init__(self, progress: SnapshotProgress, ids: Iterator[str]) -> None:
        self.progress = progress
        self._ids = ids
        self._window: _Window | None = None
        self._rows_scanned = 0

    @property
    def awaited(self) -> str | None:
        """The table whose changes are needed; None for none."""
        window = self._window
        return window.table if window is not None and window.rows else None

    def step(self, event: Event) -> list[Effect]:
        """Take an event; return its effects."""
        match event:
            case Changed(table, keys):
                return self._changed(table, keys)
            case Emptied(table):
                if self._window is not None and self._window.table == table:
                    self._window.rows.clear()
                return []
            case Altered(table):
                return self._chunk() if table == self.awaited else []
            case MarkRead(chunk):
                return self._mark_read(chunk)
            case LastFound(last, types):
                return self._last_found(last, types)
            case ChunkRead(rows, end):
                return self._chunk_read(rows, end)
            case ReadFailed(status):
                return self._scanned(status)
            case Asked(signal, tables):
                return self._asked(signal, tables)
            case StopAsked(patterns):
                return self._stopped(patterns)
            case PauseAsked():
                return self._paused(is_paused=True)
            case ResumeAsked():
                return self._paused(is_paused=False)
            case Begun():
                return self._chunk()

    # Signals.

    def _asked(self, signal: str, tables: tuple[Wanted, ...]) -> list[Effect]:
        was_running = self.progress.is_running
        all_tables = self.progress.tables + tables
        self.progress = replace(self.progress, tables=all_tables, correlation_id=signal)
        if was_running or not tables:
            return []
        return [self._notify(STARTED, data_collections=self._names()), *self._chunk()]

    def _stopped(self, patterns: tuple[str, ...]) -> list[Effect]:
        """Rows of the first table that were read but not written are dropped."""
        if not self.progress.is_running:
            return []
        is_left_out = [
            not patterns or any(_matches(pattern, one.table) for pattern in patterns)
            for one in self.progress.tables
        ]
        pairs = list(zip(self.progress.tables, is_left_out, strict=True))
        names = dict.fromkeys(one.table for one, is_out in pairs if is_out)
        note = self._notify(ABORTED, data_collections=",".join(names))
        kept = tuple(one for one, is_out in pairs if not is_out)
        self.progress = replace(self.progress, tables=kept)
        if not is_left_out[0]:
            return [note]
        self._forget_place()
        if kept:
            return [note, *self._chunk()]
        self._end()
        return [note]

    def _paused(self, *, is_paused: bool) -> list[Effect]:
        if not self.progress.is_running or self.progress.is_paused == is_paused:
            return []
        self.progress = replace(self.progress, is_paused=is_paused)
        note = self._notify(PAUSED if is_paused else RESUMED, data_collections=self._names())
        # A chunk that is read is written at its mark, and the next one follows then.
        goes_on = not is_paused and self._window is None
        return [note, *self._chunk()] if goes_on else [note]

    # Chunks.

    def _chunk(self) -> list[Effect]:
        self._window = None
        if not self.progress.is_running or self.progress.is_paused:
            return []
        self._window = _Window(next(self._ids))
        return [WriteOpenMark(self._window.chunk), self._ask()]

    def _ask(self) -> Effect:
        first = self.progress.tables[0]
        if self.progress.last is None:
            return FindLast(first)
        return ReadChunk(first, self.progress.done, self.progress.last)

    def _last_found(self, last: Key | None, types: tuple[str, ...]) -> list[Effect]:
        if last is None:
            return self._scanned(EMPTY)
        self.progress = replace(self.progress, last=last, key_classes=types)
        return [self._ask()]

    def _chunk_read(self, rows: Sequence[tuple[Key, Any]], end: Key | None) -> list[Effect]:
        if not rows:
            return self._scanned(SUCCEEDED)
        window, progress = self._open_window(), self.progress
        window.table, window.end = progress.tables[0].table, end
        for key, row in rows:
            window.rows.setdefault(key, []).append(row)
        self._rows_scanned += len(rows)
        note = self._notify(
            IN_PROGRESS,
            data_collections=self._names(),
            current_collection_in_progress=window.table,
            maximum_key=_listed(progress.last),
            last_processed_key=_listed(end),
        )
        return [note, WriteCloseMark(window.chunk)]

    def _scanned(self, status: str) -> list[Effect]:
        """The first table is done or has failed; the next one follows between the same marks."""
        note = [
            self._notify(
                TABLE_SCAN_COMPLETED,
                data_collections=self._names(),
                scanned_collection=self.progress.tables[0].table,
                total_rows_scanned=str(self._rows_scanned),
                status=status,
            )
        ]
        self._forget_place()
        self.progress = replace(self.progress, tables=self.progress.tables[1:])
        window = self._open_window()
        self._window = window
        if self.progress.is_running:
            return [*note, self._ask()]
        note.append(self._notify(COMPLETED))
        self._end()
        return [*note, WriteCloseMark(window.chunk)]

    def _mark_read(self, chunk: str) -> list[Effect]:
        """Marks of earlier runs may come again, and are ignored."""
        window = self._window
        if window is None or window.chunk != chunk or window.end is None:
            return []
        rows = [row for same in window.rows.values() for row in same]
        self.progress = replace(self.progress, done=window.end)
        return [Emit(rows), *self._chunk()] if rows else self._chunk()

    def _changed(self, table: str, keys: tuple[Key, ...]) -> list[Effect]:
        window = self._window
        if window is not None and window.table == table:
            for key in keys:
                window.rows.pop(key, None)
        return []

    def _open_window(self) -> _Window:
        assert self._window is not None
        return self._window

    def _forget_place(self) -> None:
        """The next chunk is the first of another table."""
        self.progress = replace(self.progress, done=None, last=None, key_classes=())
        self._rows_scanned = 0

    def _end(self) -> None:
        self._window = None
        self.progress = SnapshotProgress()

    # Notifications.

    def _notify(self, status: str, /, **data: str) -> Notify:
        return Notify(status, self.progress.correlation_id, tuple(data.items()))

    def _names(self) -> str:
        return ",".join(one.table for one in self.progress.tables)


def _matches(pattern: str, table: str) -> bool:
    try:
        return compile_java(pattern).matches(table)
    except PatternError:
        return pattern == table


def _listed(key: Key | None) -> str:
    return ",".join("<null>" if value is None else value for value in key or ())

"""Snapshots that signals ask for while the log is read: takes signals, reads chunks in time, and
keeps track of the progress. Runs on the driver.

Its results are items between the log's messages, of which executors make records.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from barnabas.connect.cdc import stored
from barnabas.connect.cdc.changes import (
    INCREMENTAL_SNAPSHOT,
    AdHocItem,
    ChunkRows,
    Note,
    StateChanged,
)
from barnabas.connect.cdc.chunks import Chunks, key_text
from barnabas.connect.cdc.database import (
    BEGIN,
    COMMIT,
    DELETE,
    ROW_CHANGES,
    TRUNCATE,
    UPDATE,
    ChangeLog,
    Clock,
    Database,
    LogState,
    Place,
)
from barnabas.connect.cdc.incremental import IncrementalSnapshot
from barnabas.connect.cdc.settings import CaptureSettings
from barnabas.connect.cdc.signals import CLOSE, OPEN, BlockingAsked, Signal, request_of
from barnabas.connect.cdc.steps import (
    Altered,
    Asked,
    Begun,
    Changed,
    Emit,
    Emptied,
    Event,
    FindLast,
    MarkRead,
    Notify,
    ReadChunk,
    SnapshotProgress,
    WriteCloseMark,
    WriteOpenMark,
)
from barnabas.connect.cdc.tables import UNCHANGED, Table
from barnabas.connect.record import JsonMap
from barnabas.java.object_stream import Key

_log = logging.getLogger(__name__)


class SignalChannel(Protocol):
    """A source of signals beside the log."""

    def read(self) -> list[Signal]:
        """Return the signals there are."""

    def stored(self) -> None:
        """The effects of the signals so far are stored."""

    def close(self) -> None:
        """Close what is open."""


class AdHocSnapshots:
    """Follows the log from where a stored offset ends. Raises RetriableError, ConnectError.

    `ids` gives names that no other run gives, for chunks and notifications.
    """

    def __init__(
        self,
        settings: CaptureSettings,
        database: Database,
        log: ChangeLog,
        channels: Sequence[SignalChannel],
        offset: JsonMap,
        *,
        clock: Clock,
        ids: Iterator[str],
    ) -> None:
        self._settings = settings
        self._database = database
        self._log = log
        self._clock, self._ids = clock, ids
        self._chunks = Chunks(settings, database, clock)
        progress = stored.progress_of(offset)
        self._has_marks = settings["read.only"] or settings.signal_table is not None
        if progress.is_running and not self._has_marks:
            _log.warning("The incremental snapshot is abandoned: signal.data.collection is missing")
            progress = SnapshotProgress()
        self._snapshot = IncrementalSnapshot(progress, ids)
        self._is_begun = False
        self._writes_marks = not settings["read.only"]
        self._mark: tuple[Place, str] | None = None
        """Without marks: the place in the log that stands for one, and its chunk."""
        self._channels = channels
        self._poll_due = 0.0
        self._notes: list[AdHocItem] = []
        self.blocking = stored.blocking_of(offset)
        """The tables that a blocking snapshot reads before the log continues."""
        self.fields = stored.fields(self._snapshot.progress, self.blocking)
        """The keys that offsets have of it."""

    def polled(self, state: LogState) -> list[AdHocItem]:
        """Resume what was stored, once, and read signals that are not in the log."""
        items, self._notes = self._notes, []
        if not self._is_begun:
            self._is_begun = True
            items += self._step(Begun())
        if self._channels and self._clock.monotonic() >= self._poll_due:
            self._poll_due = (
                self._clock.monotonic() + self._settings["signal.poll.interval.ms"] / 1000
            )
            for channel in self._channels:
                for signal in channel.read():
                    items += self._signal_read(signal)
        return items + self.advanced(state)

    def advanced(self, state: LogState) -> list[AdHocItem]:
        """The log is read to another place, which may be that of a mark.

        Only one chunk a call: without writes all chunks have their mark at the same place, and a
        micro-batch has one chunk.
        """
        if self._mark is None or state.done < self._mark[0]:
            return []
        (_place, chunk), self._mark = self._mark, None
        return self._step(MarkRead(chunk))

    def stored(self) -> None:
        """All effects so far are stored."""
        for channel in self._channels:
            channel.stored()

    def close(self) -> None:
        """Close what is open."""
        for channel in self._channels:
            channel.close()

    def keep(self, items: Sequence[object]) -> None:
        """Notifications wait: there is no micro-batch for them yet."""
        self._notes += [item for item in items if isinstance(item, Note)]

    def blocking_done(self) -> None:
        """The blocking snapshot is planned to its end."""
        self.blocking = ()
        self._state_changed()

    def follow(self, message: Any, state: LogState, *, is_wanted: bool) -> list[AdHocItem]:
        """Follow a message of the log; return what comes before it.

        One that is not wanted may be a change that was written before, or of a table that is not
        captured.
        """
        operation = self._log.operation(message)
        if operation == BEGIN:
            if state.transaction is not None:
                self._database.transaction_begun(state.transaction)
        elif operation in ROW_CHANGES:
            table = state.tables.get(self._log.number(message))
            if table is None:
                return []
            items: list[AdHocItem] = []
            if table.full_name == self._snapshot.awaited:
                items = self._changed(operation, message, table)
            if is_wanted and (table.schema, table.name) == self._settings.signal_table:
                items += self._signalled(operation, message, table)
            return items
        elif operation == COMMIT:
            return self.advanced(state)
        elif operation == TRUNCATE and self._snapshot.awaited is not None:
            for number in self._log.emptied(message):
                if (emptied := state.tables.get(number)) is not None:
                    self._snapshot.step(Emptied(emptied.full_name))
        return []

    def learnt(self, table: Table) -> list[AdHocItem]:
        """The log describes a table: a chunk with other columns is read again."""
        read = self._chunks.table
        if table.full_name != self._snapshot.awaited or read is None:
            return []
        return [] if _shape(table) == _shape(read) else self._step(Altered(table.full_name))

    # The log.

    def _changed(self, operation: str, message: Any, table: Table) -> list[AdHocItem]:
        """Only a change that becomes an event makes a row superfluous."""
        if operation in self._settings.skipped_operations:
            return []
        change = self._log.row_change(message)
        names = [column.name for column in table.columns]
        if not set(self._chunks.named_by) <= set(names):
            return self._step(Altered(table.full_name))
        places = [names.index(name) for name in self._chunks.named_by]
        keys: list[Key] = []
        for row in (change.old, change.new):
            if row is None:
                continue
            is_old_key = row is change.old and change.old_is_key
            key: list[str | None] = []
            for place in places:
                value = row[place]
                if value is UNCHANGED and change.old is not None:
                    value = change.old[place]
                if value is UNCHANGED or (value is None and is_old_key):
                    return self._step(Altered(table.full_name))  # it may be any row
                key.append(key_text(value))
            keys.append(tuple(key))
        self._snapshot.step(Changed(table.full_name, tuple(keys)))
        return []

    def _signalled(self, operation: str, message: Any, table: Table) -> list[AdHocItem]:
        change = self._log.row_change(message)
        row = change.old if operation == DELETE else change.new
        if row is None or operation == UPDATE:
            return []
        values = [None if row[at] is UNCHANGED else key_text(row[at]) for at in table.kept]
        if operation == DELETE:
            opened = values[0] or ""
            is_mark = self._settings.marks_are_deleted and opened.endswith("-open")
            return self._step(MarkRead(opened.removesuffix("-open"))) if is_mark else []
        if len(values) != 3:
            _log.warning("%s does not have three columns: its signals are ignored", table.full_name)
            return []
        name, signal, text = values
        if signal == CLOSE:
            return self._step(MarkRead((name or "").removesuffix("-close")))
        if signal == OPEN or "source" not in self._settings.signal_channels:
            return []
        return self._signal_read(Signal(name or "", signal or "", text))

    # Signals.

    def _signal_read(self, signal: Signal) -> list[AdHocItem]:
        request = request_of(signal, self._captured())
        if request is None:
            return []
        _log.info("The signal %s asks for %s", signal.id, signal.kind)
        if isinstance(request, BlockingAsked):
            self.blocking += request.tables
            return self._state_changed()
        if isinstance(request, Asked) and not self._has_marks:
            _log.warning(
                "The signal %s is ignored: incremental snapshots need signal.data.collection",
                signal.id,
            )
            return []
        return self._step(request)

    def _captured(self) -> list[str]:
        signals = self._settings.signal_table
        tables = self._database.captured()
        return [one.full_name for one in tables if (one.schema, one.name) != signals]

    # Steps.

    def _step(self, event: Event) -> list[AdHocItem]:
        """Take a step, and carry out its effects."""
        items: list[AdHocItem] = []
        events = deque([event])
        while events:
            for effect in self._snapshot.step(events.popleft()):
                match effect:
                    case WriteOpenMark(chunk):
                        if self._writes_marks:
                            self._chunks.write_open_mark(chunk)
                    case WriteCloseMark(chunk):
                        if self._writes_marks:
                            self._chunks.write_close_mark(chunk)
                        else:
                            self._mark = self._chunks.log_end(), chunk
                    case FindLast():
                        events.append(self._chunks.find_last(effect))
                    case ReadChunk():
                        events.append(self._chunks.read(effect))
                    case Emit(rows):
                        assert self._chunks.table is not None
                        items.append(ChunkRows(self._chunks.table, rows))
                    case Notify():
                        items += self._noted(effect)
        return items + self._state_changed()

    def _state_changed(self) -> list[AdHocItem]:
        fields = stored.fields(self._snapshot.progress, self.blocking)
        if fields == self.fields:
            return []
        self.fields = fields
        return [StateChanged(fields)]

    def _noted(self, notify: Notify) -> list[AdHocItem]:
        data = dict(notify.data) | {"connector_name": self._settings.topic_prefix}
        note = Note(
            *(notify.correlation_id or next(self._ids), INCREMENTAL_SNAPSHOT, notify.status, data),
            time_ms=self._clock.time_ns() // 1_000_000,
        )
        if "log" in self._settings.notification_channels:
            _log.info("Notification: %s", note)
        return [note] if "sink" in self._settings.notification_channels else []


def _shape(table: Table) -> list[tuple[str, Any]]:
    return [(column.name, column.type) for column in table.columns]

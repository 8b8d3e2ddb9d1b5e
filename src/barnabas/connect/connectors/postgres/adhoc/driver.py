"""On the driver: hears signals, reads chunks when it is their time, and remembers how far it is.

What comes of it are items between the log's messages, for executors to make records of.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import psycopg

from barnabas.connect.connectors.postgres import pgoutput
from barnabas.connect.connectors.postgres.adhoc import stored
from barnabas.connect.connectors.postgres.adhoc.channels import channels_of
from barnabas.connect.connectors.postgres.adhoc.chunks import Chunks
from barnabas.connect.connectors.postgres.adhoc.incremental import IncrementalSnapshot
from barnabas.connect.connectors.postgres.adhoc.items import (
    AdHocItem,
    ChunkRows,
    Note,
    StateChanged,
)
from barnabas.connect.connectors.postgres.adhoc.java_objects import Key
from barnabas.connect.connectors.postgres.adhoc.signals import (
    CLOSE,
    OPEN,
    BlockingAsked,
    Signal,
    request_of,
)
from barnabas.connect.connectors.postgres.adhoc.steps import (
    Altered,
    Asked,
    Begun,
    Changed,
    Emit,
    Emptied,
    Event,
    FindLast,
    MarkRead,
    Progress,
    ReadChunk,
    Tell,
    WriteCloseMark,
    WriteOpenMark,
)
from barnabas.connect.connectors.postgres.catalog import Catalog
from barnabas.connect.connectors.postgres.log_state import LogState
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.record import JsonMap

_log = logging.getLogger(__name__)
TOLD_MAX: Final = 4096
"""Transactions of the log that a chunk is known to see, whatever their commits wait for."""
_KINDS: Final = {pgoutput.INSERT: "c", pgoutput.UPDATE: "u", pgoutput.DELETE: "d"}
INCREMENTAL: Final = "Incremental Snapshot"


class AdHocSnapshots:
    """Follows the log from where a stored offset ends. Raises RetriableError, ConnectError."""

    def __init__(
        self,
        settings: PostgresSettings,
        connected: Callable[[], psycopg.Connection[Any]],
        offset: JsonMap,
    ) -> None:
        self._settings = settings
        self._connected = connected
        self._told: deque[int] = deque(maxlen=TOLD_MAX)
        self._chunks = Chunks(settings, connected, self._told)
        progress = stored.progress_of(offset)
        self._has_marks = settings["read.only"] or settings.signal_table is not None
        if progress.is_running and not self._has_marks:
            _log.warning("The incremental snapshot is given up: signal.data.collection is missing")
            progress = Progress()
        self._snapshot = IncrementalSnapshot(progress, _ids())
        self._is_begun = False
        self._writes_marks = not settings["read.only"]
        self._mark: tuple[int, str] | None = None
        """Without marks: the place in the log that stands for one, and its chunk."""
        self._channels = channels_of(settings)
        self._poll_due = 0.0
        self._notes: list[AdHocItem] = []
        self.blocking = stored.blocking_of(offset)
        """What a blocking snapshot is to read, before the log goes on."""
        self.fields = stored.fields(self._snapshot.progress, self.blocking)
        """The keys that offsets have of it."""

    def polled(self, log: LogState) -> list[AdHocItem]:
        """Go on with what was stored, at first, and hear signals that are not in the log."""
        items, self._notes = self._notes, []
        if not self._is_begun:
            self._is_begun = True
            items += self._done(Begun())
        if self._channels and time.monotonic() >= self._poll_due:
            self._poll_due = time.monotonic() + self._settings["signal.poll.interval.ms"] / 1000
            for channel in self._channels:
                for signal in channel.read():
                    items += self._heard(signal)
        return items + self.advanced(log)

    def advanced(self, log: LogState) -> list[AdHocItem]:
        """The log is read to another place, which may be that of a mark.

        Of one mark: where nobody writes, each chunk's is at the same place, and a micro-batch has
        one chunk.
        """
        if self._mark is None or log.position.done < self._mark[0]:
            return []
        (_place, chunk), self._mark = self._mark, None
        return self._done(MarkRead(chunk))

    def stored(self) -> None:
        """What came of all so far is stored."""
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

    def follow(self, data: bytes, log: LogState, *, is_wanted: bool) -> list[AdHocItem]:
        """Follow a message of the log; return what comes before it.

        One that is not wanted may be a change that was written before, or nobody's.
        """
        kind = data[0]
        if kind == pgoutput.BEGIN:
            if log.transaction is not None:
                self._told.append(log.transaction.xid)
        elif kind in pgoutput.ROW_CHANGES:
            table = log.tables.get(pgoutput.relation_id(data))
            if table is None:
                return []
            items: list[AdHocItem] = []
            if table.full_name == self._snapshot.awaited:
                items = self._changed(kind, data, table)
            if is_wanted and (table.schema, table.name) == self._settings.signal_table:
                items += self._signalled(kind, data, table)
            return items
        elif kind == pgoutput.COMMIT:
            return self.advanced(log)
        elif kind == pgoutput.TRUNCATE and self._snapshot.awaited is not None:
            for number in pgoutput.truncated(data):
                if (emptied := log.tables.get(number)) is not None:
                    self._snapshot.step(Emptied(emptied.full_name))
        return []

    def learnt(self, table: Table) -> list[AdHocItem]:
        """The log tells what a table is made of: rows that are not so are read again."""
        read = self._chunks.table
        if table.full_name != self._snapshot.awaited or read is None:
            return []
        return [] if _shape(table) == _shape(read) else self._done(Altered(table.full_name))

    # The log.

    def _changed(self, kind: int, data: bytes, table: Table) -> list[AdHocItem]:
        """Only a change that becomes an event makes a row superfluous."""
        if _KINDS[kind] in self._settings.skipped_operations:
            return []
        change = pgoutput.row_change(data)
        names = [column.name for column in table.columns]
        if not set(self._chunks.named_by) <= set(names):
            return self._done(Altered(table.full_name))
        places = [names.index(name) for name in self._chunks.named_by]
        keys: list[Key] = []
        for row in (change.old, change.new):
            if row is None:
                continue
            is_old_key = row is change.old and change.old_is_key
            key: list[str | None] = []
            for place in places:
                value = row[place]
                if value is pgoutput.UNCHANGED and change.old is not None:
                    value = change.old[place]
                if value is pgoutput.UNCHANGED or (value is None and is_old_key):
                    return self._done(Altered(table.full_name))  # who knows which row it is
                key.append(value.decode() if isinstance(value, bytes) else None)
            keys.append(tuple(key))
        self._snapshot.step(Changed(table.full_name, tuple(keys)))
        return []

    def _signalled(self, kind: int, data: bytes, table: Table) -> list[AdHocItem]:
        change = pgoutput.row_change(data)
        row = change.old if kind == pgoutput.DELETE else change.new
        if row is None or kind == pgoutput.UPDATE:
            return []
        values = [
            value.decode() if isinstance(value := row[place], bytes) else None
            for place in table.kept
        ]
        if kind == pgoutput.DELETE:
            opened = values[0] or ""
            is_mark = self._settings.marks_are_deleted and opened.endswith("-open")
            return self._done(MarkRead(opened.removesuffix("-open"))) if is_mark else []
        if len(values) != 3:
            _log.warning("%s has not three columns: signals are passed over", table.full_name)
            return []
        name, signal, text = values
        if signal == CLOSE:
            return self._done(MarkRead((name or "").removesuffix("-close")))
        if signal == OPEN or "source" not in self._settings.signal_channels:
            return []
        return self._heard(Signal(name or "", signal or "", text))

    # Signals.

    def _heard(self, signal: Signal) -> list[AdHocItem]:
        request = request_of(signal, self._captured())
        if request is None:
            return []
        _log.info("The signal %s asks for %s", signal.id, signal.kind)
        if isinstance(request, BlockingAsked):
            self.blocking += request.tables
            return self._state_changed()
        if isinstance(request, Asked) and not self._has_marks:
            _log.warning(
                "The signal %s is passed over: incremental snapshots need signal.data.collection",
                signal.id,
            )
            return []
        return self._done(request)

    def _captured(self) -> list[str]:
        tables = Catalog(self._connected(), self._settings).captured()
        signals = self._settings.signal_table
        return [one.full_name for one in tables if (one.schema, one.name) != signals]

    # What is to be done.

    def _done(self, event: Event) -> list[AdHocItem]:
        """Let something happen, and do what is to be done then."""
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
                    case Tell():
                        items += self._noted(effect)
        return items + self._state_changed()

    def _state_changed(self) -> list[AdHocItem]:
        fields = stored.fields(self._snapshot.progress, self.blocking)
        if fields == self.fields:
            return []
        self.fields = fields
        return [StateChanged(fields)]

    def _noted(self, told: Tell) -> list[AdHocItem]:
        data = dict(told.data) | {"connector_name": self._settings.topic_prefix}
        note = Note(
            *(told.correlation_id or str(uuid.uuid4()), INCREMENTAL, told.status, data),
            time_ms=time.time_ns() // 1_000_000,
        )
        if "log" in self._settings.notification_channels:
            _log.info("Notification: %s", note)
        return [note] if "sink" in self._settings.notification_channels else []


def _ids() -> Iterator[str]:
    while True:
        yield str(uuid.uuid4())


def _shape(table: Table) -> list[tuple[str, Any]]:
    return [(column.name, column.type) for column in table.columns]

"""Turns a split of the log into records, on executors, and counts its events, on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.connect.cdc.database import (
    BEGIN,
    COMMIT,
    CREATE,
    DELETE,
    HEARTBEAT,
    INCREMENTAL,
    MESSAGE,
    TRUNCATE,
    UPDATE,
    ChangeLog,
    Clock,
    LogCursor,
    Place,
)
from barnabas.connect.cdc.envelopes import RecordMaker, TableRecords, records_of
from barnabas.connect.cdc.settings import CaptureSettings
from barnabas.connect.cdc.tables import Row, Table
from barnabas.connect.cdc.transactions import KEY, MESSAGES, EventCounts, begun
from barnabas.connect.record import Header, JsonMap, SourceRecord
from barnabas.schemas.data.builder import INT64, STRING, map_of, optional, struct_of
from barnabas.schemas.data.schema import Struct

# Reports about snapshots.
#
# Source: Debezium's documentation, "Notifications".

INCREMENTAL_SNAPSHOT: Final = "Incremental Snapshot"
NOTE_KEY: Final = struct_of(
    {"id": STRING}, name="io.debezium.connector.common.NotificationKey", version=1
)
NOTE_VALUE: Final = struct_of(
    {
        "id": STRING,
        "type": STRING,
        "aggregate_type": STRING,
        "additional_data": optional(map_of(STRING, STRING)),
        "timestamp": INT64,
    },
    name="io.debezium.connector.common.Notification",
    version=1,
)


@dataclass(slots=True, frozen=True)
class Note:
    """A notification."""

    id: str
    kind: str
    status: str
    data: dict[str, str]
    time_ms: int


def note_value(note: Note) -> Struct:
    """Return the value of a notification's record."""
    return Struct(NOTE_VALUE, [note.id, note.status, note.kind, note.data, note.time_ms])


# Entries that the driver puts between the log's messages.


@dataclass(slots=True, frozen=True)
class TableChanged:
    """From here on a table has this definition; None: its changes are not wanted."""

    number: int
    table: Table | None


@dataclass(slots=True, frozen=True)
class Beat:
    """A heartbeat is due."""

    now_ms: int


@dataclass(slots=True, frozen=True)
class ChunkRows:
    """Rows of a chunk of an incremental snapshot."""

    table: Table
    rows: Sequence[Row] = field(repr=False)


@dataclass(slots=True, frozen=True)
class StateChanged:
    """From here on offsets have these keys of ad-hoc snapshots."""

    fields: dict[str, Any]


AdHocItem = ChunkRows | StateChanged | Note
_INSERTED: Final = frozenset((TableChanged, Beat, ChunkRows, StateChanged, Note))


def is_message(item: object) -> bool:
    """Return whether an item of a split is a message of the log."""
    return type(item) not in _INSERTED


Item = tuple[Place, Any, int]
"""A place in the log, a message or what the driver inserted, and how many changes of its
transaction are read with it."""


@dataclass(slots=True)
class LogSplit:
    """A piece of the log: where it begins, the tables as they were there, and its messages.

    `counts` are of the events of the transaction in which it begins; None: they are not wanted.
    `adhoc` are the keys that offsets have of ad-hoc snapshots there.
    """

    start: Any
    tables: dict[int, Table | None]
    items: list[Item] = field(repr=False)
    counts: dict[str, int] | None = None
    adhoc: dict[str, Any] = field(default_factory=dict)


def counts_after(
    split: LogSplit, log: ChangeLog, settings: CaptureSettings
) -> dict[str, int] | None:
    """Return how many events there are of the transaction in which a split ends, by table.

    Nothing is made of the changes; only an update with a row before it is read, for its key.
    """
    if split.counts is None:
        return None
    counts, skipped = EventCounts(split.counts), settings.skipped_operations
    tables = dict(split.tables)
    is_in_transaction = log.cursor(split.start).is_in_transaction
    for _place, item, _events in split.items:
        if not is_message(item):
            if isinstance(item, TableChanged):
                tables[item.number] = item.table
            continue
        operation = log.operation(item)
        if operation == BEGIN:
            is_in_transaction = True
        elif operation == COMMIT:
            counts, is_in_transaction = EventCounts(), False
        elif is_in_transaction and operation not in skipped:
            for collection, events in _events_of(operation, item, tables, log, settings):
                counts.add(collection, events)
    return counts.by_collection


def _events_of(
    operation: str,
    message: Any,
    tables: dict[int, Table | None],
    log: ChangeLog,
    settings: CaptureSettings,
) -> Iterator[tuple[str, int]]:
    """Yield the number of events that a message becomes, by table."""
    if operation == MESSAGE:
        if settings.wants_message(log.message_prefix(message)):
            yield MESSAGES, 1
    elif operation == TRUNCATE:
        for number in log.emptied(message):
            if (table := tables.get(number)) is not None:
                yield table.full_name, 1
    elif (table := tables.get(log.number(message))) is not None:
        if operation == CREATE:
            yield table.full_name, 1
        elif not log.has_old_row(message):
            if operation == UPDATE:
                yield table.full_name, 1
        elif operation == DELETE:
            yield table.full_name, 1
        else:
            is_moved = records_of(table, settings).is_moved(log.row_change(message))
            yield table.full_name, 2 if is_moved else 1


class ChangeRecords(RecordMaker):
    """Turns one split of the log into records."""

    _cursor: LogCursor
    _counts: EventCounts | None = None
    _is_begin_due = False

    def __init__(self, settings: CaptureSettings, task: int, log: ChangeLog, clock: Clock) -> None:
        super().__init__(settings, task, clock)
        self._log = log

    def read(self, split: LogSplit) -> Iterator[SourceRecord]:
        """Yield the records of a split, in order."""
        log = self._log
        cursor = self._cursor = log.cursor(split.start)
        tables = {number: self._records(table) for number, table in split.tables.items()}
        if split.counts is not None:
            self._counts = EventCounts(split.counts)
            self._is_begin_due = not split.counts
        adhoc = split.adhoc
        for place, item, events in split.items:
            if not is_message(item):
                if isinstance(item, TableChanged):
                    tables[item.number] = self._records(item.table)
                elif isinstance(item, StateChanged):
                    adhoc = item.fields
                else:
                    yield from self._beside(item, place, adhoc)
                continue
            operation = log.operation(item)
            if operation == COMMIT:
                yield from self._committed(place, item, events, adhoc)
                continue
            cursor.follow(place, operation, item, events)
            if operation == BEGIN:
                continue
            offset = cursor.offset(place, operation)
            if adhoc:
                offset |= adhoc
            for record in self._change(operation, item, tables, place, offset):
                if self._is_begin_due and cursor.is_in_transaction:
                    yield self._begun(offset)
                yield record

    def _records(self, table: Table | None) -> TableRecords | None:
        return None if table is None else records_of(table, self.settings)

    def _beside(
        self, item: Beat | ChunkRows | Note, place: Place, adhoc: dict[str, Any]
    ) -> Iterable[SourceRecord]:
        """Return records that are not in the log: a heartbeat, snapshot rows, a notification."""
        cursor = self._cursor
        if isinstance(item, Beat):
            yield self.heartbeat(item.now_ms, cursor.offset(place, HEARTBEAT) | adhoc)
            return
        offset = cursor.offset(place, None) | adhoc
        if isinstance(item, Note):
            topic = self.settings["notification.sink.topic.name"]
            yield self.plain(topic, Struct(NOTE_KEY, [item.id]), note_value(item), offset)
            return
        records = records_of(item.table, self.settings)
        for row in item.rows:
            source = cursor.source(place, item.table, INCREMENTAL)
            yield self.record(records, "r", None, records.row(row), source, offset)

    def _change(
        self,
        operation: str,
        message: Any,
        tables: dict[int, TableRecords | None],
        place: Place,
        offset: JsonMap,
    ) -> Iterable[SourceRecord]:
        if operation in self.skipped:
            return ()
        if operation == MESSAGE:
            return self._message(message, place, offset)
        if not self._cursor.is_in_transaction:
            return ()
        if operation == TRUNCATE:
            return self._truncate(message, tables, place, offset)
        records = tables.get(self._log.number(message))
        return () if records is None else self._row(operation, message, records, place, offset)

    # Metadata of transactions.

    def _begun(self, offset: JsonMap) -> SourceRecord:
        """Its record comes with its first event, since one without may never end."""
        self._is_begin_due = False
        name = self._cursor.transaction_id(None)
        time_ms = self._cursor.transaction_time_us // 1000
        return self._boundary(name, begun(name, time_ms), offset)

    def _committed(
        self, place: Place, message: Any, events: int, adhoc: dict[str, Any]
    ) -> Iterable[SourceRecord]:
        cursor, counts = self._cursor, self._counts
        if counts is None or not cursor.is_in_transaction:
            cursor.follow(place, COMMIT, message, events)
            return
        name, time_ms = cursor.transaction_id(place), cursor.transaction_time_us // 1000
        begin = cursor.transaction_id(None)
        cursor.follow(place, COMMIT, message, events)
        offset = cursor.offset(place, None) | adhoc
        if self._is_begin_due:
            yield self._boundary(begin, begun(begin, time_ms), offset)
        self._counts, self._is_begin_due = EventCounts(), True
        yield self._boundary(name, counts.ended(name, time_ms), offset)

    def _boundary(self, name: str, value: Struct, offset: JsonMap) -> SourceRecord:
        return self.plain(self.settings.transaction_topic, Struct(KEY, [name]), value, offset)

    def _block(self, collection: str, place: Place) -> Struct | None:
        """Count an event, and return its place in its transaction."""
        if self._counts is None or not self._cursor.is_in_transaction:
            return None
        return self._counts.block(self._cursor.transaction_id(place), collection)

    # Changes.

    def _row(
        self,
        operation: str,
        message: Any,
        records: TableRecords,
        place: Place,
        offset: JsonMap,
    ) -> Iterable[SourceRecord]:
        change = self._log.row_change(message)
        source = self._cursor.source(place, records.table)
        name = records.table.full_name
        old = None if change.old is None else records.row(change.old)
        if operation == CREATE:
            new = records.row(change.new or ())
            block = self._block(name, place)
            yield self.record(records, CREATE, None, new, source, offset, block=block)
        elif operation == DELETE:
            if old is not None:
                yield from self._deleted(records, old, source, offset, place)
        else:
            new = records.row(change.new or (), change.old)
            if old is not None and records.is_moved(change):
                yield from self._moved(records, old, new, source, offset, place)
            else:
                block = self._block(name, place)
                yield self.record(records, UPDATE, old, new, source, offset, block=block)

    def _moved(
        self,
        records: TableRecords,
        old: Struct,
        new: Struct,
        source: Struct,
        offset: JsonMap,
        place: Place,
    ) -> Iterable[SourceRecord]:
        """A row whose key changed: a record with the old key, its tombstone, one with the new."""
        key_schema = records.key_schema
        to_new = Header("__debezium.newkey", key_schema, records.key(new))
        to_old = Header("__debezium.oldkey", key_schema, records.key(old))
        yield from self._deleted(records, old, source, offset, place, to_new)
        block = self._block(records.table.full_name, place)
        yield self.record(records, CREATE, None, new, source, offset, to_old, block=block)

    def _deleted(
        self,
        records: TableRecords,
        old: Struct,
        source: Struct,
        offset: JsonMap,
        place: Place,
        *headers: Header,
    ) -> Iterable[SourceRecord]:
        block = self._block(records.table.full_name, place)
        gone = self.record(records, DELETE, old, None, source, offset, *headers, block=block)
        yield gone
        if self.settings.has_tombstones:
            yield replace(gone, value_schema=None, value=None)

    def _truncate(
        self,
        message: Any,
        tables: dict[int, TableRecords | None],
        place: Place,
        offset: JsonMap,
    ) -> Iterable[SourceRecord]:
        for number in self._log.emptied(message):
            if (records := tables.get(number)) is not None:
                source = self._cursor.source(place, records.table)
                block = self._block(records.table.full_name, place)
                made = self.record(records, TRUNCATE, None, None, source, offset, block=block)
                yield replace(made, key_schema=None, key=None)

    def _message(self, message: Any, place: Place, offset: JsonMap) -> Iterable[SourceRecord]:
        if not self.settings.wants_message(self._log.message_prefix(message)):
            return
        source = self._cursor.source(place, None)
        block = self._block(MESSAGES, place)
        now_ms = self.clock.time_ns() // 1_000_000
        key, value = self._log.message_parts(message, source, block, now_ms)
        yield self.plain(f"{self.settings.topic_prefix}.message", key, value, offset)

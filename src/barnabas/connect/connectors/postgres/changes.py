"""From a split of the log, or of a table, to records. Runs on executors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.connect.connectors.postgres import pgoutput
from barnabas.connect.connectors.postgres.adhoc.items import (
    AdHocItem,
    ChunkRows,
    Note,
    StateChanged,
)
from barnabas.connect.connectors.postgres.adhoc.records import chunk_records, note_record
from barnabas.connect.connectors.postgres.envelopes import (
    HEARTBEAT_KEY,
    HEARTBEAT_VALUE,
    MESSAGE_KEY,
    MESSAGE_VALUE,
    TableRecords,
    message_value,
)
from barnabas.connect.connectors.postgres.positions import Position
from barnabas.connect.connectors.postgres.records import RecordMaker, records_of
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.connectors.postgres.transactions import (
    KEY,
    MESSAGES,
    VALUE,
    EventCounts,
    begun,
)
from barnabas.connect.record import Header, JsonMap, SourceRecord
from barnabas.schemas.data.schema import Struct

_TYPES: Final = {
    pgoutput.INSERT: "INSERT",
    pgoutput.UPDATE: "UPDATE",
    pgoutput.DELETE: "DELETE",
    pgoutput.TRUNCATE: "TRUNCATE",
    pgoutput.MESSAGE: "MESSAGE",
}


@dataclass(slots=True, frozen=True)
class TableChanged:
    """In a split: from here on a table is so; None: its changes are not wanted."""

    relation: int
    table: Table | None


@dataclass(slots=True, frozen=True)
class Beat:
    """In a split: a heartbeat is due."""

    now_ms: int


@dataclass(slots=True, frozen=True)
class Transaction:
    """A transaction that is being read; `begin_lsn` is that of its Begin's message."""

    xid: int
    time_us: int
    commit_lsn: int
    begin_lsn: int


Item = tuple[int, "bytes | TableChanged | Beat | AdHocItem", int]
"""A place in the log, what is there, and how many changes of its transaction are read with it."""


@dataclass(slots=True)
class LogSplit:
    """A piece of the log: where it begins, the tables as they were there, and its messages.

    `counts` are of the events of the transaction in which it begins; None: nobody wants them.
    `adhoc` are the keys that offsets have of ad-hoc snapshots there.
    """

    position: Position
    transaction: Transaction | None
    tables: dict[int, Table | None]
    items: list[Item] = field(repr=False)
    counts: dict[str, int] | None = None
    xmin: int | None = None
    adhoc: dict[str, Any] = field(default_factory=dict)


class LogReader(RecordMaker):
    """Turns one split of the log into records."""

    _counts: EventCounts | None = None
    _is_begin_due = False
    _xmin: int | None = None

    def counts_after(self, split: LogSplit) -> dict[str, int] | None:
        """Return how many events of the transaction in which the split ends there are so far."""
        if split.counts is None:
            return None
        for _record in self.read(split):
            pass
        assert self._counts is not None
        return self._counts.by_collection

    def read(self, split: LogSplit) -> Iterator[SourceRecord]:
        tables = {number: self._records(table) for number, table in split.tables.items()}
        position, transaction, self._xmin = split.position, split.transaction, split.xmin
        if split.counts is not None:
            self._counts = EventCounts(split.counts)
            self._is_begin_due = not split.counts
        adhoc = split.adhoc
        for lsn, item, events in split.items:
            if not isinstance(item, bytes):
                if isinstance(item, TableChanged):
                    tables[item.relation] = self._records(item.table)
                elif isinstance(item, StateChanged):
                    adhoc = item.fields
                else:
                    yield from self._beside(item, position, transaction, lsn, adhoc)
                continue
            kind = item[0]
            if kind == pgoutput.BEGIN:
                begin = pgoutput.begin(item)
                transaction = Transaction(begin.xid, begin.time_us, begin.commit_lsn, lsn)
                continue
            if kind == pgoutput.COMMIT:
                position = Position(pgoutput.commit_end(item))
                if transaction is not None and self._counts is not None:
                    offset = offset_at(position, None, lsn, None) | adhoc
                    yield from self._ended(transaction, lsn, offset)
                transaction = None
                continue
            if transaction is not None:
                position = Position(position.done, transaction.commit_lsn, events)
            offset = offset_at(position, transaction, lsn, _TYPES[kind])
            if adhoc:
                offset |= adhoc
            for record in self._change(kind, item, tables, transaction, lsn, offset):
                if self._is_begin_due and transaction is not None:
                    yield self._begun(transaction, offset)
                yield record

    def _beside(
        self,
        item: Beat | ChunkRows | Note,
        position: Position,
        transaction: Transaction | None,
        lsn: int,
        adhoc: dict[str, Any],
    ) -> Iterable[SourceRecord]:
        """What is not in the log: a heartbeat, a snapshot's rows, a notification."""
        if isinstance(item, Beat):
            offset = position.json() | {"lsn": lsn, "lsn_proc": lsn} | adhoc
            yield self._heartbeat(item, offset)
            return
        offset = offset_at(position, transaction, lsn, None) | adhoc
        if isinstance(item, Note):
            yield note_record(self, item, offset)
            return
        begin_lsn, xid = (
            (lsn, None) if transaction is None else (transaction.begin_lsn, transaction.xid)
        )
        sequence = _sequence(begin_lsn, lsn)
        yield from chunk_records(self, item, sequence, xid, lsn, self._xmin, offset)

    def _change(
        self,
        kind: int,
        item: bytes,
        tables: dict[int, TableRecords | None],
        transaction: Transaction | None,
        lsn: int,
        offset: JsonMap,
    ) -> Iterable[SourceRecord]:
        skipped = self.skipped
        if kind == pgoutput.MESSAGE:
            if "m" not in skipped:
                yield from self._message(item, transaction, lsn, offset)
        elif transaction is None:
            return
        elif kind == pgoutput.TRUNCATE:
            if "t" not in skipped:
                yield from self._truncate(item, tables, transaction, lsn, offset)
        elif (records := tables.get(pgoutput.relation_id(item))) is not None:
            yield from self._row(kind, item, records, transaction, lsn, offset)

    # Metadata of transactions.

    def _begun(self, transaction: Transaction, offset: JsonMap) -> SourceRecord:
        """Its record comes with its first event, since one without may never end."""
        self._is_begin_due = False
        name = _transaction_id(transaction, transaction.begin_lsn)
        return self._boundary(name, begun(name, transaction.time_us // 1000), offset)

    def _ended(self, transaction: Transaction, lsn: int, offset: JsonMap) -> Iterable[SourceRecord]:
        assert self._counts is not None
        if self._is_begin_due:
            yield self._begun(transaction, offset)
        name = _transaction_id(transaction, lsn)
        value = self._counts.ended(name, transaction.time_us // 1000)
        self._counts, self._is_begin_due = EventCounts(), True
        yield self._boundary(name, value, offset)

    def _boundary(self, name: str, value: Struct, offset: JsonMap) -> SourceRecord:
        return SourceRecord(
            topic=self.settings.transaction_topic,
            key_schema=KEY,
            key=Struct(KEY, [name]),
            value_schema=VALUE,
            value=value,
            source_partition=self.partition,
            source_offset=offset,
        )

    def _block(self, collection: str, transaction: Transaction | None, lsn: int) -> Struct | None:
        """Count an event, and return its place in its transaction."""
        if self._counts is None or transaction is None:
            return None
        return self._counts.block(_transaction_id(transaction, lsn), collection)

    def _records(self, table: Table | None) -> TableRecords | None:
        return None if table is None else records_of(table, self.settings)

    def _row(
        self,
        kind: int,
        item: bytes,
        records: TableRecords,
        transaction: Transaction,
        lsn: int,
        offset: JsonMap,
    ) -> Iterable[SourceRecord]:
        change = pgoutput.row_change(item)
        skipped = self.skipped
        source = self._source(records.table, transaction, lsn)

        def block() -> Struct | None:
            return self._block(records.table.full_name, transaction, lsn)

        old = None if change.old is None else records.row(change.old)
        if kind == pgoutput.INSERT:
            if "c" not in skipped:
                new = records.row(change.new or ())
                yield self.record(records, "c", None, new, source, offset, block=block())
        elif kind == pgoutput.DELETE:
            if "d" not in skipped and old is not None:
                yield from self._deleted(records, old, source, offset, block())
        else:
            whole_old = None if change.old_is_key else change.old
            new = records.row(change.new or (), whole_old)
            new_key = records.key(new)
            old_key = None if old is None else records.key(old)
            if old is not None and old_key is not None and old_key.values != _values(new_key):
                yield from self._moved(records, old, new, source, offset, block)
            elif "u" not in skipped:
                yield self.record(records, "u", old, new, source, offset, block=block())

    def _moved(
        self,
        records: TableRecords,
        old: Struct,
        new: Struct,
        source: Struct,
        offset: JsonMap,
        block: Callable[[], Struct | None],
    ) -> Iterable[SourceRecord]:
        """A row whose key changed: a record with the old key, its tombstone, one with the new."""
        if "u" in self.skipped:
            return
        key_schema = records.key_schema
        to_new = Header("__debezium.newkey", key_schema, records.key(new))
        to_old = Header("__debezium.oldkey", key_schema, records.key(old))
        yield from self._deleted(records, old, source, offset, block(), to_new)
        yield self.record(records, "c", None, new, source, offset, to_old, block=block())

    def _deleted(
        self,
        records: TableRecords,
        old: Struct,
        source: Struct,
        offset: JsonMap,
        block: Struct | None,
        *headers: Header,
    ) -> Iterable[SourceRecord]:
        gone = self.record(records, "d", old, None, source, offset, *headers, block=block)
        yield gone
        if self.settings.has_tombstones:
            yield replace(gone, value_schema=None, value=None)

    def _truncate(
        self,
        item: bytes,
        tables: dict[int, TableRecords | None],
        transaction: Transaction,
        lsn: int,
        offset: JsonMap,
    ) -> Iterable[SourceRecord]:
        for number in pgoutput.truncated(item):
            if (records := tables.get(number)) is not None:
                source = self._source(records.table, transaction, lsn)
                block = self._block(records.table.full_name, transaction, lsn)
                made = self.record(records, "t", None, None, source, offset, block=block)
                yield replace(made, key_schema=None, key=None)

    def _message(
        self, item: bytes, transaction: Transaction | None, lsn: int, offset: JsonMap
    ) -> Iterable[SourceRecord]:
        message = pgoutput.message(item)
        if not self.settings.wants_message(message.prefix):
            return
        now_ms = time.time_ns() // 1_000_000
        source = self._source(None, transaction, lsn)
        block = self._block(MESSAGES, transaction, lsn)
        yield SourceRecord(
            topic=f"{self.settings.topic_prefix}.message",
            key_schema=MESSAGE_KEY,
            key=Struct(MESSAGE_KEY, [message.prefix]),
            value_schema=MESSAGE_VALUE,
            value=message_value(now_ms, source, block, message.prefix, message.content),
            source_partition=self.partition,
            source_offset=offset,
        )

    def _heartbeat(self, beat: Beat, offset: JsonMap) -> SourceRecord:
        return SourceRecord(
            topic=f"{self.settings.heartbeat_prefix}.{self.settings.topic_prefix}",
            key_schema=HEARTBEAT_KEY,
            key=Struct(HEARTBEAT_KEY, [self.settings.topic_prefix]),
            value_schema=HEARTBEAT_VALUE,
            value=Struct(HEARTBEAT_VALUE, [beat.now_ms]),
            source_partition=self.partition,
            source_offset=offset,
        )

    def _source(self, table: Table | None, transaction: Transaction | None, lsn: int) -> Struct:
        if transaction is None:
            now_us = time.time_ns() // 1000
            return self.source(table, now_us, "false", _sequence(lsn, lsn), None, lsn, self._xmin)
        sequence = _sequence(transaction.begin_lsn, lsn)
        return self.source(
            *(table, transaction.time_us, "false", sequence, transaction.xid, lsn, self._xmin)
        )


def offset_at(
    position: Position, transaction: Transaction | None, lsn: int, kind: str | None
) -> dict[str, Any]:
    """Return what is stored of a place in the log."""
    offset: dict[str, Any] = {
        "transaction_id": None,
        "lsn_proc": lsn,
        "messageType": kind,
        "lsn_commit": lsn if transaction is None else transaction.begin_lsn,
        "lsn": lsn,
        "txId": None if transaction is None else transaction.xid,
        "ts_usec": time.time_ns() // 1000 if transaction is None else transaction.time_us,
    }
    return offset | position.json()


def _transaction_id(transaction: Transaction, lsn: int) -> str:
    """As Debezium has it: of each event its own."""
    return f"{transaction.xid}:{lsn}"


def _sequence(commit: int, lsn: int) -> str:
    return f'["{commit}","{lsn}"]'


def _values(key: Struct | None) -> Sequence[Any] | None:
    return None if key is None else key.values

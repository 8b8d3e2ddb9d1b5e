"""PostgreSQL's log as change capture reads it: its messages, and what is known where it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from barnabas import __version__
from barnabas.connect.cdc.database import (
    BEGIN,
    COMMIT,
    CREATE,
    DELETE,
    DESCRIPTION,
    HEARTBEAT,
    INCREMENTAL,
    MESSAGE,
    STREAMED,
    TRUNCATE,
    UPDATE,
    Clock,
)
from barnabas.connect.cdc.tables import Table
from barnabas.connect.connectors.postgres import pgoutput
from barnabas.connect.connectors.postgres.events import (
    MESSAGE_KEY,
    SOURCE,
    message_value,
)
from barnabas.connect.connectors.postgres.positions import (
    SNAPSHOT_RUNS,
    LogPosition,
    position_of,
)
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.schema import Struct

_OPERATIONS: Final = {
    pgoutput.BEGIN: BEGIN,
    pgoutput.COMMIT: COMMIT,
    pgoutput.RELATION: DESCRIPTION,
    pgoutput.INSERT: CREATE,
    pgoutput.UPDATE: UPDATE,
    pgoutput.DELETE: DELETE,
    pgoutput.TRUNCATE: TRUNCATE,
    pgoutput.MESSAGE: MESSAGE,
}
_TYPES: Final = {
    CREATE: "INSERT",
    UPDATE: "UPDATE",
    DELETE: "DELETE",
    TRUNCATE: "TRUNCATE",
    MESSAGE: "MESSAGE",
}
"""In offsets: `messageType`."""


@dataclass(slots=True, frozen=True)
class Transaction:
    """A transaction that is being read; `begin_lsn` is that of its Begin's message."""

    xid: int
    time_us: int
    commit_lsn: int
    begin_lsn: int

    @staticmethod
    def of(message: bytes, lsn: int) -> Transaction:
        """Read a Begin."""
        begin = pgoutput.begin(message)
        return Transaction(begin.xid, begin.time_us, begin.commit_lsn, lsn)


@dataclass(slots=True, frozen=True)
class LogStart:
    """The position at which a split begins. For `xmin` the slot keeps the catalog."""

    position: LogPosition
    transaction: Transaction | None
    xmin: int | None = None


@dataclass(slots=True, frozen=True)
class SnapshotPoint:
    """The position of a snapshot. `log_begin` is where the log is read from afterwards."""

    id: str
    lsn: int
    log_begin: LogPosition
    xid: int
    time_us: int


class PostgresLog:
    """Reads messages of pgoutput, and writes their places into records and offsets."""

    number = staticmethod(pgoutput.relation_id)
    row_change = staticmethod(pgoutput.row_change)
    has_old_row = staticmethod(pgoutput.has_old_row)
    emptied = staticmethod(pgoutput.truncated)

    def __init__(self, settings: PostgresSettings, clock: Clock) -> None:
        self._prefix, self._database = settings.topic_prefix, settings.database
        self.clock = clock

    def operation(self, message: bytes) -> str:
        """Return what a message is; empty: nothing of interest."""
        return _OPERATIONS.get(message[0], "")

    def message_prefix(self, message: bytes) -> str:
        """Return the prefix of a logical message."""
        return pgoutput.message(message).prefix

    def message_parts(
        self, message: bytes, source: Struct, block: Struct | None, now_ms: int
    ) -> tuple[Struct, Struct]:
        """Return key and value of a logical message's record."""
        said = pgoutput.message(message)
        key = Struct(MESSAGE_KEY, [said.prefix])
        return key, message_value(now_ms, source, block, said.prefix, said.content)

    def cursor(self, start: LogStart) -> PostgresCursor:
        """Return a cursor that begins at a split's start."""
        return PostgresCursor(self, start)

    @staticmethod
    def snapshot_offset(point: SnapshotPoint, *, is_last: bool) -> dict[str, Any]:
        """Return what is stored of a snapshot that runs, or that has ended."""
        state = {"snapshot_completed": True} if is_last else dict(SNAPSHOT_RUNS)
        return {
            **state,
            "last_snapshot_record": is_last,
            "lsn": point.lsn,
            "txId": point.xid,
            "ts_usec": point.time_us,
            **point.log_begin.json(),
        }

    def snapshot_source(self, point: SnapshotPoint, table: Table, mark: str) -> Struct:
        """Return the `source` of a row of a snapshot."""
        sequence = f'[null,"{point.lsn}"]'
        return self.source(table, point.time_us, mark, sequence, point.xid, point.lsn)

    def source(
        self,
        table: Table | None,
        time_us: int,
        snapshot: str,
        sequence: str,
        xid: int | None,
        lsn: int,
        xmin: int | None = None,
    ) -> Struct:
        """Return the `source` of an event."""
        schema, name = ("", "") if table is None else (table.schema, table.name)
        return Struct(
            SOURCE,
            [
                __version__,
                PostgresSettings.connector_name,
                self._prefix,
                time_us // 1000,
                snapshot,
                self._database,
                sequence,
                time_us,
                time_us * 1000,
                schema,
                name,
                xid,
                lsn,
                xmin,
            ],
        )


class PostgresCursor:
    """Follows the messages of one split."""

    def __init__(self, log: PostgresLog, start: LogStart) -> None:
        self._log, self._clock = log, log.clock
        self._position, self._transaction = start.position, start.transaction
        self._xmin = start.xmin

    @property
    def is_in_transaction(self) -> bool:
        """True if the place is in a transaction."""
        return self._transaction is not None

    @property
    def transaction_time_us(self) -> int:
        """When the transaction was committed."""
        assert self._transaction is not None
        return self._transaction.time_us

    def follow(self, lsn: int, operation: str, message: bytes, events: int) -> None:
        """Go to a message."""
        if operation == BEGIN:
            self._transaction = Transaction.of(message, lsn)
        elif operation == COMMIT:
            self._position, self._transaction = LogPosition(pgoutput.commit_end(message)), None
        elif (transaction := self._transaction) is not None:
            self._position = LogPosition(self._position.done, transaction.commit_lsn, events)

    def transaction_id(self, lsn: int | None) -> str:
        """Return the id that Debezium writes: it differs for each event of a transaction."""
        assert self._transaction is not None
        return f"{self._transaction.xid}:{self._transaction.begin_lsn if lsn is None else lsn}"

    def offset(self, lsn: int, operation: str | None) -> dict[str, Any]:
        """Return what is stored of the place."""
        if operation == HEARTBEAT:
            return self._position.json() | {"lsn": lsn, "lsn_proc": lsn}
        kind = None if operation is None else _TYPES[operation]
        return offset_at(self._position, self._transaction, lsn, kind, self._clock)

    def source(self, lsn: int, table: Table | None, snapshot: str = STREAMED) -> Struct:
        """Return the `source` of an event."""
        transaction = self._transaction
        if transaction is None:
            begin_lsn, xid = lsn, None
        else:
            begin_lsn, xid = transaction.begin_lsn, transaction.xid
        if transaction is None or snapshot == INCREMENTAL:
            time_us = self._clock.time_ns() // 1000
        else:
            time_us = transaction.time_us
        sequence = f'["{begin_lsn}","{lsn}"]'
        return self._log.source(table, time_us, snapshot, sequence, xid, lsn, self._xmin)


class PostgresLogState:
    """Follows the log's messages, and says which are wanted after `begin`.

    The server begins with the first transaction that it does not know to be stored: those that are
    done, and the changes that are done of a transaction, come again and are passed over.
    """

    def __init__(self, begin: LogPosition, clock: Clock) -> None:
        self.position = begin
        self.xmin: int | None = None
        """The oldest transaction that the slot keeps the catalog for, as far as it is known."""
        self._clock = clock
        self._transaction: Transaction | None = None
        self.tables: dict[int, Table | None] = {}
        """By the log's numbers; None: its changes are not wanted."""
        self.place = begin.done
        self._begin = begin
        self._is_passing_over = False
        self._events_to_pass_over = 0

    @property
    def done(self) -> int:
        """All transactions whose commits are before this place are read."""
        return self.position.done

    @property
    def events(self) -> int:
        """The number of changes read of the present transaction."""
        return self.position.events

    @property
    def transaction(self) -> int | None:
        """The number of the transaction that is being read; None between two."""
        return None if self._transaction is None else self._transaction.xid

    def is_beyond(self, offset: JsonMap) -> bool:
        """Return whether more transactions are read than an offset says."""
        return self.done > position_of(offset).done

    def start(self) -> LogStart:
        """Return where a split begins that is planned now."""
        return LogStart(self.position, self._transaction, self.xmin)

    def offset(self) -> dict[str, Any]:
        """Return what is stored of the place."""
        return offset_at(self.position, self._transaction, self.place, None, self._clock)

    def transaction_id(self) -> str:
        """Return the transaction's id, as an event here would have it."""
        return f"{self.transaction}:{self.place}"

    def all_sent_before(self, lsn: int) -> None:
        """The server has sent all transactions whose commits are before `lsn`."""
        is_known = self._begin.after_lsn is None or lsn > self._begin.after_lsn
        if self._transaction is None and is_known and lsn > self.position.done:
            self.position = LogPosition(lsn)

    def takes(self, lsn: int, data: bytes) -> bool:
        """Follow a message; whether it is wanted."""
        self.place = max(self.place, lsn)
        kind = data[0]
        if kind == pgoutput.BEGIN:
            begun = self._transaction = Transaction.of(data, lsn)
            self._is_passing_over = self._begin.is_done(begun.commit_lsn)
            self._events_to_pass_over = self._begin.events_done(begun.commit_lsn)
            return not self._is_passing_over
        if kind == pgoutput.COMMIT:
            was_passing_over, self._is_passing_over = self._is_passing_over, False
            self._transaction = None
            if not was_passing_over:
                self.position = LogPosition(pgoutput.commit_end(data))
            return not was_passing_over
        return kind in pgoutput.CHANGES and self._takes_change(kind, lsn, data)

    def _takes_change(self, kind: int, lsn: int, data: bytes) -> bool:
        transaction = self._transaction
        if transaction is None:
            return self._takes_message(lsn)
        if self._is_passing_over:
            return False
        if self._events_to_pass_over > 0:
            self._events_to_pass_over -= 1
            return False
        events = self.position.events_done(transaction.commit_lsn) + 1
        self.position = LogPosition(self.position.done, transaction.commit_lsn, events)
        if self._begin.is_event_done(transaction.xid, lsn):
            return False
        if kind in pgoutput.ROW_CHANGES:
            return self.tables.get(pgoutput.relation_id(data)) is not None
        return True

    def _takes_message(self, lsn: int) -> bool:
        """A logical message outside transactions."""
        if lsn < self._begin.done or lsn <= (self._begin.after_lsn or -1):
            return False
        self.position = LogPosition(max(self.position.done, lsn + 1))
        return True


def offset_at(
    position: LogPosition, transaction: Transaction | None, lsn: int, kind: str | None, clock: Clock
) -> dict[str, Any]:
    """Return what is stored of a place in the log."""
    offset: dict[str, Any] = {
        "transaction_id": None,
        "lsn_proc": lsn,
        "messageType": kind,
        "lsn_commit": lsn if transaction is None else transaction.begin_lsn,
        "lsn": lsn,
        "txId": None if transaction is None else transaction.xid,
        "ts_usec": clock.time_ns() // 1000 if transaction is None else transaction.time_us,
    }
    return offset | position.json()

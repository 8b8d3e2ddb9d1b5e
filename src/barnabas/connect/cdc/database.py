"""The interface of a database whose changes are captured.

A database is a room in `connect/connectors`. It has:

    CaptureSettings  (settings.py) a subclass: the names of its settings, and its column types
    ColumnTypes      how its columns are represented in records, and which have defaults
    ChangeLog        reads the messages of its log, and writes positions into offsets and records
    LogState         on the driver: follows the log, and knows which messages are done already
    LogCursor        on executors: follows the messages of one split
    ChunkDialect     how its SQL names a table and limits a query
    Database         on the driver: asks the database over its own connections

The driver takes messages from the log and plans them with `batches.LogBatches`; executors make
records of a split with `changes.ChangeRecords`, and of rows of a snapshot with
`snapshot.SnapshotRecords`. Connections, threads and the snapshot's transaction stay in the
database's own room, and so does the `SourceReader` that ties them together.

A *place* is where a message is in the log: PostgreSQL's LSN, MySQL's file and position. Places
are ordered and picklable. A *message* is what the log has there, as the database sends it; this
room never looks into one. Each is about one row at most: where the log groups rows, the database
splits them. `number` is how the log names a table (the oid, the table map's id).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from barnabas.connect.cdc.queries import ChunkDialect, Query
from barnabas.connect.cdc.tables import Column, ColumnType, RowChange, Table
from barnabas.connect.record import JsonMap
from barnabas.schemas.data.schema import Struct

Place = Any
CREATE, UPDATE, DELETE, TRUNCATE, MESSAGE = "c", "u", "d", "t", "m"
"""Operations of messages that become events: Debezium's letters."""
BEGIN: Final = "begin"
COMMIT: Final = "commit"
DESCRIPTION: Final = "description"
"""The message says what a table is made of."""
HEARTBEAT: Final = "heartbeat"
"""No message's operation: `LogCursor.offset` is asked for a heartbeat's offset."""
ROW_CHANGES: Final = frozenset((CREATE, UPDATE, DELETE))
INCREMENTAL: Final = "incremental"
STREAMED: Final = "false"
"""Values of `source.snapshot`: of rows of an incremental snapshot, and of changes."""


class Clock(Protocol):
    """The time. Python's module `time` is one."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that never go back."""


class ColumnTypes(Protocol):
    """The representation of columns."""

    def column_type(self, column: Column) -> ColumnType | None:
        """Return a column's representation; None for one that records leave out."""

    def default(self, column: Column, kind: ColumnType) -> Any:
        """Return the default that the column's schema has; None for none."""

    def key_class(self, column: Column) -> str:
        """Return the Java class of a key's value in stored offsets (`java_objects`)."""


class LogCursor(Protocol):
    """Follows the messages of one split, on an executor."""

    @property
    def is_in_transaction(self) -> bool:
        """True if the place is in a transaction."""

    @property
    def transaction_time_us(self) -> int:
        """When the transaction was committed, in microseconds since 1970."""

    def follow(self, place: Place, operation: str, message: Any, events: int) -> None:
        """Go to a message. `events` is how many changes of the transaction are read with it."""

    def transaction_id(self, place: Place | None) -> str:
        """Return the transaction's id in an event; None: in the record of its begin."""

    def offset(self, place: Place, operation: str | None) -> dict[str, Any]:
        """Return what is stored of the place; an operation of None is not a message's."""

    def source(self, place: Place, table: Table | None, snapshot: str = STREAMED) -> Struct:
        """Return the `source` of an event, whose schema is the settings' `source_schema`."""


class ChangeLog(Protocol):
    """Reads the log's messages. Used on the driver and on executors."""

    def operation(self, message: Any) -> str:
        """Return what a message is."""

    def number(self, message: Any) -> int:
        """Return the table that a change of a row is about."""

    def row_change(self, message: Any) -> RowChange:
        """Read a change of a row."""

    def has_old_row(self, message: Any) -> bool:
        """Return whether a change of a row has the row before it; cheaper than `row_change`."""

    def emptied(self, message: Any) -> Sequence[int]:
        """Return the tables that a TRUNCATE is about."""

    def message_prefix(self, message: Any) -> str:
        """Return the prefix of a logical message."""

    def message_parts(
        self, message: Any, source: Struct, block: Struct | None, now_ms: int
    ) -> tuple[Struct, Struct]:
        """Return key and value of a logical message's record."""

    def cursor(self, start: Any) -> LogCursor:
        """Return a cursor that begins where `LogState.start` was asked."""

    def snapshot_offset(self, point: Any, *, is_last: bool) -> dict[str, Any]:
        """Return what is stored of a snapshot that runs, or that has ended."""

    def snapshot_source(self, point: Any, table: Table, mark: str) -> Struct:
        """Return the `source` of a row of a snapshot."""


class LogState(Protocol):
    """Follows the log on the driver, from a stored offset on."""

    tables: dict[int, Table | None]
    """By the log's numbers; None: its changes are not wanted."""

    @property
    def place(self) -> Place:
        """The position up to which the log is read."""

    @property
    def done(self) -> Place:
        """All transactions that end before this place are read."""

    @property
    def events(self) -> int:
        """The number of changes read of the current transaction."""

    @property
    def transaction(self) -> Any | None:
        """The database's number of the transaction that is being read; None between two."""

    def takes(self, place: Place, message: Any) -> bool:
        """Follow a message; whether it is wanted: a change that is not done yet."""

    def all_sent_before(self, place: Place) -> None:
        """The database has sent all transactions that end before a place."""

    def is_beyond(self, offset: JsonMap) -> bool:
        """Return whether more transactions are read than an offset says."""

    def start(self) -> Any:
        """Return, picklable, where a split begins that is planned now."""

    def offset(self) -> dict[str, Any]:
        """Return what is stored of the place."""

    def transaction_id(self) -> str:
        """Return the transaction's id, as an event here would have it."""


class OpenTable(Protocol):
    """A table in a transaction that sees one state of it."""

    table: Table
    named_by: Sequence[str]
    """The columns by which the log names rows that are gone."""

    def rows(self, query: Query) -> Sequence[Sequence[Any]]:
        """Return rows with values as the log has them."""


class Database(Protocol):
    """The database, asked on the driver. All raise RetriableError or ConnectError."""

    @property
    def dialect(self) -> ChunkDialect:
        """The database's SQL dialect."""

    def captured(self) -> Sequence[Table]:
        """Return the tables that are there and wanted."""

    def described(self, message: Any) -> tuple[int, Table | None]:
        """Read a DESCRIPTION: the log's number of a table, and the table if it is wanted."""

    def transaction_begun(self, transaction: Any) -> None:
        """The log has this transaction: tables that are opened from now on show its changes."""

    def open_table(self, schema: str, name: str) -> AbstractContextManager[OpenTable]:
        """Open a table for one chunk. Raises NotReadableError (`chunks`), also on leaving."""

    def execute(self, query: Query) -> None:
        """Run a statement: a mark, the heartbeat's action."""

    def log_end(self) -> Place:
        """Return a place behind all commits that the last chunk has seen."""

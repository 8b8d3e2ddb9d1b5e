"""A toy database for tests of change capture: SQLite in memory, with its log in a list.

It is like a source for a database other than PostgreSQL: places in the log are a file
and a number, values are Python's, nulls sort first, and a table's name is unique in a database.
"""

from __future__ import annotations

import itertools
import pickle
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from barnabas.connect.cdc.batches import LogBatches
from barnabas.connect.cdc.changes import ChangeRecords
from barnabas.connect.cdc.chunks import NotReadableError
from barnabas.connect.cdc.database import (
    BEGIN,
    COMMIT,
    CREATE,
    DELETE,
    DESCRIPTION,
    HEARTBEAT,
    STREAMED,
    TRUNCATE,
    UPDATE,
)
from barnabas.connect.cdc.envelopes import SNAPSHOT_MARK
from barnabas.connect.cdc.queries import Query
from barnabas.connect.cdc.settings import (
    BAD_VALUES,
    HEADERS,
    HIGH,
    MICRO_BATCHES,
    PLACEHOLDER,
    SIGNALS,
    SNAPSHOT_TABLES,
    SNAPSHOT_THREADS,
    STRING,
    TOPICS,
    CaptureSettings,
    tables_and_columns,
)
from barnabas.connect.cdc.signals import Signal
from barnabas.connect.cdc.snapshot import SnapshotPlan, SnapshotRecords, SnapshotTables
from barnabas.connect.cdc.steps import UNKNOWN_SCHEMA, Wanted
from barnabas.connect.cdc.tables import Column, ColumnType, RowChange, Table, TypeName
from barnabas.connect.config.definition import NO_DEFAULT, Definition, group
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.java import object_stream as java_objects
from barnabas.schemas.data.builder import INT64, OPTIONAL_STRING, struct_of
from barnabas.schemas.data.builder import STRING as TEXT
from barnabas.schemas.data.schema import Struct

DEFINITION: Final = Definition(
    [
        *group("Connection", ("topic.prefix", STRING, NO_DEFAULT, HIGH, "Begins topics."), first=0),
        *group(
            "Tables",
            *tables_and_columns(
                ("database", "databases", HIGH), ("table", "tables", HIGH), ("column", "", HIGH)
            ),
            first=0,
        ),
        *group("Snapshot", SNAPSHOT_THREADS, *SNAPSHOT_TABLES, first=0),
        *group("Signals", *SIGNALS, first=0),
        *group("Values", PLACEHOLDER, BAD_VALUES, HEADERS, first=0),
        *group("Topics", *TOPICS, first=0),
        *group("Micro-batches", *MICRO_BATCHES, first=0),
    ]
)
SOURCE: Final = struct_of(
    {
        "connector": TEXT,
        "snapshot": SNAPSHOT_MARK,
        "ts_ms": INT64,
        "db": TEXT,
        "table": OPTIONAL_STRING,
        "file": TEXT,
        "pos": INT64,
    },
    name="toy.Source",
)
DATABASE: Final = "shop"
Place = tuple[str, int]
BEGINNING: Place = ("log.000001", 0)
_FILE_SIZE: Final = 7


class ToyClock:
    """A second passes with each look."""

    def __init__(self) -> None:
        self._seconds = itertools.count(1_700_000_000)

    def time_ns(self) -> int:
        return next(self._seconds) * 1_000_000_000

    def monotonic(self) -> float:
        return float(next(self._seconds))


class ToyTypes:
    """Numbers and texts, as Python has them."""

    def column_type(self, column: Column) -> ColumnType | None:
        return {
            "INTEGER": ColumnType(INT64, int, 0),
            "TEXT": ColumnType(TEXT, str, ""),
        }.get(column.type.name)

    def default(self, column: Column, kind: ColumnType) -> Any:
        return None

    def key_class(self, column: Column) -> str:
        return java_objects.LONG if column.type.name == "INTEGER" else java_objects.TEXT


@dataclass(frozen=True, eq=False)
class ToySettings(CaptureSettings):
    connector_name: ClassVar = "toy"
    source_schema: ClassVar = SOURCE
    namespace: ClassVar = "database"

    @property
    def types(self) -> ToyTypes:
        return ToyTypes()

    @staticmethod
    def parse(**given: str) -> ToySettings:
        named = {name.replace("_", "."): text for name, text in given.items()}
        made = ToySettings(DEFINITION.parse({"topic.prefix": "toy", **named}))
        made.check()
        return made


@dataclass(slots=True, frozen=True)
class Message:
    """An entry of the log."""

    operation: str
    number: int = 0
    old: tuple[Any, ...] | None = None
    new: tuple[Any, ...] | None = None
    time_us: int = 0


@dataclass(slots=True, frozen=True)
class Standing:
    """A place between messages: all before `place` is done, and `events` of a transaction that
    begins there, which `transaction` names."""

    place: Place = BEGINNING
    events: int = 0
    transaction: int | None = None
    time_us: int = 0

    def offset(self) -> dict[str, Any]:
        return {"file": self.place[0], "pos": self.place[1], "event": self.events}


def standing_of(offset: JsonMap) -> Standing:
    """Read a stored offset."""
    if "file" not in offset:
        return Standing()
    return Standing((offset["file"], offset["pos"]), offset["event"])


class ToyServer:
    """Tables of the database `shop`, and the log of their changes."""

    def __init__(self) -> None:
        self._tables = sqlite3.connect(":memory:", isolation_level=None)
        self._tables.execute(f"ATTACH ':memory:' AS {DATABASE}")
        self.log: list[tuple[Place, Message]] = []
        self._transactions = itertools.count(1)
        self._numbers: dict[str, int] = {}

    def create(self, name: str, columns: str) -> None:
        self._tables.execute(f'CREATE TABLE {DATABASE}."{name}" ({columns})')
        self._numbers[name] = len(self._numbers) + 1

    @property
    def end(self) -> Place:
        return _place(len(self.log))

    def run(self, *changes: tuple[Any, ...]) -> None:
        """Change rows in one transaction: (insert | update | delete | truncate, table, row…)."""
        number = next(self._transactions)
        self._append(Message(BEGIN, number, time_us=number * 1000))
        for kind, table, *rows in changes:
            self._change(kind, table, *rows)
        self._append(Message(COMMIT))

    def _change(self, kind: str, table: str, *rows: tuple[Any, ...]) -> None:
        number = self._numbers[table]
        names = [column.name for column in self.table(table).columns]
        target = f'{DATABASE}."{table}"'
        match kind, rows:
            case "insert", (new,):
                places = ", ".join("?" * len(new))
                self._tables.execute(f"INSERT INTO {target} VALUES ({places})", new)
                self._append(Message(CREATE, number, new=new))
            case "update", (old, new):
                pairs = ", ".join(f'"{name}" = ?' for name in names)
                query = f'UPDATE {target} SET {pairs} WHERE "{names[0]}" = ?'
                self._tables.execute(query, (*new, old[0]))
                self._append(Message(UPDATE, number, old, new))
            case "delete", (old,):
                self._tables.execute(f'DELETE FROM {target} WHERE "{names[0]}" = ?', (old[0],))
                self._append(Message(DELETE, number, old))
            case "truncate", ():
                self._tables.execute(f"DELETE FROM {target}")
                self._append(Message(TRUNCATE, number))
            case _:
                raise AssertionError(kind)

    def _append(self, message: Message) -> None:
        self.log.append((self.end, message))

    def descriptions(self) -> list[tuple[Place, Message]]:
        """The descriptions of tables, which the log gives to each new reader."""
        return [(self.end, Message(DESCRIPTION, number)) for number in self._numbers.values()]

    def after(self, place: Place) -> list[tuple[Place, Message]]:
        """The log from a place on."""
        return [entry for entry in self.log if entry[0] >= place]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return self._tables.execute(f'SELECT * FROM {DATABASE}."{table}"').fetchall()

    def query(self, query: Query) -> list[tuple[Any, ...]]:
        text = query.text if query.values is None else query.text.replace("%s", "?")
        return self._tables.execute(text.replace("%%", "%"), query.values or ()).fetchall()

    def named(self, number: int) -> Table:
        return self.table(next(name for name, known in self._numbers.items() if known == number))

    def names(self) -> Sequence[str]:
        return sorted(self._numbers)

    def table(self, name: str) -> Table:
        described = self._tables.execute(f"PRAGMA {DATABASE}.table_info('{name}')").fetchall()
        columns = tuple(
            Column(column, TypeName(kind), not is_not_null)
            for _at, column, kind, is_not_null, _default, _key in described
        )
        key = tuple(row[1] for row in described if row[5])
        kept = tuple(range(len(columns)))
        topic = f"toy.{DATABASE}.{name}"
        return Table(self._numbers[name], DATABASE, name, topic, columns, kept, key)


def _place(index: int) -> Place:
    return f"log.{1 + index // _FILE_SIZE:06}", index % _FILE_SIZE  # in order as texts


class ToyDialect:
    has_nulls_last = False

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def relation(self, schema: str, name: str) -> str:
        return f"{self.quoted(schema)}.{self.quoted(name)}"

    def limit(self, size: int) -> str:
        return f"LIMIT {size}"


@dataclass
class OpenToyTable:
    table: Table
    server: ToyServer
    named_by: Sequence[str] = ()

    def rows(self, query: Query) -> Sequence[Sequence[Any]]:
        return self.server.query(query)


class ToyDatabase:
    """Asks the server."""

    dialect = ToyDialect()

    def __init__(self, server: ToyServer, settings: ToySettings) -> None:
        self._server = server
        self._settings = settings
        self.races: list[Callable[[], None]] = []
        """Changes that come between a chunk and its second mark."""
        self.told: list[int] = []

    def captured(self) -> Sequence[Table]:
        wants = self._settings.wants_table
        return [self._server.table(name) for name in self._server.names() if wants(DATABASE, name)]

    def described(self, message: Message) -> tuple[int, Table | None]:
        table = self._server.named(message.number)
        is_wanted = self._settings.wants_table(DATABASE, table.name)
        return message.number, table if is_wanted else None

    def transaction_begun(self, transaction: int) -> None:
        self.told.append(transaction)

    @contextmanager
    def open_table(self, schema: str, name: str) -> Iterator[OpenToyTable]:
        if name not in self._server.names():
            raise NotReadableError(UNKNOWN_SCHEMA, "it does not exist")
        yield OpenToyTable(self._server.table(name), self._server)
        if self.races:
            self.races.pop(0)()

    def execute(self, query: Query) -> None:
        """Marks alone are written: the log has them too."""
        assert query.values is not None
        if query.text.startswith("INSERT"):
            self._server.run(("insert", "signals", query.values))
        else:
            self._server.run(("delete", "signals", (query.values[0], None, None)))

    def log_end(self) -> Place:
        return self._server.end


class ToyLog:
    """Reads the log's messages."""

    def operation(self, message: Message) -> str:
        return message.operation

    def number(self, message: Message) -> int:
        return message.number

    def row_change(self, message: Message) -> RowChange:
        return RowChange(message.old, message.new)

    def has_old_row(self, message: Message) -> bool:
        return message.old is not None

    def emptied(self, message: Message) -> Sequence[int]:
        return [message.number]

    def message_prefix(self, message: Message) -> str:
        raise AssertionError("this log has no logical messages")

    def message_parts(
        self, message: Message, source: Struct, block: Struct | None, now_ms: int
    ) -> tuple[Struct, Struct]:
        raise AssertionError("this log has no logical messages")

    def cursor(self, start: Standing) -> ToyCursor:
        return ToyCursor(start)

    def snapshot_offset(self, point: Place, *, is_last: bool) -> dict[str, Any]:
        return Standing(point).offset() | ({} if is_last else {"snapshot": "INITIAL"})

    def snapshot_source(self, point: Place, table: Table, mark: str) -> Struct:
        return _source(point, table, mark, 0)


def _source(place: Place, table: Table | None, mark: str, time_us: int) -> Struct:
    name = None if table is None else table.name
    return Struct(SOURCE, ["toy", mark, time_us // 1000, DATABASE, name, *place])


def _followed(standing: Standing, place: Place, message: Message, events: int) -> Standing:
    if message.operation == BEGIN:
        return Standing(place, 0, message.number, message.time_us)
    if message.operation == COMMIT:
        return Standing((place[0], place[1] + 1))
    if standing.transaction is None:
        return standing
    return Standing(standing.place, events, standing.transaction, standing.time_us)


class ToyCursor:
    """Follows a split's messages."""

    def __init__(self, start: Standing) -> None:
        self._standing = start

    @property
    def is_in_transaction(self) -> bool:
        return self._standing.transaction is not None

    @property
    def transaction_time_us(self) -> int:
        return self._standing.time_us

    def follow(self, place: Place, operation: str, message: Message, events: int) -> None:
        self._standing = _followed(self._standing, place, message, events)

    def transaction_id(self, place: Place | None) -> str:
        return f"T{self._standing.transaction}"

    def offset(self, place: Place, operation: str | None) -> dict[str, Any]:
        beats = {"beat": True} if operation == HEARTBEAT else {}
        return self._standing.offset() | beats

    def source(self, place: Place, table: Table | None, snapshot: str = STREAMED) -> Struct:
        return _source(place, table, snapshot, self._standing.time_us)


class ToyState:
    """Follows the log on the driver. A restart skips the part of a transaction already read."""

    def __init__(self, begin: Standing) -> None:
        self.tables: dict[int, Table | None] = {}
        self.place = begin.place
        self._standing = Standing(begin.place)
        self._begin = begin

    @property
    def done(self) -> Place:
        return self._standing.place

    @property
    def events(self) -> int:
        return self._standing.events

    @property
    def transaction(self) -> int | None:
        return self._standing.transaction

    def takes(self, place: Place, message: Message) -> bool:
        self.place = place
        is_change = message.operation not in (BEGIN, COMMIT)
        events = self._standing.events + 1 if is_change else 0
        self._standing = _followed(self._standing, place, message, events)
        if not is_change:
            return True
        is_done = self.done == self._begin.place and events <= self._begin.events
        return not is_done and self.tables.get(message.number) is not None

    def all_sent_before(self, place: Place) -> None:
        if self.transaction is None and place > self.done:
            self._standing = Standing(place)

    def is_beyond(self, offset: JsonMap) -> bool:
        return self.done > standing_of(offset).place

    def start(self) -> Standing:
        return self._standing

    def offset(self) -> dict[str, Any]:
        return self._standing.offset()

    def transaction_id(self) -> str:
        return f"T{self.transaction}"


@dataclass
class ToyChannel:
    """Signals that a test sends."""

    sent: list[Signal] = field(default_factory=list)
    stored_count: int = 0

    def read(self) -> list[Signal]:
        taken, self.sent = self.sent, []
        return taken

    def stored(self) -> None:
        self.stored_count += 1

    def close(self) -> None:
        """Nothing is open."""


class ToyCapture:
    """What a `SourceReader` does: a snapshot, then the log, in micro-batches whose offsets are
    stored, and snapshots that signals ask for."""

    def __init__(self, server: ToyServer, settings: ToySettings) -> None:
        self._server, self.settings = server, settings
        self._clock, self._log = ToyClock(), ToyLog()
        self._ids = (f"id-{number}" for number in itertools.count(1))
        self.database = ToyDatabase(server, settings)
        self.channel = ToyChannel()
        self.records: list[SourceRecord] = []
        self.stored: dict[str, Any] = {}
        self.splits: list[Any] = []
        self.restart()

    def restart(self) -> None:
        """Go on from what is stored, as after a crash."""
        self._batches: LogBatches[ToyState] | None = None

    def snapshot(self, wanted: Sequence[Wanted] = ()) -> None:
        """Read tables as they are now: those that are captured, or those of a blocking one."""
        tables = SnapshotTables(self.settings, wanted)
        listed = [table for table in self.database.captured() if tables.wants(table)]
        with_rows = [
            (table, (None,), tables.override(table))
            for table in listed
            if self._server.rows(table.name)
        ]
        point = self._server.end if self._batches is None else self._batches.state.done
        plan = SnapshotPlan(self.settings, point, with_rows)
        while splits := plan.next_splits():
            for split in pickle.loads(pickle.dumps(splits)):
                maker = SnapshotRecords(self.settings, 0, self._log, self._clock)
                relation = ToyDialect().relation(DATABASE, split.table.name)
                query = split.override or f"SELECT * FROM {relation}"
                self._written(maker.records(split, iter(self._server.query(Query(query)))))
        self.stored = self._log.snapshot_offset(point, is_last=True)

    def batch(self, count: int = 1000, *, is_stored: bool = True) -> list[SourceRecord]:
        """Read so many messages of the log at most, in one micro-batch."""
        if self._batches is None:
            begin = standing_of(self.stored)
            self._described = self._server.descriptions()
            self._pending = self._server.after(begin.place)
            self._next = len(self._server.log)
            self._end = self.stored
            self._batches = LogBatches(
                *(self.settings, self.database, self._log, ToyState(begin)),
                *([self.channel], self.stored),
                clock=self._clock,
                ids=self._ids,
            )
        adhoc = self._batches.adhoc
        if adhoc.blocking:
            self.snapshot(adhoc.blocking)
            adhoc.blocking_done()
        self._pending += self._server.log[self._next :]
        self._next = len(self._server.log)
        received: list[Any] = [*self._described, *self._pending[:count]]
        self._described = []
        del self._pending[:count]
        if not self._pending:
            received.append((self._server.end, None))
        split, end = self._batches.plan(received, self._end)
        if end is not None:
            self._end = end
        made: list[SourceRecord] = []
        if split is not None:
            self.splits.append(split)
            reader = ChangeRecords(self.settings, 0, self._log, self._clock)
            made = list(reader.read(pickle.loads(pickle.dumps(split))))
            self._written(iter(made))
        if is_stored:
            self.stored = self._end
            adhoc.stored()
        return made

    def finish(self) -> None:
        """Read all there is, and all that comes of it."""
        for _ in range(200):
            made = self.batch()
            if not made and not self._pending and self._next == len(self._server.log):
                break

    def _written(self, records: Iterator[SourceRecord]) -> None:
        self.records += records

    def topic(self, table: str) -> dict[Any, Any]:
        """What a compacted topic would hold: rows by their keys."""
        held: dict[Any, Any] = {}
        for record in self.records:
            if record.topic != f"toy.{DATABASE}.{table}":
                continue
            if record.key is None:
                held.clear()  # a truncation
            elif record.value is None or record.value.get("after") is None:
                held.pop(tuple(record.key.values), None)
            else:
                held[tuple(record.key.values)] = tuple(record.value.get("after").values)
        return held

"""Tables of a real database that are changed all the time, and what a copy of them must be.

Two sessions work: one with short statements, truncations and ALTER TABLE, one with transactions
that last for seconds. A lost server ends no story: the sessions come again. What a session does not
know to be committed is in the tables or is not: the tables alone say what is true.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import psycopg

from barnabas.connect.converters.json import JsonConverter
from support.connect.postgres import Postgres

DATABASE: Final = "origin"
TABLES: Final = {
    "items": "id int PRIMARY KEY, v int NOT NULL, name varchar(20), amount numeric(8, 2),"
    " at timestamp(3), kind int",
    "parts": "a int, b text, v int NOT NULL, big text, PRIMARY KEY (a, b)",
}
KEYS: Final = {"items": ("id",), "parts": ("a", "b")}
PARTITIONS: Final = {"items": 1, "parts": 3}
"""Of their topics. Truncations have an order with changes in topics of one partition alone."""
LONG: Final = 10_000
"""Keys from here on are those of long transactions."""
COLUMNS_MAX: Final = 12
TRUNCATED_AFTER_ROWS: Final = 500
"""Changes of rows after which the first truncation does not wait for chance."""
_KINDS: Final = ("bigint", "text")
_NAMES: Final = ("varchar(40)", "text")
_AMOUNTS: Final = ("numeric(12, 4)", "numeric(20, 6)")
Row = dict[str, str | None]


class Story:
    """The tables and who changes them; `close` ends it."""

    def __init__(self, server: Postgres, seed: int, *, pause_s: float = 0.02) -> None:
        self.server = server
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._added = 0
        self._there: list[str] = []
        self._types = [*_KINDS]
        self._names = [*_NAMES]
        self._amounts = [*_AMOUNTS]
        self.defaults: dict[str, str | None] = {}
        """Of columns that were added: what rows have that were there before."""
        self.counts = dict.fromkeys(("rows", "truncations", "alterations", "long"), 0)
        server.database(DATABASE)
        for name, columns in TABLES.items():
            server.run(f"CREATE TABLE {name} ({columns})", database=DATABASE)
        server.run(
            # Without the old values, the log lacks large ones that an update leaves alone.
            "ALTER TABLE parts REPLICA IDENTITY FULL",
            "INSERT INTO items SELECT i, 0, 'n' || i, i / 4.0, now(), i FROM"
            " generate_series(1, 300) i",
            "INSERT INTO parts SELECT i, 'b' || i % 3, 0, repeat(md5(i::text), 200) FROM"
            " generate_series(1, 60) i",
            database=DATABASE,
        )
        self._seed = seed
        self._threads = ThreadPoolExecutor(2)
        self._sessions: list[Future[None]] = []

    def start(self) -> None:
        self._sessions = [
            self._threads.submit(self._run, step, random.Random(f"{self._seed} {number}"))
            for number, step in enumerate((self._short, self._long))
        ]

    def stop(self) -> None:
        """End it; the last rows, of all columns, are in the tables afterwards."""
        self.close()
        for session in self._sessions:
            session.result()
        self.server.run(
            "INSERT INTO items (id, v) VALUES (0, 0)",
            "INSERT INTO parts VALUES (0, 'end', 0, NULL)",
            database=DATABASE,
        )

    def close(self) -> None:
        self._stop.set()
        self._threads.shutdown()

    def _run(
        self, step: Callable[[psycopg.Connection[Any], random.Random], None], choose: random.Random
    ) -> None:
        while not self._stop.is_set():
            try:
                with contextlib.closing(self.server.connect(DATABASE)) as connection:
                    while not self._stop.wait(choose.random() * self._pause_s):
                        self._try(step, connection, choose)
            except psycopg.OperationalError:  # the server is away
                self._stop.wait(0.05)

    def _try(
        self,
        step: Callable[[psycopg.Connection[Any], random.Random], None],
        connection: psycopg.Connection[Any],
        choose: random.Random,
    ) -> None:
        try:
            step(connection, choose)
        except (
            psycopg.errors.UniqueViolation,
            psycopg.errors.LockNotAvailable,
            psycopg.errors.DeadlockDetected,
            psycopg.errors.NotNullViolation,
            psycopg.errors.UndefinedColumn,  # dropped, of which the lost server could not tell
        ):
            connection.rollback()

    # Short statements.

    def _short(self, connection: psycopg.Connection[Any], choose: random.Random) -> None:
        dice = choose.random()
        if dice < 0.02 or self._truncation_is_due():
            self._alone(connection, "TRUNCATE items")
            self.counts["truncations"] += 1
        elif dice < 0.05:
            self._alter(connection, choose)
        elif dice < 0.07:
            with connection.transaction():  # one transaction, two shapes of rows
                self._change(connection, choose, 0)
                self._alter(connection, choose)
                self._change(connection, choose, 0)
        else:
            self._change(connection, choose, 0)

    def _truncation_is_due(self) -> bool:
        """Return whether chance left out truncations; a long transaction may also replace one."""
        return self.counts["rows"] >= TRUNCATED_AFTER_ROWS and not self.counts["truncations"]

    def _change(
        self, connection: psycopg.Connection[Any], choose: random.Random, first: int
    ) -> None:
        self.counts["rows"] += 1
        if choose.random() < 0.3:
            self._change_parts(connection, choose, first)
        else:
            self._change_items(connection, choose, first)

    def _change_items(
        self, connection: psycopg.Connection[Any], choose: random.Random, first: int
    ) -> None:
        key = first + choose.randrange(1, 200)
        name = choose.choice(["", "é", "x" * 20, None])
        dice = choose.random()
        if dice < 0.5:
            connection.execute(
                "INSERT INTO items (id, v, name, amount, at, kind)"
                " VALUES (%s, 0, %s, %s, now(), %s) ON CONFLICT (id)"
                " DO UPDATE SET v = items.v + 1, name = EXCLUDED.name",
                (key, name, Decimal(choose.randrange(-99999, 99999)) / 100, choose.randrange(9)),
            )
        elif dice < 0.7:
            span = choose.choice([1, 20])
            where = b" WHERE id >= %s AND id < %s"
            connection.execute(b"UPDATE items SET v = v + 1" + where, (key, key + span))
        elif dice < 0.8 and first == 0 and (there := list(self._there)):
            column = choose.choice(there)
            statement = f"UPDATE items SET v = v + 1, {column} = NULL WHERE id %% 7 = %s"
            with connection.transaction():
                connection.execute(statement.encode(), (key % 7,))
        elif dice < 0.9:
            connection.execute(b"UPDATE items SET v = v + 1, id = id + 300 WHERE id = %s", (key,))
        else:
            connection.execute(b"DELETE FROM items WHERE id >= %s AND id < %s", (key, key + 3))

    def _change_parts(
        self, connection: psycopg.Connection[Any], choose: random.Random, first: int
    ) -> None:
        a, b = first + choose.randrange(60), f"b{choose.randrange(3)}"
        dice = choose.random()
        if dice < 0.4:
            big = "".join(chr(choose.randrange(32, 255)) for _ in range(4000))
            connection.execute(
                b"INSERT INTO parts VALUES (%s, %s, 0, %s) ON CONFLICT (a, b) DO UPDATE SET"
                b" v = parts.v + 1, big = EXCLUDED.big",
                (a, b, big),
            )
        elif dice < 0.7:  # the large value stays as it is
            connection.execute(b"UPDATE parts SET v = v + 1 WHERE a = %s", (a,))
        elif dice < 0.9:
            connection.execute(
                b"UPDATE parts SET v = v + 1, b = b || 'm' WHERE a = %s AND length(b) < 9", (a,)
            )
        else:
            connection.execute(b"DELETE FROM parts WHERE a = %s", (a,))

    def _alter(self, connection: psycopg.Connection[Any], choose: random.Random) -> None:
        dice = choose.random()
        if dice < 0.5 and self._added < COLUMNS_MAX:
            self._added += 1
            name = f"x{self._added}"
            kind, default = choose.choice(
                [
                    ("int", None),
                    ("int DEFAULT 7", "7"),
                    ("text DEFAULT 'd'", "d"),
                    ("int NOT NULL DEFAULT 8", "8"),
                    ("boolean", None),
                ]
            )
            self.defaults[name] = default
            self._alone(connection, f"ALTER TABLE items ADD COLUMN {name} {kind}")
            self._there.append(name)
        elif dice < 0.75 and len(self._there) > 3:
            name = self._there.pop(choose.randrange(len(self._there)))
            self._alone(connection, f"ALTER TABLE items DROP COLUMN IF EXISTS {name}")
        else:
            column, kinds = choose.choice(
                [("kind", self._types), ("name", self._names), ("amount", self._amounts)]
            )
            if kinds:
                self._alone(connection, f"ALTER TABLE items ALTER {column} TYPE {kinds[0]}")
                del kinds[0]
        self.counts["alterations"] += 1

    def _alone(self, connection: psycopg.Connection[Any], statement: str) -> None:
        """Give way to a long transaction."""
        with connection.transaction():
            connection.execute(b"SET LOCAL lock_timeout = '200ms'")
            connection.execute(statement.encode())

    # Long transactions.

    def _long(self, connection: psycopg.Connection[Any], choose: random.Random) -> None:
        with contextlib.suppress(psycopg.Rollback), connection.transaction() as whole:
            for _ in range(choose.randrange(10, 120)):
                if self._stop.wait(choose.random() * self._pause_s):
                    break
                with connection.transaction() as part:
                    self._change(connection, choose, LONG)
                    if choose.random() < 0.2:
                        raise psycopg.Rollback(part)
            if choose.random() < 0.3:
                raise psycopg.Rollback(whole)
        self.counts["long"] += 1

    # The true content.

    def rows(self, table: str) -> dict[tuple[str | None, ...], Row]:
        """The table's rows, by key."""
        with contextlib.closing(self.server.connect(DATABASE)) as connection:
            return rows_of(connection, table)

    def replayed(
        self, table: str, records: Iterable[tuple[bytes | None, bytes | None]], *, is_once: bool
    ) -> dict[tuple[str | None, ...], Row]:
        """The rows that a topic's records make, with the columns that the table has now.

        `is_once`: each change after the snapshot must be there once. Where a task ended before it
        had stored anything, the log comes from before the snapshot, to be safe.
        """
        snapshot = 0
        converter = JsonConverter()
        converter.configure({"replace.null.with.default": "false"}, is_key=False)
        found: dict[tuple[str | None, ...], Row] = {}
        for _key, value in records:
            _schema, envelope = converter.to_connect(table, value)
            if envelope is None:
                continue
            op, before, after = (envelope.get(name) for name in ("op", "before", "after"))
            where = envelope.get("source").get("lsn")
            if op == "r":
                snapshot = where
            is_new = is_once and where > snapshot
            if op == "t":
                found.clear()
                continue
            row = {
                name: text_of(part)
                for name, part in zip(
                    [field.name for field in (after or before).schema.fields],
                    (after or before).values,
                    strict=True,
                )
            }
            key = tuple(row[name] for name in KEYS[table])
            if is_new:
                assert (key in found) == (op != "c"), (op, key, where)
            if op == "d":
                found.pop(key, None)
                continue
            if is_new and op == "u":
                assert int(row["v"] or 0) == int(found[key]["v"] or 0) + 1, (key, where)
            found[key] = row
        names = columns_of(self.server, table)
        return {
            key: {name: row.get(name, self.defaults.get(name)) for name in names}
            for key, row in found.items()
        }


def columns_of(server: Postgres, table: str) -> list[str]:
    return [
        name
        for (name,) in server.run(
            f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0"
            " AND NOT attisdropped ORDER BY attname",
            database=DATABASE,
        )
    ]


def rows_of(connection: psycopg.Connection[Any], table: str) -> dict[tuple[str | None, ...], Row]:
    """A table's rows by key, values as texts."""
    cursor = connection.execute(f"SELECT * FROM {table}".encode())
    names = [column.name for column in cursor.description or ()]
    rows = [dict(zip(names, map(text_of, row), strict=True)) for row in cursor]
    return {tuple(row[name] for name in KEYS[table]): row for row in rows}


def with_columns(
    rows: Mapping[tuple[str | None, ...], Row], like: Mapping[tuple[str | None, ...], Row]
) -> dict[tuple[str | None, ...], Row]:
    """The rows without columns that `like` has no longer."""
    names = next(iter(like.values())).keys()
    return {key: {name: row.get(name) for name in names} for key, row in rows.items()}


def differences(found: Mapping[Any, Row], wanted: Mapping[Any, Row]) -> list[str]:
    """Return what differs, for a message."""
    keys = sorted(found.keys() | wanted.keys(), key=str)
    return [
        f"{key}: {found.get(key)}, not {wanted.get(key)}"
        for key in keys
        if found.get(key) != wanted.get(key)
    ]


def text_of(value: Any) -> str | None:
    """A value as text that does not depend on its column's type."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | Decimal):
        return format(Decimal(value).normalize(), "f")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return str(value)

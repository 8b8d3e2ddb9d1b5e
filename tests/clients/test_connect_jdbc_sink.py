"""The JDBC sink on PostgreSQL and SQLite: tables made and widened, upserts, deletes, refusals."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.cdc.tables import TypeName
from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.jdbc.connectors import JdbcSink
from barnabas.connect.connectors.jdbc.sink import JdbcSinkWriter
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.connectors.postgres.types import Modes, column_type
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.builder import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    decimal,
    optional,
    struct_of,
    with_default,
)
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError
from barnabas.schemas.data.schema import Schema, Struct
from support.connect.capture import settings as capture_settings
from support.connect.postgres import Postgres
from support.connect.reading import SourceDriver

DATABASE = "sunk"
KEY = struct_of({"id": INT32})
VALUE = struct_of({"id": INT32, "name": OPTIONAL_STRING})
Target = tuple[dict[str, str], Callable[[str], list[Any]]]
"""Settings of the connection, and what runs a query there."""


@pytest.fixture(params=["postgres", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    if request.param == "sqlite":
        path = tmp_path / "db"

        def ask(query: str) -> list[Any]:
            connection = sqlite3.connect(path)
            try:
                return connection.execute(query).fetchall()
            finally:
                connection.close()

        yield {"connection.url": f"jdbc:sqlite:{path}"}, ask
        return
    server: Postgres = request.getfixturevalue("database_server")
    with server.jdbc_database(DATABASE) as settings:
        yield settings, lambda query: server.run(query, database=DATABASE)


def record(
    key: int | None, *values: Any, schema: Schema = VALUE, topic: str = "t", offset: int = 0
) -> SinkRecord:
    """A record; without values it is a tombstone."""
    return SinkRecord(
        topic=topic,
        partition=0,
        key_schema=None if key is None else KEY,
        key=None if key is None else Struct(KEY, [key]),
        value_schema=schema if values else None,
        value=Struct(schema, list(values)) if values else None,
        offset=offset,
        original_topic=topic,
        original_partition=0,
        original_offset=offset,
    )


def write(target: Target, *records: SinkRecord, **more: str) -> None:
    settings = target[0] | {name.replace("_", "."): value for name, value in more.items()}
    writer: JdbcSinkWriter = pickle.loads(pickle.dumps(JdbcSinkWriter(settings)))
    assert writer.write(iter(records), SinkRange("t", 0, 0, len(records))) == len(records)


UPSERT = {
    "auto_create": "true",
    "auto_evolve": "true",
    "insert_mode": "upsert",
    "pk_mode": "record_key",
    "delete_enabled": "true",
}


@pytest.mark.parametrize("count", [1, 200])
def test_upserts_and_deletes_leave_the_last_state(target: Target, count: int) -> None:
    first = [record(number, number, f"n{number}") for number in range(count)]
    write(target, *first, **UPSERT)
    write(
        target,
        *[record(number, number, "again") for number in range(count)],
        record(0, 0, "twice"),
        record(1000, 1000, None),
        record(1000),
        record(2000),
        **UPSERT,
    )
    expected = [(0, "twice"), *((number, "again") for number in range(1, count))]
    assert target[1]("SELECT id, name FROM t ORDER BY id") == expected


def change(op: str, before: Struct | None, after: Struct | None) -> SinkRecord:
    """A record with Debezium's envelope."""
    row = before if after is None else after
    key = None if row is None else row.values[0]
    return record(key, before, after, op, schema=ENVELOPE)


def row(number: int, name: str | None) -> Struct:
    return Struct(ROW, [number, name])


ROW = optional(VALUE)
ENVELOPE = struct_of({"before": ROW, "after": ROW, "op": STRING}, name="t.Envelope")


@pytest.mark.parametrize("is_truncating", [True, False])
def test_changes_in_envelopes_are_rows_deletes_and_truncations(
    target: Target, is_truncating: bool
) -> None:
    write(
        target,
        change("t", None, None),  # of a table that is not there yet
        change("r", None, row(1, "gone if it is truncated")),
        change("t", None, None),
        change("c", None, row(2, "a")),
        change("c", None, row(3, "b")),
        change("u", row(2, "a"), row(2, None)),
        change("d", row(3, "b"), None),
        record(3),
        **UPSERT,
        truncate_enabled=str(is_truncating).lower(),
    )
    kept = [] if is_truncating else [(1, "gone if it is truncated")]
    assert target[1]("SELECT id, name FROM t ORDER BY id") == [*kept, (2, None)]


@pytest.mark.parametrize("is_replaced", [True, False])
def test_null_is_the_default_of_a_field_or_null(target: Target, is_replaced: bool) -> None:
    schema = struct_of({"id": INT32, "n": with_default(optional(INT64), 7)})
    more = {"replace_null_with_default": str(is_replaced).lower()}
    write(target, record(1, 1, None, schema=schema), **UPSERT, **more)
    assert target[1]("SELECT id, n FROM t") == [(1, 7 if is_replaced else None)]


@pytest.mark.parametrize("number", ["1.50", "-12345678901234567890.123456789", "0", "7E+3"])
def test_numbers_of_any_scale_are_numbers(target: Target, number: str) -> None:
    """Change capture writes such of a numeric without a scale."""
    kind = column_type(TypeName("numeric"), Modes())
    assert kind is not None
    schema = struct_of({"id": INT32, "n": optional(kind.schema)})
    values = [record(1, 1, kind.parse(number), schema=schema), record(2, 2, None, schema=schema)]
    write(target, *values, **UPSERT)
    (stored, nothing) = target[1]("SELECT n FROM t ORDER BY id")
    assert Decimal(str(stored[0])) == pytest.approx(Decimal(number), rel=Decimal("1e-12"))
    assert nothing == (None,)


def test_tables_are_widened_and_records_of_several_schemas_follow_each_other(
    target: Target,
) -> None:
    wider = struct_of(
        {"id": INT32, "name": OPTIONAL_STRING, "n": with_default(INT64, 7), "x": optional(FLOAT64)}
    )
    write(
        target,
        record(1, 1, "a"),
        record(2, 2, "b", 8, 1.5, schema=wider),
        record(3, 3, "c"),
        **UPSERT,
    )
    rows = target[1]("SELECT id, name, n, x FROM t ORDER BY id")
    assert rows == [(1, "a", 7, None), (2, "b", 8, 1.5), (3, "c", 7, None)]


def test_all_types_have_a_column(target: Target) -> None:
    schema = struct_of(
        {
            "id": INT32,
            "small": INT16,
            "flag": BOOLEAN,
            "raw": BYTES,
            "price": decimal(2),
            "day": DATE_SCHEMA,
            "clock": TIME_SCHEMA,
            "moment": TIMESTAMP_SCHEMA,
        }
    )
    moment = datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)
    values = [1, 2, True, b"\x00\xff", Decimal("1.25"), date(2024, 5, 6), time(1, 2, 3), moment]
    write(target, record(1, *values, schema=schema), auto_create="true", pk_mode="kafka")
    is_sqlite = "sqlite" in target[0]["connection.url"]
    (row,) = target[1]("SELECT small, flag, raw, price, day, clock, moment FROM t")
    if is_sqlite:
        ms = round(moment.timestamp() * 1000)
        day_ms = ms // 86_400_000 * 86_400_000
        assert row == (2, 1, b"\x00\xff", 1.25, day_ms, 3_723_000, ms)
        types = [column[2] for column in target[1]("PRAGMA table_info(t)")]
        # the place in the topic is the key
        assert types[:3] == ["TEXT", "INTEGER", "INTEGER"]
        assert types[4:] == ["INTEGER", "INTEGER", "BLOB", *["NUMERIC"] * 4]
    else:
        expected = (2, True, b"\x00\xff", Decimal("1.25"), *values[5:7])
        assert row == (*expected, moment.replace(tzinfo=None))
        names = "SELECT data_type FROM information_schema.columns WHERE table_name = 't'"
        assert [name for (name,) in target[1](f"{names} ORDER BY ordinal_position")] == [
            *("text", "integer", "bigint", "integer", "smallint", "boolean", "bytea", "numeric"),
            *("date", "time without time zone", "timestamp without time zone"),
        ]


def test_updates_change_rows_that_are_there_and_no_others(target: Target) -> None:
    write(target, record(1, 1, "a"), **UPSERT)
    write(
        target,
        *(record(1, 1, "b"), record(2, 2, "c")),
        insert_mode="update",
        pk_mode="record_value",
        pk_fields="id",
    )
    assert target[1]("SELECT id, name FROM t") == [(1, "b")]


@pytest.mark.parametrize(
    ("records", "more", "text"),
    [
        ([record(1, 1, "a")], {}, "is missing and auto-creation is disabled"),
        ([record(1)], {"pk_mode": "record_key"}, "delete.enabled=false"),
        ([record(1, 1, "a", topic="u")], {}, "is missing fields .name. and auto-evolution"),
        (
            [record(1, 1, "a", schema=struct_of({"id": INT32, "new": STRING}), topic="u")],
            {"auto_evolve": "true"},
            "Cannot ALTER TABLE .* field new, as the field is not optional",
        ),
        (
            [record(None, 1, "a")],
            {"pk_mode": "record_key"},
            "'t' is RECORD_KEY, but record key schema is missing: topic t needs keys",
        ),
        (
            [record(1, 1, None, schema=struct_of({"id": INT32, "place": optional(VALUE)}))],
            {"auto_create": "true"},
            "Field place: .*STRUCT.* type doesn't have a mapping .*fields.whitelist",
        ),
    ],
)
def test_what_cannot_be_written_is_said(
    target: Target, records: list[SinkRecord], more: dict[str, str], text: str
) -> None:
    only_id = struct_of({"id": INT32})
    write(target, record(1, 1, schema=only_id, topic="u"), auto_create="true")
    with pytest.raises(ConnectError, match=text):
        write(target, *records, **more)


def test_a_batch_that_fails_leaves_nothing(target: Target) -> None:
    write(target, record(1, 1, "a"), **UPSERT)
    with pytest.raises(ConnectError):
        write(target, record(2, 2, "b"), record(1, 1, "c"), pk_mode="record_key")
    assert target[1]("SELECT id FROM t") == [(1,)]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"insert.mode": "upsert"}, "Primary key mode must be set"),
        ({"delete.enabled": "true"}, "must be 'record_key' when delete support"),
        ({"connection.url": "jdbc:oracle:x"}, "begins with neither"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(more: dict[str, str], text: str) -> None:
    given = {"connection.url": "jdbc:sqlite::memory:"} | more
    errors = [text for found in JdbcSink().validate(given).values() for text in found]
    assert len(errors) == 1
    assert text in errors[0]
    with pytest.raises(ConfigError, match=text):
        JdbcSinkWriter(given)


def test_a_lost_server_is_retriable() -> None:
    writer = JdbcSinkWriter({"connection.url": "jdbc:postgresql://127.0.0.1:1/x"})
    with pytest.raises(RetriableError):
        writer.write(iter([record(1, 1, "a")]), SinkRange("t", 0, 0, 1))


def test_what_is_captured_makes_the_same_table(database_server: Postgres, target: Target) -> None:
    name = f"from_capture_{len(target[0])}"
    database_server.database(name)
    make = "CREATE TABLE t (id int PRIMARY KEY, name text)"
    database_server.run(make, "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 300) i",
                        database=name)  # fmt: skip
    source = SourceDriver(PostgresConnector(), capture_settings(database_server, name))
    source.until(lambda records: len(records) >= 300)
    database_server.run(
        "UPDATE t SET name = name || id WHERE id % 3 = 0",
        "DELETE FROM t WHERE id % 7 = 0",
        "UPDATE t SET id = id + 1000 WHERE id % 11 = 0",
        "INSERT INTO t VALUES (-1, 'end')",
        database=name,
    )
    made = source.until(lambda records: records[-1].key.values == [-1])
    rows = [
        record(r.key.values[0], *(r.value.values[1].values if r.value.values[1] else ()))
        for r in made
        if r.value is not None
    ]
    write(target, *rows, batch_size="64", **UPSERT)
    query = "SELECT id, name FROM t ORDER BY id"
    assert target[1](query) == database_server.run(query, database=name)
    source.reader.stop()
    database_server.drop_slots("database", name)

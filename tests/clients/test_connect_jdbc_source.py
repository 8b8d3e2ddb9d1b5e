"""The JDBC source on PostgreSQL and SQLite: each mode, restarts, types."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.connectors.jdbc.connectors import JdbcSource
from barnabas.connect.record import SourceRecord
from barnabas.schemas.data.errors import ConfigError
from support.connect.postgres import Postgres
from support.connect.reading import SourceDriver, StoredOffsets

DATABASE = "polled"
Origin = tuple[dict[str, str], Callable[..., None]]
"""Settings of the connection, and what runs statements there."""


@pytest.fixture(params=["postgres", "sqlite"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Origin]:
    if request.param == "sqlite":
        path = tmp_path / "db"

        def run(*statements: str) -> None:
            connection = sqlite3.connect(path)
            try:
                for statement in statements:
                    connection.execute(statement)
                connection.commit()
            finally:
                connection.close()

        yield {"connection.url": f"jdbc:sqlite:{path}"}, run
        return
    server: Postgres = request.getfixturevalue("database_server")
    with server.jdbc_database(DATABASE) as settings:
        yield settings, lambda *statements: server.run(*statements, database=DATABASE) and None


def poll(origin: Origin, offsets: StoredOffsets | None = None, /, **more: str) -> SourceDriver:
    given = origin[0] | {"topic.prefix": "p-", "poll.interval.ms": "0"}
    given |= {name.replace("_", "."): value for name, value in more.items()}
    connector = JdbcSource()
    connector.start(None, given)
    (settings,) = connector.task_settings(1)
    return SourceDriver(connector, settings, offsets)


def rows(records: list[SourceRecord]) -> list[Any]:
    return [record.value.values for record in records]


def test_a_growing_number_tells_what_is_new_also_after_a_restart(origin: Origin) -> None:
    origin[1](
        "CREATE TABLE t (id int PRIMARY KEY, name text)",
        "INSERT INTO t VALUES (2, 'b'), (1, 'a')",
    )
    more = {"mode": "incrementing", "incrementing_column_name": "id"}
    driver = poll(origin, **more)
    assert rows(driver.until(lambda records: len(records) >= 2)) == [[1, "a"], [2, "b"]]
    assert driver.records[0].topic == "p-t"
    assert driver.offsets.all() == [({"protocol": "1", "table": "t"}, {"incrementing": 2})]
    driver.stop()
    origin[1]("INSERT INTO t VALUES (3, NULL)", "UPDATE t SET name = 'x' WHERE id = 1")
    again = poll(origin, driver.offsets, **more)
    assert rows(again.until(lambda records: records)) == [[3, None]]
    again.stop()


def test_large_tables_come_in_pieces_and_in_bulk_again_and_again(origin: Origin) -> None:
    values = ", ".join(f"({number})" for number in range(2500))
    origin[1]("CREATE TABLE t (id int NOT NULL)", f"INSERT INTO t VALUES {values}")
    driver = poll(origin, mode="bulk")
    sizes: list[int] = []
    while sum(sizes) < 5000:
        sizes.append(len(driver.batch()))
    assert sizes[:3] == [1000, 1000, 500]
    assert rows(driver.records) == [[number] for number in range(2500)] * 2
    driver.stop()


def test_a_time_and_a_number_lose_and_repeat_nothing(origin: Origin) -> None:
    is_sqlite = "sqlite" in origin[0]["connection.url"]
    kind = "integer" if is_sqlite else "timestamp"
    moments = [1000, 1000, 2000] if is_sqlite else [f"'1970-01-01 00:00:0{n}'" for n in (1, 1, 2)]
    origin[1](
        f"CREATE TABLE t (id int PRIMARY KEY, changed {kind} NOT NULL)",
        *(f"INSERT INTO t VALUES ({n}, {moment})" for n, moment in enumerate(moments)),
    )
    more = {
        "mode": "timestamp+incrementing",
        "incrementing_column_name": "id",
        "timestamp_column_name": "changed",
    }
    driver = poll(origin, **more)
    assert [row[0] for row in rows(driver.until(lambda records: len(records) >= 3))] == [0, 1, 2]
    stored = {"timestamp": 2000, "timestamp_nanos": 0, "incrementing": 2}
    assert driver.offsets.all() == [({"protocol": "1", "table": "t"}, stored)]
    origin[1](f"INSERT INTO t VALUES (3, {moments[2]})", f"UPDATE t SET changed = {moments[2]}")
    driver.until(lambda records: len(records) >= 4)
    assert [row[0] for row in rows(driver.records)[3:]] == [3]
    driver.stop()


def test_rows_that_share_a_time_are_rather_repeated_than_lost(origin: Origin) -> None:
    is_sqlite = "sqlite" in origin[0]["connection.url"]
    kind = "integer" if is_sqlite else "timestamptz"
    moment = "1000" if is_sqlite else "'1970-01-01 00:00:01+00'"
    values = ", ".join(f"({number}, {moment})" for number in range(1500))
    origin[1](f"CREATE TABLE t (id int, changed {kind})", f"INSERT INTO t VALUES {values}")
    more = {"mode": "timestamp", "timestamp_column_name": "changed"}
    driver = poll(origin, **more)
    assert len(driver.until(lambda records: records)) == 1000
    driver.stop()
    again = poll(origin, driver.offsets, **more)
    assert len(again.until(lambda records: len(records) >= 1500)) == 1500
    assert again.batch() == []
    again.stop()


def test_a_query_in_place_of_tables(origin: Origin) -> None:
    origin[1]("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2)")
    driver = poll(origin, mode="bulk", query="SELECT id AS one FROM t WHERE id > 1")
    (record,) = driver.until(lambda records: records)[:1]
    assert (record.topic, record.value.values) == ("p-", [2])
    driver.stop()


def test_types_of_postgres(database_server: Postgres) -> None:
    make = """CREATE TABLE t (a smallint NOT NULL, b real, c numeric(6,2), d date, e time,
      f timestamptz, g bytea, h boolean, i uuid, j jsonb, k text)"""
    insert = """INSERT INTO t VALUES (1, 1.5, 2.5, '2024-01-02', '03:04', '2024-01-02 03:04+01',
      '\\x00ff', true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}', 'x'), (2)"""
    with database_server.jdbc_database(DATABASE) as settings:
        database_server.run(make, insert.replace(", (2)", ""), database=DATABASE)
        driver = poll((settings, lambda *_: None), mode="bulk")
        (row,) = rows(driver.until(lambda records: records)[:1])
        assert row == [
            *(1, 1.5, Decimal("2.50"), date(2024, 1, 2), time(3, 4)),
            datetime(2024, 1, 2, 2, 4, tzinfo=UTC),
            *(b"\x00\xff", True, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", '{"a": 1}', "x"),
        ]
        driver.stop()


def test_modes_without_their_columns_are_refused() -> None:
    given = {"connection.url": "jdbc:sqlite::memory:", "mode": "timestamp", "topic.prefix": "p"}
    with pytest.raises(ConfigError, match=r"timestamp\.column.name is needed"):
        JdbcSource().start(None, given)

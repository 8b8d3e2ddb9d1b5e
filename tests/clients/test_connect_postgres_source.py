"""Change capture on a real server: restarts at each place, long transactions, what goes wrong."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.record import SourceRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError
from support.connect.capture import settings
from support.connect.postgres import Postgres, insert_many, postgres
from support.connect.reading import SourceDriver, StoredOffsets

DATABASE = "captured"


@pytest.fixture
def server(database_server: Postgres) -> Iterator[Postgres]:
    database_server.database(DATABASE)
    database_server.run("CREATE TABLE t (id int PRIMARY KEY, v text)", database=DATABASE)
    try:
        yield database_server
    finally:
        database_server.drop_database(DATABASE)


def _slots(server: Postgres) -> list[tuple[Any, ...]]:
    return server.run(f"SELECT slot_name FROM pg_replication_slots WHERE database = '{DATABASE}'")


def capture(server: Postgres, offsets: StoredOffsets | None = None, /, **more: str) -> SourceDriver:
    return SourceDriver(PostgresConnector(), settings(server, DATABASE, **more), offsets)


def ids(records: list[SourceRecord]) -> list[int]:
    """The keys of all but tombstones."""
    return [record.key.values[0] for record in records if record.value is not None]


def table_of(records: list[SourceRecord]) -> dict[int, Any]:
    """The table that the topic's records make."""
    rows: dict[int, Any] = {}
    for record in records:
        if record.value is None:
            rows.pop(record.key.values[0], None)
        elif record.value.values[4] == "t":
            rows.clear()
        elif record.value.values[1] is not None:
            rows[record.key.values[0]] = record.value.values[1].values[1]
    return rows


def snapshot_ended(driver: SourceDriver) -> SourceDriver:
    driver.until(lambda _r: any(o.get("snapshot_completed") for _p, o in driver.offsets.all()))
    return driver


def test_a_transaction_is_cut_and_goes_on_after_a_restart_at_the_very_row(server: Postgres) -> None:
    """One COPY's rows share places in the log: a place alone would lose or repeat some."""
    driver = snapshot_ended(capture(server, max_batch_size="30"))
    with server.connect(DATABASE) as connection:
        insert_many(connection, "t", [(number, "x") for number in range(100)])
    seen: list[int] = []
    while True:  # as often as it takes: a micro-batch may have few
        driver.until(lambda records: records)
        seen += ids(driver.records)
        driver.reader.stop()
        if len(seen) >= 100:
            break
        driver = capture(server, driver.offsets, max_batch_size="30")
    assert seen == list(range(100))


def test_what_was_not_stored_is_read_again(server: Postgres) -> None:
    driver = snapshot_ended(capture(server))
    server.run("INSERT INTO t VALUES (1, 'a')", database=DATABASE)
    lost: list[SourceRecord] = []
    while not lost:
        lost = driver.batch(is_committed=False)
    driver.reader.stop()
    again = capture(server, driver.offsets)
    assert ids(again.until(lambda records: records)) == ids(lost) == [1]
    again.reader.stop()


def test_a_snapshot_of_many_splits_has_each_row_once_and_the_log_what_follows(
    server: Postgres,
) -> None:
    with server.connect(DATABASE) as connection:
        insert_many(connection, "t", [(number, "x" * 500) for number in range(2000)])
    driver = capture(server, snapshot_split_pages="10")
    driver.batch()
    server.run("INSERT INTO t VALUES (5000, 'after')", database=DATABASE)
    records = driver.until(lambda records: len(records) >= 2001)
    assert ids(records) == [*range(2000), 5000]
    marks = [record.value.values[2].values[4] for record in records]
    assert marks[0] == "first"
    assert marks[1999:] == ["last", "false"]
    assert set(marks[1:1999]) == {"true"}
    driver.reader.stop()


def test_an_interrupted_snapshot_begins_anew(server: Postgres) -> None:
    with server.connect(DATABASE) as connection:
        insert_many(connection, "t", [(number, "x" * 500) for number in range(500)])
    driver = capture(server, snapshot_split_pages="2")
    assert 0 < len(driver.batch()) < 500
    driver.reader.stop()
    again = capture(server, driver.offsets)
    assert ids(again.until(lambda records: len(records) >= 500)) == list(range(500))
    again.reader.stop()


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_row_of_an_interrupted_snapshot_is_not_kept_when_it_is_deleted(
    server: Postgres, is_stored: bool
) -> None:
    with server.connect(DATABASE) as connection:
        insert_many(connection, "t", [(number, "x" * 500) for number in range(500)])
    driver = capture(server, snapshot_split_pages="2")
    written = driver.batch(is_committed=is_stored)
    driver.reader.stop()
    server.run(f"DELETE FROM t WHERE id = {ids(written)[0]}", database=DATABASE)
    again = snapshot_ended(capture(server, driver.offsets))
    server.run("INSERT INTO t VALUES (1000, 'end')", database=DATABASE)
    read = again.until(lambda records: 1000 in ids(records))
    again.reader.stop()
    expected = dict(server.run("SELECT id, v FROM t", database=DATABASE))
    assert table_of([*written, *read]) == expected


def test_a_snapshot_of_each_start_is_followed_by_the_log_since_the_last(server: Postgres) -> None:
    server.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')", database=DATABASE)
    driver = snapshot_ended(capture(server, snapshot_mode="always"))
    server.run("INSERT INTO t VALUES (3, 'c')", database=DATABASE)
    driver.until(lambda records: 3 in ids(records))
    driver.reader.stop()
    server.run("DELETE FROM t WHERE id = 1", database=DATABASE)
    again = capture(server, driver.offsets, snapshot_mode="always")
    read = again.until(lambda records: records and records[-1].value is None)
    again.reader.stop()
    assert sorted(ids(read)) == [1, 2, 3]  # what was written after the first snapshot is not again
    assert table_of([*driver.records, *read]) == {2: "b", 3: "c"}


@pytest.mark.slow
def test_a_lost_server_heals() -> None:
    with postgres() as own:
        own.database(DATABASE)
        own.run("CREATE TABLE t (id int PRIMARY KEY, v text)", database=DATABASE)
        driver = snapshot_ended(capture(own))
        own.run("INSERT INTO t VALUES (1, 'a')", database=DATABASE)
        driver.until(lambda records: records)
        own.crash()
        with pytest.raises(RetriableError):
            list(iter(driver.batch, None))  # until the thread that reads has noticed
        own.start()
        own.run("INSERT INTO t VALUES (2, 'b')", database=DATABASE)
        assert ids(driver.until(lambda records: len(records) >= 2)) == [1, 2]
        driver.reader.stop()


def test_a_wrong_password_is_no_retriable_error_and_is_not_told(server: Postgres) -> None:
    given = settings(server, DATABASE) | {"database.password": "a-wrong-one"}
    driver = SourceDriver(PostgresConnector(), given)
    with pytest.raises(ConnectError, match="password authentication failed") as raised:
        driver.batch()
    assert not isinstance(raised.value, RetriableError)
    assert "a-wrong-one" not in str(raised.value)
    (error,) = PostgresConnector().validate(given)["database.hostname"]
    assert "password authentication failed" in error


@pytest.mark.parametrize("mode", ["initial", "when_needed"])
def test_a_dropped_slot_is_an_error_or_a_new_snapshot(server: Postgres, mode: str) -> None:
    driver = snapshot_ended(capture(server, slot_drop_on_stop="true"))
    driver.reader.stop()
    assert not _slots(server)
    server.run("INSERT INTO t VALUES (1, 'meanwhile')", database=DATABASE)
    again = capture(server, driver.offsets, snapshot_mode=mode)
    if mode == "initial":
        with pytest.raises(ConnectError, match="is gone: changes after"):
            again.batch()
    else:
        assert table_of(again.until(lambda records: records)) == {1: "meanwhile"}
    again.reader.stop()


def test_a_publication_that_nobody_made_is_an_error_where_it_must_not_be_made(
    server: Postgres,
) -> None:
    driver = capture(server, publication_autocreate_mode="disabled")
    with pytest.raises(ConnectError, match="publication dbz_publication does not exist"):
        driver.batch()
    driver.reader.stop()


def test_columns_that_are_left_out_are_told(
    server: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    server.run("CREATE TYPE pair AS (a int, b int)", database=DATABASE)
    server.run("CREATE TABLE odd (id int PRIMARY KEY, p pair)", database=DATABASE)
    snapshot_ended(capture(server)).reader.stop()
    assert "public.odd.p is left out because its type pair is not supported" in caplog.text


def test_only_what_the_lists_name_is_captured(server: Postgres) -> None:
    server.run("CREATE TABLE other (id int PRIMARY KEY, secret text)", database=DATABASE)
    driver = capture(
        server,
        table_include_list="public.OTHER",
        column_exclude_list=r".*\.secret",
        publication_autocreate_mode="filtered",
        skipped_operations="u,t",
    )
    snapshot_ended(driver)
    server.run(
        "INSERT INTO t VALUES (1, 'no')",
        "INSERT INTO other VALUES (1, 'x')",
        "UPDATE other SET secret = 'y'",
        "INSERT INTO other VALUES (2, 'z')",
        database=DATABASE,
    )
    records = driver.until(lambda records: len(records) >= 2)
    assert [(r.topic, r.value.values[1].values) for r in records] == [
        ("p.public.other", [1]),
        ("p.public.other", [2]),
    ]
    driver.reader.stop()


def test_heartbeats_and_their_statement(server: Postgres) -> None:
    driver = capture(
        server,
        snapshot_mode="no_data",
        heartbeat_interval_ms="1",
        heartbeat_action_query="INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING",
    )
    records = driver.until(
        lambda records: {r.topic for r in records} >= {"__debezium-heartbeat.p", "p.public.t"}
    )
    beat = next(record for record in records if record.topic.startswith("__"))
    assert beat.key.values == ["p"]
    driver.reader.stop()


def test_offsets_of_debezium_are_taken_over(server: Postgres) -> None:
    first = snapshot_ended(capture(server, flush_lsn_source="false"))
    server.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')", database=DATABASE)
    records = first.until(lambda records: len(records) == 2)
    first.reader.stop()
    offsets = StoredOffsets()
    stored = {k: v for k, v in records[0].source_offset.items() if "barnabas" not in k}
    offsets.store({"server": "p"}, stored)
    again = capture(server, offsets)
    assert ids(again.until(lambda records: records)) == [2]
    again.reader.stop()


def test_settings_that_do_not_go_together_are_refused(server: Postgres) -> None:
    with pytest.raises(ConfigError, match="cannot both be set"):
        capture(server, table_include_list="a", table_exclude_list="b")


def test_a_random_workload_with_crashes_is_replayed_to_the_table() -> None:
    with postgres() as own:
        replay_randomly(own, seed=1, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_long_random_workloads_with_crashes_are_replayed_to_the_table(seed: int) -> None:
    with postgres() as own:
        replay_randomly(own, seed=seed, steps=600)


def replay_randomly(server: Postgres, *, seed: int, steps: int) -> None:
    """Changes of all kinds while task and server are ended: exactly once, so replay is equal."""
    chance = random.Random(seed)
    server.database(DATABASE)
    server.run("CREATE TABLE t (id int PRIMARY KEY, v text)", database=DATABASE)
    more = {"skipped_operations": "none", "max_batch_size": str(chance.choice([3, 10, 500]))}
    driver = capture(server, None, **more)
    records: list[SourceRecord] = []
    added = 0
    for _ in range(steps):
        what = chance.random()
        if what < 0.5:
            _change(server, chance)
        elif what < 0.55:
            added += 1
            server.run(f"ALTER TABLE t ADD COLUMN extra{added} int DEFAULT 1", database=DATABASE)
        elif what < 0.9:
            with contextlib.suppress(RetriableError):  # of a crash before
                driver.batch(is_committed=chance.random() < 0.9)
        elif what < 0.97:
            records += driver.records
            driver.reader.stop()
            more["max_batch_size"] = str(chance.choice([3, 500]))
            driver = capture(server, driver.offsets, **more)
        else:
            server.crash()
            server.start()
    server.run("INSERT INTO t VALUES (-1, 'end')", database=DATABASE)
    while not any(r.key is not None and r.key.values == [-1] for r in driver.records):
        with contextlib.suppress(RetriableError):
            driver.batch()
    records += driver.records
    driver.reader.stop()
    rows = dict(server.run("SELECT id, v FROM t", database=DATABASE))
    assert table_of(records) == rows


def _change(server: Postgres, chance: random.Random) -> None:
    number = chance.randrange(50)
    or_set = f" ON CONFLICT (id) DO UPDATE SET v = '{number}'"
    is_free = f"NOT EXISTS (SELECT 1 FROM t WHERE id = {number + 1000})"
    statements = [
        chance.choice(
            [
                f"INSERT INTO t SELECT i, 'i' FROM generate_series({number}, {number + 9}) i"
                + or_set,
                f"UPDATE t SET v = v || '{number}' WHERE id % 7 = {number % 7}",
                f"UPDATE t SET id = id + 1000 WHERE id = {number} AND {is_free}",
                f"DELETE FROM t WHERE id % 5 = {number % 5}",
            ]
        )
        for _ in range(chance.randrange(1, 5))
    ]
    if chance.random() < 0.1:
        statements.append("TRUNCATE t")
    end = "ROLLBACK" if chance.random() < 0.2 else "COMMIT"
    with server.connect(DATABASE) as connection:
        for statement in ("BEGIN", *statements, end):
            connection.execute(statement.encode())

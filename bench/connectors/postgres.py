"""Rows of PostgreSQL: change capture and JDBC beside plain psycopg.

It starts its own PostgreSQL. Snapshot, log, query and upserts are measured without a worker, as
psycopg is. The time until a snapshot and the log are in a topic, and that of one row from its
commit, are those of a whole worker: Barnabas on both engines, and Kafka with Debezium's connector.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.jdbc.connectors import JdbcSource
from barnabas.connect.connectors.jdbc.sink import JdbcSinkWriter
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.record import SinkRecord, SourceRecord
from bench.connectors.database import (
    SourceDriver,
    access,
    capture_settings,
    insert_many,
    postgres,
)
from bench.connectors.kafka_plugins import DEBEZIUM
from bench.connectors.latency import latencies
from bench.connectors.workers import JSON, RUNNERS, TopicEnd, connector, in_turn, rate
from bench.settings import Settings

Figures = dict[str, dict[str, float]]
TABLE = "(id bigint PRIMARY KEY, name text, amount numeric(10, 2), at timestamptz, flag boolean)"
COLUMNS = "i, 'name ' || i, i / 7.0, '2024-01-01'::timestamptz + i * interval '1 s', i % 2 = 0"
UPSERT = (
    "INSERT INTO v VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
    " name = EXCLUDED.name, amount = EXCLUDED.amount"
)


def postgres_round(port: int, directory: Path, settings: Settings, number: int) -> Figures:
    """Measure readers and writers, psycopg, and workers."""
    rows = settings.connect_rows
    with postgres() as server:
        server.run(f"CREATE TABLE t {TABLE}", _fill(1, rows))
        figures = _alone(server, rows, _fill(1, rows))
        for runner in in_turn(RUNNERS, number):
            server.run("TRUNCATE t", _fill(1, rows), "VACUUM ANALYZE t")
            found = _worker(server, runner, port, directory, settings)
            figures.setdefault(runner, {}).update(found)
    return figures


def _fill(first: int, last: int) -> str:
    return f"INSERT INTO t SELECT {COLUMNS} FROM generate_series({first}, {last}) i"


def _alone(server: Any, rows: int, fill: str) -> Figures:
    ours: dict[str, float] = {}
    plain: dict[str, float] = {}

    def timed(figures: dict[str, float], name: str, run: Callable[[], object]) -> None:
        began = time.perf_counter()
        run()
        figures[f"connect_{name}_s"] = rows / (time.perf_counter() - began)

    with server.connect() as connection:
        timed(plain, "postgres_snapshot", lambda: _copied(connection))
    capture = SourceDriver(PostgresConnector(), capture_settings(server, max_batch_size="8192"))
    timed(ours, "postgres_snapshot", lambda: capture.until(lambda r: len(r) >= rows))
    server.run("TRUNCATE t", fill)
    timed(ours, "postgres_log", lambda: capture.until(lambda r: len(r) >= 2 * rows))
    capture.stop()
    query = JdbcSource()
    given = {
        **access(server),
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "t",
        "topic.prefix": "q-",
        "poll.interval.ms": "0",
        "batch.max.rows": "10000",
    }
    query.start(_Context(), given)
    (task,) = query.task_settings(1)
    reader = SourceDriver(query, {**given, **task})
    timed(ours, "jdbc_source", lambda: reader.until(lambda r: len(r) >= rows))
    reader.stop()
    query.stop()
    with server.connect() as connection:
        timed(plain, "jdbc_source", lambda: connection.execute("SELECT * FROM t").fetchall())
    made = [_sunk(record) for record in capture.records[:rows]]
    writer = JdbcSinkWriter(
        {
            **access(server),
            "auto.create": "true",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
        }
    )
    where = SinkRange("u", 0, 0, rows)
    timed(ours, "jdbc_new", lambda: writer.write(iter(made), where))
    timed(ours, "jdbc_upsert", lambda: writer.write(iter(made), where))
    writer.stop()
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE v {TABLE}".encode())
        values = [tuple(record.value.values) for record in made]
        timed(plain, "jdbc_new", lambda: insert_many(connection, "v", values))
        cursor = connection.cursor()
        timed(plain, "jdbc_upsert", lambda: cursor.executemany(UPSERT.encode(), values))
    return {"barnabas": ours, "driver": plain}


class _Context:
    """The context of a connector that runs without a worker."""

    name = "bench"
    offsets: Any = None

    def request_task_reconfiguration(self) -> None: ...

    def fail(self, error: BaseException) -> None:
        raise error


def _worker(
    server: Any, runner: str, port: int, directory: Path, settings: Settings
) -> dict[str, float]:
    servers, slot = f"127.0.0.1:{port}", f"slot_{runner}"
    given = {
        **capture_settings(
            server, slot_name=slot, topic_prefix=runner, table_include_list="public.t"
        ),
        "name": f"capture-{runner}",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "publication.name": runner,
        "poll.interval.ms": "10",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "key.converter": JSON,
    }
    topic = f"{runner}.public.t"
    end = TopicEnd(servers, topic)
    with (
        connector(runner, directory, servers, given, DEBEZIUM) as running,
        server.connect() as connection,
    ):
        rows, timeout_s = settings.connect_rows, settings.timeout_seconds
        topic_s = rate(running, end, rows, timeout_s)
        _wait_for_slot(connection, slot, is_active=True, timeout_s=timeout_s)
        connection.execute(_fill(rows + 1, 2 * rows))
        log_s = rate(running, lambda: max(0, end() - rows), rows, timeout_s)
        insert = "INSERT INTO t (id, name, flag) VALUES (%s, '', true)"
        middle, high = latencies(
            running,
            servers,
            topic,
            lambda now_us: connection.execute(insert, [now_us]),
            lambda value: json.loads(value)["after"]["id"] / 1e6,
            settings.connect_seconds,
        )
        memory_mb = running.memory_mb
    end.close()
    with server.connect() as connection:
        _wait_for_slot(connection, slot, is_active=False, timeout_s=timeout_s)
        connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
    return {
        "connect_postgres_topic_s": topic_s,
        "connect_postgres_log_topic_s": log_s,
        "connect_postgres_p50_ms": middle,
        "connect_postgres_p99_ms": high,
        "connect_postgres_mb": memory_mb,
    }


def _wait_for_slot(
    connection: psycopg.Connection[Any], slot: str, *, is_active: bool, timeout_s: float
) -> None:
    """Wait until the log is read, or until its reader is gone."""
    deadline = time.monotonic() + timeout_s
    query = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active = %s"
    while connection.execute(query, [slot, is_active]).fetchone() is None:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the slot {slot} is not as it should be within {timeout_s:g} s")
        time.sleep(0.05)


def _copied(connection: Any) -> None:
    with connection.cursor().copy("COPY t TO STDOUT") as copy:
        for _row in copy.rows():
            pass


def _sunk(record: SourceRecord) -> SinkRecord:
    row = record.value.values[1]
    return SinkRecord(
        topic="u",
        partition=0,
        key_schema=record.key_schema,
        key=record.key,
        value_schema=row.schema,
        value=row,
        offset=0,
        original_topic="u",
        original_partition=0,
        original_offset=0,
    )

"""Rows a second of the PostgreSQL connectors beside plain psycopg: snapshot, log, upserts.

Run it from the root: `python -m bench.connect_postgres [rows]`. It starts a PostgreSQL of its own.
Records are made, not converted or written to topics: that is the engine's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.jdbc.sink import JdbcSinkWriter
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.record import SinkRecord, SourceRecord

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
_server = import_module("support.connect.postgres")  # what tests use to start one
settings = import_module("support.connect.capture").settings
SourceDriver = import_module("support.connect.reading").SourceDriver

TABLE = "(id bigint PRIMARY KEY, name text, amount numeric(10, 2), at timestamptz, flag boolean)"
COLUMNS = "i, 'name ' || i, i / 7.0, '2024-01-01'::timestamptz + i * interval '1 s', i % 2 = 0"
LINE = "{:<44}{:>12,.0f} rows/s"


def timed(what: str, rows: int, run: Callable[[], object]) -> None:
    began = time.perf_counter()
    run()
    print(LINE.format(what, rows / (time.perf_counter() - began)))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    fill = f"INSERT INTO t SELECT {COLUMNS} FROM generate_series(1, {rows}) i"
    with _server.postgres(synchronous_commit="off") as server:
        server.run(f"CREATE TABLE t {TABLE}", fill)
        with server.connect() as connection:
            timed("psycopg: COPY TO, rows read", rows, lambda: _copied(connection))
        driver = SourceDriver(PostgresConnector(), settings(server, max_batch_size="8192"))
        timed("change capture: snapshot", rows, lambda: driver.until(lambda r: len(r) >= rows))
        server.run("TRUNCATE t", fill)
        timed("change capture: log", rows, lambda: driver.until(lambda r: len(r) >= 2 * rows))
        driver.stop()
        made = [_sunk(record) for record in driver.records[:rows]]
        writer = JdbcSinkWriter(
            {
                "connection.url": server.jdbc_url,
                "connection.user": _server.USER,
                "connection.password": server.password,
                "auto.create": "true",
                "insert.mode": "upsert",
                "pk.mode": "record_key",
            }
        )
        where = SinkRange("u", 0, 0, rows)
        timed("sink: upsert, new rows", rows, lambda: writer.write(iter(made), where))
        timed("sink: upsert, rows that are there", rows, lambda: writer.write(iter(made), where))
        with server.connect() as connection:
            connection.execute(f"CREATE TABLE v {TABLE}".encode())
            values = [tuple(record.value.values) for record in made]
            timed("psycopg: COPY FROM", rows, lambda: _server.insert_many(connection, "v", values))
            upsert = (
                "INSERT INTO v VALUES (%s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
                " name = EXCLUDED.name, amount = EXCLUDED.amount"
            )
            timed(
                "psycopg: executemany of upserts",
                rows,
                lambda: connection.cursor().executemany(upsert.encode(), values),
            )


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


if __name__ == "__main__":
    main()

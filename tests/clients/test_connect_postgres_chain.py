"""A table captured to topics and written to another table: both are equal after crashes."""

from __future__ import annotations

import pytest

from barnabas.connect.testing import ConnectKit
from support.connect.capture import settings
from support.connect.postgres import USER, Postgres, postgres

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = {"key.converter": JSON, "value.converter": JSON}
QUERY = "SELECT id, name, amount, flag FROM t ORDER BY id"


def source(server: Postgres) -> dict[str, str]:
    given = settings(server, "origin", max_batch_size="50", table_include_list="public.t")
    connector = "io.debezium.connector.postgresql.PostgresConnector"
    return {"connector.class": connector, **CONVERTERS, **given}


def sink(server: Postgres) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        **CONVERTERS,
        "topics": "p.public.t",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.drop.tombstones": "false",
        "connection.url": server.jdbc_url.rpartition("/")[0] + "/copy",
        "connection.user": USER,
        "connection.password": server.password,
        "table.name.format": "t",
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "delete.enabled": "true",
        "auto.create": "true",
        "auto.evolve": "true",
    }


@pytest.mark.parametrize("is_exactly_once", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_copy_equals_the_table_after_crashes_and_restarts(is_exactly_once: bool) -> None:
    with postgres() as server, ConnectKit() as kit:
        server.database("origin")
        server.database("copy")
        server.run(
            "CREATE TABLE t (id int PRIMARY KEY, name text, amount numeric(8, 2))",
            "INSERT INTO t SELECT i, 'n' || i, i / 4.0 FROM generate_series(1, 300) i",
            database="origin",
        )
        kit.create("p.public.t")
        first = kit.start("capture", source(server), is_exactly_once=is_exactly_once)
        copy = kit.start("copy", sink(server))
        kit.wait_until(lambda: len(kit.records("p.public.t")) >= 100)
        server.run("UPDATE t SET name = NULL WHERE id % 3 = 0", database="origin")
        kit.wait_until(lambda: len(kit.records("p.public.t")) >= 350)
        first.stop()
        server.run("DELETE FROM t WHERE id % 7 = 0", database="origin")
        again = kit.start("capture", source(server), is_exactly_once=is_exactly_once)
        server.crash()
        server.start()
        server.run(
            "ALTER TABLE t ADD COLUMN flag boolean DEFAULT true",
            "UPDATE t SET id = id + 1000 WHERE id % 11 = 0",
            "INSERT INTO t VALUES (-1, 'end', 1.5, false)",
            database="origin",
        )

        def is_copied() -> bool:
            found = server.run("SELECT to_regclass('t') IS NOT NULL", database="copy")
            if found != [(True,)]:
                return False
            rows = server.run("SELECT count(*) FROM t WHERE id = -1", database="copy")
            return rows == [(1,)]

        kit.wait_until(is_copied)
        again.stop()
        copy.stop()
        assert server.run(QUERY, database="copy") == server.run(QUERY, database="origin")

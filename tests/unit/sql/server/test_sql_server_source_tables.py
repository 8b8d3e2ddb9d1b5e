"""SOURCE tables: rows of a topic kept for pull queries, and never changed by statements."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from barnabas.sql.runtime.topics import TopicRecord
from support.sql_server_world import SqlWorld

TABLE = (
    "CREATE SOURCE TABLE users (id STRING PRIMARY KEY, trace BYTES HEADER('trace'), name STRING) "
    "WITH (kafka_topic='users', value_format='JSON', partitions=2);"
)


@pytest.fixture
async def world() -> AsyncIterator[SqlWorld]:
    found = SqlWorld()
    await found.ksql(TABLE)
    yield found
    await found.close()


async def test_its_rows_are_those_of_the_topic(world: SqlWorld) -> None:
    world.write("users", "a", {"name": "Ann"}, 5)
    world.write("users", "b", {"name": "Bo"}, 6)
    world.write("users", "a", {"name": "Anna"}, 7)
    world.write("users", "b", None, 8)
    assert await world.rows("SELECT id, name, ROWTIME FROM users;") == [["a", "Anna", 7]]
    assert await world.rows("SELECT name FROM users WHERE id = 'b';") == []
    await world.restart()
    assert await world.rows("SELECT name FROM users WHERE name LIKE 'An%';") == [["Anna"]]


async def test_headers_are_columns_of_its_rows(world: SqlWorld) -> None:
    headers = (("trace", b"1"), ("other", None), ("trace", b"2"))
    world.cluster.write("users", TopicRecord(b"a", b'{"name": "Ann"}', 0, headers))
    world.write("users", "b", {"name": "Bo"})
    assert sorted(await world.rows("SELECT * FROM users;")) == [
        ["a", "Ann", "Mg=="],
        ["b", "Bo", None],
    ]
    assert await world.rows("SELECT id FROM users WHERE trace IS NULL;") == [["b"]]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO users (id, name) VALUES ('a', 'b');", "insert values into read-only table"),
        ("DROP TABLE users DELETE TOPIC;", "Cannot delete topic for read-only source: USERS"),
        ("ALTER TABLE users ADD COLUMN x INT;", "not supported on source tables"),
        (TABLE.replace("CREATE", "CREATE OR REPLACE"), "not supported on source tables"),
        ("DROP STREAM users;", "Incompatible data source type is table"),
        ("SELECT ROWOFFSET FROM users;", "don't support the following columns in SELECT"),
    ],
)
async def test_it_is_read_only(world: SqlWorld, statement: str, said: str) -> None:
    path = "/query" if statement.startswith("SELECT") else "/ksql"
    assert said in (await world.error(statement, path))["message"]


async def test_dropping_it_leaves_the_topic_and_comes_after_its_readers(world: SqlWorld) -> None:
    await world.ksql("CREATE TABLE named AS SELECT id, name FROM users EMIT CHANGES;")
    error = await world.error("DROP TABLE users;")
    assert "read from this source: [NAMED]" in error["message"]
    await world.ksql("DROP TABLE named;")
    await world.ksql("DROP TABLE users;")
    assert "users" in world.cluster.topics()
    assert (await world.ksql("SHOW TABLES;"))[0]["tables"] == []


async def test_it_needs_no_query_and_can_be_switched_off(world: SqlWorld) -> None:
    assert (await world.ksql("SHOW QUERIES;"))[0]["queries"] == []
    world.settings["ksql.source.table.materialization.enabled"] = "false"
    await world.restart()
    error = await world.error("SELECT * FROM users;", "/query")
    assert "The `USERS` table isn't queryable" in error["message"]
    error = await world.error("INSERT INTO users (id, name) VALUES ('a', 'b');")
    assert "read-only" in error["message"]

"""A worker whose database has faults: what status and log say, and that it recovers by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from barnabas.app.testing import Kafka
from support.connect.one_connector import OneConnector, quick_worker, runs, says
from support.connect.postgres import DATABASE, HOST, Postgres, postgres
from support.connect.tasks import read_topic
from support.connect.worker import JSON_CONVERTER, OurWorker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

APP, RIGHT, WRONG = "app", "the-right-password", "not-the-password"
REFUSED = f'password authentication failed for user "{APP}"'


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as server:
        server.run(f"CREATE ROLE {APP} LOGIN SUPERUSER PASSWORD '{RIGHT}'")
        yield server


@pytest.fixture
def worker(kafka: Kafka, tmp_path: Path) -> Iterator[OurWorker]:
    with quick_worker(tmp_path, kafka.bootstrap_servers, kafka.name("worker")) as worker:
        yield worker


def no_secrets(worker: OurWorker) -> bool:
    return RIGHT not in worker.log() and WRONG not in worker.log()


def test_tables_with_faults_are_copied_once_they_are_well(
    kafka: Kafka, server: Postgres, worker: OurWorker
) -> None:
    prefix = kafka.name("jdbc")
    server.run("CREATE TABLE origin (id serial PRIMARY KEY, v text)")
    both = {
        "connection.url": server.jdbc_url,
        "connection.user": APP,
        "connection.password": RIGHT,
        "value.converter": JSON_CONVERTER,
        "errors.retry.delay.max.ms": "400",
    }
    source = OneConnector(
        worker,
        kafka.name("source"),
        {
            **both,
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "table.whitelist": "origin",
            "topic.prefix": prefix,
            "poll.interval.ms": "100",
        },
    )
    sink = OneConnector(
        worker,
        kafka.name("sink"),
        {
            **both,
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "topics": f"{prefix}origin",
            "table.name.format": "copy",
            "auto.create": "true",
            "pk.mode": "record_value",
            "pk.fields": "id",
            "insert.mode": "upsert",
            "consumer.override.auto.offset.reset": "earliest",
        },
    )

    def rows(table: str) -> list[tuple[Any, ...]]:
        return server.run(f"SELECT id, v FROM {table} ORDER BY id")

    def copied() -> bool:
        try:
            return rows("copy") == rows("origin")
        except psycopg.errors.UndefinedTable:
            return False

    def insert(value: str) -> None:
        server.run(f"INSERT INTO origin (v) VALUES ('{value}')")
        sink.wait_until(copied)

    # The password is right at first, and then changed at the server.
    source.put()
    sink.put()
    insert("first")
    server.run(f"ALTER ROLE {APP} PASSWORD '{WRONG}'", *ended())
    server.run("INSERT INTO origin (v) VALUES ('meanwhile')")
    source.wait_for(says(REFUSED))
    server.run(f"ALTER ROLE {APP} PASSWORD '{RIGHT}'")
    insert("second")
    source.wait_for(runs)

    # The server is away for a while: both wait.
    server.crash()
    source.wait_until(lambda: "trying again in" in worker.log())
    server.start()
    insert("third")

    # The sink's table is gone; records go on to a new one.
    server.run("DROP TABLE copy")
    server.run("INSERT INTO origin (v) VALUES ('fourth')")
    sink.wait_until(lambda: rows_of(server, "copy") == ["fourth"])
    source.wait_for(runs)
    sink.wait_for(runs)

    ids = [json.loads(one or b"")["payload"]["id"] for one in values(kafka, f"{prefix}origin")]
    assert ids == [id_ for id_, _ in rows("origin")]  # each once
    assert no_secrets(worker)


def ended() -> list[str]:
    """Statements that end the sessions of the role."""
    return [f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{APP}'"]


def rows_of(server: Postgres, table: str) -> list[Any]:
    try:
        return [v for (v,) in server.run(f"SELECT v FROM {table} ORDER BY id")]
    except psycopg.errors.UndefinedTable:
        return []


def values(kafka: Kafka, topic: str) -> list[bytes | None]:
    return [value for _, value in read_topic(kafka.bootstrap_servers, topic)]


def test_changes_of_a_database_with_faults_are_captured_once_it_is_well(
    kafka: Kafka, server: Postgres, worker: OurWorker
) -> None:
    prefix = kafka.name("capture")
    server.run(
        "CREATE TABLE keyed (id int PRIMARY KEY, v text)", "CREATE TABLE unkeyed (id int, v text)"
    )
    source = OneConnector(
        worker,
        kafka.name("source"),
        {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "topic.prefix": prefix,
            "database.hostname": HOST,
            "database.port": str(server.port),
            "database.user": APP,
            "database.password": RIGHT,
            "database.dbname": DATABASE,
            "plugin.name": "pgoutput",
            "slot.name": "faults",
            "errors.retry.delay.max.ms": "400",
            "value.converter": JSON_CONVERTER,
            "value.converter.schemas.enable": "false",
            "key.converter": JSON_CONVERTER,
            "key.converter.schemas.enable": "false",
        },
    )

    def events(table: str) -> list[tuple[str, int]]:
        found = [json.loads(one) for one in values(kafka, f"{prefix}.public.{table}") if one]
        return [(one["op"], (one["after"] or one["before"])["id"]) for one in found]

    def wait_for(table: str, *wanted: tuple[str, int]) -> None:
        def there() -> bool:
            topics = kafka.admin.list_topics(timeout=30).topics
            return f"{prefix}.public.{table}" in topics and len(events(table)) >= len(wanted)

        source.wait_until(there)
        assert events(table) == list(wanted)

    status, said = source.ask(database_password=WRONG)
    assert status == 400
    assert REFUSED in said["message"]

    # Events of a table without a key have none; the database refuses updates that it cannot log.
    server.run("INSERT INTO keyed VALUES (1, 'a')")
    source.put()
    wait_for("keyed", ("r", 1))
    server.run("INSERT INTO unkeyed VALUES (1, 'a'), (1, 'a')")
    wait_for("unkeyed", ("c", 1), ("c", 1))
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="replica identity"):
        server.run("UPDATE unkeyed SET v = 'b'")
    server.run("ALTER TABLE unkeyed REPLICA IDENTITY FULL", "DELETE FROM unkeyed")
    wait_for("unkeyed", ("c", 1), ("c", 1), ("d", 1), ("d", 1))
    records = read_topic(kafka.bootstrap_servers, f"{prefix}.public.unkeyed")
    assert {key for key, _ in records} == {None}

    # The password is changed at the server, and changed back.
    server.run(f"ALTER ROLE {APP} PASSWORD '{WRONG}'", *ended())
    server.run("INSERT INTO keyed VALUES (2, 'b')")
    source.wait_for(says(REFUSED))
    server.run(f"ALTER ROLE {APP} PASSWORD '{RIGHT}'")
    wait_for("keyed", ("r", 1), ("c", 2))

    # The server is away for a while.
    server.crash()
    source.wait_until(lambda: "trying again in" in worker.log())
    server.start()
    server.run("INSERT INTO keyed VALUES (3, 'c')")
    wait_for("keyed", ("r", 1), ("c", 2), ("c", 3))
    source.wait_for(runs)

    # The slot is dropped while it is read: that is said until a new snapshot is allowed.
    server.drop_slots("slot_name", "faults")
    server.run("INSERT INTO keyed VALUES (4, 'd')")
    source.wait_for(says("is gone: changes after"))
    source.put(snapshot_mode="when_needed")
    wait_for("keyed", ("r", 1), ("c", 2), ("c", 3), *(("r", number) for number in range(1, 5)))
    server.run("INSERT INTO keyed VALUES (5, 'e')")
    source.wait_until(lambda: ("c", 5) in events("keyed"))
    source.wait_for(runs)
    assert no_secrets(worker)

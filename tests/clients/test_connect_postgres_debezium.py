"""Debezium's own connector beside ours: both tell the same events of the same workload."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from support.connect.capture import FENCE_TOPIC, change, fill, settings
from support.connect.debezium import Told, debezium
from support.connect.events import GOLDEN, ByTopic, events_of, normalised, resolved, written
from support.connect.postgres import Postgres
from support.connect.reading import SourceDriver

DATABASE = "compared"


def _field_with(record: Any, name: str) -> Any:
    """Debezium 3.3.1 reads names in the log byte by byte: u with dots is two letters there."""
    text = json.dumps(record, ensure_ascii=False)
    return json.loads(text.replace("\uffc3\uffbc", name))


@pytest.fixture
def database(database_server: Postgres) -> Postgres:
    database_server.run(f"DROP DATABASE IF EXISTS {DATABASE}")
    database_server.database(DATABASE)
    fill(database_server, DATABASE)
    return database_server


def ours(server: Postgres) -> ByTopic:
    driver = SourceDriver(PostgresConnector(), settings(server, DATABASE))
    driver.until(
        lambda _records: any(
            offset.get("snapshot_completed") for _p, offset in driver.offsets.all()
        )
    )

    def fence(number: int) -> None:
        driver.until(
            lambda records: any(
                record.topic == FENCE_TOPIC and record.key.values == [number] for record in records
            )
        )

    change(server, DATABASE, fence)
    driver.reader.stop()
    return normalised(e for e in events_of(driver.records) if e[0] != FENCE_TOPIC)


def test_events_are_those_that_debezium_has_told(database: Postgres) -> None:
    made = resolved(ours(database))
    golden = resolved(json.loads(GOLDEN.read_text()))
    assert made.keys() == golden.keys()
    for topic, rows in golden.items():
        for mine, theirs in zip(made[topic], rows, strict=True):
            assert mine == theirs
    database.drop_slots("database", DATABASE)


@pytest.mark.slow
def test_debezium_tells_these_events(database: Postgres, tmp_path: Path) -> None:
    """Where it does not, what it tells is in the folder of the test, to be the next golden file."""
    with barnabas.Cluster() as cluster:
        theirs = settings(database, DATABASE)
        with (
            debezium(tmp_path, cluster.bootstrap_servers, theirs),
            closing(Told(cluster.bootstrap_servers, tmp_path)) as told,
        ):

            def fence(number: int) -> None:
                told.read(
                    lambda: any(
                        topic == FENCE_TOPIC and key["payload"]["id"] == number
                        for topic, key, _value, _headers in told.events
                    )
                )

            told.read(lambda: len(told.events) >= SNAPSHOT_SIZE)
            change(database, DATABASE, fence)
            told.read(lambda: len(told.events) >= ALL_SIZE)
    database.drop_slots("database", DATABASE)
    found = normalised(_field_with(e, "ü") for e in told.events if e[0] != FENCE_TOPIC)
    (tmp_path / GOLDEN.name).write_text(written(found))
    golden = resolved(json.loads(GOLDEN.read_text())) if GOLDEN.exists() else {}
    assert resolved(found) == golden, f"see {tmp_path / GOLDEN.name}"


SNAPSHOT_SIZE = 21
ALL_SIZE = 79
"""With the fences: how many records both tell."""

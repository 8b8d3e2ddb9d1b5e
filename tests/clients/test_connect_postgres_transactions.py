"""Metadata of transactions: each event's place in its own, and records of begins and ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.schemas.data.errors import RetriableError
from support.connect.capture import PREFIX, settings
from support.connect.debezium import Told, debezium
from support.connect.events import Event, events_of
from support.connect.postgres import Postgres
from support.connect.reading import SourceDriver, StoredOffsets
from support.node_process import wait_until

DATABASE = "transactions"
TOPIC = f"{PREFIX}.transaction"
WITH_METADATA = {
    "provide_transaction_metadata": "true",
    "table_exclude_list": "public.other",
    "skipped_operations": "none",
}
CHANGES = (
    (
        "BEGIN; INSERT INTO t VALUES (1), (2); INSERT INTO u VALUES (1);"
        " INSERT INTO other VALUES (1);"
        " UPDATE t SET id = 5 WHERE id = 2; DELETE FROM u; INSERT INTO keyless VALUES (1);"
        " SELECT pg_logical_emit_message(true, 'a', 'b'); COMMIT"
    ),
    "INSERT INTO other VALUES (2)",
    "SELECT pg_logical_emit_message(false, 'a', 'b')",
    "TRUNCATE t, u",
    "INSERT INTO t VALUES (9)",
)
ENDS = 4


@pytest.fixture
def server(database_server: Postgres) -> Iterator[Postgres]:
    database_server.database(DATABASE)
    database_server.run(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE u (id int PRIMARY KEY)",
        "CREATE TABLE keyless (id int)",
        "CREATE TABLE other (id int)",
        "INSERT INTO t VALUES (0)",
        database=DATABASE,
    )
    try:
        yield database_server
    finally:
        database_server.drop_database(DATABASE)


class Ours:
    """Our capture; `told` are its events."""

    def __init__(self, server: Postgres, offsets: StoredOffsets | None = None, **more: str) -> None:
        given = settings(server, DATABASE, **(WITH_METADATA | more))
        self.driver = SourceDriver(PostgresConnector(), given, offsets)

    def started(self) -> Ours:
        self.driver.until(
            lambda _r: any(o.get("snapshot_completed") for _p, o in self.driver.offsets.all())
        )
        return self

    def told(self, ends: int) -> dict[str, list[Any]]:
        """The events, by topic, once so many transactions have ended."""

        def are_there(_records: object) -> bool:
            told = by_topic(events_of(self.driver.records))
            return count_ends(told) >= ends

        self.driver.until(are_there)
        return by_topic(events_of(self.driver.records))


def by_topic(events: Iterable[Event]) -> dict[str, list[Any]]:
    """Return by topic the keys and transaction fields of all events from the log."""
    topics: dict[str, list[Any]] = {}
    for topic, key, value, _headers in events:
        if value is None:
            continue
        found = value["payload"]
        if topic == TOPIC:
            topics["schemas"] = [key["schema"], value["schema"]]
            for one in found["data_collections"] or ():
                if one["data_collection"].startswith("io.debezium."):
                    one["data_collection"] = "message"  # theirs is an object's number
            if found["data_collections"]:
                found["data_collections"].sort(key=lambda one: one["data_collection"])
        elif found["op"] == "r":
            continue
        else:
            found = [found["op"], found["transaction"]]
        topics.setdefault(topic, []).append([key and key["payload"], found])
    return topics


def count_ends(topics: dict[str, list[Any]]) -> int:
    return sum(value["status"] == "END" for _key, value in topics.get(TOPIC, []))


def test_events_tell_their_place_also_after_a_restart_in_the_middle(server: Postgres) -> None:
    whole = Ours(server, slot_name="whole").started()
    cut = Ours(server, max_batch_size="3").started()
    server.run(*CHANGES, database=DATABASE)
    expected = whole.told(ENDS)
    whole.driver.stop()
    records = []
    while True:
        batch = []
        with suppress(RetriableError):  # the server still ends the slot's last use
            batch = cut.driver.batch()
        records += batch
        if count_ends(by_topic(events_of(records))) == ENDS:
            break
        if batch:
            cut.driver.stop()
            cut = Ours(server, cut.driver.offsets, max_batch_size="3")
    cut.driver.stop()
    assert by_topic(events_of(records)) == expected
    ends = [value for _key, value in expected[TOPIC] if value["status"] == "END"]
    assert [end["event_count"] for end in ends] == [8, 0, 2, 1]
    orders = [event[1][1]["total_order"] for event in expected[f"{PREFIX}.public.t"][:4]]
    assert orders == [1, 2, 4, 5]


def test_xmin_is_asked_of_the_slot(server: Postgres) -> None:
    driver = Ours(server, xmin_fetch_interval_ms="1").started().driver
    driver.records.clear()
    server.run("INSERT INTO t VALUES (1)", database=DATABASE)
    (record,) = driver.until(lambda records: len(records) == 3)[1:2]
    driver.stop()
    assert record.value.get("source").get("xmin") > 0


@pytest.mark.slow
def test_debezium_tells_the_same(server: Postgres, tmp_path: Path) -> None:
    ours = Ours(server, slot_name="ours").started()
    theirs = settings(server, DATABASE, slot_name="theirs", **WITH_METADATA)
    with (
        barnabas.Cluster() as cluster,
        debezium(tmp_path, cluster.bootstrap_servers, theirs),
        closing(Told(cluster.bootstrap_servers, tmp_path)) as told,
    ):
        told.read(lambda: bool(told.events))  # of the snapshot
        active = "SELECT active FROM pg_replication_slots WHERE slot_name = 'theirs'"
        wait_until(lambda: server.run(active) == [(True,)], "Debezium reads the log")
        server.run(*CHANGES, database=DATABASE)
        expected = ours.told(ENDS)
        count = sum(map(len, expected.values()))
        told.read(lambda: sum(map(len, by_topic(told.events).values())) >= count)
    ours.driver.stop()
    assert by_topic(told.events) == expected

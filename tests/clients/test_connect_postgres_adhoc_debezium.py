"""Snapshots that signals ask for: our connector and Debezium's write the same events.

Each has its own database with the same rows, and gets the same signals.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer

import barnabas
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from support.connect.capture import PREFIX, settings
from support.connect.debezium import debezium
from support.connect.events import Event, events_of, normalised, resolved
from support.connect.postgres import Postgres
from support.connect.reading import SourceDriver
from support.node_process import wait_until
from support.patience import PATIENCE_S

pytestmark = pytest.mark.slow
DATABASE = "adhoc"
NOTES = "notes"
TABLES = (
    "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
    (
        "CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(10,2), d date, i2 smallint,"
        " w numeric, r real, f double precision, vc varchar(5), c char(3), vn varchar,"
        " t0 time, t3 time(3), ts timestamp(0), t1 timestamp(1), tz timestamptz, iv interval,"
        " b bit(3), vb varbit(9), bo bool, by bytea, j jsonb, a int[], av varchar(7)[])"
    ),
    (
        "INSERT INTO t (id, v, n, d)"
        " SELECT i, repeat('x', i), i / 3.0, date '2020-01-01' + i"
        " FROM generate_series(1, 10) i"
    ),
    "CREATE TABLE u (a bigint, b text, c uuid, PRIMARY KEY (a, b, c))",
    (
        "INSERT INTO u SELECT i % 3, 'b' || i, ('00000000-0000-0000-0000-' || (10^11 + i)::bigint"
        ")::uuid FROM generate_series(1, 9) i"
    ),
    "CREATE TABLE empty (id int PRIMARY KEY)",
    "CREATE TABLE keyless (id int NOT NULL)",
    "CREATE TABLE surrogate (id int PRIMARY KEY, s int)",
    "INSERT INTO surrogate VALUES (1, 5), (2, NULL), (3, 2), (4, 1), (5, 4), (6, 3)",
    "INSERT INTO keyless VALUES (1)",
)
SIGNALS = (
    ("log", '{"message": "a word"}'),
    ("execute-snapshot", '{"data-collections": ["public.t", "public.u"], "type": "incremental"}'),
    ("execute-snapshot", '{"data-collections": ["public\\\\.[tu]"]}'),
    (
        "execute-snapshot",
        (
            '{"data-collections": ["public.t"], "additional-conditions":'
            ' [{"data-collection": "public.t", "filter": "id > 5 OR v LIKE \'x%x\'"}]}'
        ),
    ),
    ("execute-snapshot", '{"data-collections": ["public.empty", "public.u"]}'),
    ("execute-snapshot", '{"data-collections": ["public.keyless", "public.u"]}'),
    ("execute-snapshot", '{"data-collections": ["public.surrogate"], "surrogate-key": "s"}'),
)
GIVEN = {
    "column_propagate_source_type": r"public\.[^k].*",
    "snapshot_mode": "no_data",
    "signal_data_collection": "public.signals",
    "incremental_snapshot_chunk_size": "4",
    "notification_enabled_channels": "sink",
    "notification_sink_topic_name": NOTES,
}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f-]{22}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


@pytest.fixture
def database(database_server: Postgres) -> Iterator[Postgres]:
    yield database_server
    database_server.drop_database(DATABASE)


def signal(server: Postgres, number: int, kind: str, data: str) -> None:
    literal = data.replace("'", "''")
    server.run(
        f"INSERT INTO signals VALUES ('s{number}', '{kind}', '{literal}')", database=DATABASE
    )


def tell(server: Postgres, wait: Callable[[Callable[[list[Event]], bool]], object]) -> None:
    """Send all signals, each once the one before is done."""
    count = 0
    for number, (kind, data) in enumerate(SIGNALS):
        signal(server, number, kind, data)
        if kind == "execute-snapshot":
            count += 1
            wait(lambda events, count=count: completed(events) >= count)  # type: ignore[misc]
    asked = '{"data-collections": ["public.surrogate"], "type": "blocking"}'
    signal(server, 98, "execute-snapshot", asked)
    wait(lambda events: any(is_last(value) for _topic, _key, value, _headers in events))
    signal(server, 99, "log", '{"message": "the last mark is before"}')
    wait(lambda events: any(key["payload"] == {"id": "s99"} for _topic, key, *_rest in events))


def is_last(value: Any) -> bool:
    """Return whether it is the last row of a blocking snapshot."""
    source = value and value["payload"].get("source")
    return bool(source) and source["snapshot"] == "last"


def completed(events: list[Event]) -> int:
    return sum(
        topic == NOTES and value["payload"]["type"] == "COMPLETED"
        for topic, _key, value, _headers in events
    )


def is_of_signals(event: Event) -> bool:
    """Return False for notifications of the first snapshot, which ours does not send."""
    topic, _key, value, _headers = event
    return topic != NOTES or value["payload"]["aggregate_type"] == "Incremental Snapshot"


def compared(events: list[Event]) -> dict[str, list[Any]]:
    """By topic, without what differs from run to run."""
    rows = [event for event in events if event[0] not in (NOTES, f"{PREFIX}.public.signals")]
    topics = resolved(normalised(rows))
    notes, signals = [], []
    for topic, key, value, _headers in events:
        if topic == NOTES:
            value["payload"].pop("timestamp")
            notes.append([key, value])
        elif topic == f"{PREFIX}.public.signals" and value is not None:
            text = json.dumps([key["payload"], value["payload"]["op"], value["payload"]["after"]])
            text = _UUID.sub("uuid", text)
            signals.append(_TIME.sub("time", text))
    return topics | {NOTES: notes, "signals": signals}


def of_ours(server: Postgres, folder: Path, expected: int, **more: str) -> list[Event]:
    driver = SourceDriver(PostgresConnector(), settings(server, DATABASE, **(GIVEN | more)))
    try:
        driver.batch()  # the slot is made
        tell(server, lambda is_done: driver.until(lambda records: is_done(events_of(records))))
    finally:
        driver.stop()
    return events_of(driver.records)


class Told:
    """What Debezium's connector writes."""

    def __init__(self, servers: str, log: Path) -> None:
        self.events: list[Event] = []
        self._log = log
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "compare",
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 300,
            }
        )
        self._consumer.subscribe([rf"^{PREFIX}\..*", f"^{NOTES}$"])

    def wait(self, is_done: Callable[[list[Event]], bool]) -> None:
        deadline = time.monotonic() + 3 * PATIENCE_S
        while not is_done(self.events):
            assert time.monotonic() < deadline, self._log.read_text()[-3000:]
            message = self._consumer.poll(0.2)
            if message is None or message.error() is not None:  # no topic is there yet
                continue
            key, value = message.key(), message.value()
            headers = [
                (str(name), bytes(text or b"").decode())
                for name, text in cast(Any, message.headers() or ())
            ]
            self.events.append(
                (
                    str(message.topic()),
                    key and json.loads(key),
                    value and json.loads(value),
                    headers,
                )
            )

    def close(self) -> None:
        self._consumer.close()


def of_theirs(server: Postgres, folder: Path, expected: int, **more: str) -> list[Event]:
    given = settings(server, DATABASE, **(GIVEN | more))
    with (
        barnabas.Cluster() as cluster,
        debezium(folder, cluster.bootstrap_servers, given),
    ):
        told = Told(cluster.bootstrap_servers, folder / "log")
        try:
            active = f"SELECT active FROM pg_replication_slots WHERE slot_name = 'slot_{DATABASE}'"
            wait_until(
                lambda: server.run(active) == [(True,)], "Debezium reads the log", 3 * PATIENCE_S
            )
            tell(server, told.wait)
            told.wait(lambda events: sum(map(is_of_signals, events)) >= expected)
        finally:
            told.close()
    return list(filter(is_of_signals, told.events))


@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_the_events_are_the_same(database: Postgres, tmp_path: Path, strategy: str) -> None:
    more = {"incremental_snapshot_watermarking_strategy": strategy}
    found: list[dict[str, list[Any]]] = []
    count = 0
    for capture in (of_ours, of_theirs):
        database.database(DATABASE)
        database.run(*TABLES, database=DATABASE)
        events = capture(database, tmp_path, count, **more)
        count = len(events)
        found.append(compared(events))
        database.drop_database(DATABASE)
    ours, theirs = found
    (tmp_path / "ours.json").write_text(json.dumps(ours, indent=1))
    (tmp_path / "theirs.json").write_text(json.dumps(theirs, indent=1))
    assert ours.keys() == theirs.keys()
    for topic, rows in theirs.items():
        assert ours[topic] == rows, topic

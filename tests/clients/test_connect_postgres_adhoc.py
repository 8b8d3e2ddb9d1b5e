"""Snapshots that signals ask for, of a real server: the topic equals the table in the end."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import barnabas
from barnabas.connect.allowed_plugins import allow
from barnabas.connect.cdc import stored
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.record import SourceRecord
from barnabas.java.object_stream import key_of
from barnabas.schemas.data.errors import ConnectError
from support.connect.capture import PREFIX, settings
from support.connect.postgres import Postgres
from support.connect.reading import SourceDriver, StoredOffsets
from support.patience import PATIENCE_S

DATABASE = "adhoc_ours"
NOTES = "notes"
GIVEN = {
    "snapshot_mode": "no_data",
    "signal_data_collection": "public.signals",
    "table_exclude_list": "public.uncaptured",
    "incremental_snapshot_chunk_size": "3",
    "notification_enabled_channels": "sink,log",
    "notification_sink_topic_name": NOTES,
}


@pytest.fixture
def server(database_server: Postgres) -> Iterator[Postgres]:
    database_server.database(DATABASE)
    database_server.run(
        "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))",
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t SELECT i, i FROM generate_series(1, 20) i",
        database=DATABASE,
    )
    try:
        yield database_server
    finally:
        database_server.drop_database(DATABASE)


class Capture:
    """Our connector; records of all its runs."""

    def __init__(self, server: Postgres, **more: str) -> None:
        self.server = server
        self.offsets = StoredOffsets()
        self.records: list[SourceRecord] = []
        self.given = settings(server, DATABASE, **(GIVEN | more))
        self._count = 0
        self.start()
        self.driver.batch()  # the slot is made

    def start(self) -> None:
        self.driver = SourceDriver(PostgresConnector(), self.given, self.offsets)
        self.driver.records = self.records

    def restart(self) -> None:
        self.driver.stop()
        self.start()

    def signal(self, kind: str, **data: Any) -> None:
        self._count += 1
        text = json.dumps({name.replace("_", "-"): value for name, value in data.items()})
        self.server.run(
            f"INSERT INTO signals VALUES ('s{self._count}', '{kind}', $${text}$$)",
            database=DATABASE,
        )

    def execute(self, *tables: str, **data: Any) -> None:
        self.signal("execute-snapshot", data_collections=tables, **data)

    def until(self, condition: Callable[[], Any]) -> None:
        self.driver.until(lambda _records: condition())

    def until_completed(self, count: int = 1) -> None:
        self.until(lambda: self.statuses().count("COMPLETED") >= count)

    def notes(self) -> list[Any]:
        return [record.value for record in self.records if record.topic == NOTES]

    def statuses(self) -> list[str]:
        return [note.get("type") for note in self.notes()]

    def events(self, table: str = "t") -> list[tuple[str, list[Any]]]:
        """Of rows that are read: what is read."""
        return [
            record.value.get("after").values
            for record in self.records
            if record.topic == f"{PREFIX}.public.{table}"
            and record.value is not None
            and record.value.get("op") == "r"
        ]

    def replayed(self, table: str = "t") -> dict[Any, Any]:
        rows: dict[Any, Any] = {}
        for record in self.records:
            if record.topic == f"{PREFIX}.public.{table}":
                key = tuple(record.key.values)
                if record.value is None or record.value.get("op") == "d":
                    rows.pop(key, None)
                else:
                    rows[key] = tuple(record.value.get("after").values)
        return rows

    def table(self) -> dict[Any, Any]:
        rows = self.server.run("SELECT id, v FROM t", database=DATABASE)
        return {(row[0],): tuple(row) for row in rows}


@pytest.fixture
def capture(server: Postgres) -> Iterator[Callable[..., Capture]]:
    made: list[Capture] = []

    def make(**more: str) -> Capture:
        made.append(Capture(server, **more))
        return made[-1]

    yield make
    for one in made:
        one.driver.stop()


@pytest.mark.parametrize(
    "more",
    [
        {},
        pytest.param(
            {"incremental_snapshot_watermarking_strategy": "INSERT_DELETE"},
            marks=pytest.mark.slow,
        ),
        pytest.param({"read_only": "true"}, marks=pytest.mark.slow),
    ],
)
def test_the_topic_equals_the_table_while_others_change_it(
    capture: Callable[..., Capture], more: dict[str, str]
) -> None:
    """Restarts lose what is not stored, and nothing else."""
    captured = capture(**more, max_batch_size="5")
    chance = random.Random(5)
    numbers = itertools.count(100)
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            key = chance.randrange(30)
            captured.server.run(
                chance.choice(
                    (
                        f"INSERT INTO t VALUES ({key}, 0) ON CONFLICT DO NOTHING",
                        f"UPDATE t SET v = v + 1 WHERE id = {key}",
                        f"UPDATE t SET v = v + 1, id = {next(numbers)} WHERE id = {key}",
                        f"BEGIN; DELETE FROM t WHERE id = {key}; UPDATE t SET v = v + 1; COMMIT",
                    )
                ),
                database=DATABASE,
            )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(1, 3):
            captured.execute("public.t")
            captured.until(lambda n=number: captured.statuses().count("STARTED") >= n)  # type: ignore[misc]
            captured.driver.batch(is_committed=False)
            captured.restart()
            captured.until_completed(number)
    finally:
        is_over.set()
        writer.join()
    captured.server.run("INSERT INTO t VALUES (1000, 0)", database=DATABASE)
    captured.until(lambda: (1000,) in captured.replayed())
    assert captured.replayed() == captured.table()
    assert len(captured.events()) > 3


def test_a_restart_goes_on_at_the_chunk(capture: Callable[..., Capture]) -> None:
    captured = capture(max_batch_size="2")
    captured.execute("public.t")
    captured.until(lambda: len(captured.events()) >= 6)
    ((_partition, offset),) = captured.offsets.pairs
    assert key_of(offset[stored.LAST]) == (("20",), ("java.lang.Integer",))
    captured.restart()
    captured.until_completed()
    assert [row[0] for row in captured.events()] == list(range(1, 21))
    assert captured.replayed() == captured.table()
    captured.driver.batch()
    assert not any(name.startswith("incremental") for name in captured.offsets.pairs[0][1])


def test_what_was_begun_by_debezium_goes_on(capture: Callable[..., Capture]) -> None:
    captured = capture()
    captured.server.run("INSERT INTO t VALUES (21, 0)", database=DATABASE)
    captured.until(lambda: captured.replayed())
    ((partition, offset),) = captured.offsets.pairs
    integer = (
        "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c02000078700000000173"
        "7200116a6176612e6c616e672e496e746567657212e2a0a4f781873802000149000576616c7565787200106a61"
        "76612e6c616e672e4e756d62657286ac951d0b94e08b0200007870"
    )
    theirs = {
        stored.DONE: f"{integer}00000011",
        stored.LAST: f"{integer}00000014",
        stored.COLLECTIONS: '[{"incremental_snapshot_collections_id":"public.t",'
        '"incremental_snapshot_collections_additional_condition":"(id <> 19)",'
        '"incremental_snapshot_collections_surrogate_key":null}]',
        stored.CORRELATION: "asked before",
    }
    captured.driver.stop()
    captured.offsets.store(partition, {**offset, **theirs})
    captured.start()
    captured.until_completed()
    assert captured.events() == [[18, 18], [20, 20]]
    assert captured.notes()[-1].get("id") == "asked before"


def test_a_place_that_is_not_known_is_the_tables_beginning(
    capture: Callable[..., Capture], caplog: pytest.LogCaptureFixture
) -> None:
    captured = capture()
    captured.execute("public.t")
    captured.until(lambda: len(captured.events()) >= 3)
    ((partition, offset),) = captured.offsets.pairs
    captured.driver.stop()
    captured.offsets.store(partition, {**offset, stored.DONE: "aced0005757200"})
    captured.start()
    captured.until_completed()
    assert "is read from its beginning" in caplog.text
    assert captured.replayed() == captured.table()


def test_conditions_and_keys(capture: Callable[..., Capture], server: Postgres) -> None:
    captured = capture()
    server.run(
        "CREATE TABLE keyless (s int, v text)",
        "INSERT INTO keyless SELECT nullif(i % 3, 2), 'x%' || i FROM generate_series(1, 8) i",
        database=DATABASE,
    )
    captured.execute("public.keyless", surrogate_key="s")
    captured.until_completed()
    rows = server.run("SELECT s, v FROM keyless ORDER BY s", database=DATABASE)
    assert sorted(captured.events("keyless"), key=str) == sorted(map(list, rows), key=str)
    condition = {"data-collection": "public.t", "filter": "id > 5 OR v = 1"}
    captured.execute("public.t", additional_conditions=[condition])
    captured.until_completed(2)
    assert [row[0] for row in captured.events()] == [1, *range(6, 21)]


def test_what_cannot_be_read_is_passed_over(capture: Callable[..., Capture]) -> None:
    captured = capture()
    captured.server.run(
        "CREATE TABLE uncaptured (id int PRIMARY KEY)",
        "CREATE TABLE keyless (id int)",
        database=DATABASE,
    )
    captured.execute("public.none", "public.uncaptured", "public.keyless", "public.t")
    captured.until_completed()
    condition = {"data-collection": "public.t", "filter": "there is no such thing"}
    captured.execute("public.t", additional_conditions=[condition])
    captured.until_completed(2)
    scanned = [
        (data["scanned_collection"], data["status"])
        for note in captured.notes()
        if (data := note.get("additional_data")) and "status" in data
    ]
    assert scanned == [
        ("public.none", "UNKNOWN_SCHEMA"),
        ("public.uncaptured", "UNKNOWN_SCHEMA"),
        ("public.keyless", "NO_PRIMARY_KEY"),
        ("public.t", "SUCCEEDED"),
        ("public.t", "SQL_EXCEPTION"),
    ]
    assert len(captured.events()) == 20


def test_stop_pause_and_resume(capture: Callable[..., Capture]) -> None:
    captured = capture(max_batch_size="2")
    captured.execute("public.t")
    captured.until(lambda: len(captured.events()) >= 3)
    captured.signal("pause-snapshot")
    captured.until(lambda: "PAUSED" in captured.statuses())
    captured.server.run("INSERT INTO t VALUES (0, 0)", database=DATABASE)
    captured.until(lambda: (0,) in captured.replayed())
    captured.driver.batch()
    count = len(captured.events())
    assert count < 20
    captured.restart()
    captured.server.run("INSERT INTO t VALUES (-1, 0)", database=DATABASE)
    captured.until(lambda: (-1,) in captured.replayed())
    captured.driver.batch()
    assert len(captured.events()) == count
    captured.signal("resume-snapshot")
    captured.until(lambda: len(captured.events()) > count)
    captured.signal("stop-snapshot", type="incremental")
    captured.until(lambda: "ABORTED" in captured.statuses())
    captured.execute("public.t")
    captured.until_completed()
    assert captured.statuses().count("STARTED") == 2
    assert captured.replayed() == captured.table()


def test_signals_that_say_nothing_are_passed_over(
    capture: Callable[..., Capture], caplog: pytest.LogCaptureFixture
) -> None:
    captured = capture()
    with caplog.at_level("INFO"):
        captured.signal("log", message="hello")
        captured.signal("dance")
        captured.signal("execute-snapshot")
        captured.execute("public.[t")
        captured.execute("public.t", type="sideways")
        captured.server.run(
            "INSERT INTO signals VALUES ('bad', 'stop-snapshot', '{')", database=DATABASE
        )
        captured.execute("public.t")
        captured.until_completed()
    assert "hello" in caplog.text
    assert caplog.text.count("is ignored") == 5


def test_a_file_may_have_signals(capture: Callable[..., Capture], tmp_path: Path) -> None:
    allow(["FileSignalChannel"])
    path = tmp_path / "signals"
    captured = capture(
        signal_enabled_channels="source,file",
        signal_file=str(path),
        signal_poll_interval_ms="1",
    )
    wanted = {"data-collections": ["public.t"]}
    lines = ("{", json.dumps({"id": "one", "type": "execute-snapshot", "data": wanted}))
    path.write_text("\n".join(lines))
    captured.until_completed()
    assert captured.replayed() == captured.table()
    assert captured.notes()[0].get("id") == "one"
    assert path.read_text() == ""


def test_a_user_who_may_not_write_needs_no_marks(
    capture: Callable[..., Capture], server: Postgres, tmp_path: Path
) -> None:
    """Although nobody else writes, the end of the log is reported."""
    allow(["FileSignalChannel"])
    path = tmp_path / "signals"
    server.run("CREATE PUBLICATION dbz_publication FOR ALL TABLES", database=DATABASE)
    captured = capture(
        read_only="true",
        signal_data_collection="",
        signal_enabled_channels="file",
        signal_file=str(path),
        signal_poll_interval_ms="1",
        status_update_interval_ms="100",
        database_initial_statements="SET default_transaction_read_only = on",
        publication_autocreate_mode="disabled",
    )
    wanted = {"data-collections": ["public.t"]}
    path.write_text(json.dumps({"id": "one", "type": "execute-snapshot", "data": wanted}))
    captured.until_completed()
    assert [row[0] for row in captured.events()] == list(range(1, 21))


def test_the_log_must_tell_of_signals(
    capture: Callable[..., Capture], server: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    server.run("CREATE PUBLICATION t_alone FOR TABLE t", database=DATABASE)
    with pytest.raises(ConnectError, match=r"t_alone does not have .* public\.signals"):
        capture(publication_name="t_alone")
    capture(signal_data_collection="public.none")
    assert "public.none does not exist" in caplog.text


def test_a_snapshot_that_cannot_go_on_is_given_up(
    capture: Callable[..., Capture], caplog: pytest.LogCaptureFixture
) -> None:
    captured = capture()
    captured.execute("public.t")
    captured.until(lambda: captured.events())
    captured.driver.stop()
    del captured.given["signal.data.collection"]
    captured.start()
    captured.server.run("INSERT INTO t VALUES (99, 0)", database=DATABASE)
    captured.until(lambda: (99,) in captured.replayed())
    assert "is abandoned" in caplog.text


@pytest.mark.slow
def test_a_topic_may_have_signals(capture: Callable[..., Capture]) -> None:
    with barnabas.Cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})

        def send(name: str, key: str = PREFIX) -> None:
            wanted = {"data-collections": ["public.t"]}
            said = {"id": name, "type": "execute-snapshot", "data": wanted}
            producer.produce(f"{PREFIX}-signal", json.dumps(said), key, 0)
            assert producer.flush(PATIENCE_S) == 0

        send("another's", "q")
        send("one")
        captured = capture(
            signal_enabled_channels="source,kafka",
            signal_kafka_bootstrap_servers=cluster.bootstrap_servers,
            signal_consumer_client_id="signals",
            signal_poll_interval_ms="1",
        )
        captured.until_completed()
        assert captured.replayed() == captured.table()
        captured.restart()
        send("two")
        captured.until_completed(2)
        started = [note.get("id") for note in captured.notes() if note.get("type") == "STARTED"]
        assert started == ["one", "two"]
        captured.driver.stop()


def test_a_blocking_snapshot_reads_while_the_log_waits(capture: Callable[..., Capture]) -> None:
    captured = capture(snapshot_max_threads="1", snapshot_split_pages="1")
    captured.server.run(
        "CREATE TABLE u (id int PRIMARY KEY, v int)",
        "INSERT INTO u VALUES (1, 1), (2, 2)",
        "INSERT INTO t SELECT i, i FROM generate_series(21, 2000) i",
        database=DATABASE,
    )
    captured.until(lambda: (2000,) in captured.replayed())
    half = {"data-collection": "public.u", "filter": "SELECT * FROM u WHERE id > 1"}
    captured.execute("public.t", "public.u", type="blocking", additional_conditions=[half])
    captured.server.run(
        "DELETE FROM t WHERE id % 9 = 0", "UPDATE t SET v = -v WHERE id < 99", database=DATABASE
    )
    captured.until(lambda: captured.events())
    captured.restart()
    captured.until(lambda: captured.events("u"))
    captured.until(lambda: captured.replayed() == captured.table())
    assert captured.events("u")[-1] == [2, 2]
    assert captured.events("u")[0] == [2, 2]
    assert not any(stored.BLOCKING in offset for _partition, offset in captured.offsets.pairs)
    marks = [
        record.value.get("source").get("snapshot")
        for record in captured.records
        if record.value is not None and record.topic == f"{PREFIX}.public.u"
    ]
    assert marks[-1] == "last"


def test_a_blocking_snapshot_that_cannot_be_read_is_passed_over(
    capture: Callable[..., Capture], caplog: pytest.LogCaptureFixture
) -> None:
    captured = capture()
    bad = {"data-collection": "public.t", "filter": "SELECT nonsense"}
    captured.execute("public.t", type="blocking", additional_conditions=[bad])
    captured.server.run("INSERT INTO t VALUES (99, 0)", database=DATABASE)
    captured.until(lambda: (99,) in captured.replayed())
    captured.driver.batch()
    captured.server.run("INSERT INTO t VALUES (100, 0)", database=DATABASE)
    captured.until(lambda: (100,) in captured.replayed())
    assert "A blocking snapshot is skipped" in caplog.text
    assert not captured.events()

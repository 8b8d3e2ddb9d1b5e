"""Change capture without PostgreSQL: a toy database, through the interface that databases have."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_capture import ToyCapture, ToyLog, ToyServer, ToySettings

from barnabas.connect.cdc.changes import counts_after
from barnabas.connect.cdc.signals import Signal
from support.effort import examples


def shop() -> ToyServer:
    server = ToyServer()
    server.create("item", '"id" INTEGER NOT NULL PRIMARY KEY, "name" TEXT, "rank" INTEGER')
    server.create("hidden", '"id" INTEGER NOT NULL PRIMARY KEY')
    server.create("signals", '"id" TEXT NOT NULL PRIMARY KEY, "type" TEXT, "data" TEXT')
    return server


def parsed(**more: str) -> ToySettings:
    given = {"signal_data_collection": "shop.signals", "table_include_list": "shop.item"}
    return ToySettings.parse(**given, **more)


def execute(kind: str = "incremental", **more: Any) -> str:
    return json.dumps({"data-collections": ["shop.item"], "type": kind, **more})


def told(capture: ToyCapture) -> list[tuple[str, Any]]:
    """Operation and key of all records of items; a tombstone has no operation."""
    return [
        (record.value.get("op") if record.value else "", record.key and record.key.values[0])
        for record in capture.records
        if record.topic == "toy.shop.item"
    ]


def test_a_snapshot_and_then_the_log() -> None:
    server = shop()
    server.run(*(("insert", "item", (key, f"item {key}", key)) for key in (1, 2, 3)))
    capture = ToyCapture(server, parsed())
    capture.snapshot()
    marks = [record.value.get("source").get("snapshot") for record in capture.records]
    assert marks == ["first", "true", "last"]
    assert "snapshot" in capture.records[0].source_offset
    assert "snapshot" not in capture.records[-1].source_offset
    server.run(
        ("insert", "item", (4, "new", None)),
        ("insert", "hidden", (1,)),
        ("update", "item", (1, "item 1", 1), (1, "other", 1)),
        ("update", "item", (2, "item 2", 2), (5, "moved", 2)),
        ("delete", "item", (3, "item 3", 3)),
    )
    del capture.records[:]
    capture.finish()
    assert told(capture) == [*(("c", 4), ("u", 1), ("d", 2), ("", 2), ("c", 5), ("d", 3), ("", 3))]
    moved = capture.records[2]
    assert [header.key for header in moved.headers][:1] == ["__debezium.newkey"]
    created = capture.records[0].value
    assert created.get("source").get("file") == "log.000001"
    assert created.get("after").values == [4, "new", None]
    server.run(("truncate", "item"))
    assert ToySettings.parse().skipped_operations == {"t"}
    capture.finish()
    assert len(capture.records) == 7


def test_a_truncation_is_an_event_where_it_is_wanted() -> None:
    server = shop()
    capture = ToyCapture(server, parsed(skipped_operations="none"))
    server.run(("insert", "item", (1, "one", 1)), ("truncate", "item"))
    capture.finish()
    assert told(capture) == [("c", 1), ("t", None)]


def test_events_tell_their_place_in_a_transaction_that_is_cut() -> None:
    server = shop()
    capture = ToyCapture(server, parsed(provide_transaction_metadata="true"))
    server.run(
        ("insert", "item", (1, "one", 1)),
        ("update", "item", (1, "one", 1), (2, "two", 1)),
        ("insert", "item", (3, "three", 3)),
        ("delete", "item", (2, "two", 1)),
    )
    for number in range(30):
        capture.batch(1)
        if number in (3, 6, 12):
            capture.restart()
    boundaries = [r.value.values for r in capture.records if r.topic == "toy.transaction"]
    assert [(values[0], values[1], values[2]) for values in boundaries] == [
        *(("BEGIN", "T1", None), ("END", "T1", 5))
    ]
    blocks = [
        record.value.get("transaction").values
        for record in capture.records
        if record.topic == "toy.shop.item" and record.value
    ]
    assert blocks == [["T1", place, place] for place in range(1, 6)]


def test_the_driver_counts_what_executors_write() -> None:
    server = shop()
    capture = ToyCapture(server, parsed(provide_transaction_metadata="true"))
    server.run(("insert", "item", (1, "one", 1)), ("update", "item", (1, "one", 1), (1, "x", 1)))
    capture.batch(2)
    (split,) = capture.splits
    assert counts_after(split, ToyLog(), capture.settings) == {"shop.item": 1}
    assert capture.stored["transaction_data_collection_order_shop.item"] == 1


@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_a_signal_in_the_table_asks_for_an_incremental_snapshot(strategy: str) -> None:
    server = shop()
    server.run(*(("insert", "item", (key, f"item {key}", None)) for key in range(7)))
    capture = ToyCapture(
        server,
        parsed(
            incremental_snapshot_chunk_size="2",
            incremental_snapshot_watermarking_strategy=strategy,
            notification_enabled_channels="sink",
            notification_sink_topic_name="notes",
        ),
    )
    capture.stored = {"file": server.end[0], "pos": server.end[1], "event": 0}
    server.run(("insert", "signals", ("ask", "execute-snapshot", execute())))
    capture.batch()
    assert "incremental_snapshot_primary_key" in capture.stored
    server.run(("update", "item", (0, "item 0", None), (0, "changed", None)))
    capture.restart()
    capture.finish()
    assert capture.topic("item") == {(row[0],): row for row in server.rows("item")}
    operations = {operation for operation, _key in told(capture)}
    assert operations == {"u", "r"}
    notes = [record.value.values[1] for record in capture.records if record.topic == "notes"]
    assert (notes[0], notes[-1]) == ("STARTED", "COMPLETED")
    assert "incremental_snapshot_primary_key" not in capture.stored


def test_a_surrogate_key_with_nulls_which_come_first_here() -> None:
    server = shop()
    ranks = (None, 3, 1, 2, 5, 4)
    server.run(*(("insert", "item", (key, "x", rank)) for key, rank in enumerate(ranks)))
    capture = ToyCapture(server, parsed(incremental_snapshot_chunk_size="2"))
    capture.stored = {"file": server.end[0], "pos": server.end[1], "event": 0}
    asked = execute(**{"surrogate-key": "rank"})
    capture.channel.sent.append(Signal("ask", "execute-snapshot", asked))
    capture.finish()
    assert [key for _operation, key in told(capture)] == [0, 2, 3, 1, 5, 4]
    assert capture.channel.stored_count > 0


def test_a_condition_with_a_percent_sign_and_a_table_that_is_not_there() -> None:
    server = shop()
    names = ("a", "b", "ab")
    server.run(*(("insert", "item", (key, name, key)) for key, name in enumerate(names)))
    capture = ToyCapture(server, ToySettings.parse(signal_data_collection="shop.signals"))
    capture.stored = {"file": server.end[0], "pos": server.end[1], "event": 0}
    asked = {
        "data-collections": ["shop.gone", "shop.item"],
        "additional-conditions": [{"data-collection": "shop.item", "filter": "name LIKE 'a%'"}],
    }
    capture.channel.sent.append(Signal("ask", "execute-snapshot", json.dumps(asked)))
    capture.finish()
    assert told(capture) == [("r", 0), ("r", 2)]


def test_without_marks_places_of_the_log_stand_for_them() -> None:
    server = shop()
    server.run(*(("insert", "item", (key, "x", key)) for key in range(5)))
    capture = ToyCapture(
        server,
        ToySettings.parse(read_only="true", incremental_snapshot_chunk_size="2"),
    )
    capture.stored = {"file": server.end[0], "pos": server.end[1], "event": 0}
    capture.channel.sent.append(Signal("ask", "execute-snapshot", execute()))
    for key in range(5, 12):
        capture.batch()
        server.run(("insert", "item", (key, "later", key)))
    capture.finish()
    assert capture.topic("item") == {(row[0],): row for row in server.rows("item")}
    assert server.rows("signals") == []


def test_a_blocking_snapshot_reads_the_rows_of_a_select() -> None:
    server = shop()
    server.run(*(("insert", "item", (key, "x", key)) for key in range(4)))
    capture = ToyCapture(server, parsed())
    capture.stored = {"file": server.end[0], "pos": server.end[1], "event": 0}
    only = [{"data-collection": "shop.item", "filter": "SELECT * FROM shop.item WHERE id > 1"}]
    asked = execute("blocking", **{"additional-conditions": only})
    capture.channel.sent.append(Signal("ask", "execute-snapshot", asked))
    capture.batch()
    capture.finish()
    assert told(capture) == [("r", 2), ("r", 3)]


def test_a_heartbeat_follows_a_log_without_changes_for_us() -> None:
    server = shop()
    capture = ToyCapture(server, parsed(heartbeat_interval_ms="1"))
    server.run(("insert", "hidden", (1,)))
    capture.batch()
    beats = [record for record in capture.records if record.topic.startswith("__debezium")]
    assert [beat.source_offset.get("beat") for beat in beats] == [True]


def test_a_long_log_is_read_in_its_order() -> None:
    server = shop()
    server.run(("insert", "item", (0, "first", None)))
    capture = ToyCapture(server, parsed(incremental_snapshot_chunk_size="1"))
    capture.snapshot()
    rows = {0: server.rows("item")[0]}
    for number in range(40):  # so that there are ten files and more
        _change(server, rows, 0, "put", f"change {number}")
        if number == 20:
            capture.batch(3)
            capture.restart()
            server.run(("insert", "signals", ("ask", "execute-snapshot", execute())))
    capture.finish()
    assert capture.topic("item") == {(0,): rows[0]}
    assert "incremental_snapshot_collections" not in capture.stored


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.integers(0, 5), st.sampled_from(["put", "del", "move"])),
        st.tuples(st.just("race"), st.integers(0, 5), st.sampled_from(["put", "del", "move"])),
        st.tuples(st.just("batch"), st.integers(1, 4), st.booleans()),
        st.tuples(st.sampled_from(["restart", "ask", "pause", "resume"])),
    ),
    max_size=50,
)


@settings(max_examples=examples(15), deadline=None)
@given(st.sets(st.integers(0, 5)), st.integers(1, 3), ACTIONS)
def test_the_topic_equals_the_table(keys: set[int], size: int, actions: list[Any]) -> None:
    server = shop()
    if keys:
        server.run(*(("insert", "item", (key, "first", None)) for key in sorted(keys)))
    capture = ToyCapture(server, parsed(incremental_snapshot_chunk_size=str(size)))
    capture.snapshot()
    rows = {row[0]: row for row in server.rows("item")}
    for number, action in enumerate(actions):
        match action:
            case ("change", key, kind):
                _change(server, rows, key, kind, f"change {number}")
            case ("race", key, kind):
                race = partial(_change, server, rows, key, kind, f"race {number}")
                capture.database.races.append(race)
            case ("batch", count, is_stored):
                capture.batch(count, is_stored=is_stored)
            case ("restart",):
                capture.restart()
            case ("ask",):
                signal = (f"ask {number}", "execute-snapshot", execute())
                server.run(("insert", "signals", signal))
            case (name,):
                server.run(("insert", "signals", (f"{name} {number}", f"{name}-snapshot", "{}")))
    server.run(("insert", "signals", ("go on", "resume-snapshot", "{}")))
    capture.finish()
    assert capture.topic("item") == {(key,): row for key, row in rows.items()}
    assert "incremental_snapshot_collections" not in capture.stored


def _change(
    server: ToyServer, rows: dict[int, tuple[Any, ...]], key: int, kind: str, name: str
) -> None:
    old, new = rows.get(key), (key, name, None)
    if kind == "put":
        rows[key] = new
        change = ("insert", "item", new) if old is None else ("update", "item", old, new)
        server.run(change)
    elif old is not None and kind == "del":
        del rows[key]
        server.run(("delete", "item", old))
    elif old is not None:
        free = max(rows) + 1
        del rows[key]
        rows[free] = (free, name, None)
        server.run(("update", "item", old, rows[free]))

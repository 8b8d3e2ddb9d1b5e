"""The pure core of incremental snapshots: despite concurrent changes the topic equals the table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.connect.cdc import stored
from barnabas.connect.cdc.incremental import IncrementalSnapshot
from barnabas.connect.cdc.steps import (
    ABORTED,
    COMPLETED,
    IN_PROGRESS,
    STARTED,
    TABLE_SCAN_COMPLETED,
    Altered,
    Asked,
    Begun,
    Changed,
    ChunkRead,
    Effect,
    Emit,
    Emptied,
    Event,
    FindLast,
    LastFound,
    MarkRead,
    Notify,
    PauseAsked,
    ReadChunk,
    ReadFailed,
    ResumeAsked,
    SnapshotProgress,
    StopAsked,
    Wanted,
    WriteCloseMark,
    WriteOpenMark,
)
from support.effort import examples

TABLES = ("public.a", "public.b")


@dataclass
class Database:
    """Tables, the log of their changes, and commits that are in the log before others see them.

    An entry of the log is a table, a key and a value (None: deleted), or the mark of a chunk.
    """

    rows: dict[str, dict[int, int]]
    log: list[tuple[str, int | None, int | None]] = field(default_factory=list)
    values: Iterator[int] = field(default_factory=lambda: itertools.count(1000))

    def change(self, table: str, key: int, *, is_delete: bool) -> None:
        value = None if is_delete else next(self.values)
        if is_delete and self.rows[table].pop(key, None) is None:
            return
        if value is not None:
            self.rows[table][key] = value
        self.log.append((table, key, value))

    def empty(self, table: str) -> None:
        self.rows[table].clear()
        self.log.append((table, None, None))

    def seen(self, table: str, since: int, lag: int) -> dict[int, int]:
        """The table as a chunk sees it: without the last commits, which are behind `since`."""
        rows = dict(self.rows[table])
        late = [entry for entry in self.log[since:] if entry[0] == table][-lag:] if lag else []
        if any(key is None for _table, key, _value in late):
            return rows
        keys = {key for _table, key, _value in late}
        for key in keys:
            assert key is not None
            before = [e for e in self.log if e[0] == table and e[1] in (key, None)]
            count = sum(entry[1] == key for entry in late)
            rest = before[: len(before) - count]
            value = rest[-1][2] if rest else self.first.get((table, key))
            rows.pop(key, None)
            if value is not None:
                rows[key] = value
        return rows

    def __post_init__(self) -> None:
        self.first = {(t, k): v for t, rows in self.rows.items() for k, v in rows.items()}


class Capture:
    """The reader, with a topic for each table; what is stored may lag behind what is written."""

    def __init__(self, database: Database, size: int, lags: Iterator[int]) -> None:
        self.database, self.size, self.lags = database, size, lags
        self.topics: dict[str, dict[int, int]] = {table: {} for table in TABLES}
        self.told: list[Notify] = []
        self.at = 0
        self.stored: tuple[int, dict[str, Any]] = (0, {})
        self.ids = map(str, itertools.count())
        self.restart()

    def restart(self) -> None:
        self.at, fields = self.stored
        self.snapshot = IncrementalSnapshot(stored.progress_of(fields), self.ids)
        self.do(Begun())

    def store(self) -> None:
        fields = stored.fields(self.snapshot.progress)
        self.stored = self.at, fields
        assert stored.fields(stored.progress_of(fields)) == fields

    def do(self, event: Event) -> None:
        effects = self.snapshot.step(event)
        while effects:
            effects = [more for effect in effects for more in self.perform(effect)]

    def perform(self, effect: Effect) -> list[Effect]:
        database = self.database
        match effect:
            case WriteCloseMark(chunk):
                database.log.append((f"mark {chunk}", None, None))
            case FindLast(wanted):
                rows = database.seen(wanted.table, self.at, next(self.lags))
                last = None if not rows else (str(max(rows)),)
                return self.snapshot.step(LastFound(last, ("java.lang.Integer",)))
            case ReadChunk(wanted, after, last):
                seen = database.seen(wanted.table, self.at, next(self.lags))
                begin = -1 if after is None else int(after[0] or 0)
                keys = [key for key in sorted(seen) if begin < key <= int(last[0] or 0)]
                found = [((str(key),), (wanted.table, key, seen[key])) for key in keys]
                found = found[: self.size]
                return self.snapshot.step(ChunkRead(found, found[-1][0] if found else None))
            case Emit(rows):
                for table, key, value in rows:
                    self.topics[table][key] = value
            case Notify():
                self.told.append(effect)
            case WriteOpenMark():
                pass
        return []

    def read(self, count: int) -> None:
        """Read so many entries of the log."""
        for table, key, value in self.database.log[self.at : self.at + count]:
            self.at += 1
            if table.startswith("mark "):
                self.do(MarkRead(table.removeprefix("mark ")))
            elif key is None:
                self.do(Emptied(table))
                self.topics[table].clear()
            else:
                self.do(Changed(table, ((str(key),),)))
                if value is None:
                    self.topics[table].pop(key, None)
                else:
                    self.topics[table][key] = value

    def finish(self) -> None:
        self.do(ResumeAsked())
        while self.at < len(self.database.log):
            self.read(1)
        assert not self.snapshot.progress.is_running


KEYS = st.integers(0, 7)
ROWS = st.dictionaries(KEYS, st.integers(0, 99))
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.sampled_from(TABLES), KEYS, st.booleans()),
        st.tuples(st.just("change"), st.sampled_from(TABLES), KEYS, st.booleans()),
        st.tuples(st.just("read"), st.integers(1, 3)),
        st.tuples(st.just("read"), st.integers(1, 3)),
        st.tuples(st.sampled_from(["store", "restart", "pause", "resume"])),
        st.tuples(st.sampled_from(["empty", "alter"]), st.sampled_from(TABLES)),
    ),
    max_size=60,
)


@settings(max_examples=examples(23), deadline=None)
@given(ROWS, ROWS, st.integers(1, 3), st.lists(st.integers(0, 3), min_size=1), ACTIONS)
def test_the_topic_equals_the_table(
    a: dict[int, int], b: dict[int, int], size: int, lags: list[int], actions: list[Any]
) -> None:
    database = Database({"public.a": a, "public.b": b})
    capture = Capture(database, size, itertools.cycle(lags))
    capture.do(Asked("one", tuple(map(Wanted, TABLES))))
    capture.store()
    for action in actions:
        match action:
            case ("change", table, key, is_delete):
                database.change(table, key, is_delete=is_delete)
            case ("read", count):
                capture.read(count)
            case ("store",):
                capture.store()
            case ("restart",):
                capture.restart()
            case ("pause",):
                capture.do(PauseAsked())
            case ("resume",):
                capture.do(ResumeAsked())
            case ("empty", table):
                database.empty(table)
            case ("alter", table):
                capture.do(Altered(table))
    capture.finish()
    assert capture.topics == database.rows
    assert capture.told[-1].status == COMPLETED


def capture_of(a: int, size: int = 2) -> Capture:
    database = Database({"public.a": {key: key for key in range(a)}, "public.b": {}})
    return Capture(database, size, itertools.repeat(0))


def test_notifications_tell_how_it_goes() -> None:
    capture = capture_of(3)
    capture.do(Asked("one", tuple(map(Wanted, TABLES))))
    capture.finish()
    assert [told.status for told in capture.told] == [
        *(STARTED, IN_PROGRESS, IN_PROGRESS, TABLE_SCAN_COMPLETED, TABLE_SCAN_COMPLETED, COMPLETED)
    ]
    assert {told.correlation_id for told in capture.told} == {"one"}
    assert dict(capture.told[2].data) == {
        "data_collections": "public.a,public.b",
        "current_collection_in_progress": "public.a",
        "maximum_key": "2",
        "last_processed_key": "2",
    }
    scanned = [dict(told.data) for told in capture.told if told.status == TABLE_SCAN_COMPLETED]
    assert [(one["status"], one["total_rows_scanned"]) for one in scanned] == [
        ("SUCCEEDED", "3"),
        ("EMPTY", "0"),
    ]


def test_a_stop_leaves_out_what_is_not_written() -> None:
    capture = capture_of(4)
    capture.do(Asked("one", tuple(map(Wanted, TABLES))))
    capture.read(1)
    assert capture.topics["public.a"] == {0: 0, 1: 1}
    capture.do(StopAsked((r"public\.a",)))
    assert [told.status for told in capture.told[-3:]] == [
        *(ABORTED, TABLE_SCAN_COMPLETED, COMPLETED)
    ]
    capture.finish()
    assert capture.topics["public.a"] == {0: 0, 1: 1}
    assert capture.told[-1].status == COMPLETED


@pytest.mark.parametrize("patterns", [(), (".*",), ("public.a", "public.b")])
def test_a_stop_of_all_ends_it(patterns: tuple[str, ...]) -> None:
    capture = capture_of(4)
    capture.do(Asked("one", tuple(map(Wanted, TABLES))))
    capture.do(StopAsked(patterns))
    assert capture.snapshot.progress == SnapshotProgress()
    assert capture.told[-1].status == ABORTED
    capture.finish()
    assert capture.topics["public.a"] == {}


def test_a_pause_lasts_over_a_restart() -> None:
    capture = capture_of(4)
    capture.do(Asked("one", tuple(map(Wanted, TABLES))))
    capture.do(PauseAsked())
    capture.store()
    capture.restart()
    capture.read(100)
    assert capture.topics["public.a"] == {}
    assert capture.snapshot.progress.is_running
    capture.finish()
    assert capture.topics["public.a"] == {key: key for key in range(4)}


def test_a_table_that_cannot_be_read_is_passed_over() -> None:
    snapshot = IncrementalSnapshot(SnapshotProgress(), iter(["x"]))
    effects = snapshot.step(Asked("one", tuple(map(Wanted, TABLES))))
    assert isinstance(effects[-1], FindLast)
    effects = snapshot.step(ReadFailed("UNKNOWN_SCHEMA"))
    assert effects[-1] == FindLast(snapshot.progress.tables[0])
    assert snapshot.progress.tables[0].table == "public.b"
    told = effects[0]
    assert isinstance(told, Notify)
    assert dict(told.data)["status"] == "UNKNOWN_SCHEMA"

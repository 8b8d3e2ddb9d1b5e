"""Windowed aggregates: tumbling, hopping and session windows, late records, EMIT FINAL."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.plan import steps
from barnabas.sql.runtime.stores import Segments
from barnabas.sql.syntax.tree import Window
from support.effort import examples
from support.sql_plans import (
    Bench,
    aggregate,
    call,
    greater,
    hopping,
    schema,
    select,
    session,
    stream,
    tumbling,
)

DAY_MS = 24 * 60 * 60 * 1000


def counted(window: Window, *, is_final: bool = False) -> steps.Step:
    """COUNT and COLLECT_LIST of each key, in windows."""
    source = steps.StreamGroupByKey(stream("in", "V"), schema("K", "V"))
    step = aggregate(source, call("COUNT"), call("COLLECT_LIST", "V"), window=window)
    return steps.TableSuppress(step, step.schema) if is_final else step


def bench(window: Window, *, is_final: bool = False) -> Bench:
    return Bench(counted(window, is_final=is_final), is_table=True)


def test_tumbling_windows_take_late_records_until_grace_is_over() -> None:
    run = bench(tumbling(10, grace_ms=5))
    assert run.pipe("in", 1, 1, 12) == ["1[10,20] 1,[1] @12"]
    assert run.pipe("in", 1, 2, 19) == ["1[10,20] 2,[1, 2] @19"]
    assert run.pipe("in", 1, 3, 24) == ["1[20,30] 1,[3] @24"]
    assert run.pipe("in", 1, 4, 11) == ["1[10,20] 3,[1, 2, 4] @19"], "20 > 24 - 5"
    assert run.pipe("in", 2, 5, 25) == ["2[20,30] 1,[5] @25"]
    assert run.pipe("in", 1, 6, 11) == [], "20 is not after 25 - 5"
    assert run.pipe("in", None, 6, 11) == []
    assert run.pipe("in", 1, None, 11) == []


def test_hopping_windows_overlap_and_begin_at_zero() -> None:
    run = bench(hopping(10, 4))
    assert run.pipe("in", 1, 1, 3) == ["1[0,10] 1,[1] @3"]
    assert run.pipe("in", 1, 2, 9) == [
        "1[0,10] 2,[1, 2] @9",
        "1[4,14] 1,[2] @9",
        "1[8,18] 1,[2] @9",
    ]


def test_windows_without_grace_clause_wait_a_day() -> None:
    run = bench(tumbling(10))
    run.pipe("in", 1, 1, 0)
    run.pipe("in", 1, 2, DAY_MS - 1)
    assert run.pipe("in", 1, 3, 5) == ["1[0,10] 2,[1, 3] @5"]
    run.pipe("in", 1, 4, DAY_MS)
    assert run.pipe("in", 1, 3, 5) == []


def test_windows_past_retention_are_deleted() -> None:
    run = bench(tumbling(10, grace_ms=0, retention_ms=30))
    for at in range(0, 200, 10):
        run.pipe("in", 1, 1, at)
        run.pipe("in", 2, 1, at)
    assert len(run.driver.stores[0, "Aggregate-1"]) == 8


def test_bounds_and_key_can_be_selected() -> None:
    step = select(counted(tumbling(10)), "K", is_table=True, S="WINDOWSTART", E="WINDOWEND", ID="K")
    assert Bench(step, is_table=True).pipe("in", 7, 1, 12) == ["7[10,20] 10,20,7 @12"]


def test_having_on_windows() -> None:
    source = counted(tumbling(10))
    step = steps.TableFilter(source, greater("KSQL_AGG_VARIABLE_0", 1), source.schema)
    run = Bench(step, is_table=True)
    assert run.pipe("in", 1, 1, 1) == []
    assert run.pipe("in", 1, 2, 2) == ["1[0,10] 2,[1, 2] @2"]


class TestSessions:
    def test_grow_and_merge(self) -> None:
        run = bench(session(5))
        assert run.pipe("in", 1, 1, 10) == ["1[10,10] 1,[1] @10"]
        assert run.pipe("in", 1, 2, 10) == ["1[10,10] 2,[1, 2] @10"], "no tombstone in place"
        assert run.pipe("in", 1, 3, 20) == ["1[20,20] 1,[3] @20"]
        assert run.pipe("in", 1, 4, 24) == ["1[20,20] - @20", "1[20,24] 2,[3, 4] @24"]
        assert run.pipe("in", 2, 5, 16) == ["2[16,16] 1,[5] @16"]
        assert run.pipe("in", 1, 6, 15) == [
            "1[10,10] - @10",
            "1[20,24] - @24",
            "1[10,24] 5,[1, 2, 3, 4, 6] @24",
        ]

    def test_take_late_records_until_grace_is_over(self) -> None:
        run = bench(session(5, grace_ms=10))
        run.pipe("in", 1, 1, 100)
        assert run.pipe("in", 2, 2, 86) == ["2[86,86] 1,[2] @86"]
        assert run.pipe("in", 2, 3, 84) == ["2[86,86] - @86", "2[84,86] 2,[2, 3] @86"]
        assert run.pipe("in", 3, 4, 84) == []
        assert run.pipe("in", 3, 4, 85) == ["3[85,85] 1,[4] @85"]
        assert run.pipe("in", 3, 4, 84) == [], "the store hides 85, as Kafka Streams' does"

    def test_segments_past_retention_are_deleted(self) -> None:
        run = bench(session(5, grace_ms=0))
        for at in range(0, 600_000, 10_000):
            run.pipe("in", 1, 1, at)
        assert len(run.driver.stores[0, "Aggregate-1"]) <= 12


class TestFinal:
    """Facts: ksqlDB's cases of EMIT FINAL."""

    def run(self, window: Window, *times: int) -> list[str]:
        run = bench(window, is_final=True)
        return [line.split(",[")[0] for at in times for line in run.pipe("in", 1, 0, at)]

    @pytest.mark.parametrize(
        ("window", "times", "expected"),
        [
            (tumbling(2, 0), (0, 1), []),
            (tumbling(2, 0), (0, 1, 2), ["1[0,2] 2"]),
            (tumbling(2, 1), (0, 1, 2, 1, 0, 5), ["1[2,4] 1"]),
            (tumbling(2, 2), (0, 1, 2, 0, 3, 0, 10, 0, 30), []),
            (tumbling(2, 3), (0, 1, 2, 1, 5, 0, 7), ["1[0,2] 3", "1[2,4] 1"]),
            (tumbling(2, 1, 100), (0, 1, 2, 1, 0, 5), ["1[0,2] 4", "1[2,4] 1"]),
            (hopping(5, 2, 1), (0, 1, 2, 1, 6, 5, 10), ["1[0,5] 4", "1[4,9] 2"]),
            (session(5, 6), (0, 4, 8, 12, 14, 30, 29, 17, 42), ["1[0,14] 5", "1[29,30] 2"]),
        ],
    )
    def test_each_window_once(
        self, window: Window, times: tuple[int, ...], expected: list[str]
    ) -> None:
        assert self.run(window, *times) == expected

    def test_keys_close_together_in_order(self) -> None:
        run = bench(tumbling(10, 0, 1000), is_final=True)
        for key, at in ((2, 1), (1, 3), (1, 12), (3, 2)):
            run.pipe("in", key, 0, at)
        assert run.pipe("in", 1, 0, 25) == ["1[10,20] 1,[0] @12"]
        run = bench(tumbling(10, 5, 1000), is_final=True)
        for key, at in ((2, 1), (1, 3), (1, 12), (3, 2)):
            run.pipe("in", key, 0, at)
        assert run.pipe("in", 1, 0, 25) == [
            "1[0,10] 1,[0] @3",
            "2[0,10] 1,[0] @1",
            "3[0,10] 1,[0] @2",
            "1[10,20] 1,[0] @12",
        ]


events = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 400)), max_size=40)


@settings(max_examples=examples(15))
@given(events)
def test_hopping_windows_are_those_of_a_batch(records: list[tuple[int, int]]) -> None:
    """Without late records, the last count of each window is the number of its records."""
    size, advance = 30, 10
    run = bench(hopping(size, advance))
    last: dict[str, str] = {}
    for key, at in records:
        for line in run.pipe("in", key, 0, at):
            window, rest = line.split(" ", 1)
            last[window] = rest.split(",")[0]
    expected: dict[str, int] = defaultdict(int)
    for key, at in records:
        for start in range(0, at + 1, advance):
            if start <= at < start + size:
                expected[f"{key}[{start},{start + size}]"] += 1
    assert last == {window: str(count) for window, count in expected.items()}


@settings(max_examples=examples(15))
@given(events)
def test_sessions_are_those_of_a_batch(records: list[tuple[int, int]]) -> None:
    """In any order, what is left are the sessions of the sorted records."""
    gap = 12
    run = bench(session(gap))
    left: dict[str, str] = {}
    for key, at in records:
        for line in run.pipe("in", key, 0, at):
            window, rest = line.split(" ", 1)
            if rest.startswith("-"):
                del left[window]
            else:
                left[window] = rest.split(",")[0]
    expected: dict[str, str] = {}
    for key in {key for key, _ in records}:
        times = sorted(at for of, at in records if of == key)
        start, previous, count = times[0], times[0], 0
        for at in [*times, 10**9]:
            if at - previous > gap:
                expected[f"{key}[{start},{previous}]"] = str(count)
                start, count = at, 0
            previous, count = at, count + 1
    assert left == expected


@pytest.mark.parametrize("window", [tumbling(10, 20), hopping(20, 5, 10), session(7, 15)])
@pytest.mark.parametrize("is_final", [False, True])
def test_a_stage_that_is_bound_again_goes_on(window: Window, is_final: bool) -> None:
    """The state flushed at the end of a batch is all that the next batch needs."""
    step = counted(window, is_final=is_final)
    steady, rebound = Bench(step, is_table=True), Bench(step, is_table=True)
    generator = random.Random(7)
    now = 0
    for _ in range(300):
        now += generator.randrange(4)
        at = max(0, now - generator.randrange(30))
        key = generator.randrange(3)
        expected = steady.pipe("in", key, at, at)
        assert rebound.pipe("in", key, at, at) == expected
        rebound.driver.flush()
        stores = rebound.driver.stores
        rebound = Bench(step, is_table=True)
        rebound.driver.stores.update(stores)
        rebound.driver.bind()


def test_segments_hide_exactly_and_delete_late() -> None:
    segments = Segments(200_000)
    assert segments.of(99_999) == 0
    assert segments.of(100_000) == 1
    assert segments.horizon(300_000) == 100_001
    assert segments.is_live(100_000, 300_000)
    assert not segments.is_live(99_999, 300_000)

"""Joins, as transcripts in the manner of Kafka Streams' own tests, and against batch joins."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.plan import steps
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stage import Channel
from barnabas.sql.syntax.tree import JoinKind, WindowKind
from support.effort import examples
from support.sql_batches import pack_record, unpack_record
from support.sql_plans import (
    Bench,
    aggregate,
    call,
    column,
    greater,
    join_foreign,
    join_stream_table,
    join_streams,
    join_tables,
    schema,
    stream,
    table,
    text,
)

INNER, LEFT, RIGHT, OUTER = JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.OUTER
DAY_MS = 24 * 60 * 60 * 1000


def streams(
    kind: JoinKind, before: int = 10, after: int = 10, grace: int | None = None
) -> steps.Step:
    return join_streams(kind, stream("l", "A"), stream("r", "B"), before, after, grace)


class TestStreams:
    def test_inner_join_meets_within_the_window(self) -> None:
        run = Bench(streams(INNER, before=10, after=5))
        assert run.pipe("l", 1, 100, 50) == []
        assert run.pipe("r", 1, 200, 55) == ["1 100,200 @55"]
        assert run.pipe("r", 1, 201, 56) == [], "more than 5 after"
        assert run.pipe("r", 1, 202, 40) == ["1 100,202 @50"]
        assert run.pipe("r", 1, 203, 39) == [], "more than 10 before"
        assert run.pipe("l", 1, 101, 50) == ["1 101,202 @50", "1 101,200 @55"], "by time"
        assert run.pipe("l", 2, 102, 50) == []
        assert run.pipe("l", None, 102, 50) == []
        assert run.pipe("l", 1, None, 50) == []

    def test_records_of_one_key_and_time_all_count(self) -> None:
        run = Bench(streams(INNER))
        run.pipe("l", 1, 100, 50)
        run.pipe("l", 1, 100, 50)
        assert run.pipe("r", 1, 200, 50) == ["1 100,200 @50", "1 100,200 @50"]

    def test_left_join_without_grace_does_not_wait(self) -> None:
        run = Bench(streams(LEFT))
        assert run.pipe("l", 1, 100, 50) == ["1 100,null @50"]
        assert run.pipe("r", 1, 200, 55) == ["1 100,200 @55"]
        assert run.pipe("r", 2, 200, 55) == []
        assert run.pipe("l", None, 100, 50) == ["- 100,null @50"]
        assert run.pipe("r", None, 100, 50) == []

    def test_left_join_with_grace_waits_for_the_window_to_close(self) -> None:
        run = Bench(streams(LEFT, grace=5))
        assert run.pipe("l", 1, 100, 50) == []
        assert run.pipe("l", 2, 101, 51) == []
        assert run.pipe("r", 2, 200, 60) == ["2 101,200 @60"]
        assert run.pipe("l", 3, 102, 65) == [], "50 + 10 + 5"
        assert run.pipe("l", 3, 103, 66) == ["1 100,null @50"]
        assert run.pipe("l", 4, 104, 55) == ["4 104,null @55"], "late: not kept waiting"
        assert run.pipe("r", 9, 0, 82) == ["3 102,null @65", "3 103,null @66"]

    def test_right_join_with_grace_is_a_left_join_turned_round(self) -> None:
        run = Bench(streams(RIGHT, before=10, after=3, grace=5))
        assert run.pipe("r", 1, 200, 50) == []
        assert run.pipe("l", 9, 0, 60) == []
        assert run.pipe("l", 9, 0, 66) == ["1 null,200 @50"], "50 + 10 + 5"
        assert run.pipe("r", 2, 201, 67) == []
        assert run.pipe("l", 2, 102, 64) == ["2 102,201 @67"]
        assert run.pipe("r", None, 202, 67) == ["- null,202 @67"]

    def test_outer_join_with_grace(self) -> None:
        run = Bench(streams(OUTER, grace=0))
        assert run.pipe("l", 1, 100, 50) == []
        assert run.pipe("r", 2, 200, 50) == []
        assert run.pipe("l", 3, 101, 61) == ["2 null,200 @50", "1 100,null @50"]
        assert run.pipe("r", 3, 201, 61) == ["3 101,201 @61"]
        assert run.pipe("r", 3, 202, 300) == []

    def test_outer_join_without_grace(self) -> None:
        run = Bench(streams(OUTER))
        assert run.pipe("l", 1, 100, 50) == ["1 100,null @50"]
        assert run.pipe("r", 2, 200, 50) == ["2 null,200 @50"]

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            (LEFT, ["0 A,a @60000", "2 C,null @90000", "3 D,null @60000"]),
            (
                OUTER,
                [
                    "0 A,a @60000",
                    "2 C,null @90000",
                    "2 null,c @90000",
                    "3 D,null @60000",
                    "3 null,d @60000",
                ],
            ),
        ],
    )
    def test_out_of_order_with_grace(self, kind: JoinKind, expected: list[str]) -> None:
        """ksqlDB's case `stream stream left join with out of order and custom grace period`."""
        run = Bench(streams(kind, 60_000, 60_000, 60_000))
        made = []
        for topic, key, value, at in (
            ("l", 0, "A", 0),
            ("r", 0, "a", 60000),
            ("l", 1, "B", 330000),
            ("l", 2, "C", 90000),
            ("r", 2, "c", 90000),
            ("l", 3, "D", 60000),
            ("r", 3, "d", 60000),
        ):
            made += run.pipe(topic, key, value, at)
        assert made == expected

    @pytest.mark.parametrize(
        ("kind", "windows", "expected"),
        [
            (WindowKind.TUMBLING, ((0, 10), (10, 20)), []),
            (WindowKind.TUMBLING, ((0, 10), (0, 10)), ["1[0,10] 100,200 @5"]),
            (WindowKind.TUMBLING, ((0, 10), (0, 20)), ["1[0,20] 100,200 @5"]),
            (WindowKind.SESSION, ((0, 10), (0, 20)), []),
            (WindowKind.SESSION, ((0, 10), (0, 10)), ["1[0,10] 100,200 @5"]),
        ],
    )
    def test_windowed_keys_meet_in_the_same_window(
        self,
        kind: WindowKind,
        windows: tuple[tuple[int, int], tuple[int, int]],
        expected: list[str],
    ) -> None:
        """Keys in topics have only the start of time windows, so window sizes do not count."""
        info = steps.WindowInfo(kind)
        left, right = replace(stream("l", "A"), window=info), replace(stream("r", "B"), window=info)
        run = Bench(join_streams(INNER, left, right, 10, 10, None), partitions=3)
        run.pipe("l", 1, 100, 5, windows[0])
        assert run.pipe("r", 1, 200, 5, windows[1]) == expected

    def test_old_records_are_deleted(self) -> None:
        run = Bench(streams(LEFT, 10, 10, 100))
        for at in range(0, 1_000_000, 1000):
            run.pipe("l", 1, 1, at)
            run.pipe("r", 2, 1, at)
        assert max(len(store) for store in run.driver.stores.values()) < 130

    def test_rekeyed_sides_are_repartitioned(self) -> None:
        rekeyed = steps.StreamSelectKey(stream("l", "A", key="X"), (column("A"),), schema("A", "A"))
        inner = Bench(join_streams(INNER, rekeyed, stream("r", "B"), 10, 10, None), partitions=4)
        assert len(inner.driver.stages) == 2
        assert inner.pipe("r", 7, 70) == []
        assert inner.pipe("l", 1, 7) == ["7 7,70 @0"]
        assert inner.pipe("l", 1, [None]) == []
        left = Bench(join_streams(LEFT, rekeyed, stream("r", "B"), 10, 10, None), partitions=4)
        assert left.pipe("l", 1, [None]) == ["- null,null @0"]


moments = st.lists(
    st.tuples(st.sampled_from("lr"), st.integers(1, 2), st.integers(0, 200)), max_size=30
)


@settings(max_examples=examples(15))
@given(moments, st.sampled_from([INNER, LEFT, RIGHT, OUTER]), st.integers(0, 12))
def test_stream_joins_are_those_of_a_batch(
    records: list[tuple[str, int, int]], kind: JoinKind, before: int
) -> None:
    """With a grace period longer than all disorder, each pair within the window is there once,
    and each record of an outer side without a partner once, when all is over. One that comes when
    the stream time is past its window does not wait, though its partner may come yet."""
    after = 5
    run = Bench(streams(kind, before, after, 1000))
    made: list[str] = []
    for number, (side, key, at) in enumerate(records):
        made += run.pipe(side, key, number, at)
    made += run.pipe("l", 9, 9, 5000) + run.pipe("r", 9, 9, 10000)
    made = [line for line in made if not line.startswith("9")]
    lefts = [(n, key, at) for n, (side, key, at) in enumerate(records) if side == "l"]
    rights = [(n, key, at) for n, (side, key, at) in enumerate(records) if side == "r"]
    lefts_at, rights_at = {n: at for n, _, at in lefts}, {n: at for n, _, at in rights}
    pairs = [
        (n, m, key, max(at, other_at))
        for n, key, at in lefts
        for m, other, other_at in rights
        if key == other and at - before <= other_at <= at + after
    ]
    expected = [f"{key} {n},{m} @{at}" for n, m, key, at in pairs]
    now = [max(at for _, _, at in records[: n + 1]) for n in range(len(records))]
    if kind in (LEFT, OUTER):
        met = {n for n, m, _, _ in pairs if m < n or lefts_at[n] + after >= now[n]}
        expected += [f"{key} {n},null @{at}" for n, key, at in lefts if n not in met]
    if kind in (RIGHT, OUTER):
        met = {m for n, m, _, _ in pairs if n < m or rights_at[m] + before >= now[m]}
        expected += [f"{key} null,{m} @{at}" for m, key, at in rights if m not in met]
    assert sorted(made) == sorted(expected)


class TestStreamAndTable:
    def test_inner(self) -> None:
        run = Bench(join_stream_table(INNER, stream("s", "A"), table("t", "B")))
        assert run.pipe("s", 1, 100, 5) == []
        assert run.pipe("t", 1, 200, 9) == []
        assert run.pipe("s", 1, 101, 6) == ["1 101,200 @6"], "the stream's time"
        assert run.pipe("s", None, 101) == []
        assert run.pipe("s", 1, None) == []
        assert run.pipe("t", 1, None) == []
        assert run.pipe("s", 1, 102) == []

    def test_left(self) -> None:
        run = Bench(join_stream_table(LEFT, stream("s", "A"), table("t", "B")))
        assert run.pipe("s", 1, 100, 5) == ["1 100,null @5"]
        assert run.pipe("s", None, 100, 5) == ["- 100,null @5"]
        assert run.pipe("s", 1, None) == []

    def test_with_an_aggregate(self) -> None:
        counted = aggregate(
            steps.StreamGroupByKey(stream("t", "B"), schema("K", "B")), call("COUNT")
        )
        run = Bench(join_stream_table(INNER, stream("s", "A"), counted), partitions=3)
        assert len(run.driver.stages) == 1
        run.pipe("t", 1, 5)
        run.pipe("t", 1, 6)
        assert run.pipe("s", 1, 100) == ["1 100,2 @0"]

    def test_with_a_filtered_table(self) -> None:
        filtered = steps.TableFilter(table("t", "B"), greater("B", 5), schema("K", "B"))
        run = Bench(join_stream_table(LEFT, stream("s", "A"), filtered))
        run.pipe("t", 1, 5)
        assert run.pipe("s", 1, 100) == ["1 100,null @0"]
        run.pipe("t", 1, 6)
        assert run.pipe("s", 1, 100) == ["1 100,6 @0"]


class TestTables:
    """Transcripts: side, value, then what comes out; all of one key. Facts: Kafka Streams'
    KTableKTable…JoinTest."""

    @pytest.mark.parametrize(
        ("kind", "transcript"),
        [
            (
                INNER,
                [
                    ("l", 1, []),
                    ("r", 2, ["1,2"]),
                    ("l", 3, ["3,2"]),
                    ("r", None, ["-"]),
                    ("l", 4, []),
                    ("l", None, []),
                    ("r", 5, []),
                    ("l", None, ["-"]),
                ],
            ),
            (
                LEFT,
                [
                    ("r", 1, []),
                    ("r", None, []),
                    ("l", None, []),
                    ("l", 2, ["2,null"]),
                    ("r", 3, ["2,3"]),
                    ("r", None, ["2,null"]),
                    ("r", 4, ["2,4"]),
                    ("l", None, ["-"]),
                    ("l", None, ["-"]),
                    ("r", None, []),
                    ("l", None, []),
                ],
            ),
            (
                RIGHT,
                [
                    ("l", 1, []),
                    ("r", 2, ["1,2"]),
                    ("l", None, ["null,2"]),
                    ("r", None, ["-"]),
                    ("r", None, []),
                    ("l", 3, []),
                ],
            ),
            (
                OUTER,
                [
                    ("l", None, []),
                    ("l", 1, ["1,null"]),
                    ("r", 2, ["1,2"]),
                    ("l", None, ["null,2"]),
                    ("r", None, ["-"]),
                    ("r", None, []),
                    ("r", 3, ["null,3"]),
                    ("l", 4, ["4,3"]),
                    ("r", None, ["4,null"]),
                ],
            ),
        ],
    )
    def test_transcript(
        self, kind: JoinKind, transcript: list[tuple[str, int | None, list[str]]]
    ) -> None:
        run = Bench(join_tables(kind, table("l", "A"), table("r", "B")), is_table=True)
        for at, (side, value, expected) in enumerate(transcript):
            made = run.pipe(side, 7, value, at)
            assert made == [f"7 {line} @{at}" for line in expected], (at, side, value)
        assert run.pipe("l", None, 1) == []

    def test_the_result_has_the_later_timestamp(self) -> None:
        run = Bench(join_tables(LEFT, table("l", "A"), table("r", "B")), is_table=True)
        run.pipe("r", 1, 2, 50)
        assert run.pipe("l", 1, 1, 10) == ["1 1,2 @50"]
        assert run.pipe("l", 1, 3, 60) == ["1 3,2 @60"]
        assert run.pipe("r", 1, 4, 20) == ["1 3,4 @60"]

    def test_a_filter_behind_a_join_knows_what_was_there(self) -> None:
        joined = join_tables(OUTER, table("l", "A"), table("r", "B"))
        step = steps.TableFilter(joined, greater("A", 5), joined.schema)
        run = Bench(step, is_table=True)
        assert run.pipe("l", 1, 5) == []
        assert run.pipe("r", 1, 5) == []
        assert run.pipe("l", 1, 6) == ["1 6,5 @0"]
        assert run.pipe("r", 1, 7) == ["1 6,7 @0"]
        assert run.pipe("l", 1, None) == ["1 - @0"]
        assert run.pipe("r", 1, None) == []

    def test_three_tables(self) -> None:
        two = join_tables(INNER, table("a", "A"), table("b", "B"))
        run = Bench(join_tables(LEFT, two, table("c", "C")), is_table=True, partitions=2)
        assert run.pipe("a", 1, 1, 1) == []
        assert run.pipe("c", 1, 3, 9) == []
        assert run.pipe("b", 1, 2, 2) == ["1 1,2,3 @9"]
        assert run.pipe("c", 1, None, 3) == ["1 1,2,null @3"]
        assert run.pipe("a", 1, None, 4) == ["1 - @4"]

    def test_a_join_in_a_group(self) -> None:
        joined = join_tables(LEFT, table("l", "A"), table("r", "B"))
        grouped = steps.TableGroupBy(joined, (column("A"),), schema("A", "A B"))
        step = aggregate(grouped, call("COUNT"), call("COUNT", "B"), key="A")
        run = Bench(step, is_table=True, partitions=3)
        assert run.pipe("l", 1, 10) == ["10 1,0 @0"]
        assert run.pipe("r", 1, 5) == ["10 1,1 @0"]
        assert run.pipe("l", 2, 10) == ["10 2,1 @0"]
        assert run.pipe("l", 1, None) == ["10 1,0 @0"]


changes = st.lists(
    st.tuples(st.sampled_from("lr"), st.integers(1, 3), st.none() | st.integers(0, 9)), max_size=30
)


@settings(max_examples=examples(15))
@given(changes, st.sampled_from([INNER, LEFT, RIGHT, OUTER]))
def test_table_joins_are_those_of_a_batch(
    records: list[tuple[str, int, int | None]], kind: JoinKind
) -> None:
    run = Bench(join_tables(kind, table("l", "A"), table("r", "B")), is_table=True)
    tables: dict[str, dict[int, int]] = {"l": {}, "r": {}}
    result: dict[str, str] = {}
    for side, key, value in records:
        for line in run.pipe(side, key, value):
            _keep(result, line)
        _change(tables[side], key, value)
    expected = {}
    for key in tables["l"].keys() | tables["r"].keys():
        left, right = tables["l"].get(key), tables["r"].get(key)
        if (left is None and kind not in (RIGHT, OUTER)) or (
            right is None and kind not in (LEFT, OUTER)
        ):
            continue
        expected[str(key)] = ",".join("null" if v is None else str(v) for v in (left, right))
    assert result == expected


def _keep(result: dict[str, str], line: str) -> None:
    key, value, _ = line.split(" ")
    if value == "-":
        result.pop(key, None)
    else:
        result[key] = value


def _change(rows: dict[int, int], key: int, value: int | None) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value


class TestForeignKeys:
    """Rows of the left table are (F, A); F is the key of the right one."""

    def test_inner(self) -> None:
        run = Bench(join_foreign(INNER, "F", table("l", "F A"), table("r", "B")), is_table=True)
        assert len(run.driver.stages) == 3
        assert run.pipe("l", 1, [10, 5], 1) == []
        assert run.pipe("r", 10, 7, 2) == ["1 10,5,7 @2"]
        assert run.pipe("l", 2, [10, 6], 1) == ["2 10,6,7 @2"]
        assert run.pipe("r", 10, 8, 3) == ["1 10,5,8 @3", "2 10,6,8 @3"]
        assert run.pipe("l", 1, [11, 5], 4) == ["1 - @4"], "no right row"
        assert run.pipe("r", 10, None, 5) == ["2 - @5"]
        assert run.pipe("r", 11, 9, 6) == ["1 11,5,9 @6"]
        assert run.pipe("l", 1, None, 7) == ["1 - @7"]
        assert run.pipe("r", 11, 10, 8) == []
        assert run.pipe("l", 3, [None, 1], 9) == []

    def test_left(self) -> None:
        run = Bench(join_foreign(LEFT, "F", table("l", "F A"), table("r", "B")), is_table=True)
        assert run.pipe("l", 1, [10, 5], 1) == ["1 10,5,null @1"]
        assert run.pipe("r", 10, 7, 2) == ["1 10,5,7 @2"]
        assert run.pipe("r", 10, None, 3) == ["1 10,5,null @3"]
        assert run.pipe("l", 2, [None, 6], 4) == ["2 null,6,null @4"]
        assert run.pipe("l", 2, None, 5) == ["2 - @5"]
        assert run.pipe("r", 11, 9, 6) == []
        assert run.pipe("l", 1, [11, 5], 7) == ["1 11,5,9 @7"], "once, not null in between"
        assert run.pipe("l", 1, [None, 5], 8) == ["1 null,5,null @8"]
        assert run.pipe("r", 11, 10, 9) == []
        assert run.pipe("l", 1, [11, 5], 9) == ["1 11,5,10 @9"]
        assert run.pipe("l", 1, None, 10) == ["1 - @10"]
        assert run.pipe("r", 11, 12, 11) == []

    def test_late_answers_are_dropped(self) -> None:
        run = Bench(join_foreign(INNER, "F", table("l", "F A"), table("r", "B")), is_table=True)
        left, right, result = run.driver.stages
        (row, subscribe), (rows, answers) = (0, 1), (0, 1)
        right.process(0, Record([10], [7], 0))
        sent = dict(left.process(0, Record([1], [10, 5], 0)))
        assert result.process(rows, sent[row]) == []
        ((_, late),) = right.process(subscribe, sent[subscribe])
        sent = dict(left.process(0, Record([1], [10, 6], 1)))
        assert result.process(rows, sent[row]) == []
        assert result.process(answers, late) == [], "the left row has changed since"
        ((_, current),) = right.process(subscribe, sent[subscribe])
        ((_, joined),) = result.process(answers, current)
        assert text(joined) == "1 10,6,7 @1"

    def test_a_filter_behind_it_cannot_tell_what_was_there(self) -> None:
        joined = join_foreign(INNER, "F", table("l", "F A"), table("r", "B"))
        run = Bench(steps.TableFilter(joined, greater("B", 5), joined.schema), is_table=True)
        run.pipe("l", 1, [10, 5])
        assert run.pipe("r", 10, 3) == ["1 - @0"]


@settings(max_examples=examples(15))
@given(
    st.lists(
        st.tuples(st.sampled_from("lr"), st.integers(1, 4), st.none() | st.integers(1, 3)),
        max_size=30,
    ),
    st.sampled_from([INNER, LEFT]),
    st.integers(1, 3),
)
def test_foreign_key_joins_are_those_of_a_batch(
    records: list[tuple[str, int, int | None]], kind: JoinKind, partitions: int
) -> None:
    step = join_foreign(kind, "F", table("l", "F A"), table("r", "B"))
    run = Bench(step, is_table=True, partitions=partitions)
    lefts: dict[int, tuple[int, int]] = {}
    rights: dict[int, int] = {}
    result: dict[str, str] = {}
    for number, (side, key, value) in enumerate(records):
        if side == "l":
            row = None if value is None else [value, number]
            lines = run.pipe("l", key, row)
            if value is None:
                lefts.pop(key, None)
            else:
                lefts[key] = (value, number)
        else:
            lines = run.pipe("r", key, value)
            _change(rights, key, value)
        for line in lines:
            _keep(result, line)
    expected = {}
    for key, (foreign, number) in lefts.items():
        if foreign in rights:
            expected[str(key)] = f"{foreign},{number},{rights[foreign]}"
        elif kind is LEFT:
            expected[str(key)] = f"{foreign},{number},null"
    assert result == expected


@pytest.mark.parametrize("kind", [INNER, LEFT, RIGHT, OUTER])
@pytest.mark.parametrize("grace", [None, 8])
def test_a_stream_join_that_is_bound_again_goes_on(kind: JoinKind, grace: int | None) -> None:
    step = streams(kind, 7, 4, grace)
    steady, rebound = Bench(step), Bench(step)
    generator = random.Random(3)
    now = 0
    for _ in range(400):
        now += generator.randrange(3)
        place = (generator.choice("lr"), generator.randrange(4), now)
        at = max(0, now - generator.randrange(12))
        expected = steady.pipe(*place, at)
        assert rebound.pipe(*place, at) == expected
        rebound.driver.flush()
        stores = rebound.driver.stores
        rebound = Bench(step)
        rebound.driver.stores.update(stores)
        rebound.driver.bind()


def test_records_survive_the_channel_between_stages() -> None:
    """Every record that crosses stages can be packed."""
    run = Bench(join_foreign(LEFT, "F", table("l", "F A"), table("r", "B")), is_table=True)
    seen: dict[int, int] = defaultdict(int)
    for stage in run.driver.stages:
        process = stage.process

        def packed(given, record, process=process):  # type: ignore[no-untyped-def]
            made = process(given, record)
            for output, emitted in made:
                seen[output] += 1
                arrived = unpack_record(pack_record(emitted))
                assert arrived == replace(emitted, key=emitted.key and tuple(emitted.key))
            return made

        stage.process = packed  # type: ignore[method-assign]
    run.pipe("r", 10, 7)
    run.pipe("l", 1, [10, 5])
    assert sum(seen.values()) == 4


def test_stages_come_behind_those_that_write_their_channels() -> None:
    """Also where the right side of a join is the one that is repartitioned."""
    rekeyed = steps.StreamSelectKey(stream("r", "B", key="X"), (column("B"),), schema("B", "B"))
    joined = join_streams(INNER, stream("l", "A"), rekeyed, 10, 10, None)
    foreign = join_foreign(
        LEFT, "F", table("x", "F A"), join_tables(INNER, table("y", "B"), table("z", "C"))
    )
    for step in (joined, foreign):
        written: set[int] = set()
        for stage in Bench(step).driver.stages:
            assert {i.index for i in stage.inputs if isinstance(i, Channel)} <= written
            written |= {o.index for o in stage.outputs if isinstance(o, Channel)}

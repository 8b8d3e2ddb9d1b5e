"""Aggregates of session windows run as columns, as the row engine has them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.hosted import HostedPlan
from support.effort import examples
from support.sql_columns import (
    AGGREGATES,
    CONDITIONS,
    JOINED,
    SOURCES,
    Batches,
    bodies,
    copies,
    outcome,
)
from support.sql_queries import plans_of

SESSIONS = (
    "WINDOW SESSION (3 SECONDS)",
    "WINDOW SESSION (3 SECONDS, GRACE PERIOD 0 SECONDS)",
    "WINDOW SESSION (2 SECONDS, GRACE PERIOD 1 SECONDS)",
    "WINDOW SESSION (3 SECONDS, RETENTION 20 SECONDS, GRACE PERIOD 2 SECONDS)",
    "WINDOW SESSION (30 SECONDS, GRACE PERIOD 60 SECONDS)",
)
KEYS = ("k", "t", "i, t")
SESSION_HAVINGS = (
    "HAVING COUNT(*) > 1",
    "HAVING COUNT(*) < 3",
    "HAVING COUNT(*) % 2 = 1",
    "HAVING COUNT(*) <> 2 AND SUM(B) > 7",
    "HAVING MAX(T) > 'a' OR MIN(I) = 1",
    "HAVING LATEST_BY_OFFSET(I) > 2",
    "HAVING 10 / (COUNT(*) - 2) > 3",
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """An aggregate of sessions, by the key or by other columns."""
    by = draw(st.sampled_from(("k", *KEYS)))
    listed = ", ".join(f"{key} AS k{at}" for at, key in enumerate(by.split(", ")))
    made = draw(st.sampled_from((*AGGREGATES, "COUNT(*) AS x, WINDOWEND - WINDOWSTART AS y")))
    where = draw(st.sampled_from(("", "", *(f"WHERE {condition}" for condition in CONDITIONS))))
    having = draw(st.sampled_from(("", "", *SESSION_HAVINGS)))
    final = draw(st.sampled_from(("", "EMIT FINAL")))
    return (
        f"CREATE TABLE q WITH (key_format='JSON') AS SELECT {listed}, {made} FROM s"
        f" {draw(st.sampled_from(SESSIONS))} {where} GROUP BY {by} {having} {final};"
    )


@st.composite
def batches(draw: st.DrawFn) -> Batches:
    """Records whose times are often a gap apart, or behind each other, or late."""
    odd = draw(st.integers(0, 3)) == 0
    now_ms = draw(st.sampled_from((0, 1_600_000_000_000)))
    steps = draw(
        st.sampled_from(
            (
                (0, 1_000, 3_000, 3_001),
                (-3_000, -1_000, 0, 500, 2_000, 3_000),
                (-9_000, -6_000, -3_001, -3_000, -2_000, 0, 1_000, 3_000, 3_001, 9_000),
                (-61_000, -2_000, 0, 1_000, 4_000, 70_000),
            )
        )
    )
    made: Batches = []
    for _ in range(draw(st.integers(1, 4))):
        batch: list[tuple[str, TopicRecord]] = []
        for _ in range(draw(st.integers(1, 14))):
            now_ms = max(0, now_ms + draw(st.sampled_from(steps)))
            key = draw(st.sampled_from((b"a", b"a", b"b", None) if odd else (b"a", b"a", b"b")))
            headers = (("h", b"%d" % len(batch)),) if draw(st.integers(0, 9)) == 0 else ()
            body = (
                draw(bodies(odd=odd))
                if odd
                else b'{"I":%d,"B":7,"D":0.5,"T":"%s"}'
                % (
                    draw(st.integers(-2, 3)),
                    draw(st.sampled_from((b"a", b"b"))),
                )
            )
            batch.append(("s", TopicRecord(key, body, now_ms, headers)))
        made.append(batch)
    return made


@settings(max_examples=examples(30), deadline=None)
@given(query=queries(), records=batches(), partitions=st.integers(1, 2))
def test_both_ways_have_the_same_sessions(query: str, records: Batches, partitions: int) -> None:
    (plan,) = plans_of(SOURCES + query, {"s": partitions})
    want, none = outcome(plan, copies(records), partitions, None)
    got, _ = outcome(plan, copies(records), partitions, 1)
    assert none == 0
    assert got == want


def _record(key: bytes, time_ms: int, number: int = 1) -> tuple[str, TopicRecord]:
    body = b'{"I":%d,"B":%d,"D":%d.5,"T":"t%d"}' % (number, number, number, number % 3)
    return "s", TopicRecord(key, body, time_ms)


HAVINGS_OF_ALL = SESSION_HAVINGS[:-1]
PLAIN: Batches = [
    [
        _record(b"k%d" % (n % 5), 400 * n + 9_000 * (n // 20), n + 1)
        for n in range(start, start + 40)
    ]
    for start in (0, 40)
]


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    "query",
    [
        *(f"SELECT k, {made} FROM s {SESSIONS[0]} GROUP BY k" for made in AGGREGATES),
        *(f"SELECT k, COUNT(*) AS x FROM s {window} GROUP BY k" for window in SESSIONS),
        f"SELECT t, COUNT(*) AS x, MAX(i) AS y FROM s {SESSIONS[0]} GROUP BY t",
    ],
)
def test_plain_records_have_sessions_as_columns(query: str, partitions: int) -> None:
    (plan,) = plans_of(f"{SOURCES} CREATE TABLE q AS {query};", {"s": partitions})
    want, _ = outcome(plan, copies(PLAIN), partitions, None)
    got, by_columns = outcome(plan, copies(PLAIN), partitions, 1)
    assert sum(value is None for _, value, *_ in want[0]) > 40  # tombstones
    assert got == want
    assert by_columns == 80


@pytest.mark.parametrize("having", HAVINGS_OF_ALL)
def test_sessions_are_filtered_as_columns(having: str) -> None:
    query = f"SELECT k, COUNT(*) AS x FROM s {SESSIONS[0]} GROUP BY k {having}"
    (plan,) = plans_of(f"{SOURCES} CREATE TABLE q AS {query};", {"s": 1})
    want, _ = outcome(plan, copies(PLAIN), 1, None)
    got, by_columns = outcome(plan, copies(PLAIN), 1, 1)
    assert want[0]
    assert got == want
    assert by_columns == 80


@pytest.mark.parametrize(
    "times",
    [
        pytest.param((0, 0), id="one time: the first row stays"),
        pytest.param((0, 0, 1), id="one time, then a longer session"),
        pytest.param((0, 1, 1, 0.5), id="the same bounds again"),
        pytest.param((0, 1, 1, 2), id="longer, the same, longer"),
        pytest.param((5, 4, 6, 5), id="to both sides"),
        pytest.param((0, 9, 9, 18, 19), id="several sessions"),
        pytest.param((100_000, 0), id="a late record, alone in a batch"),
    ],
)
@pytest.mark.parametrize(
    "having", ["COUNT(*) < 2", "COUNT(*) < 3", "COUNT(*) <> 2", "COUNT(*) > 2"]
)
def test_filtered_sessions_of_one_batch(times: tuple[float, ...], having: str) -> None:
    made = "COUNT(*) AS x, COLLECT_LIST(i) AS y"
    query = f"SELECT k, {made} FROM s {SESSIONS[0]} GROUP BY k HAVING {having}"
    (plan,) = plans_of(f"{SOURCES} CREATE TABLE q AS {query};", {"s": 1})
    batch = [_record(b"a", int(at * 1_000), number) for number, at in enumerate(times)]
    for records in ([batch], [batch[:1], batch[1:]], [[one] for one in batch]):
        want, _ = outcome(plan, copies(records), 1, None)
        got, by_columns = outcome(plan, copies(records), 1, 1)
        assert got == want
        assert by_columns == len(times)


@pytest.mark.parametrize("having", ["", "HAVING COUNT(*) > 0"])
def test_a_row_that_cannot_be_written_leaves_its_tombstones(having: str) -> None:
    source = (
        "CREATE STREAM s (k STRING KEY, l ARRAY<STRING>) WITH (kafka_topic='s',"
        " value_format='JSON');"
    )
    query = f"SELECT k, LATEST_BY_OFFSET(l) AS x FROM s {SESSIONS[0]} GROUP BY k {having}"
    (plan,) = plans_of(f"{source} CREATE TABLE q AS {query};", {"s": 1})
    bodies_of = [b'{"L":["a"]}', b'{"L":["b"]}', b'{"L":["\\ud800"]}']
    batch = [("s", TopicRecord(b"a", body, 1_000 * at)) for at, body in enumerate(bodies_of)]
    want, _ = outcome(plan, copies([batch]), 1, None)
    got, by_columns = outcome(plan, copies([batch]), 1, 1)
    assert [value for _, value, *_ in want[0]] == [None, None]
    assert got == want
    assert by_columns == 3


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("having", ["", HAVINGS_OF_ALL[0], HAVINGS_OF_ALL[3]])
@pytest.mark.parametrize("window", SESSIONS[:4])
def test_sessions_come_out_when_they_close_as_columns(
    window: str, having: str, partitions: int
) -> None:
    query = f"SELECT k, COUNT(*) AS x FROM s {window} GROUP BY k {having} EMIT FINAL"
    (plan,) = plans_of(f"{SOURCES} CREATE TABLE q AS {query};", {"s": partitions})
    last = [_record(b"k%d" % n, 86_400_000 + n) for n in range(5)]
    records = [*copies(PLAIN), last]
    want, _ = outcome(plan, copies(records), partitions, None)
    got, by_columns = outcome(plan, copies(records), partitions, 1)
    assert got == want
    assert bool(want[0]) or "RETENTION" in window
    assert by_columns == 85


SECOND = 1_000


@pytest.mark.parametrize(
    ("times", "by_columns", "with_having"),
    [
        pytest.param((0, 3, 20, 21, 40), 5, 5, id="each closes before the next one begins"),
        pytest.param((4, 10, 6), 0, 0, id="one grows that is closed"),
        pytest.param((5, 10, 6), 3, 3, id="one grows at the edge"),
        pytest.param((0, 90_000, 90_001), 3, 3, id="one is lost, as it is past retention"),
        pytest.param((100, 94, 91, 120), 4, 0, id="late records, and notes of HAVING"),
    ],
)
@pytest.mark.parametrize("having", ["", "HAVING COUNT(*) < 2"])
def test_closed_sessions_of_one_batch(
    times: tuple[float, ...], by_columns: int, with_having: int, having: str
) -> None:
    window = "WINDOW SESSION (3 SECONDS, RETENTION 20 SECONDS, GRACE PERIOD 2 SECONDS)"
    query = f"SELECT k, COUNT(*) AS x FROM s {window} GROUP BY k {having} EMIT FINAL"
    (plan,) = plans_of(f"{SOURCES} CREATE TABLE q AS {query};", {"s": 1})
    batch = [_record(b"a", int(at * SECOND), number) for number, at in enumerate(times)]
    for records in ([batch], [batch[:1], batch[1:]], [[one] for one in batch]):
        want, _ = outcome(plan, copies(records), 1, None)
        got, _ = outcome(plan, copies(records), 1, 1)
        assert got == want
    _, found = outcome(plan, copies([batch]), 1, 1)
    assert found == (with_having if having else by_columns)


@pytest.mark.parametrize(
    ("times", "by_columns"),
    [
        pytest.param((0, 3, 6, 10, 13.001), 5, id="a gap and one more"),
        pytest.param((0, 0, 0), 3, id="one time"),
        pytest.param((5, 4, 6, 3, 5), 5, id="behind each other"),
        pytest.param((5, 1, 20, 18, 16.5), 5, id="two sessions that grow to the left"),
        pytest.param((6, 10, 8), 0, id="one that merges two"),
        pytest.param((100, 94.9, 95, 98), 4, id="late, at the edge, and in time"),
        pytest.param((100, 94, 91, 100), 4, id="late and far from other sessions"),
    ],
)
def test_sessions_of_one_batch(times: tuple[float, ...], by_columns: int) -> None:
    """The row engine takes only the batch with a record that merges two sessions."""
    made = "COUNT(*) AS x, COLLECT_LIST(i) AS y"
    window = "WINDOW SESSION (3 SECONDS, GRACE PERIOD 2 SECONDS)"
    query = f"CREATE TABLE q AS SELECT k, {made} FROM s {window} GROUP BY k;"
    (plan,) = plans_of(SOURCES + query, {"s": 1})
    batch = [_record(b"a", int(at * SECOND), number) for number, at in enumerate(times)]
    for records in ([batch], [batch[:1], batch[1:]], [[one] for one in batch]):
        want, _ = outcome(plan, copies(records), 1, None)
        got, _ = outcome(plan, copies(records), 1, 1)
        assert got == want
    _, found = outcome(plan, copies([batch]), 1, 1)
    assert found == by_columns


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        ("SELECT k, COUNT(*) AS n FROM s WINDOW SESSION (3 SECONDS) GROUP BY k", (0,)),
        ("SELECT t, COUNT(*) AS n FROM s WINDOW SESSION (3 SECONDS) GROUP BY t", (0, 1)),
        ("SELECT name, COUNT(*) AS n FROM j WINDOW SESSION (3 SECONDS) GROUP BY name", (0, 1)),
        ("SELECT k, COUNT(*) AS n FROM s WINDOW SESSION (3 SECONDS) GROUP BY k EMIT FINAL", (0,)),
    ],
)
def test_stages_with_sessions_are_declared(query: str, stages: tuple[int, ...]) -> None:
    query = query.replace("FROM j", "FROM s JOIN p ON s.k = p.k")
    (plan,) = plans_of(f"{JOINED} CREATE TABLE q AS {query};", {"s": 2, "p": 2})
    draft = HostedPlan.draft(plan)
    hosted = draft.spread(replace(draft.hosting, partitions=2, tasks=2))
    assert hosted.column_stages == stages

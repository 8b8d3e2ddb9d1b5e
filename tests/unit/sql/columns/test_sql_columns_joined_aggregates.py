"""Aggregates of the rows of stream-table joins: columns give the results of the row engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.hosted import HostedPlan
from support.effort import examples
from support.sql_columns import JOINED, Batches, both_sides, copies, outcome
from support.sql_queries import plans_of

ON = ("s.k = p.k", "s.t + '' = p.k", "UCASE(s.t) = p.k")
MADE = (
    "COUNT(*) AS x",
    "SUM(i) AS x, MAX(age) AS y",
    "COUNT(p.name) AS x, SUM(100 / age) AS y",
    "LATEST_BY_OFFSET(p.name) AS x, EARLIEST_BY_OFFSET(i) AS y",
    "COLLECT_LIST(age) AS x, AVG(i) AS y",
)
WINDOWS = (
    "",
    "WINDOW TUMBLING (SIZE 3 SECONDS, GRACE PERIOD 0 SECONDS)",
    "WINDOW HOPPING (SIZE 4 SECONDS, ADVANCE BY 2 SECONDS, GRACE PERIOD 1 SECONDS)",
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """An aggregate of a join, by its key or by another column."""
    kind, on = draw(st.sampled_from(("JOIN", "LEFT JOIN"))), draw(st.sampled_from(ON))
    by = draw(st.sampled_from(("p.k" if kind == "JOIN" else "s.k", "p.name", "i, p.name", "s.k")))
    listed = ", ".join(f"{key} AS k{at}" for at, key in enumerate(by.split(", ")))
    window = draw(st.sampled_from(WINDOWS))
    where = draw(st.sampled_from(("", "WHERE i > 1", "WHERE 10 / age > 2")))
    made = draw(st.sampled_from(MADE))
    after = draw(st.sampled_from(("", "HAVING COUNT(*) > 1")))
    if window and draw(st.integers(0, 2)) == 0:
        after += " EMIT FINAL"
    return (
        f"CREATE TABLE q WITH (key_format='JSON') AS SELECT {listed}, {made} FROM s {kind} p ON"
        f" {on} {window} {where} GROUP BY {by} {after};"
    )


@settings(max_examples=examples(15), deadline=None)
@given(query=queries(), records=both_sides(), partitions=st.integers(1, 3))
def test_both_ways_aggregate_a_join_alike(query: str, records: Batches, partitions: int) -> None:
    (plan,) = plans_of(JOINED + query, {"s": partitions, "p": partitions})
    want, none = outcome(plan, copies(records), partitions, None)
    for least in (1, 4):  # from four records on some partitions go as columns, others as records
        got, _ = outcome(plan, copies(records), partitions, least)
        assert got == want
    assert none == 0


PLAIN: Batches = [
    [
        ("s", TopicRecord(b"k%d" % (n % 5), b'{"I":%d,"T":"k%d"}' % (n, n % 3), 1_000 * n))
        for n in range(start, start + 40)
    ]
    for start in (0, 40)
]
TABLE = [
    ("p", TopicRecord(b"k%d" % n, b'{"NAME":"n%d","AGE":%d}' % (n % 2, n), 0)) for n in range(4)
]
AGGREGATES = [
    (f"SELECT {key}, {made} FROM s {kind} p ON {on} {window} GROUP BY {key}", kind, on)
    for kind, on, key in (
        ("JOIN", "s.k = p.k", "p.k"),
        ("LEFT JOIN", "s.k = p.k", "s.k"),
        ("JOIN", "s.k = p.k", "p.name"),
        ("JOIN", "s.t = p.k", "p.k"),
        ("JOIN", "s.t = p.k", "p.name"),
    )
    for made, window in (
        ("COUNT(*) AS x, SUM(i) AS y, MAX(age) AS z", ""),
        ("COUNT(*) AS x", "WINDOW TUMBLING (SIZE 10 SECONDS)"),
    )
]


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("query", [query for query, _, _ in AGGREGATES])
def test_plain_records_are_joined_and_aggregated_as_columns(query: str, partitions: int) -> None:
    (plan,) = plans_of(f"{JOINED} CREATE TABLE q AS {query};", {"s": partitions, "p": partitions})
    records = [[*TABLE, *PLAIN[0]], PLAIN[1]]
    want, _ = outcome(plan, copies(records), partitions, None)
    got, by_columns = outcome(plan, copies(records), partitions, 1)
    assert len(want[0]) > 2
    assert got == want
    assert by_columns == 84


@pytest.mark.parametrize(
    ("group", "stages"),
    [
        ("s.k = p.k GROUP BY p.k", (0,)),
        ("s.k = p.k GROUP BY p.name", (0, 1)),
        ("s.t = p.k GROUP BY p.k", (0, 1)),
        ("s.t = p.k GROUP BY p.name", (0, 1, 2)),
    ],
)
@pytest.mark.parametrize("partitions", [1, 2])
def test_the_stages_of_both_are_declared(
    group: str, stages: tuple[int, ...], partitions: int
) -> None:
    key = group.split()[-1]
    query = f"CREATE TABLE q AS SELECT {key}, COUNT(*) AS n FROM s JOIN p ON {group};"
    (plan,) = plans_of(JOINED + query, {"s": partitions, "p": partitions})
    draft = HostedPlan.draft(plan)
    hosted = draft.spread(replace(draft.hosting, partitions=partitions, tasks=partitions))
    assert hosted.column_stages == stages


def test_a_record_in_doubt_finds_the_table_as_it_was_before_the_batch() -> None:
    """The batch has changed the table by then, and goes through the row engine from its start."""
    made = "p.k, SUM(100 / age) AS x"
    query = f"CREATE TABLE q AS SELECT {made} FROM s JOIN p ON s.k = p.k GROUP BY p.k;"
    (plan,) = plans_of(JOINED + query, {"s": 1, "p": 1})

    def age(key: bytes, years: int | None, timestamp_ms: int) -> tuple[str, TopicRecord]:
        row = None if years is None else b'{"NAME":"n","AGE":%d}' % years
        return "p", TopicRecord(key, row, timestamp_ms)

    def event(key: bytes, timestamp_ms: int, body: bytes = b"{}") -> tuple[str, TopicRecord]:
        return "s", TopicRecord(key, body, timestamp_ms)

    first = [age(b"a", 1, 0), age(b"b", 2, 0), event(b"a", 5)]
    then = [
        event(b"a", 10),
        event(b"b", 10),
        event(b"c", 10),
        age(b"a", 10, 20),
        age(b"b", None, 20),
    ]
    then += [age(b"c", 7, 20), event(b"a", 30), event(b"b", 30), event(b"c", 30)]
    then += [age(b"a", 0, 40), event(b"a", 50)]  # divides by zero
    records = [first, then, [event(b"b", 60), event(b"c", 60)]]
    want, _ = outcome(plan, copies(records), 1, None)
    got, by_columns = outcome(plan, copies(records), 1, 1)
    assert got == want
    assert by_columns == len(records[0]) + len(records[2])

"""Records with a new key go as columns to the stage that takes them, as the row engine has them."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.functions.built_in import functions
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.hosted import HostedPlan
from support.effort import examples
from support.sql_columns import (
    AGGREGATES,
    CONDITIONS,
    HAVINGS,
    JOINED,
    SOURCES,
    WINDOWS,
    Batches,
    batches,
    both_sides,
    copies,
    outcome,
)
from support.sql_queries import plans_of

KEYS = ("t", "i", "b", "o", "UCASE(t)", "i + 1", "100 / i", "CAST(b AS STRING)")
MANY = ("t, i", "i, b", "k, t", "o, UCASE(t)", "t, d")
NEW_KEYS = (
    *(f"SELECT * FROM s PARTITION BY {key}" for key in KEYS),
    "SELECT t, i, d FROM s WHERE i > 0 PARTITION BY t",
    "SELECT t, k AS x, ROWTIME AS y FROM s PARTITION BY t",
    "SELECT * FROM s PARTITION BY k",
)


@st.composite
def new_keys(draw: st.DrawFn) -> str:
    """A stream with another key."""
    selected = draw(st.sampled_from(NEW_KEYS))
    format_ = draw(st.sampled_from(("KAFKA", "JSON", "DELIMITED")))
    if selected.endswith("BY o"):
        format_ = "JSON"
    choice = draw(st.integers(0, 9))
    if choice == 0:
        return "CREATE STREAM q AS SELECT * FROM s PARTITION BY NULL;"
    if choice < 5:
        selected, format_ = f"SELECT * FROM s PARTITION BY {draw(st.sampled_from(MANY))}", "JSON"
    return f"CREATE STREAM q WITH (key_format='{format_}') AS {selected};"


@st.composite
def groups(draw: st.DrawFn) -> str:
    """An aggregate by another column than the key."""
    by = draw(st.sampled_from((*KEYS, *MANY)))
    where = draw(st.sampled_from(("", *(f"WHERE {condition}" for condition in CONDITIONS))))
    window, having = draw(st.sampled_from(WINDOWS)), ""
    made = draw(st.sampled_from(AGGREGATES))
    if draw(st.integers(0, 2)) == 0:
        made, condition = draw(st.sampled_from([one for one in HAVINGS if "k = " not in one[1]]))
        having = f"HAVING {condition}"
    listed = ", ".join(f"{key} AS k{at}" for at, key in enumerate(by.split(", ")))
    return (
        f"CREATE TABLE q WITH (key_format='JSON') AS SELECT {listed}, {made} FROM s {window}"
        f" {where} GROUP BY {by} {having};"
    )


@settings(max_examples=examples(15), deadline=None)
@given(query=st.one_of(new_keys(), groups()), records=batches(), partitions=st.integers(1, 3))
def test_both_ways_give_records_new_keys_alike(
    query: str, records: Batches, partitions: int
) -> None:
    (plan,) = plans_of(SOURCES + query, {"s": partitions})
    want, none = outcome(plan, copies(records), partitions, None)
    for least in (1, 4):  # from four records on some partitions go as columns, others as records
        got, _ = outcome(plan, copies(records), partitions, least)
        assert got == want
    assert none == 0


@settings(max_examples=examples(18), deadline=None)
@given(
    kind=st.sampled_from(("JOIN", "LEFT JOIN")),
    on=st.sampled_from(("s.t + '' = p.k", "UCASE(s.t) = p.k", "CAST(s.i AS STRING) = p.k")),
    where=st.sampled_from(("", "WHERE i > 1", "WHERE p.age > 0")),
    selected=st.sampled_from(("i, s.k AS x, p.name", "p.age + 1 AS x", "p.age, s.ROWTIME AS x")),
    records=both_sides(),
    partitions=st.integers(1, 3),
)
def test_both_ways_join_a_table_by_another_column_alike(
    kind: str, on: str, where: str, selected: str, records: Batches, partitions: int
) -> None:
    query = f"CREATE STREAM q AS SELECT p.k, {selected} FROM s {kind} p ON {on} {where};"
    (plan,) = plans_of(JOINED + query, {"s": partitions, "p": partitions})
    want, _ = outcome(plan, copies(records), partitions, None)
    for least in (1, 4):
        got, _ = outcome(plan, copies(records), partitions, least)
        assert got == want


PLAIN: Batches = [
    [
        (
            "s",
            TopicRecord(
                b"k%d" % (n % 5),
                b'{"I":%d,"B":%d,"D":%d.5,"T":"t%d","O":true,"TS":%d}' % (n + 1, n, n, n % 3, n),
                1_000 * n,
            ),
        )
        for n in range(start, start + 40)
    ]
    for start in (0, 40)
]
TABLE = [("p", TopicRecord(b"t%d" % n, b'{"NAME":"n%d","AGE":%d}' % (n, n), 0)) for n in range(2)]


@pytest.mark.parametrize(
    "query",
    [
        *(f"CREATE STREAM q AS {one};" for one in NEW_KEYS if not one.endswith("BY o")),
        "CREATE STREAM q WITH (key_format='JSON') AS SELECT * FROM s PARTITION BY t, o;",
        "CREATE STREAM q AS SELECT * FROM s PARTITION BY NULL;",
        *(
            f"CREATE TABLE q WITH (key_format='JSON') AS SELECT {key} AS a, COUNT(*), SUM(d)"
            f" FROM s {window} GROUP BY {key};"
            for key in KEYS
            for window in WINDOWS[:2]
        ),
        "CREATE TABLE q WITH (key_format='JSON') AS SELECT t, i, COUNT(*) FROM s GROUP BY t, i;",
        "CREATE TABLE q AS SELECT t, COUNT(*) AS n FROM s GROUP BY t HAVING COUNT(*) > 1;",
    ],
)
def test_plain_records_get_new_keys_as_columns(query: str) -> None:
    for partitions in (1, 2):
        (plan,) = plans_of(SOURCES + query, {"s": partitions})
        want, _ = outcome(plan, copies(PLAIN), partitions, None)
        got, by_columns = outcome(plan, copies(PLAIN), partitions, 1)
        assert got == want
        assert by_columns == 80


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("partitions", [1, 2])
def test_plain_records_join_by_another_column_as_columns(kind: str, partitions: int) -> None:
    query = f"CREATE STREAM q AS SELECT s.t, i, s.k AS x, name FROM s {kind} p ON s.t = p.k;"
    (plan,) = plans_of(JOINED + query, {"s": partitions, "p": partitions})
    records = [[*TABLE, *PLAIN[0]], PLAIN[1]]
    want, _ = outcome(plan, copies(records), partitions, None)
    got, by_columns = outcome(plan, copies(records), partitions, 1)
    assert len(want[0]) == (80 if "LEFT" in kind else 53)  # one comes with the table
    assert got == want
    assert by_columns == 82


def test_a_record_without_a_key_stays_in_its_partition() -> None:
    query = "CREATE STREAM q AS SELECT p.k, i, name FROM s LEFT JOIN p ON CAST(i AS STRING) = p.k;"
    (plan,) = plans_of(JOINED + query, {"s": 3, "p": 3})
    records: Batches = [
        [("s", TopicRecord(b"a", body, 0)) for body in (b"{}", b'{"I":0}', b'{"I":1}', b"{}")]
    ]
    want, _ = outcome(plan, copies(records), 3, None)
    got, by_columns = outcome(plan, copies(records), 3, 1)
    assert got == want
    assert by_columns == 4


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        ("CREATE STREAM q AS SELECT * FROM s PARTITION BY t;", (0,)),
        ("CREATE TABLE q AS SELECT t, COUNT(*) AS n FROM s GROUP BY t;", (0, 1)),
        ("CREATE STREAM q AS SELECT s.t, i, name FROM s JOIN p ON s.t = p.k;", (0, 1)),
        ("CREATE STREAM q AS SELECT * FROM s PARTITION BY d;", (0,)),
        ("CREATE TABLE q AS SELECT d, COUNT(*) AS n FROM s GROUP BY d;", (0, 1)),
    ],
)
def test_stages_before_and_after_a_new_key_are_declared(
    query: str, stages: tuple[int, ...]
) -> None:
    sources = JOINED.replace("i INT", "i INT, d DOUBLE")
    (plan,) = plans_of(sources + query, {"s": 2, "p": 2})
    draft = HostedPlan.draft(plan)
    hosted = draft.spread(replace(draft.hosting, partitions=2, tasks=2))
    assert hosted.column_stages == stages


def test_a_function_of_a_user_makes_a_key_once() -> None:
    """It may not give the same twice: a record in doubt would get another key."""
    query = "CREATE STREAM q AS SELECT * FROM s PARTITION BY UCASE(t);"
    (plan,) = plans_of(SOURCES + query, {"s": 1})
    draft = HostedPlan.draft(plan)
    own = {**functions(), "UCASE": copy(functions()["UCASE"])}
    of_user = HostedPlan(draft.hosting, plan=plan, functions=own)
    assert draft.column_stages == (0,)
    assert of_user.column_stages == ()

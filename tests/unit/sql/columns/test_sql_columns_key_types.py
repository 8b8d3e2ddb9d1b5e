"""Keys of all types group and join records as columns just as the row engine has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.runtime.topics import TopicRecord
from support.effort import examples
from support.sql_columns import Batches, copies, outcome
from support.sql_queries import plans_of

COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "D": ("DOUBLE", st.sampled_from((0, 0.0, -0.0, 1, 1.5, 1e20, "NaN", "Infinity"))),
    "N": ("DECIMAL(6, 2)", st.sampled_from((0, -0.0, 1, 1.5, 12.25, -7))),
    "Y": ("BYTES", st.sampled_from(("", "YQ==", "YWI=", "AA=="))),
    "DA": ("DATE", st.integers(-3, 3) | st.just(2**31 - 1)),
    "TI": ("TIME", st.integers(0, 3) | st.just(86_399_999)),
    "TS": ("TIMESTAMP", st.integers(-3, 3) | st.just(2 * 10**12)),
    "L": ("ARRAY<INT>", st.sampled_from(([], [1], [1, None], [None]))),
    "A": (
        "STRUCT<X INT, Y STRING>",
        st.sampled_from(({}, {"X": 1}, {"Y": "a", "X": 1}, {"X": 1, "Y": "a"}, {"Y": None})),
    ),
    "O": ("BOOLEAN", st.booleans()),
}
DECLARED = ", ".join(f"{name} {sql_type}" for name, (sql_type, _) in COLUMNS.items())
VALUES = f"CREATE STREAM s (k STRING KEY, v INT, {DECLARED}) WITH (kafka_topic='s', format='JSON');"
GROUPED = (
    "CREATE TABLE q WITH (key_format='JSON') AS SELECT {key}, COUNT(*) AS c, SUM(v) AS x"
    " FROM s {window} GROUP BY {key} {having};"
)
WINDOWS = (
    "",
    "WINDOW TUMBLING (SIZE 5 SECONDS)",
    "WINDOW HOPPING (SIZE 4 SECONDS, ADVANCE BY 2 SECONDS)",
    "WINDOW SESSION (2 SECONDS)",
)
TABLE_JOINS = ("JOIN p", "LEFT JOIN p")
STREAM_KEYS = ("N", "Y", "DA", "TI", "TS", "O")
"""Keys by which two streams are joined as columns."""
STREAM_JOINS = (
    "JOIN r p WITHIN 2 SECONDS",
    "LEFT JOIN r p WITHIN 2 SECONDS GRACE PERIOD 1 SECONDS",
    "FULL OUTER JOIN r p WITHIN 1 SECONDS GRACE PERIOD 0 SECONDS",
)
Row = dict[str, Any]


def _key_data(name: str, row: Row) -> bytes | None:
    return None if row[name] is None else json.dumps(row[name]).encode()


@st.composite
def rows(draw: st.DrawFn) -> list[list[Row]]:
    """Rows of a few batches, now and then with a NULL."""
    row = st.fixed_dictionaries(
        {
            "V": st.integers(-3, 9),
            **{
                name: st.integers(0, 9).flatmap(lambda n, v=values: v if n else st.none())
                for name, (_, values) in COLUMNS.items()
            },
        }
    )
    made: list[list[Row]] = draw(st.lists(st.lists(row, min_size=1, max_size=8), max_size=3))
    return made


def _records(batches: list[list[Row]], key: str | None = None) -> Batches:
    made: Batches = []
    number = 0
    for batch in batches:
        made.append([])
        for row in batch:
            number += 1
            data = b'"k"' if key is None else _key_data(key, row)
            made[-1].append(("s", TopicRecord(data, json.dumps(row).encode(), number * 700)))
    return made


def _check(statements: str, records: Batches, partitions: int = 1) -> int:
    """Both ways give the same; how many records went as columns."""
    topics = {"s": partitions, "r": partitions, "p": partitions}
    (plan,) = plans_of(statements, topics)
    want, none = outcome(plan, copies(records), partitions, None)
    got, by_columns = outcome(plan, copies(records), partitions, 1)
    assert none == 0
    assert got == want
    return by_columns


@settings(max_examples=examples(24), deadline=None)
@given(
    key=st.sampled_from((*COLUMNS, "D, N", "TS, DA", "A, Y")),
    window=st.sampled_from(WINDOWS),
    having=st.sampled_from(("", "HAVING COUNT(*) > 1")),
    given_rows=rows(),
    partitions=st.integers(1, 2),
)
def test_both_ways_group_by_another_column_alike(
    key: str, window: str, having: str, given_rows: list[list[Row]], partitions: int
) -> None:
    query = GROUPED.format(key=key, window=window, having=having)
    _check(VALUES + query, _records(given_rows), partitions)


@settings(max_examples=examples(15), deadline=None)
@given(
    key=st.sampled_from(tuple(COLUMNS)),
    window=st.sampled_from(WINDOWS),
    given_rows=rows(),
    partitions=st.integers(1, 2),
)
def test_both_ways_group_by_the_key_alike(
    key: str, window: str, given_rows: list[list[Row]], partitions: int
) -> None:
    source = (
        f"CREATE STREAM s (k {COLUMNS[key][0]} KEY, v INT) WITH (kafka_topic='s', format='JSON');"
    )
    query = GROUPED.format(key="k", window=window, having="")
    _check(source + query, _records(given_rows, key), partitions)


@settings(max_examples=examples(20), deadline=None)
@given(
    key_and_kind=st.one_of(
        st.tuples(st.sampled_from(tuple(COLUMNS)), st.sampled_from(TABLE_JOINS)),
        st.tuples(st.sampled_from(STREAM_KEYS), st.sampled_from(STREAM_JOINS)),
    ),
    given_rows=rows(),
    others=rows(),
    partitions=st.integers(1, 2),
)
def test_both_ways_join_alike(
    key_and_kind: tuple[str, str],
    given_rows: list[list[Row]],
    others: list[list[Row]],
    partitions: int,
) -> None:
    key, kind = key_and_kind
    sql_type, shown = COLUMNS[key][0], "ROWKEY" if "FULL" in kind else "s.k"
    statements = f"""
      CREATE STREAM s (k {sql_type} KEY, v INT) WITH (kafka_topic='s', format='JSON');
      CREATE STREAM r (k {sql_type} KEY, v INT) WITH (kafka_topic='r', format='JSON');
      CREATE TABLE p (k {sql_type} PRIMARY KEY, v INT) WITH (kafka_topic='p', format='JSON');
      CREATE STREAM q AS SELECT {shown}, s.v, p.v FROM s {kind} ON s.k = p.k;
    """
    topic = "r" if " r " in kind else "p"
    sides = [_records(given_rows, key), _records(others, key)]
    batches: Batches = []
    for place in range(max(map(len, sides))):
        one, other = (side[place] if place < len(side) else [] for side in sides)
        batches.append([*((topic, record) for _, record in other), *one])
    _check(statements, batches, partitions)


@settings(max_examples=examples(15), deadline=None)
@given(
    key=st.sampled_from(tuple(COLUMNS)),
    given_rows=rows(),
    changes=rows(),
    partitions=st.integers(1, 2),
)
def test_both_ways_join_by_another_column_alike(
    key: str, given_rows: list[list[Row]], changes: list[list[Row]], partitions: int
) -> None:
    """The stage that gives records a new key runs as columns also if the join does not."""
    statements = f"""{VALUES}
      CREATE TABLE p (k {COLUMNS[key][0]} PRIMARY KEY, v INT)
        WITH (kafka_topic='p', format='JSON');
      CREATE STREAM q WITH (key_format='JSON') AS SELECT s.{key}, s.v, p.v
        FROM s JOIN p ON s.{key} = p.k;
    """
    table = [("p", record) for batch in _records(changes, key) for _, record in batch]
    _check(statements, [table, *_records(given_rows)], partitions)


PLAIN: Row = {
    "V": 1,
    "D": 1.5,
    "N": 2.25,
    "Y": "YQ==",
    "DA": 3,
    "TI": 4,
    "TS": 5,
    "L": [1],
    "O": True,
    "A": {"X": 1, "Y": "a"},
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("key", [*COLUMNS, "D, N, Y", "DA, TI, TS"])
def test_plain_records_are_grouped_as_columns(key: str, window: str) -> None:
    for partitions in (1, 2):
        query = GROUPED.format(key=key, window=window, having="")
        assert _check(VALUES + query, _records([[PLAIN] * 60]), partitions) == 60


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        *((key, kind) for key in COLUMNS for kind in TABLE_JOINS),
        *((key, kind) for key in STREAM_KEYS for kind in STREAM_JOINS),
    ],
)
def test_plain_records_are_joined_as_columns(key: str, kind: str) -> None:
    sql_type, shown = COLUMNS[key][0], "ROWKEY" if "FULL" in kind else "s.k"
    statements = f"""
      CREATE STREAM s (k {sql_type} KEY, v INT) WITH (kafka_topic='s', format='JSON');
      CREATE STREAM r (k {sql_type} KEY, v INT) WITH (kafka_topic='r', format='JSON');
      CREATE TABLE p (k {sql_type} PRIMARY KEY, v INT) WITH (kafka_topic='p', format='JSON');
      CREATE STREAM q AS SELECT {shown}, s.v, p.v FROM s {kind} ON s.k = p.k;
    """
    topic = "r" if " r " in kind else "p"
    (batch,) = _records([[PLAIN] * 60], key)
    assert _check(statements, [[*((topic, record) for _, record in batch), *batch]]) == 120


def test_zeros_and_nans_are_grouped_as_stores_have_them() -> None:
    """0.0 and -0.0 are two keys, NaN is one."""
    rows_ = [{**PLAIN, "D": value} for value in (0.0, -0.0, "NaN", -0.0) * 15]
    query = GROUPED.format(key="D", window="", having="")
    assert _check(VALUES + query, _records([rows_])) == 60

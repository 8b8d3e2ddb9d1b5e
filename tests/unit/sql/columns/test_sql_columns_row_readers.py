"""Topics that only the row reader reads run as columns from then on, as the row engine has them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.runtime.topics import TopicRecord
from support.effort import examples
from support.sql_columns import Batches, copies, outcome
from support.sql_queries import plans_of
from support.sql_rows import SOURCE, Rows, rows, without_chance, written

FORMATS = ("PROTOBUF", "JSON_SR", "AVRO")
WITH = "WITH (value_format='JSON')"
WINDOW = "WINDOW TUMBLING (SIZE 5 SECONDS)"
QUERIES = (
    f"CREATE STREAM q {WITH} AS SELECT * FROM s WHERE i > 1;",
    f"CREATE STREAM q {WITH} AS SELECT k, i + 1 AS x, d / 2 AS y, a->x AS z FROM s WHERE o;",
    f"CREATE STREAM q {WITH} AS SELECT k, a->y AS x, l[1] AS y, m['p'] AS z, n FROM s;",
    f"CREATE STREAM q {WITH} AS SELECT * FROM s PARTITION BY t;",
    f"CREATE TABLE q {WITH} AS SELECT k, COUNT(*) AS x, SUM(d) AS y FROM s {WINDOW} GROUP BY k;",
    "CREATE TABLE q AS SELECT k, COUNT(t) AS x, COLLECT_LIST(a) AS y FROM s GROUP BY k;",
    f"CREATE TABLE q {WITH} AS SELECT t, SUM(n) AS x, MAX(a->x) AS y FROM s GROUP BY t;",
)


@settings(max_examples=examples(15), deadline=None)
@given(
    format_name=st.sampled_from(FORMATS),
    query=st.sampled_from(QUERIES),
    given_rows=rows(),
    odd=st.none() | st.integers(0, 12),
    partitions=st.integers(1, 2),
)
def test_both_ways_are_equal(
    format_name: str, query: str, given_rows: Rows, odd: int | None, partitions: int
) -> None:
    (plan,) = plans_of(SOURCE.format(format=format_name) + query, {"s": partitions})
    records, registry = written(format_name, given_rows)
    if odd is not None:
        _, record = records[0][0]
        record.value = None if odd == 0 or record.value is None else record.value[:odd]
    want, none = outcome(plan, copies(records), partitions, None, registry)
    got, _ = outcome(plan, copies(records), partitions, 1, registry)
    assert none == 0
    assert without_chance(got) == without_chance(want)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("query", QUERIES)
def test_plain_records_go_as_columns(query: str, format_name: str) -> None:
    row = [7, 1.5, "t", True, 5, None, {"X": 1, "Y": "y"}, ["a"], {"p": 1}]
    records, registry = written(format_name, [[row] * 60])
    (plan,) = plans_of(SOURCE.format(format=format_name) + query, {"s": 1})
    want, _ = outcome(plan, copies(records), 1, None, registry)
    got, by_columns = outcome(plan, copies(records), 1, 1, registry)
    assert got == want
    assert by_columns == 60


def test_a_bare_value_goes_as_columns() -> None:
    source = (
        "CREATE STREAM s (k STRING KEY, i INT)"
        " WITH (kafka_topic='s', value_format='JSON', wrap_single_value=false);"
    )
    (plan,) = plans_of(
        source + "CREATE TABLE q AS SELECT k, SUM(i) AS x FROM s GROUP BY k;", {"s": 1}
    )
    bodies = (b"1", b"2", b'"x"', b"", b"null", None, b"4")
    records: Batches = [[("s", TopicRecord(b"k", body, 0, ())) for body in bodies]]
    want, _ = outcome(plan, copies(records), 1, None)
    got, by_columns = outcome(plan, copies(records), 1, 1)
    assert got == want
    assert by_columns > 0

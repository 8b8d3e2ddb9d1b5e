"""Windows and joins of SQL over streams, against DuckDB's batch computation of the same records.

Both get the same random records, late and missing ones among them: the engine one by one, in order
of arrival, DuckDB all at once. The engine's final result must equal DuckDB's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.testing import OutputRecord, SqlTest
from support.effort import examples

STREAMS = """
CREATE STREAM a (k STRING KEY, v INT) WITH (kafka_topic='a', value_format='JSON');
CREATE STREAM b (k STRING KEY, v INT) WITH (kafka_topic='b', value_format='JSON');
"""
TABLES = """
CREATE TABLE a (k STRING PRIMARY KEY, v INT) WITH (kafka_topic='a', value_format='JSON');
CREATE TABLE b (k STRING PRIMARY KEY, v INT) WITH (kafka_topic='b', value_format='JSON');
"""
STREAM_AND_TABLE = """
CREATE STREAM a (k STRING KEY, v INT) WITH (kafka_topic='a', value_format='JSON');
CREATE TABLE b (k STRING PRIMARY KEY, v INT) WITH (kafka_topic='b', value_format='JSON');
"""
LATEST = """
WITH a AS (SELECT k, last(v ORDER BY n) AS v FROM events WHERE side = 'a' GROUP BY k HAVING
           last(v ORDER BY n) IS NOT NULL),
     b AS (SELECT k, last(v ORDER BY n) AS v FROM events WHERE side = 'b' GROUP BY k HAVING
           last(v ORDER BY n) IS NOT NULL)
"""


@dataclass(frozen=True)
class Case:
    """`batch` reads `events (n, side, ts, k, v)`, where `n` is the order of arrival."""

    name: str
    sources: str
    query: str
    batch: str
    is_table: bool = True
    deletes: bool = False
    """True if null stands for a record without a value, which deletes a table's row."""


AGGREGATES = "COUNT(*) AS c, COUNT(v) AS n, SUM(v) AS s, MIN(v) AS lo, MAX(v) AS hi"
BATCH_AGGREGATES = "count(*), count(v), coalesce(sum(v), 0), min(v), max(v)"
"""SUM of nothing is 0 in ksqlDB."""


CASES = [
    Case(
        "tumbling",
        STREAMS,
        f"CREATE TABLE r AS SELECT k, {AGGREGATES} FROM a WINDOW TUMBLING (SIZE 10 SECONDS) "
        "GROUP BY k;",
        f"SELECT ts // 10000 * 10000, k, {BATCH_AGGREGATES} FROM events WHERE side = 'a' "
        "GROUP BY ALL",
    ),
    Case(
        "tumbling, late records are left out",
        STREAMS,
        f"CREATE TABLE r AS SELECT k, {AGGREGATES} FROM a "
        "WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS) GROUP BY k;",
        "WITH timed AS (SELECT *, max(ts) OVER (ORDER BY n) AS now FROM events WHERE side = 'a') "
        f"SELECT ts // 10000 * 10000, k, {BATCH_AGGREGATES} FROM timed "
        "WHERE ts // 10000 * 10000 + 10000 > now - 5000 GROUP BY ALL",
    ),
    Case(
        "hopping",
        STREAMS,
        f"CREATE TABLE r AS SELECT k, {AGGREGATES} FROM a "
        "WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 4 SECONDS) GROUP BY k;",
        "WITH starts AS (SELECT *, unnest(range(0, ts + 1, 4000)) AS start FROM events "
        f"WHERE side = 'a') SELECT start, k, {BATCH_AGGREGATES} FROM starts "
        "WHERE start + 10000 > ts GROUP BY ALL",
    ),
    Case(
        "session",
        STREAMS,
        f"CREATE TABLE r AS SELECT k, {AGGREGATES} FROM a WINDOW SESSION (5 SECONDS) GROUP BY k;",
        "WITH gaps AS (SELECT *, coalesce(ts - lag(ts) OVER w > 5000, true) AS opens FROM events "
        "WHERE side = 'a' WINDOW w AS (PARTITION BY k ORDER BY ts, n)), "
        "numbered AS (SELECT *, sum(opens::INT) OVER (PARTITION BY k ORDER BY ts, n) AS number "
        f"FROM gaps) SELECT min(ts), k, {BATCH_AGGREGATES} FROM numbered GROUP BY k, number",
    ),
    Case(
        "grouped by an expression",
        STREAMS,
        "CREATE TABLE r AS SELECT v % 3 AS g, COUNT(*) AS c, COUNT_DISTINCT(v) AS d FROM a "
        "WHERE v IS NOT NULL GROUP BY v % 3;",
        "SELECT NULL, v % 3, count(*), count(DISTINCT v) FROM events "
        "WHERE side = 'a' AND v IS NOT NULL GROUP BY v % 3",
    ),
    Case(
        "stream joined to a stream",
        STREAMS,
        "CREATE STREAM r AS SELECT a.k AS k, a.v AS av, b.v AS bv FROM a JOIN b "
        "WITHIN 5 SECONDS ON a.k = b.k;",
        "SELECT NULL, a.k, a.v, b.v FROM events a JOIN events b ON a.k = b.k "
        "AND abs(a.ts - b.ts) <= 5000 WHERE a.side = 'a' AND b.side = 'b'",
        is_table=False,
    ),
    Case(
        "stream joined to a stream, before and after differ",
        STREAMS,
        "CREATE STREAM r AS SELECT a.k AS k, a.v AS av, b.v AS bv FROM a JOIN b "
        "WITHIN (2 SECONDS, 8 SECONDS) ON a.k = b.k;",
        "SELECT NULL, a.k, a.v, b.v FROM events a JOIN events b ON a.k = b.k "
        "AND b.ts BETWEEN a.ts - 2000 AND a.ts + 8000 WHERE a.side = 'a' AND b.side = 'b'",
        is_table=False,
    ),
    Case(
        "stream joined to a table",
        STREAM_AND_TABLE,
        "CREATE STREAM r AS SELECT a.k AS k, a.v AS av, b.v AS bv FROM a LEFT JOIN b ON a.k = b.k;",
        "SELECT NULL, k, v, (SELECT last(b.v ORDER BY b.n) FROM events b WHERE b.side = 'b' "
        "AND b.k = a.k AND b.n < a.n) FROM events a WHERE side = 'a' AND v IS NOT NULL",
        is_table=False,
        deletes=True,
    ),
    Case(
        "table joined to a table",
        TABLES,
        "CREATE TABLE r AS SELECT a.k AS k, a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k;",
        f"{LATEST} SELECT NULL, a.k, a.v, b.v FROM a JOIN b ON a.k = b.k",
        deletes=True,
    ),
    Case(
        "table joined to a table, left",
        TABLES,
        "CREATE TABLE r AS SELECT a.k AS k, a.v AS av, b.v AS bv FROM a LEFT JOIN b ON a.k = b.k;",
        f"{LATEST} SELECT NULL, a.k, a.v, b.v FROM a LEFT JOIN b ON a.k = b.k",
        deletes=True,
    ),
    Case(
        "table joined to a table, full",
        TABLES,
        "CREATE TABLE r AS SELECT ROWKEY AS k, a.v AS av, b.v AS bv "
        "FROM a FULL OUTER JOIN b ON a.k = b.k;",
        f"{LATEST} SELECT NULL, coalesce(a.k, b.k), a.v, b.v FROM a FULL JOIN b ON a.k = b.k",
        deletes=True,
    ),
    Case(
        "table joined by a foreign key",
        "CREATE TABLE a (k STRING PRIMARY KEY, v INT) "
        "WITH (kafka_topic='a', value_format='JSON');"
        "CREATE TABLE b (k STRING PRIMARY KEY, v INT) "
        "WITH (kafka_topic='b', value_format='JSON');"
        "CREATE TABLE named AS SELECT k, v, 'k' + CAST(v % 4 AS STRING) AS f FROM a;",
        "CREATE TABLE r AS SELECT named.k AS k, named.v AS av, b.v AS bv "
        "FROM named JOIN b ON named.f = b.k;",
        f"{LATEST} SELECT NULL, a.k, a.v, b.v FROM a JOIN b ON 'k' || (a.v % 4) = b.k",
        deletes=True,
    ),
    Case(
        "table aggregated, with changes undone",
        TABLES,
        "CREATE TABLE r AS SELECT v % 3 AS g, COUNT(*) AS c, SUM(v) AS s FROM a GROUP BY v % 3 "
        "HAVING COUNT(*) > 0;",
        f"{LATEST} SELECT NULL, v % 3, count(*), sum(v) FROM a GROUP BY v % 3",
        deletes=True,
    ),
]

Event = tuple[str, int, str, int | None]
"""Topic, milliseconds, key, value."""

EVENTS = st.lists(
    st.tuples(
        st.sampled_from("aaab"),
        st.integers(0, 15),
        st.sampled_from(["k0", "k1", "k2", "k3"]),
        st.none() | st.integers(0, 20),
    ),
    min_size=15,
    max_size=50,
).map(
    lambda drawn: [
        (side, max(0, number - late) * 1000, key, value)
        for number, (side, late, key, value) in enumerate(drawn)
    ]
)
"""One each second, up to 15 s late."""


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE events (n BIGINT, side VARCHAR, ts BIGINT, k VARCHAR, v BIGINT)"
    )
    return connection


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_result_is_what_a_batch_computes(
    case: Case, database: duckdb.DuckDBPyConnection
) -> None:
    @settings(max_examples=examples(13), deadline=None)
    @given(EVENTS)
    def check(events: list[Event]) -> None:
        assert streamed(case, events) == batched(case, events, database)

    check()


def streamed(case: Case, events: list[Event]) -> list[list[Any]]:
    with SqlTest() as test:
        test.execute(case.sources + case.query)
        for side, timestamp_ms, key, value in events:
            row = None if value is None and case.deletes else {"v": value}
            test.pipe(side, key={"k": key}, value=row, timestamp_ms=timestamp_ms)
        found = test.table("r") if case.is_table else test.read("r")
        return ordered([row_of(record) for record in found])


def row_of(record: OutputRecord) -> list[Any]:
    start = None if record.window is None else record.window[0]
    return [start, *(record.key or {}).values(), *(record.value or {}).values()]


def batched(
    case: Case,
    events: list[Event],
    database: duckdb.DuckDBPyConnection,
) -> list[list[Any]]:
    database.execute("DELETE FROM events")
    if events:
        rows = ", ".join(
            f"({number}, '{side}', {at}, '{key}', {'NULL' if value is None else value})"
            for number, (side, at, key, value) in enumerate(events)
        )
        database.execute(f"INSERT INTO events VALUES {rows}")
    return ordered([list(row) for row in database.execute(case.batch).fetchall()])


def ordered(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=lambda row: [(value is None, value) for value in row])

"""Records that are meant to stop a query: it goes on with the next one."""

from __future__ import annotations

import pytest

from barnabas.sql.functions.built_in import functions
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from support.sql_statements import Statements

SOURCES = """
CREATE STREAM S (K STRING KEY, A BIGINT)
  WITH (kafka_topic='s', value_format='JSON', partitions=1);
CREATE STREAM R (K STRING KEY, B BIGINT)
  WITH (kafka_topic='r', value_format='JSON', partitions=1);
CREATE STREAM TIMED (K STRING KEY, A BIGINT)
  WITH (kafka_topic='s', value_format='JSON', partitions=1, timestamp='A');
"""
QUERIES = {
    "select": "CREATE STREAM O AS SELECT * FROM S;",
    "tumbling": "CREATE TABLE O AS SELECT K, COUNT(*) FROM S WINDOW TUMBLING (SIZE 1 DAY) "
    "GROUP BY K;",
    "hopping": "CREATE TABLE O AS SELECT K, COUNT(*) FROM S "
    "WINDOW HOPPING (SIZE 1 DAY, ADVANCE BY 1 HOUR) GROUP BY K EMIT FINAL;",
    "session": "CREATE TABLE O AS SELECT K, COUNT(*) FROM S WINDOW SESSION (1 DAY) GROUP BY K;",
    "final session": "CREATE TABLE O AS SELECT K, COUNT(*) FROM S WINDOW SESSION (1 DAY) "
    "GROUP BY K EMIT FINAL;",
    "join": "CREATE STREAM O AS SELECT * FROM S JOIN R WITHIN 1 DAY ON S.K = R.K;",
    "left join": "CREATE STREAM O AS SELECT * FROM S LEFT JOIN R WITHIN 1 DAY "
    "GRACE PERIOD 1 DAY ON S.K = R.K;",
    "column": "CREATE TABLE O AS SELECT K, COUNT(*) FROM TIMED WINDOW SESSION (1 DAY) GROUP BY K;",
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("timestamp_ms", [-(2**63), -1, 2**62 + 1, 2**63 - 1])
def test_times_that_cannot_be(name: str, timestamp_ms: int) -> None:
    """They are left out with a note; the windows of later records are as if they had not come."""
    written = []
    for times in ([1_000, timestamp_ms, timestamp_ms, 2_000], [1_000, 2_000]):
        log: list[str] = []
        statements = Statements()
        statements.run(SOURCES)
        plan = statements.plan(QUERIES[name])
        driver = Driver(
            [plan],
            PlanCompiler(functions()),
            log=lambda message, row, cause, log=log: log.append(message),  # type: ignore[misc]
        )
        for time_ms in times:
            given = 0 if name == "column" else time_ms
            driver.pipe("s", TopicRecord(b"k", b'{"A":%d}' % time_ms, given))
            driver.pipe("r", TopicRecord(b"k", b'{"B":1}', given))
        written.append([(r.key, r.value, r.timestamp_ms) for r in driver.topics["O"]])
        assert bool(log) is (len(times) == 4)
    assert written[0] == written[1]


@pytest.mark.parametrize("name", ["tumbling", "session", "left join"])
def test_the_latest_time_that_can_be(name: str) -> None:
    statements = Statements()
    statements.run(SOURCES)
    driver = Driver([statements.plan(QUERIES[name])], PlanCompiler(functions()))
    for topic in ("s", "r", "s"):
        driver.pipe(topic, TopicRecord(b"k", b"{}", 2**62))
    assert driver.topics["O"]

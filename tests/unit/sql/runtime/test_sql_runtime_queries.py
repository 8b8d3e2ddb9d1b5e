"""Queries from their text to their results: the same in any number of partitions and batches."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping

import pytest

from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import QueryCommand, apply
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.encoding import decode_plan, encode_plan
from barnabas.sql.plan.steps import QueryPlan, StreamSink, TableSink
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.syntax.parser import parse
from support.sql_batches import BatchHost

SOURCES = """
    CREATE STREAM s (k INT KEY, a INT, b STRING) WITH (kafka_topic='s', value_format='JSON');
    CREATE STREAM r (k INT KEY, c INT) WITH (kafka_topic='r', value_format='JSON');
    CREATE TABLE t (k INT PRIMARY KEY, d INT) WITH (kafka_topic='t', value_format='JSON');
    CREATE TABLE u (k INT PRIMARY KEY, e INT) WITH (kafka_topic='u', value_format='JSON');
"""

STREAMS = [
    "SELECT k, a * 2 AS a2, UCASE(b) AS b FROM s WHERE a > 1",
    "SELECT b, k, a FROM s PARTITION BY b",
    "SELECT k, EXPLODE(ARRAY[a, k]) AS x FROM s",
    "SELECT s.k, a, c FROM s JOIN r WITHIN 20 MILLISECONDS GRACE PERIOD 1 DAY ON s.k = r.k",
    "SELECT s.a, s.k AS sk, d FROM s JOIN t ON s.a = t.k",
]
"""Results whose records do not depend on the order in which partitions are served: the table of
the last one is complete before the stream begins."""

TABLES = [
    "SELECT k, COUNT(*) AS n, SUM(a) AS total FROM s GROUP BY k",
    "SELECT b, a % 2 AS odd, COUNT(*) AS n FROM s GROUP BY b, a % 2",
    "SELECT b, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 20 MILLISECONDS) GROUP BY b",
    "SELECT k, COUNT(*) AS n FROM s WINDOW SESSION (9 MILLISECONDS) GROUP BY k",
    "SELECT b, COUNT(*) AS n FROM s GROUP BY b HAVING COUNT(*) > 3",
    "SELECT k, d FROM t WHERE d > 2",
    "SELECT d, COUNT(*) AS n FROM t GROUP BY d",
    "SELECT t.k, d, e FROM t JOIN u ON t.k = u.k",
    "SELECT ROWKEY AS k, d, e FROM t FULL OUTER JOIN u ON t.k = u.k",
    "SELECT t.k, d, e FROM t LEFT JOIN u ON t.d = u.k",
    "SELECT t.k, d, e FROM t JOIN u ON t.d = u.k",
]


def planned(query: str, kind: str) -> QueryPlan:
    metastore = MetaStore()
    commands = []
    for parsed in parse(f"{SOURCES} CREATE {kind} out WITH (key_format='JSON') AS {query};"):
        commands.append(analyse(parsed.statement, metastore, {}, functions(), text=parsed.text))
        apply(commands[-1], metastore, parsed.text)
    assert isinstance(commands[-1], QueryCommand)
    return commands[-1].plan


def records(seed: int) -> list[tuple[str, TopicRecord]]:
    """Tables first, then streams, a little out of order."""
    generator = random.Random(seed)

    def record(key: int, value: Mapping[str, object] | None, at: int) -> TopicRecord:
        data = None if value is None else json.dumps(value).encode()
        return TopicRecord(key.to_bytes(4, "big"), data, at)

    made = []
    for at in range(60):
        topic, column = generator.choice([("t", "d"), ("u", "e")])
        row = None if generator.random() < 0.2 else {column: generator.randrange(6)}
        made.append((topic, record(generator.randrange(6), row, at)))
    for number in range(120):
        at = 100 + max(0, number - generator.randrange(15))
        key, figure = generator.randrange(6), generator.randrange(6)
        if generator.random() < 0.6:
            value = {"a": figure, "b": generator.choice(["x", "y", "z", None])}
            made.append(("s", record(key, value, at)))
        else:
            made.append(("r", record(key, {"c": figure}, at)))
    return made


def results(plan: QueryPlan, partitions: int, seed: int) -> list[TopicRecord]:
    driver = Driver([plan], PlanCompiler(functions()), partitions=partitions)
    for topic, record in records(seed):
        driver.pipe(topic, record)
    assert isinstance(plan.step, StreamSink | TableSink)
    return driver.topics[plan.step.topic]


def batched(plan: QueryPlan, seed: int) -> list[TopicRecord]:
    """The same through a host of batches of any size."""
    host = BatchHost(plan, PlanCompiler(functions()), 3)
    generator = random.Random(seed)
    waiting = records(seed)
    written = []
    while waiting:
        size = generator.randrange(1, 40)
        written += host.run(waiting[:size])
        del waiting[:size]
    return written


@pytest.mark.parametrize("query", STREAMS)
def test_streams_have_the_same_records(query: str) -> None:
    plan = planned(query, "STREAM")
    one, many, host = results(plan, 1, 1), results(plan, 4, 1), batched(plan, 1)
    assert one
    for other in (many, host):
        assert Counter((r.key, r.value, r.timestamp_ms) for r in one) == Counter(
            (r.key, r.value, r.timestamp_ms) for r in other
        )


@pytest.mark.parametrize("query", TABLES)
def test_tables_have_the_same_rows_in_the_end(query: str) -> None:
    plan = planned(query, "TABLE")
    one, many, host = (
        {r.key: r.value for r in made}
        for made in (results(plan, 1, 2), results(plan, 4, 2), batched(plan, 2))
    )
    assert any(one.values())
    for other in (many, host):
        assert _rows(one) == _rows(other)


def _rows(values: dict[bytes | None, bytes | None]) -> dict[bytes | None, bytes]:
    """Return a table without its tombstones."""
    return {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize(
    ("kind", "query"),
    [*(("STREAM", query) for query in STREAMS), *(("TABLE", query) for query in TABLES)],
)
def test_plans_of_statements_survive_the_command_topic(kind: str, query: str) -> None:
    plan = planned(query, kind)
    assert decode_plan(encode_plan(plan)) == plan

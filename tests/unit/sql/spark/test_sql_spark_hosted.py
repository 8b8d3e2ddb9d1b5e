"""Plans as Spark's workers run them, without Spark, compared with the driver."""

from __future__ import annotations

import json
from random import Random

import pytest

from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.steps import QueryPlan, StreamSink
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from support.sql_hosted import SmallHost
from support.sql_queries import plans_of

SOURCES = """
CREATE STREAM s (k STRING KEY, v INT, site STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM s2 (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON');
CREATE STREAM z (k STRING KEY, w INT) WITH (kafka_topic='z', value_format='JSON');
CREATE TABLE t (id STRING PRIMARY KEY, name STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE u (id STRING PRIMARY KEY, ref STRING) WITH (kafka_topic='u', value_format='JSON');
"""
QUERIES = {
    "filter": "CREATE STREAM q AS SELECT k, v FROM s WHERE v > 3;",
    "count": "CREATE TABLE q AS SELECT k, COUNT(*) n FROM s GROUP BY k;",
    "windowed": "CREATE TABLE q AS SELECT k, COUNT(*) n FROM s WINDOW TUMBLING "
    "(SIZE 10 SECONDS, GRACE PERIOD 1 DAY) GROUP BY k;",
    "session": "CREATE TABLE q AS SELECT k, SUM(v) n FROM s WINDOW SESSION "
    "(5 SECONDS, GRACE PERIOD 1 DAY) GROUP BY k;",
    "repartition": "CREATE TABLE q AS SELECT site, SUM(v) n FROM s GROUP BY site;",
    "two repartitions": "CREATE TABLE q AS SELECT t.name, COUNT(*) n FROM s "
    "JOIN t ON s.site = t.id GROUP BY t.name;",
    "stream-table": "CREATE STREAM q AS SELECT t.id, s.k, s.v, t.name FROM s "
    "LEFT JOIN t ON s.site = t.id;",
    "stream-stream": "CREATE STREAM q AS SELECT s.k, s.v, z.w FROM s JOIN z "
    "WITHIN 3 SECONDS ON s.k = z.k;",
    "table-table": "CREATE TABLE q AS SELECT t.id, t.name, u.ref FROM t "
    "LEFT JOIN u ON t.id = u.id;",
    "foreign key": "CREATE TABLE q AS SELECT u.id, t.name FROM u LEFT JOIN t ON u.ref = t.id;",
    "self": "CREATE STREAM q AS SELECT a.k, a.v, b.v AS other FROM s a JOIN s2 b "
    "WITHIN 2 SECONDS ON a.k = b.k;",
}
TOPICS = ("s", "z", "t", "u")


def plan_of(name: str, partitions: int) -> QueryPlan:
    (plan,) = plans_of(SOURCES + QUERIES[name], dict.fromkeys(TOPICS, partitions))
    return plan


def made(seed: int, count: int = 300) -> list[tuple[str, TopicRecord]]:
    """Records in the order of their timestamps, as a host may see them."""
    random = Random(seed)
    now_ms, records = 0, []
    for _ in range(count):
        now_ms += random.randrange(1, 900)
        topic = random.choice(TOPICS)
        key, value = (
            f"k{random.randrange(6)}",
            {
                "s": {"V": random.randrange(10), "SITE": f"k{random.randrange(6)}"},
                "z": {"W": random.randrange(10)},
                "t": {"NAME": f"n{random.randrange(3)}"},
                "u": {"REF": f"k{random.randrange(6)}"},
            }[topic],
        )
        data = None if topic in "tu" and random.random() < 0.2 else json.dumps(value).encode()
        records.append((topic, TopicRecord(key.encode(), data, now_ms)))
    return records


def expected(plan: QueryPlan, records: list[tuple[str, TopicRecord]]) -> list[TopicRecord]:
    driver = Driver([plan], PlanCompiler(functions()))
    for topic, record in records:
        driver.pipe(topic, TopicRecord(record.key, record.value, record.timestamp_ms))
    return driver.topics[plan.step.topic]


def by_key(records: list[TopicRecord]) -> dict[bytes | None, list[tuple[bytes | None, int]]]:
    found: dict[bytes | None, list[tuple[bytes | None, int]]] = {}
    for record in records:
        found.setdefault(record.key, []).append((record.value, record.timestamp_ms))
    return found


def last(records: list[TopicRecord]) -> dict[bytes | None, tuple[bytes | None, int]]:
    return {record.key: (record.value, record.timestamp_ms) for record in records}


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", QUERIES)
def test_results_are_those_of_the_driver(name: str, partitions: int) -> None:
    plan, records = plan_of(name, partitions), made(7)
    host = SmallHost(plan, partitions, shuffled=Random(1))
    for start in range(0, len(records), 40):
        host.batch(records[start : start + 40])
        if start == 120:
            host.restart()
    want = expected(plan, records)
    if isinstance(plan.step, StreamSink):
        assert by_key(host.results) == by_key(want)
    else:
        assert last(host.results) == last(want)
    assert host.notes.count == 0


def test_every_change_of_a_table_may_be_asked_for() -> None:
    plan, records = plan_of("windowed", 2), made(8)
    host = SmallHost(plan, 2, emits_every_change=True)
    host.batch(records)
    assert by_key(host.results) == by_key(expected(plan, records))


def test_headers_pass_and_keys_stay_tuples() -> None:
    headers = (("a", b"1"), ("b", None), ("a", b"2"))
    host = SmallHost(plan_of("stream-table", 2), 2)
    host.batch([("s", TopicRecord(b"k", b'{"SITE": "x"}', 1, headers))])
    assert [record.headers for record in host.results] == [headers]


def test_failures_are_counted() -> None:
    host = SmallHost(plan_of("count", 2), 2)
    host.batch([("s", TopicRecord(b"k", b"no JSON", 1)), ("s", TopicRecord(b"k", b"{}", 1))])
    assert (host.notes.read, host.notes.count, len(host.results)) == (2, 1, 1)
    text, step, message = host.notes.notes[0]
    assert text == "Failed to deserialize a record of s"
    assert step == "KsqlTopic.Source.deserializer"
    error = json.loads(message or "")["deserializationError"]
    assert (error["topic"], error["target"], error["recordB64"]) == ("s", "value", None)
    assert host.notes.latest_ms == 1


def test_entries_for_the_processing_log_show_records_where_that_is_asked_for() -> None:
    properties = (("ksql.logging.processing.rows.include", "true"),)
    host = SmallHost(plan_of("count", 2), 2, properties=properties)
    host.batch([("s", TopicRecord(b"k", b"no JSON", 1))])
    message = json.loads(host.notes.notes[0][2] or "")
    assert message["deserializationError"]["recordB64"] == "bm8gSlNPTg=="


def test_entries_are_bounded_and_all_are_counted() -> None:
    host = SmallHost(plan_of("count", 1), 1)
    host.batch([("s", TopicRecord(b"k", b"no JSON", 1))] * 1_100)
    assert (host.notes.count, len(host.notes.notes)) == (1_100, 1_000)
    properties = (("ksql.logging.processing.rows.include", "true"),)
    host = SmallHost(plan_of("count", 1), 1, properties=properties)
    host.batch([("s", TopicRecord(b"k", b"x" * 100_000, 1))] * 20)
    assert (host.notes.count, len(host.notes.notes)) == (20, 8)

"""Queries with Avro in and out, as columns on Spark and with a real registry: they write the bytes
that the row engine writes in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from client_matrix import KEPT
from confluent_kafka.cimpl import Message

from barnabas.app.testing import Kafka
from barnabas.schemas.registry_client import RegistryClient
from barnabas.sql.formats.avro import AvroFormat
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.steps import StreamSink, TableSink
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.schema import Column, Part
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.query import SparkQuery
from barnabas.sql.types import BIGINT, DOUBLE, INTEGER, STRING
from support.patience import PATIENCE_S
from support.registry_process import registry_url
from support.spark import shared_session
from support.sql_queries import plans_of

__all__ = ["registry_url"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings(
        "ignore:unclosed <socket:ResourceWarning", "ignore::DeprecationWarning"
    ),
]

SOURCE = """
CREATE STREAM s (k STRING KEY, i INT, b BIGINT, d DOUBLE, t STRING)
  WITH (kafka_topic='{s}', value_format='AVRO');
"""
COLUMNS = [
    Column(name, sql_type, Part.VALUE)
    for name, sql_type in zip("IBDT", (INTEGER, BIGINT, DOUBLE, STRING), strict=True)
]
PARTITIONS = 2
COUNT = 400
START_MS = 1_700_000_000_000


def values(seed: int) -> list[list[Any]]:
    """Rows with NULLs, bounds of numbers, NaN and texts beyond ASCII."""
    random = Random(seed)
    choices: list[Sequence[Any]] = [
        (None, 0, 1, 7, 2**31 - 1, -(2**31)),
        (None, 0, -1, 2**63 - 1, -(2**63)),
        (None, 0.0, -0.0, 0.5, 1e300, float("nan"), float("inf")),
        (None, "", "a", "é", "\U0001f600", "x" * 200),
    ]
    return [[random.choice(values) for values in choices] for _ in range(COUNT)]


FILTER = "CREATE STREAM q AS SELECT k, i + 1 AS i, d, UCASE(t) AS u, t, b FROM s WHERE b % 2 >= 0;"
GROUP = """
CREATE TABLE q AS SELECT t, COUNT(*) AS n, MAX(b) AS b, LATEST_BY_OFFSET(d) AS d FROM s GROUP BY t;
"""


@pytest.mark.parametrize("query", [FILTER, GROUP], ids=["filter", "group"])
def test_avro_in_and_out_is_that_of_the_row_engine(
    query: str, kafka: Kafka, registry_url: str, tmp_path: Path
) -> None:
    names = {name: kafka.topic(name, PARTITIONS, KEPT) for name in ("s", "q")}
    registry = RegistryClient((registry_url,))
    topics = dict.fromkeys(names.values(), PARTITIONS)
    (plan,) = plans_of(SOURCE.format(**names) + query, topics)
    assert isinstance(plan.step, StreamSink | TableSink)
    step = replace(plan.step, topic=names["q"])
    plan = replace(plan, query_id=kafka.name("query"), step=step)
    write = AvroFormat().serializer(
        RecordPart(COLUMNS, {}, f"{names['s']}-value", registry, wraps=True)
    )
    records = [
        TopicRecord(b"key", write(row), START_MS + number)
        for number, row in enumerate(values(seed=1))
    ]
    producer = kafka.producer()
    for record in records:  # of one key, as the order of others' partitions is open
        producer.produce(names["s"], record.value, record.key, timestamp=record.timestamp_ms)
    producer.flush()
    options = SparkQueryOptions(
        kafka.bootstrap_servers,
        str(tmp_path),
        registry_urls=(registry_url,),
        auto_offset_reset="earliest",
    )
    spark_query = SparkQuery(plan, options, shared_session())
    spark_query.start()
    try:
        spark_query.process_all()
        figures = spark_query.status().figures
    finally:
        spark_query.stop()
    rows = Driver([plan], PlanCompiler(functions()), schemas=registry)
    for record in records:
        rows.pipe(names["s"], record)
    want = last(rows.topics[names["q"]], is_table=isinstance(step, TableSink))
    got = [(m.key(), m.value(), m.timestamp()[1]) for m in consumed(kafka, names["q"], len(want))]
    assert sorted(got, key=repr) == sorted(want, key=repr)
    assert len(got) > 3
    # The row engine calculates with NULLs, and notes those that are in no group.
    assert figures.read == COUNT
    assert figures.by_columns > COUNT // 2


def last(
    records: Sequence[TopicRecord], *, is_table: bool
) -> list[tuple[bytes | None, bytes | None, int]]:
    """Records, but of a table the last one of each key: its result of a micro-batch."""
    if is_table:
        records = list({record.key: record for record in records}.values())
    return [(record.key, record.value, record.timestamp_ms) for record in records]


def consumed(kafka: Kafka, topic: str, count: int) -> list[Message]:
    """So many records of a topic, and no more."""
    consumer = kafka.consumer(topic, isolation_level="read_committed")
    found: list[Message] = []
    try:
        while len(found) < count:
            made = consumer.consume(count, PATIENCE_S)
            assert made, f"{len(found)} of {count} records"
            found += [message for message in made if not message.error()]
        return found + consumer.consume(1, 0.2)
    finally:
        consumer.close()

"""A table that streams join: the latest value of each key, and known when it has moved on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from barnabas.app.testing import Kafka
from barnabas.pipeline.kafka_io import json_values
from barnabas.pipeline.topic_table import TableChangedError, TableEmptyError, TopicTable

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

SCHEMA = StructType([StructField("city", StringType()), StructField("power_w", LongType())])


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.topic(partitions=2)


@pytest.fixture
def table(spark: SparkSession, kafka: Kafka, topic: str) -> Iterator[TopicTable]:
    made = TopicTable(spark, kafka.bootstrap_servers, topic, json_values(SCHEMA))
    yield made
    made.close()


def put(kafka: Kafka, topic: str, key: str, city: str) -> None:
    kafka.produce(topic, [(key, json.dumps({"city": city, "power_w": 5}))])


def test_a_version_is_the_latest_until_the_topic_moves_on(
    kafka: Kafka, topic: str, table: TopicTable
) -> None:
    put(kafka, topic, "1", "Ghent")
    put(kafka, topic, "1", "Lyon")
    first = table.read()
    table.ensure_latest(first)
    assert [tuple(row) for row in first.frame.collect()] == [("Lyon", 5)]
    put(kafka, topic, "2", "Ghent")
    with pytest.raises(TableChangedError):
        table.ensure_latest(first)
    second = table.read()
    table.ensure_latest(second)
    assert sorted(row["city"] for row in second.frame.collect()) == ["Ghent", "Lyon"]


def test_no_job_reads_the_topic_again(kafka: Kafka, topic: str, table: TopicTable) -> None:
    put(kafka, topic, "1", "Ghent")
    plan = table.read().frame._jdf.queryExecution().executedPlan().toString()
    assert plan.startswith("LocalTableScan")


def test_an_empty_table_is_refused(kafka: Kafka, topic: str, table: TopicTable) -> None:
    with pytest.raises(TableEmptyError):
        table.read()
    put(kafka, topic, "1", "Ghent")
    assert table.read().frame.count() == 1

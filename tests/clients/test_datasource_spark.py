"""`format("barnabas")` from plain PySpark: a streaming query, a batch job, and what is refused."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.app.testing import Kafka
from barnabas.spark.datasource import register
from support.spark import spark

__all__ = ["spark"]
pytestmark = pytest.mark.timeout(300)
PARTITIONS = 2


def values_of(kafka: Kafka, topic: str, count: int) -> Counter[bytes]:
    """So many committed values."""
    consumer = kafka.consumer(isolation_level="read_committed")
    consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(PARTITIONS)])
    messages = consumer.consume(count, 60.0)
    consumer.close()
    return Counter(message.value() for message in messages)


def records(numbers: DataFrame, name: str) -> DataFrame:
    text = f.col(name).cast("string")
    header = f.array(f.struct(f.lit("n").alias("key"), text.cast("binary").alias("value")))
    return numbers.select(text.alias("key"), text.alias("value"), header.alias("headers"))


def test_a_streaming_query(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    register(spark)
    source, sink = kafka.topic("source", PARTITIONS), kafka.topic("sink", PARTITIONS)
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value", "timestamp")
    )
    writer = (
        rows.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("topic", sink)
        .option("decisionTopic", kafka.name("decisions"))
        .option("checkpointLocation", str(tmp_path))
    )
    kafka.produce(source, [(str(n), str(n)) for n in range(100)])
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    # The crash of a driver that has committed in the sink, but not in its own log.
    batch = max(int(path.name) for path in (tmp_path / "commits").glob("[0-9]*"))
    for path in (tmp_path / "commits").glob(f"*{batch}*"):
        path.unlink()
    kafka.produce(source, ["last"])
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    want = Counter([*(str(n).encode() for n in range(100)), b"last"])
    assert values_of(kafka, sink, 101) == want


def test_a_batch_job(spark: SparkSession, kafka: Kafka) -> None:
    register(spark)
    topic = kafka.topic("sink", PARTITIONS)
    writer = (
        records(spark.range(0, 100, 1, 3), "id")
        .write.format("barnabas")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("topic", topic)
        .option("decisionTopic", kafka.name("decisions"))
        .option("sinkId", kafka.name("job"))
        .mode("append")
    )
    for _ in range(2):  # the second time it is done already
        writer.save()
    kafka.produce(topic, ["last"])
    want = Counter([*(str(n).encode() for n in range(100)), b"last"])
    assert values_of(kafka, topic, 101) == want


def test_a_thread_of_ones_own(spark: SparkSession, kafka: Kafka) -> None:
    register(spark)
    topic = kafka.topic("sink", PARTITIONS)
    rows = records(spark.range(1), "id").write.format("barnabas").mode("append")
    rows.option("kafka.bootstrap.servers", kafka.bootstrap_servers).option("topic", topic)
    rows.option("decisionTopic", kafka.name("decisions"))

    def write() -> None:
        register(spark)
        rows.save()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()
    assert values_of(kafka, topic, 1) == Counter([b"0"])


def test_what_is_refused_is_said(spark: SparkSession, kafka: Kafka) -> None:
    register(spark)
    rows = spark.range(3).selectExpr("id")
    writer = rows.write.format("barnabas").option("topic", "t").mode("append")
    with pytest.raises(PySparkException, match=r"kafka\.bootstrap\.servers is missing"):
        writer.save()
    with pytest.raises(PySparkException, match="unknown column id"):
        writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers).save()

"""Reading topics through Spark's own Kafka connector."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType


def read_json_stream(
    spark: SparkSession,
    bootstrap_servers: str,
    topic: str,
    schema: StructType,
    *,
    offsets_per_trigger_max: int | None = None,
    is_committed_only: bool = False,
) -> DataFrame:
    """Stream a topic from its beginning (or the checkpoint) as rows of `schema`.

    With `is_committed_only` records of aborted and open transactions are left out, as is a value
    that is no JSON object or has no `event_id`. Each row has `event_time`, a timestamp made of its
    `event_time_ms`.
    """
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
    )
    if is_committed_only:
        reader = reader.option("kafka.isolation.level", "read_committed")
    if offsets_per_trigger_max is not None:
        reader = reader.option("maxOffsetsPerTrigger", offsets_per_trigger_max)
    return parse_json(reader.load(), schema)


def parse_json(records: DataFrame, schema: StructType) -> DataFrame:
    """Turn Kafka records (a binary column `value`) into events of `schema`, with `event_time`."""
    return (
        records.select(f.from_json(f.col("value").cast("string"), schema).alias("event"))
        .select("event.*")
        .where("event_id IS NOT NULL AND event_time_ms IS NOT NULL")
        .withColumn("event_time", f.timestamp_millis("event_time_ms"))
    )


def read_table(
    spark: SparkSession, bootstrap_servers: str, topic: str, schema: StructType
) -> DataFrame:
    """Read a compacted topic as a table: the latest value of each key, none where it is null.

    The frame is lazy: each query, and each micro-batch that joins it, reads the topic as it is.
    """
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
        .coalesce(1)  # a table is small: no shuffle for its grouping
    )
    return table_of(records, schema)


def table_of(records: DataFrame, schema: StructType) -> DataFrame:
    """Keep the latest value of each key (columns `key`, `value`, `partition`, `offset`)."""
    return (
        records.groupBy("key")
        .agg(f.max_by("value", "offset").alias("value"))
        .where("value IS NOT NULL")
        .select(f.from_json(f.col("value").cast("string"), schema).alias("row"))
        .select("row.*")
    )

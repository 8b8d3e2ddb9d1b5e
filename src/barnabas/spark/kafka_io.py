"""Reads topics through Spark's own Kafka connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

Decode = Callable[[Column], Column]
"""Makes of a record's value, which is binary, a struct; null where it is none."""


def json_values(schema: StructType) -> Decode:
    """Return how values are read that are JSON objects of `schema`."""
    return lambda value: f.from_json(value.cast("string"), schema)


def read_stream(
    spark: SparkSession,
    bootstrap_servers: str,
    topic: str,
    decode: Decode,
    *,
    offsets_per_trigger_max: int | None = None,
    is_committed_only: bool = False,
    kafka: Mapping[str, str] = MappingProxyType({}),
) -> DataFrame:
    """Stream a topic's events from its beginning (or the checkpoint), as `events_of` has them.

    `kafka`: settings of Kafka's Java clients, for TLS and logins.

    With `is_committed_only` records of aborted and open transactions are left out.
    """
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
    )
    reader = reader.options(**{f"kafka.{key}": value for key, value in kafka.items()})
    if is_committed_only:
        reader = reader.option("kafka.isolation.level", "read_committed")
    if offsets_per_trigger_max is not None:
        reader = reader.option("maxOffsetsPerTrigger", offsets_per_trigger_max)
    return events_of(reader.load(), decode)


def events_of(records: DataFrame, decode: Decode) -> DataFrame:
    """Turn Kafka records (a binary column `value`) into events.

    Each has `event_time`, a timestamp made of its `event_time_ms`. A value that cannot be read, or
    has no `event_id`, is left out.
    """
    return (
        records.select(decode(f.col("value")).alias("event"))
        .select("event.*")
        .where("event_id IS NOT NULL AND event_time_ms IS NOT NULL")
        .withColumn("event_time", f.timestamp_millis("event_time_ms"))
    )

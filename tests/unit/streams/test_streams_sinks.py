"""Records of pipelines in topics: the partition of a key, timestamps, headers."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.app.testing import Kafka
from barnabas.spark.record_writer import KafkaRecord
from barnabas.streams.sinks import (
    AtLeastOnce,
    ExactlyOnce,
    Gate,
    StoppedError,
    TaskWriter,
)

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
COUNT = 40


def records(spark: SparkSession) -> DataFrame:
    header = f.struct(f.lit("h").alias("key"), f.lit(b"1").alias("value"))
    return spark.range(COUNT).select(
        f.concat(f.lit("key-"), "id").cast("binary").alias("key"),
        f.col("id").cast("string").cast("binary").alias("value"),
        (f.col("id") + 1_000).alias("at"),
        f.array(header).alias("headers"),
    )


def partitions(kafka: Kafka, topic: str) -> dict[bytes | None, int | None]:
    consumer = kafka.consumer(topic)
    try:
        found = consumer.consume(COUNT, 60)
    finally:
        consumer.close()
    for message in found:
        assert message.error() is None
    assert len(found) == COUNT
    return {message.key(): message.partition() for message in found}


def test_every_way_to_write_gives_a_key_one_partition(spark: SparkSession, kafka: Kafka) -> None:
    """Spark's own sink, ours and a plain producer with Java's partitioner agree."""
    ours, sparks, plain = (kafka.topic(hint, 7) for hint in ("ours", "sparks", "plain"))
    rows = records(spark)
    AtLeastOnce(ours, (("bootstrap.servers", kafka.bootstrap_servers),)).write(rows, 0)
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": sparks}
    rows.select("key", "value").write.format("kafka").options(**options).save()
    kafka.produce(plain, [(f"key-{number}", "x") for number in range(COUNT)])
    expected = partitions(kafka, plain)
    assert len(set(expected.values())) == 7
    assert partitions(kafka, ours) == expected
    assert partitions(kafka, sparks) == expected


def test_records_keep_their_time_and_headers(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    rows = records(spark).where("id = 3")
    AtLeastOnce(topic, (("bootstrap.servers", kafka.bootstrap_servers),)).write(rows, 0)
    consumer = kafka.consumer(topic)
    try:
        (message,) = consumer.consume(1, 60)
    finally:
        consumer.close()
    assert (message.value(), message.timestamp()[1], message.headers()) == (
        b"3", 1_003, [("h", b"1")],
    )  # fmt: skip


def test_dead_letters_are_written_with_the_micro_batch(spark: SparkSession, kafka: Kafka) -> None:
    """After its results, and before it is committed; exactly once in its transaction."""
    topic, letters = kafka.topic("out"), kafka.topic("letters")
    failed = [KafkaRecord(letters, b"k", b"row", 7, [("h", b"1")])]
    settings = (("bootstrap.servers", kafka.bootstrap_servers), ("sasl.password", "words"))
    assert "words" not in repr(TaskWriter(topic, settings))
    sink = AtLeastOnce(topic, settings[:1], lambda: failed)
    sink.write(records(spark).limit(1), 0)
    sink.close()
    assert kafka.consume(topic, 1) == [b"0"]
    assert kafka.consume(letters, 1) == [b"row"]

    class Writer:
        def write(self, batch_id: int, given: list[KafkaRecord]) -> bool:
            self.given = batch_id, given
            return True

    writer: Any = Writer()
    ExactlyOnce(topic, writer, lambda: failed).write(records(spark).limit(1), 3)
    assert writer.given[0] == 3
    assert [one.topic for one in writer.given[1]] == [topic, letters]


def test_a_micro_batch_is_whole_or_not_begun(spark: SparkSession) -> None:
    written: list[int] = []

    class Sink:
        def write(self, frame: DataFrame, batch_id: int) -> None:
            written.append(batch_id)

        def close(self) -> None:
            written.append(-1)

    gate = Gate(Sink())
    gate.write(records(spark), 0)
    gate.close()
    with pytest.raises(StoppedError):
        gate.write(records(spark), 1)
    gate.release()
    assert written == [0, -1]

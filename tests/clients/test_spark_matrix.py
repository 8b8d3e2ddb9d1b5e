"""Spark's own Kafka connector: the matrix of all clients, and what only Spark does.

Spark's sink cannot set a record's time, so where the matrix asks for times another client writes
and Spark reads; what Spark writes itself is tested below.
"""

from __future__ import annotations

import gc
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client_matrix import BASE_TIME_MS, CODECS, KEPT, ClientMatrix, Message, numbered
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.app.testing import Kafka
from support.effort import others_slow
from support.patience import PATIENCE_S
from support.spark import shared_session

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def write_records(records: DataFrame, bootstrap_servers: str) -> None:
    """Write records (`topic`, `key`, `value`) by Spark's own sink."""
    options = {"kafka.bootstrap.servers": bootstrap_servers, "kafka.acks": "all"}
    records.write.format("kafka").options(**options).save()


@pytest.fixture(autouse=True)
def sockets_of_collect() -> Iterator[None]:
    """PySpark leaves the sockets of collect() to the garbage collector: it runs here."""
    yield
    gc.collect()


@pytest.fixture
def spark() -> SparkSession:
    return shared_session()


class SparkClient:
    """Reads in batches through the connector; see the module about writing."""

    capabilities = frozenset(["nulls", "times", *(f"codec-{codec}" for codec in CODECS)])

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.spark = shared_session()
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def close(self) -> None:
        self.admin.poll(0)

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        topic = NewTopic(name, num_partitions=partitions, config=config)
        self.admin.create_topics([topic])[name].result(PATIENCE_S)

    def produce(
        self,
        topic: str,
        messages: list[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "linger.ms": 50,
            }
        )
        for message in messages:
            producer.produce(
                topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                timestamp=message.timestamp_ms or 0,
                partition=message.partition,
            )
        assert producer.flush(PATIENCE_S) == 0

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[Message]:
        frame = self.frame(
            topic, partition, startingOffsets=json.dumps({topic: {str(partition): offset}})
        )
        return collect_messages(frame)[:count]

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        by_topic = self.frame(
            topic,
            partition,
            startingOffsetsByTimestamp=json.dumps({topic: {str(partition): timestamp_ms}}),
            startingOffsetsByTimestampStrategy="latest",
        )
        for_all = self.frame(
            topic,
            partition,
            startingTimestamp=str(timestamp_ms),
            startingOffsetsByTimestampStrategy="latest",
        )
        first = by_topic.agg(f.min("offset")).collect()[0][0]
        assert for_all.agg(f.min("offset")).collect()[0][0] == first
        return None if first is None else int(first)

    def frame(self, topic: str, partition: int, **options: str) -> DataFrame:
        return (
            self.spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("assign", json.dumps({topic: [partition]}))
            .option("includeHeaders", "true")
            .options(**options)
            .load()
        )


def collect_messages(frame: DataFrame) -> list[Message]:
    """Every record of a frame read with headers, by partition and offset."""
    timed = frame.withColumn("timestamp_ms", f.unix_millis("timestamp"))
    return [
        Message(
            value=None if row["value"] is None else bytes(row["value"]),
            key=None if row["key"] is None else bytes(row["key"]),
            headers=tuple((h["key"], bytes(h["value"])) for h in row["headers"] or ()),
            timestamp_ms=row["timestamp_ms"],
            partition=row["partition"],
            offset=row["offset"],
        )
        for row in timed.orderBy("partition", "offset").collect()
    ]


class TestSpark(ClientMatrix):
    client_class = SparkClient  # type: ignore[assignment]  # reads; the rest is not Spark's to do


@pytest.fixture
def client(kafka: Kafka) -> SparkClient:
    return SparkClient(kafka.bootstrap_servers)


def subscribed(client: SparkClient, topic: str, **options: str) -> DataFrame:
    return (
        client.spark.read.format("kafka")
        .option("kafka.bootstrap.servers", client.bootstrap_servers)
        .option("subscribe", topic)
        .options(**options)
        .load()
    )


def test_a_batch_has_every_partition_between_its_ends(kafka: Kafka, client: SparkClient) -> None:
    topic = kafka.topic(partitions=3)
    for partition in range(3):
        client.produce(topic, [Message(value=b"%d" % n, partition=partition) for n in range(20)])
    assert subscribed(client, topic, startingOffsets="earliest").count() == 60
    between = subscribed(
        client,
        topic,
        startingOffsets=json.dumps({topic: {"0": 5, "1": -2, "2": 20}}),
        endingOffsets=json.dumps({topic: {"0": 9, "1": 3, "2": -1}}),
    )
    found = [(row["partition"], row["offset"]) for row in between.collect()]
    assert sorted(found) == [(0, n) for n in range(5, 9)] + [(1, n) for n in range(3)]


@pytest.mark.parametrize("codec", others_slow(["lz4", "none"]))
def test_a_span_of_time_is_exact_to_the_record_in_every_partition(
    kafka: Kafka, client: SparkClient, codec: str
) -> None:
    topic = kafka.topic(partitions=2, config=KEPT)
    for partition in range(2):
        client.produce(
            topic,
            [
                Message(
                    value=b"v", timestamp_ms=BASE_TIME_MS + n * 10 + partition, partition=partition
                )
                for n in range(200)
            ],
            codec=codec,
        )
    start_ms, end_ms = BASE_TIME_MS + 500, BASE_TIME_MS + 1200
    span = subscribed(
        client, topic, startingTimestamp=str(start_ms), endingTimestamp=str(end_ms)
    ).select("partition", "offset")
    found = sorted((row["partition"], row["offset"]) for row in span.collect())
    assert found == [(p, n) for p in range(2) for n in range(50, 120)]


def test_a_start_after_the_last_record_is_an_error_unless_latest_is_asked_for(
    kafka: Kafka, client: SparkClient
) -> None:
    topic = kafka.topic(config=KEPT)
    client.produce(topic, numbered(5))
    late = str(BASE_TIME_MS + 1_000_000)
    with pytest.raises(PySparkException, match=r"(?i)no offset|matched"):
        subscribed(client, topic, startingTimestamp=late).count()
    options = {"startingOffsetsByTimestampStrategy": "latest"}
    assert subscribed(client, topic, startingTimestamp=late, **options).count() == 0


@pytest.mark.parametrize("codec", others_slow(reversed(CODECS)))
def test_what_spark_writes_comes_back(kafka: Kafka, client: SparkClient, codec: str) -> None:
    topic = kafka.topic(partitions=2)
    rows = [
        (topic, b"k%d" % n, b"v%d" % n * 20, n % 2, [("n", bytearray(b"%d" % n))])
        for n in range(50)
    ]
    columns = (
        "topic string, key binary, value binary, partition int, "
        "headers array<struct<key: string, value: binary>>"
    )
    frame = client.spark.createDataFrame(
        [(t, bytearray(k), bytearray(v), p, h) for t, k, v, p, h in rows], columns
    )
    (
        frame.write.format("kafka")
        .option("kafka.bootstrap.servers", client.bootstrap_servers)
        .option("kafka.compression.type", codec)
        .option("includeHeaders", "true")
        .save()
    )
    for partition in range(2):
        received = client.read(topic, partition, 0, 100)
        expected = [row for row in rows if row[3] == partition]
        assert [(m.key, m.value, m.headers) for m in received] == [
            (k, v, (("n", bytes(h[0][1])),)) for _, k, v, _, h in expected
        ]


def test_nulls_that_spark_writes_come_back(kafka: Kafka, client: SparkClient) -> None:
    topic = kafka.topic()
    frame = client.spark.createDataFrame(
        [(topic, None, "v"), (topic, "k", None), (topic, "", "")],
        "topic string, key string, value string",
    ).coalesce(1)
    write_records(frame, client.bootstrap_servers)
    found = {(m.key, m.value) for m in client.read(topic, 0, 0, 10)}
    assert found == {(None, b"v"), (b"k", None), (b"", b"")}


def test_a_record_above_the_topics_limit_fails_the_job(kafka: Kafka, client: SparkClient) -> None:
    topic = kafka.topic(config={"max.message.bytes": "2000"})
    frame = client.spark.createDataFrame(
        [(topic, "k", "x" * 5000)], "topic string, key string, value string"
    )
    with pytest.raises(Py4JJavaError, match="RecordTooLargeException"):
        write_records(frame, client.bootstrap_servers)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_stream_split_into_more_parts_than_partitions_has_each_record_once(
    kafka: Kafka, client: SparkClient, tmp_path: Path, isolation: str
) -> None:
    topic = kafka.topic(partitions=2)
    checkpoint = str(tmp_path / "checkpoint")

    def read_available() -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []

        def keep(rows: DataFrame, batch_id: int) -> None:
            parts = rows.rdd.getNumPartitions()
            found.extend((r["partition"], r["offset"], parts) for r in rows.collect())

        query = (
            client.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", client.bootstrap_servers)
            .option("kafka.isolation.level", isolation)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("minPartitions", 6)
            .load()
            .select("partition", "offset")
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", checkpoint)
            .foreachBatch(keep)
            .start()
        )
        assert query.awaitTermination(60)
        return found

    def produce(count: int, start: int) -> None:
        for partition in range(2):
            client.produce(
                topic, [Message(value=b"v%d" % n, partition=partition) for n in range(count)]
            )

    produce(300, 0)
    first = read_available()
    assert sorted((p, n) for p, n, _ in first) == [(p, n) for p in range(2) for n in range(300)]
    assert {parts for _, _, parts in first} == {6}
    # Started again, the stream goes on after what its checkpoint holds.
    produce(40, 300)
    second = read_available()
    assert sorted((p, n) for p, n, _ in second) == [
        (p, n) for p in range(2) for n in range(300, 340)
    ]
    assert read_available() == []


def test_a_stream_takes_a_bounded_number_at_a_time(
    kafka: Kafka, client: SparkClient, tmp_path: Path
) -> None:
    topic = kafka.topic(config=KEPT)
    client.produce(topic, numbered(100))
    sizes: list[int] = []
    query = (
        client.spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", client.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 40)
        .load()
        .writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda rows, _: sizes.append(rows.count()))
        .start()
    )
    assert query.awaitTermination(60)
    assert sum(sizes) == 100
    assert max(sizes) <= 40


def test_a_stream_from_topic_to_topic(kafka: Kafka, client: SparkClient, tmp_path: Path) -> None:
    source, target = (kafka.topic(hint, config=KEPT) for hint in ("source", "target"))
    client.produce(source, numbered(120))
    query = (
        client.spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", client.bootstrap_servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("key", f.upper(f.col("value").cast("string")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", client.bootstrap_servers)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert [(m.key, m.value) for m in client.read(target, 0, 0, 200)] == [
        (m.key, (m.value or b"").upper()) for m in numbered(120)
    ]


def test_topics_are_found_by_pattern(kafka: Kafka, client: SparkClient) -> None:
    prefix = f"pattern-{uuid.uuid4().hex[:8]}"
    for suffix in ("a", "b"):
        client.create_topic(f"{prefix}-{suffix}", 1, KEPT)
        client.produce(f"{prefix}-{suffix}", numbered(3))
    frame: Any = (
        client.spark.read.format("kafka")
        .option("kafka.bootstrap.servers", client.bootstrap_servers)
        .option("subscribePattern", f"{prefix}-.*")
        .load()
    )
    counts = {row["topic"]: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert counts == {f"{prefix}-a": 3, f"{prefix}-b": 3}

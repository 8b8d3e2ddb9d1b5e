"""The exactly-once sink: each micro-batch appears once, even if its writer is killed or fenced."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.cimpl import Message
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from barnabas.app.testing import Kafka
from barnabas.demo.closing import ResultTally
from barnabas.spark import exactly_once
from barnabas.spark.exactly_once import TransactionalWriter, writer_name
from barnabas.spark.kafka_io import json_values, read_stream
from barnabas.spark.record_writer import KafkaRecord, OutgoingRecord
from barnabas.spark.sink import Output, ResultSink
from support.patience import PATIENCE_S

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

TIMEOUT_S = PATIENCE_S
EVENT = StructType(
    [StructField("event_id", StringType()), StructField("event_time_ms", LongType())]
)


def plan(checkpoint: Path, batch_id: int, ends: dict[str, int], topic: str) -> None:
    """What Spark writes before it runs a micro-batch."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": f"id-of-{checkpoint.name}"}))
    (checkpoint / "offsets" / str(batch_id)).write_text(f"v1\n{{}}\n{json.dumps({topic: ends})}")


class World:
    """A source and two result topics, a checkpoint, and writers one after another."""

    def __init__(self, kafka: Kafka, directory: Path) -> None:
        self.kafka = kafka
        self.query = kafka.name("query")
        self.source = kafka.topic("source", partitions=2)
        self.targets = [kafka.topic("totals"), kafka.topic("ranks")]
        self.checkpoint = directory / "checkpoint"
        self.writers: list[TransactionalWriter] = []

    def writer(self, checkpoint: Path | None = None) -> TransactionalWriter:
        writer = TransactionalWriter(
            self.kafka.bootstrap_servers, self.query, str(checkpoint or self.checkpoint)
        )
        self.writers.append(writer)
        return writer

    def plan(self, batch_id: int, checkpoint: Path | None = None) -> None:
        ends = {"0": 10 * batch_id + 5, "1": 10 * batch_id + 7}
        plan(checkpoint or self.checkpoint, batch_id, ends, self.source)

    def records(self, batch_id: int) -> list[OutgoingRecord]:
        return [
            (target, f"key-{number}", f"{batch_id}-{number}")
            for target in self.targets
            for number in range(3)
        ]

    def write(self, writer: TransactionalWriter, batch_id: int) -> bool:
        self.plan(batch_id)
        return writer.write(batch_id, self.records(batch_id))

    def read(self) -> list[Message]:
        return read_committed(self.kafka, self.targets)

    def values(self) -> list[str]:
        return sorted(f"{m.topic()} {(m.value() or b'').decode()}" for m in self.read())

    def values_of(self, *batches: int) -> list[str]:
        return sorted(
            f"{t} {batch}-{n}" for t in self.targets for batch in batches for n in (0, 1, 2)
        )


@pytest.fixture
def world(kafka: Kafka, tmp_path: Path) -> Iterator[World]:
    world = World(kafka, tmp_path)
    yield world
    for writer in world.writers:
        writer.close()


def read_committed(kafka: Kafka, topics: list[str]) -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": kafka.name("reader"),
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
    messages = []
    ended = 0
    while ended < len(topics):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        if message.error():
            error = message.error()
            assert error is not None
            assert error.code() == KafkaError._PARTITION_EOF
            ended += 1
        else:
            messages.append(message)
    consumer.close()
    return messages


def test_a_micro_batch_that_is_committed_is_not_written_again(world: World) -> None:
    writer = world.writer()
    assert world.write(writer, 0)
    assert not world.write(writer, 0)
    assert not world.write(world.writer(), 0)  # as after a crash, by another process
    assert world.write(world.writer(), 1)
    assert world.values() == world.values_of(0, 1)


def test_offsets_and_number_are_committed_with_the_records(world: World) -> None:
    world.write(world.writer(), 3)
    consumer = world.kafka.consumer(group_id=writer_name(world.query))
    places = [TopicPartition(world.source, partition) for partition in (0, 1)]
    found = consumer.committed(places, TIMEOUT_S)
    consumer.close()
    assert [place.offset for place in found] == [35, 37]
    for place in found:
        assert json.loads(place.metadata or "") == {"checkpoint": "id-of-checkpoint", "batch": 3}


def test_what_a_killed_writer_left_open_is_never_seen(world: World) -> None:
    world.write(world.writer(), 0)
    killed = world.kafka.producer(transactional_id=writer_name(world.query))
    killed.init_transactions(TIMEOUT_S)
    killed.begin_transaction()
    killed.produce(world.targets[0], "1-0", "key-0")
    assert killed.flush(TIMEOUT_S) == 0
    assert world.write(world.writer(), 1)
    killed.purge()
    assert world.values() == world.values_of(0, 1)


def test_a_writer_that_slept_through_its_replacement_is_fenced(world: World) -> None:
    sleeper = world.writer()
    world.write(sleeper, 0)
    assert world.write(world.writer(), 1)
    with pytest.raises(KafkaException):
        world.write(sleeper, 2)
    assert world.values() == world.values_of(0, 1)
    assert not world.write(sleeper, 1)  # it takes the id again, and sees what is there
    assert world.write(sleeper, 2)
    assert world.values() == world.values_of(0, 1, 2)


def test_a_new_checkpoint_begins_anew(world: World, tmp_path: Path) -> None:
    world.write(world.writer(), 0)
    other = tmp_path / "other"
    world.plan(0, other)
    assert world.writer(other).write(0, world.records(0))
    assert world.values() == sorted(world.values_of(0) * 2)


def test_a_micro_batch_without_results_moves_on(world: World) -> None:
    world.plan(0)
    assert world.writer().write(0, [])
    assert not world.writer().write(0, [])
    assert world.values() == []


def test_a_full_queue_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Producer
    monkeypatch.setattr(
        exactly_once, "Producer", lambda config: made({**config, "queue.buffering.max.messages": 2})
    )
    assert world.write(world.writer(), 0)
    assert world.values() == world.values_of(0)


def test_a_client_that_is_stuck_is_left_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = threading.Event()

    class StuckProducer(exactly_once.Producer):  # type: ignore[misc,name-defined]  # of C
        def send_offsets_to_transaction(self, *arguments: Any) -> None:
            assert woken.wait(60)
            super().send_offsets_to_transaction(*arguments)

    writer = world.writer()
    world.write(writer, 0)
    with monkeypatch.context() as patch:
        patch.setattr(exactly_once, "Producer", StuckProducer)
        patch.setattr(exactly_once, "CALL_TIMEOUT_SECONDS", 5.0)
        patch.setattr(exactly_once, "_GRACE_SECONDS", -4.9)
        writer.close()
        with pytest.raises(KafkaException, match="_TIMED_OUT"):
            world.write(writer, 1)
    assert world.write(writer, 1)
    woken.set()
    assert not world.write(writer, 1)
    assert world.values() == world.values_of(0, 1)


def test_a_record_that_cannot_be_written_leaves_no_transaction_behind(world: World) -> None:
    writer = world.writer()
    world.plan(0)
    unfit: Any = (world.targets[0], "key", 5)
    with pytest.raises(TypeError):
        writer.write(0, [*world.records(0), unfit])
    assert world.write(writer, 0)
    assert world.values() == world.values_of(0)


def test_who_is_not_told_what_is_committed_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class UntoldConsumer(exactly_once.Consumer):  # type: ignore[misc,name-defined]  # of C
        def committed(self, *_arguments: Any) -> list[Any]:
            error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            return [SimpleNamespace(error=error, metadata=None)]

    world.write(world.writer(), 0)
    monkeypatch.setattr(exactly_once, "Consumer", UntoldConsumer)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        world.write(world.writer(), 0)
    assert world.values() == world.values_of(0)


def test_a_planned_micro_batch_is_needed(world: World) -> None:
    world.plan(0)
    with pytest.raises(FileNotFoundError):
        world.writer().write(1, [])


def test_a_reader_counts_whole_micro_batches(world: World) -> None:
    writer = world.writer()
    for batch_id in (0, 1):
        world.write(writer, batch_id)
    headers = [message.headers() or [] for message in world.read()]
    for change, right in (
        (headers, [True, True]),
        (headers[1:], [False, False]),
        ([*headers, headers[0]], [False, False]),
        ([*headers[1:], headers[-1]], [True, False]),
        ([*headers, []], [False, True]),
    ):
        tally = ResultTally()
        for each in change:
            tally.add(each)
        assert [check.right for check in tally.checks()] == right


class DiesAfterWriting(ResultSink):
    """Spark never hears that the second micro-batch was written."""

    def write(self, rows: DataFrame, batch_id: int) -> None:
        super().write(rows, batch_id)
        assert batch_id == 0, "killed here"


def test_spark_runs_a_micro_batch_again_and_it_is_there_once(
    spark: SparkSession, world: World
) -> None:
    kafka = world.kafka
    kafka.produce(
        world.source, [json.dumps({"event_id": str(n), "event_time_ms": n}) for n in range(30)]
    )
    output = Output(world.targets[0], list, lambda row: row["event_id"])

    def run(kind: type[ResultSink]) -> None:
        servers = kafka.bootstrap_servers
        sink = kind(world.writer(), [(output, None)])
        events = read_stream(
            spark,
            servers,
            world.source,
            json_values(EVENT),
            offsets_per_trigger_max=12,
            is_committed_only=True,
        )
        query = (
            events.select("event_id")
            .writeStream.option("checkpointLocation", str(world.checkpoint))
            .trigger(availableNow=True)
            .foreachBatch(sink.write)
            .start()
        )
        query.awaitTermination(120)

    with pytest.raises(StreamingQueryException, match="killed here"):
        run(DiesAfterWriting)
    written = len(world.read())
    assert 12 < written < 30
    run(ResultSink)
    values = [json.loads(message.value() or b"") for message in world.read()]
    assert sorted(int(value["event_id"]) for value in values) == list(range(30))


def test_a_timestamp_of_0_is_kept_and_its_batch_is_written_once(world: World) -> None:
    def records(batch: int) -> list[KafkaRecord]:
        given = enumerate([0, 5] if batch % 2 else [5, 6])
        target = world.targets[0]
        return [KafkaRecord(target, b"k", f"{batch}-{n}".encode(), at) for n, at in given]

    writer = world.writer()
    for batch in range(4):
        world.plan(batch)
        assert writer.write(batch, records(batch))
        assert not writer.write(batch, records(batch))
    restarted = world.writer()
    assert not restarted.write(3, records(3))
    found = [((m.value() or b"").decode(), m.timestamp()[1]) for m in world.read()]
    assert found == [
        *(("0-0", 5), ("0-1", 6), ("1-0", 0), ("1-1", 5)),
        *(("2-0", 5), ("2-1", 6), ("3-0", 0), ("3-1", 5)),
    ]


def test_a_writer_of_timestamps_of_0_is_fenced_by_the_next_one(world: World) -> None:
    target = world.targets[0]
    old = world.writer()
    world.plan(0)
    old.write(0, [KafkaRecord(target, b"k", b"0-0", 0)])
    world.plan(1)
    world.writer().write(1, [KafkaRecord(target, b"k", b"1-0", 0)])
    world.plan(2)
    with pytest.raises(KafkaException):
        old.write(2, [KafkaRecord(target, b"k", b"2-0", 0)])
    assert [m.value() for m in world.read()] == [b"0-0", b"1-0"]

"""Results exactly once, without Spark: what tasks leave open, and what the driver commits of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.cimpl import Message
from pyspark import TaskContext
from pyspark.sql import SparkSession

from barnabas.app.testing import Kafka
from barnabas.kafka.transactions import TransactionControl
from barnabas.spark.datasource.committer import task_prefix
from barnabas.spark.datasource.options import options_of
from barnabas.spark.datasource.protocol import CheckpointBehindError, NotPreparedError
from barnabas.spark.datasource.task import TaskPlace, close_connections
from barnabas.spark.exactly_once import BATCH_HEADER, RECORDS_HEADER
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import (
    Notes,
    Parcel,
    Results,
    Written,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.query import SparkQuery
from barnabas.sql.spark.results import ExactlyOnce, ResultRecords, ResultSink, TaskResults
from barnabas.sql.spark.worker import ResultFunction
from support.sql_queries import plans_of

(PLAN,) = plans_of(
    "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON');"
    "CREATE STREAM c AS SELECT * FROM s;",
    {"s": 1, "C": 1},
)


class World:
    """One query's topic, its tasks and its drivers."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.topic = kafka.topic("results", 1, {"retention.ms": "-1"})  # its records are old
        self.query = kafka.name("query")
        self.sinks: list[ResultSink] = []
        self.ends = 0

    def to(self, checkpoint: str = "first", *, marks_all: bool = False) -> ExactlyOnce:
        options = options_of(self.kafka.bootstrap_servers, {})
        return ExactlyOnce(options, self.query, checkpoint, marks_all)

    def driver(self, checkpoint: str = "first") -> ResultSink:
        sink = ResultSink(self.to(checkpoint).committer(), lambda notes, count: None)
        self.sinks.append(sink)
        return sink

    def task(self, to: ExactlyOnce, batch: int, number: int, *keys: bytes) -> list[Any]:
        """The parcels of a task with these results, the value being the batch's number."""
        place = TaskPlace(task_prefix(to.name), batch, number)
        results = TaskResults(to, ResultRecords(self.topic, 0, 1), place)
        values, times = [str(batch).encode()] * len(keys), [1_700_000_000_000 + batch] * len(keys)
        results.write(Results(keys, values, times, None))
        written = [Written(one, was_retried=False) for one in results.prepare()]
        return [Notes(written=results.count), *written]

    def read(self) -> list[Message]:
        """What readers of committed records see, in order: fails while a transaction is open."""
        producer = self.kafka.producer()
        producer.produce(self.topic, b"end", f"end {self.ends}")
        producer.flush()
        consumer = self.kafka.consumer(self.topic, isolation_level="read_committed")
        found: list[Message] = []
        try:
            while True:
                message = consumer.poll(20)
                assert message is not None, "a transaction is open"
                assert message.error() is None
                if message.key() == f"end {self.ends}".encode():
                    break
                if message.value() != b"end":
                    found.append(message)
        finally:
            consumer.close()
        self.ends += 1
        return found

    def pairs(self) -> list[tuple[bytes | None, bytes | None]]:
        return sorted((m.key() or b"", m.value()) for m in self.read())


@pytest.fixture
def world(kafka: Kafka) -> Iterator[World]:
    made = World(kafka)
    yield made
    for sink in made.sinks:
        assert sink._committer is not None
        sink._committer.close()
    close_connections()


def tasks(*parcels: Any, failure: Exception | None = None) -> Callable[[], list[bytes]]:
    """Return what runs the tasks of a micro-batch."""

    def collect() -> list[bytes]:
        if failure is not None:
            raise failure
        return [encode_parcel(parcel) for parcel in parcels]

    return collect


def test_a_micro_batch_counts_when_the_driver_commits_it(world: World) -> None:
    driver, to = world.driver(), world.to()
    first, second = world.task(to, 0, 0, b"a", b"b"), world.task(to, 0, 1, b"c")
    driver.write(tasks(*first, *second), 0)
    driver.write(tasks(*world.task(to, 1, 0)), 1)
    assert world.pairs() == [(b"a", b"0"), (b"b", b"0"), (b"c", b"0")]
    assert (driver.tally.figures.batches, driver.tally.figures.written) == (2, 3)
    assert all(m.headers() is None for m in world.read())


def test_a_micro_batch_that_is_decided_is_not_written_again(world: World) -> None:
    to = world.to()
    world.driver().write(tasks(*world.task(to, 0, 0, b"a")), 0)
    # Spark does not know that it was, and runs it again in another process.
    driver = world.driver()
    driver.write(tasks(*world.task(to, 0, 0, b"a")), 0)
    driver.write(tasks(*world.task(to, 1, 0, b"a")), 1)
    assert world.pairs() == [(b"a", b"0"), (b"a", b"1")]


def test_what_a_failed_micro_batch_left_open_is_aborted(world: World) -> None:
    driver, to = world.driver(), world.to()
    world.task(to, 0, 0, b"lost")
    with pytest.raises(ZeroDivisionError):
        driver.write(tasks(failure=ZeroDivisionError()), 0)
    assert world.pairs() == []
    world.driver().write(tasks(*world.task(to, 0, 0, b"a")), 0)
    assert world.pairs() == [(b"a", b"0")]


def test_what_others_have_prepared_is_aborted_where_a_transaction_is_lost(world: World) -> None:
    driver, to = world.driver(), world.to()
    lost, other = world.task(to, 0, 0, b"lost"), world.task(to, 0, 1, b"other")
    control = TransactionControl(to.options.access)
    control.abort(lost[1].prepared.transactional_id)
    control.close()
    with pytest.raises(NotPreparedError):
        driver.write(tasks(*lost, *other), 0)
    assert world.pairs() == []


def test_what_a_copy_of_an_older_checkpoint_has_prepared_is_aborted(world: World) -> None:
    driver, to = world.driver(), world.to()
    driver.write(tasks(*world.task(to, 5, 0, b"a")), 5)
    with pytest.raises(CheckpointBehindError):
        driver.write(tasks(*world.task(to, 4, 0, b"again")), 4)
    assert world.pairs() == [(b"a", b"5")]


class Session:
    """All that a query that does not start asks of Spark."""

    def newSession(self) -> Session:  # noqa: N802  Spark's name
        return self


def test_the_last_decision_goes_with_the_checkpoint(world: World, tmp_path: Path) -> None:
    driver, to = world.driver(), world.to()
    driver.write(tasks(*world.task(to, 5, 0, b"a")), 5)
    options = SparkQueryOptions(world.kafka.bootstrap_servers, str(tmp_path))
    query = SparkQuery(PLAN, options, cast("SparkSession", Session()))
    query._committer = driver._committer
    checkpoint = Path(query.checkpoint_directory)
    checkpoint.mkdir()
    query.delete()
    assert not checkpoint.exists()
    query.delete()
    committer = to.committer()
    assert committer.take_over() is None
    committer.close()


def test_a_new_owner_fences_the_one_before_whatever_its_checkpoint(world: World) -> None:
    before = world.driver()
    before.write(tasks(*world.task(world.to(), 5, 0, b"a")), 5)
    after = world.driver("second")
    with pytest.raises(KafkaException, match="fenced"):
        before.write(tasks(*world.task(world.to(), 6, 0, b"late")), 6)
    after.write(tasks(*world.task(world.to("second"), 0, 0, b"b")), 0)
    assert world.pairs() == [(b"a", b"5"), (b"b", b"0")]


def test_results_with_headers_and_without_are_in_one_transaction_in_their_order(
    world: World,
) -> None:
    to = world.to()
    results = TaskResults(
        to, ResultRecords(world.topic, 0, 1), TaskPlace(task_prefix(to.name), 0, 0)
    )
    at = [1_700_000_000_000, 0]
    headers = [(("h", b"1"), ("n", None)), ()]
    results.write(Results([], [], [], None))
    results.write(Results([b"a", None], [b"1", b"2"], at, headers))
    results.write(Results(pa.array([b"b", b"c"]), pa.array([b"3", None]), np.array(at), None))
    (prepared,) = results.prepare()
    assert (prepared.records, results.count) == (4, 4)
    world.driver().write(tasks(Written(prepared, was_retried=False)), 0)
    found = [(m.key(), m.value(), m.timestamp()[1], m.headers()) for m in world.read()]
    assert found == [
        (b"a", b"1", at[0], [("h", b"1"), ("n", None)]),
        (None, b"2", at[1], None),
        (b"b", b"3", at[0], None),
        (b"c", None, at[1], None),
    ]


def test_the_same_results_have_the_same_checksum_and_others_another(world: World) -> None:
    to = world.to()
    sums = [
        world.task(to, batch, 0, *keys)[1].prepared.checksum
        for batch, keys in enumerate([(b"a", b"b"), (b"b", b"a")])
    ]
    again = world.task(to, 0, 0, b"a", b"b")[1].prepared.checksum
    assert sums[0] == again
    assert sums[0] != sums[1]
    world.driver()  # ends them


class Context:
    """What Spark tells a task."""

    def getLocalProperty(self, name: str) -> str:  # noqa: N802  Spark's name
        assert name == "streaming.sql.batchId"
        return "7"

    def partitionId(self) -> int:  # noqa: N802  Spark's name
        return 3

    def attemptNumber(self) -> int:  # noqa: N802  Spark's name
        return 0


def test_the_last_stage_of_a_micro_batch_writes_its_parcels_and_gives_what_the_driver_commits(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskContext, "get", Context)
    write = ResultFunction(world.to(), ResultRecords(world.topic, 0, 1), 5)
    results: list[Parcel] = [
        Results(pa.array([b"a", None]), pa.array([None, b"2"]), np.array([0, 9]), None),
        Notes(read=2),
        Results([b"b"], [b"3"], [1_700_000_000_000], [(("h", b"1"),)]),
    ]
    rows = [pa.array([5], pa.int32())]
    batches = [
        pa.RecordBatch.from_arrays([*rows, pa.array([encode_parcel(one)])], ["label", "parcel"])
        for one in results
    ]
    (made,) = write(batches)
    assert made.column(0).to_pylist() == [5, 5]
    notes, written = (decode_parcel(data) for data in made.column(1).to_pylist())
    assert isinstance(notes, Notes)
    assert isinstance(written, Written)
    assert (notes.read, notes.written, written.prepared.task) == (2, 3, 3)
    world.driver().write(tasks(notes, written), 7)
    found = [(m.key(), m.value(), m.timestamp()[1], m.headers()) for m in world.read()]
    assert found == [
        (b"a", None, 0, None),
        (None, b"2", 9, None),
        (b"b", b"3", 1_700_000_000_000, [("h", b"1")]),
    ]


def test_marks_say_how_many_results_a_task_has_written(world: World) -> None:
    to = world.to(marks_all=True)
    world.driver().write(tasks(*world.task(to, 3, 1, b"a", b"b")), 3)
    marks = [dict(cast("Any", m.headers())) for m in world.read()]
    assert [mark[BATCH_HEADER] for mark in marks] == [b"first/3/1"] * 2
    assert [mark[RECORDS_HEADER] for mark in marks] == [b"2"] * 2

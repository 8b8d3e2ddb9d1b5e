"""SQL queries that run on Spark, over a real broker, compared with the driver in memory.

One query for each shape that Spark treats differently; what stages do in micro-batches and
partitions is tested without Spark.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from client_matrix import KEPT
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions
from confluent_kafka.cimpl import Message
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from barnabas.app.testing import Kafka
from barnabas.kafka.admin import Listed
from barnabas.spark import kafka_ranges
from barnabas.spark.small_batches import collect_binary, optional_rules
from barnabas.spark.supervision import QueryState
from barnabas.spark.time_slices import TopicTimes
from barnabas.sql.engine.queries import PersistentQuery
from barnabas.sql.engine.spark_runner import SparkQueryRunner
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.steps import QueryPlan, StreamSink, TableSink
from barnabas.sql.query_failures import SYSTEM, USER
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark.checkpoint import CheckpointError
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.parcels import Note, Range, encode_parcel
from barnabas.sql.spark.placement import MissingTopicError
from barnabas.sql.spark.query import SparkQuery, configure_session
from barnabas.sql.spark.reading import range_parcels
from barnabas.sql.spark.topology import task_of
from barnabas.sql.spark.warming import warm
from barnabas.sql.spark.worker import SCHEMA
from support.node_process import wait_until
from support.spark import shared_session
from support.sql_queries import plans_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning", "ignore::DeprecationWarning"
)

SOURCES = """
CREATE STREAM s (k STRING KEY, v INT, site STRING) WITH (kafka_topic='{s}', value_format='JSON');
CREATE TABLE t (id STRING PRIMARY KEY, name STRING) WITH (kafka_topic='{t}', value_format='JSON');
CREATE STREAM r (k STRING KEY, name STRING) WITH (kafka_topic='{t}', value_format='JSON');
"""
FILTER = "CREATE STREAM q AS SELECT k, v FROM s WHERE v > 3;"
WINDOWED = (
    "CREATE TABLE q AS SELECT k, COUNT(*) n FROM s WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY k;"
)
JOIN_AND_GROUP = (
    "CREATE TABLE q AS SELECT t.name, SUM(s.v) total FROM s JOIN t ON s.site = t.id "
    "GROUP BY t.name;"
)
JOIN_TABLE = "CREATE STREAM q AS SELECT s.k, s.v, t.name FROM s JOIN t ON s.k = t.id;"
JOIN_STREAMS = (
    "CREATE STREAM q AS SELECT s.k, s.v, r.name FROM s LEFT JOIN r WITHIN 2 SECONDS ON s.k = r.k;"
)
PARTITIONS = 2
START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return shared_session()


class World:
    """Topics of one test, a query over them, and what the driver makes of the same records."""

    def __init__(self, kafka: Kafka, spark: SparkSession, directory: Path) -> None:
        self.kafka, self.spark, self.directory = kafka, spark, directory
        self.names = {name: kafka.topic(name, PARTITIONS, KEPT) for name in ("s", "t", "q")}
        self.sent: list[tuple[str, TopicRecord]] = []
        self.notes: list[Note] = []
        self.queries: list[SparkQuery] = []

    def plan(self, statement: str) -> QueryPlan:
        topics = dict.fromkeys(self.names.values(), PARTITIONS)
        (plan,) = plans_of(SOURCES.format(**self.names) + statement, topics)
        assert isinstance(plan.step, StreamSink | TableSink)
        return replace(
            plan,
            query_id=self.kafka.name("query"),
            step=replace(plan.step, topic=self.names["q"]),
        )

    def query(self, plan: QueryPlan, **options: object) -> SparkQuery:
        made = SparkQuery(
            plan,
            SparkQueryOptions(
                self.kafka.bootstrap_servers,
                str(self.directory),
                auto_offset_reset="earliest",
                on_notes=lambda notes, count: self.notes.extend(notes),
                **{"reads_in_workers": True, **options},  # type: ignore[arg-type]
            ),
            self.spark,
        )
        self.queries.append(made)
        return made

    def send(self, count: int, seed: int = 1) -> None:
        """Records of both topics: rows of the table come first in time."""
        random = Random(seed)
        producer = self.kafka.producer()
        for number in range(count):
            at_ms = START_MS + 100 * (len(self.sent) + 1)
            name = "t" if number < 5 else "s"
            key = f"k{number if name == 't' else random.randrange(5)}"
            value = (
                {"NAME": f"n{number % 2}"}
                if name == "t"
                else {"V": random.randrange(10), "SITE": f"k{random.randrange(5)}"}
            )
            record = TopicRecord(key.encode(), json.dumps(value).encode(), at_ms)
            self.sent.append((self.names[name], record))
            producer.produce(self.names[name], record.value, record.key, timestamp=at_ms)
        producer.flush()

    def send_stream(self, count: int) -> None:
        """Records of the stream alone, as fast as they go, one key after the other."""
        producer = self.kafka.producer()
        for number in range(count):
            at_ms = START_MS + 100 * (len(self.sent) + 1)
            value = json.dumps({"V": number % 10, "SITE": f"k{number % 5}"}).encode()
            record = TopicRecord(f"k{number % 5}".encode(), value, at_ms)
            self.sent.append((self.names["s"], record))
            producer.produce(self.names["s"], record.value, record.key, timestamp=at_ms)
        producer.flush()

    def expected(self, plan: QueryPlan) -> list[TopicRecord]:
        driver = Driver([plan], PlanCompiler(functions()))
        for topic, record in self.sent:
            driver.pipe(topic, TopicRecord(record.key, record.value, record.timestamp_ms))
        return driver.topics[plan.step.topic]

    def results(self, count: int) -> list[Message]:
        """So many results, and no more."""
        consumer = self.kafka.consumer(self.names["q"], isolation_level="read_committed")
        found: list[Message] = []
        try:
            while len(found) < count:
                found += [m for m in consumer.consume(count, 1.0) if not m.error()]
            return found + consumer.consume(1, 0.2)
        finally:
            consumer.close()


@pytest.fixture
def world(kafka: Kafka, spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    made = World(kafka, spark, tmp_path)
    yield made
    for query in made.queries:
        query.stop()


def rows(records: list[TopicRecord]) -> list[tuple[bytes | None, bytes | None, int]]:
    return sorted((r.key or b"", r.value, r.timestamp_ms) for r in records)


def last(messages: list[Message]) -> dict[bytes, tuple[bytes | None, int]]:
    return {m.key() or b"": (m.value(), m.timestamp()[1]) for m in messages}


def test_labels_are_where_spark_hashes_them(spark: SparkSession) -> None:
    numbers = [0, 1, 2, 7, 1_000_003, 2**31 - 1, -5]
    text = ", ".join(f"pmod(hash(CAST({number} AS INT)), 7)" for number in numbers)
    (row,) = spark.sql(f"SELECT {text}").collect()
    assert list(row) == [task_of(number, 7) for number in numbers]


@pytest.mark.parametrize("is_placed", [True, False])
def test_ranges_come_as_parcels_where_their_labels_are(
    world: World, monkeypatch: pytest.MonkeyPatch, is_placed: bool
) -> None:
    """A version of Spark whose scans cannot say where rows are gets them in one partition."""
    spark = world.spark.newSession()
    if not is_placed:
        monkeypatch.setattr(kafka_ranges, "plan_labelled_scans", lambda _session: False)
    topic = world.kafka.topic("topic", 5)
    producer = world.kafka.producer()
    for number in range(25):
        producer.produce(topic, b"", partition=number % 5)
    producer.flush()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", world.kafka.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", json.dumps({topic: {str(each): each for each in range(5)}}))
        .load()
    )
    labels, tasks = (70, 71, -72), 3
    made, was_placed = range_parcels(records, 3, 1, topic, labels, tasks)
    assert was_placed == is_placed
    # As it was before: Spark compares the type of a label with the checkpoint's.
    assert made.schema["label"] == SCHEMA["label"]
    placed = made.select("*", f.spark_partition_id().alias("task"))
    stream = placed.writeStream.format("memory").queryName("ranges").trigger(once=True).start()
    stream.awaitTermination()
    rows = spark.table("ranges").collect()
    assert {(row.label, bytes(row.parcel)) for row in rows} == {
        (labels[partition % 3], encode_parcel(Range(3, 1, topic, partition, partition, 5)))
        for partition in range(5)
    }
    assert all(row.task == (task_of(row.label, tasks) if is_placed else 0) for row in rows)


@pytest.mark.parametrize("is_rdd", [True, False])
def test_rows_are_collected_as_spark_does(spark: SparkSession, is_rdd: bool) -> None:
    """The rows of a micro-batch are an RDD; those of any other plan Spark collects itself."""
    rows = [(number, bytearray(range(256)) * number) for number in (0, 1, 40, 2)]
    given = spark.sparkContext.parallelize(rows, 3)
    frame = spark.createDataFrame(given, "label int, parcel binary")  # type: ignore[type-var]
    if not is_rdd:
        frame = frame.select("label", "parcel")
    name = frame._jdf.queryExecution().analyzed().getClass().getSimpleName()
    assert (name == "LogicalRDD") == is_rdd
    assert collect_binary(spark, frame._jdf, 1) == [bytes(data) for _, data in rows]
    assert collect_binary(spark, frame.limit(0)._jdf, 1) == []


def test_collecting_fails_as_spark_does(spark: SparkSession) -> None:
    def fail(number: int) -> tuple[int, bytearray]:
        raise ValueError(f"no row {number}")

    given = spark.sparkContext.parallelize([1], 1).map(fail)
    frame = spark.createDataFrame(given, "label int, parcel binary")  # type: ignore[type-var]
    with pytest.raises(Exception, match="no row 1") as of_spark:
        frame.collect()
    with pytest.raises(of_spark.type, match="no row 1"):
        collect_binary(spark, frame._jdf, 1)


def test_threads_without_a_session_have_the_settings_of_the_first(spark: SparkSession) -> None:
    """Those that serve a task's state are such threads."""
    spark.newSession()  # each changes where threads look
    found: list[str] = []

    def ask() -> None:
        jvm: Any = spark.sparkContext._jvm
        sessions = jvm.org.apache.spark.sql.classic.SparkSession
        assert sessions.getActiveSession().isEmpty()
        settings = jvm.org.apache.spark.sql.internal.SQLConf.get()
        found.append(settings.getConfString("spark.sql.codegen.factoryMode", "FALLBACK"))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == ["NO_CODEGEN"]


def test_hadoop_s_settings_are_sent_without_their_origins(spark: SparkSession) -> None:
    configure_session(spark.newSession(), 1)
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    assert settings.size() > 100
    assert settings.get("fs.defaultFS") == "file:///"
    assert not settings.getPropertySources("fs.defaultFS")


def test_rules_that_spark_needs_are_not_among_the_optional(spark: SparkSession) -> None:
    optional = {name.rpartition(".")[2] for name in optional_rules(spark).split(",")}
    assert {"CollapseProject", "ColumnPruning", "PushDownPredicates"} <= optional
    assert not {"FinishAnalysis", "ReplaceExpressions", "ExtractPythonUDFs"} & optional


def test_files_of_this_machine_need_no_process(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop's own would look for `chmod` for each file, checksums would be files beside it."""
    jvm: Any = spark.sparkContext._jvm
    files = jvm.org.apache.hadoop.fs.FileSystem.getLocal(
        spark.sparkContext._jsc.hadoopConfiguration()
    )
    assert files.getRaw().getClass().getName() == "PlainLocalFiles"
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "directory" / "file"))
    files.create(path, True).close()
    assert [p.name for p in (tmp_path / "directory").iterdir()] == ["file"]
    private = jvm.org.apache.hadoop.fs.permission.FsPermission("640")
    files.setPermission(path, private)
    assert (tmp_path / "directory" / "file").stat().st_mode & 0o777 == 0o640


def test_a_filter_passes_every_record_with_its_timestamp(world: World) -> None:
    plan = world.plan(FILTER)
    world.send(100)
    producer = world.kafka.producer()
    producer.produce(world.names["s"], b"no JSON", b"k1")
    producer.flush()
    query = world.query(plan)
    query.start()
    query.process_all()
    want = world.expected(plan)
    got = world.results(len(want))
    made = [TopicRecord(m.key(), m.value(), m.timestamp()[1]) for m in got]
    assert rows(made) == rows(want)
    status = query.status()
    assert (status.state, status.figures.read, status.figures.failed) == (
        QueryState.RUNNING,
        96,
        1,
    )
    assert world.notes[0][0].startswith("Failed to deserialize a record of")
    assert status.lag == {world.names["s"]: 0}


def test_readers_take_over_from_each_other_where_the_checkpoint_says(world: World) -> None:
    plan = world.plan(FILTER)
    for number, reads_in_workers in enumerate((False, True, False)):
        world.send(40, seed=number)
        query = world.query(plan, reads_in_workers=reads_in_workers)
        query.start()
        query.process_all()
        assert query.status().lag == {world.names["s"]: 0}
        assert sum(query.read_of_batches.values()) == query.figures.read == 35
        query.stop()
    want = world.expected(plan)
    made = [TopicRecord(m.key(), m.value(), m.timestamp()[1]) for m in world.results(len(want))]
    assert rows(made) == rows(want)


@pytest.mark.parametrize("reads_in_workers", [True, False])
@pytest.mark.parametrize("guarantee", list(Guarantee))
def test_exactly_once_a_query_sees_only_what_is_committed(
    world: World, guarantee: Guarantee, reads_in_workers: bool
) -> None:
    plan = world.plan(FILTER)
    producer = world.kafka.producer(**{"transactional.id": world.kafka.name("writer")})
    producer.init_transactions()
    for number, is_commit in enumerate((True, False, False, True)):
        producer.begin_transaction()
        for value in range(5):
            text = json.dumps({"V": 10 * (number + 1) + value})
            producer.produce(world.names["s"], text, b"k", headers=[("h", b"%d" % number)])
        producer.flush()
        if is_commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    query = world.query(plan, guarantee=guarantee, reads_in_workers=reads_in_workers)
    query.start()
    query.process_all()
    seen = (1, 4) if guarantee is Guarantee.EXACTLY_ONCE else (1, 2, 3, 4)
    got = world.results(5 * len(seen))
    assert [json.loads(m.value() or b"")["V"] for m in got] == [
        10 * number + value for number in seen for value in range(5)
    ]
    assert [m.headers() for m in got] == [
        [("h", b"%d" % (number - 1))] for number in seen for _ in range(5)
    ]
    assert query.figures.read == 5 * len(seen)


def test_a_window_goes_on_after_a_restart_in_its_middle(world: World) -> None:
    plan = world.plan(WINDOWED)
    world.send(80)
    first = world.query(plan)
    first.start()
    first.process_all()
    written = first.status().figures.written
    first.stop()
    assert first.status().state is QueryState.PAUSED
    world.send(80, seed=2)
    first.start()
    first.process_all()
    status = first.status()
    assert status.state_pages > 0
    want = world.expected(plan)
    got = world.results(written + status.figures.written)
    assert last(got) == {r.key: (r.value, r.timestamp_ms) for r in want}
    # All windows of a key are in the partition of the key alone.
    places = {(m.key() or b"")[:-8]: m.partition() for m in got}
    assert all(places[(m.key() or b"")[:-8]] == m.partition() for m in got)
    first.stop()
    other = replace(world.plan(FILTER), query_id=plan.query_id)
    with pytest.raises(CheckpointError, match="the checkpoint of another plan"):
        world.query(other).start()


def test_state_goes_on_whoever_reads_the_topic(world: World) -> None:
    plan = world.plan(WINDOWED)
    written = 0
    for number, reads_in_workers in enumerate((False, True, False)):
        world.send(80, seed=number)
        query = world.query(plan, reads_in_workers=reads_in_workers)
        query.start()
        query.process_all()
        # Ranges are where their labels are, without a shuffle; records have to be sent there.
        assert ("Exchange" in query.explain()) != reads_in_workers
        assert sum(query.read_of_batches.values()) == query.figures.read > 50
        written += query.figures.written
        query.stop()
    want = world.expected(plan)
    assert last(world.results(written)) == {r.key: (r.value, r.timestamp_ms) for r in want}


def test_the_first_micro_batch_after_a_start_is_small(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_ranges, "FIRST_RECORDS_MAX", 20)
    plan = world.plan(WINDOWED)
    for _ in range(2):
        world.send_stream(100)
        query = world.query(plan)
        query.start()
        query.process_all()
        first, rest = query.read_of_batches.values()
        assert 10 < first <= 20
        assert first + rest == 100
        query.stop()


def test_a_join_is_complete_when_it_catches_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_ranges, "FIRST_RECORDS_MAX", 40)
    producer = world.kafka.producer()
    plan = world.plan(JOIN_TABLE)
    for start in range(2):
        # All rows of the table are older than all records of the stream, which has another order.
        for number in range(400):
            is_row = number < 200
            value = {"NAME": f"{start} {number}"} if is_row else {"V": number, "SITE": ""}
            key = b"k%d" % (number if is_row else number * 7 % 200)
            at_ms = START_MS + 400 * start + number
            record = TopicRecord(key, json.dumps(value).encode(), at_ms)
            topic = world.names["t" if is_row else "s"]
            world.sent.append((topic, record))
            producer.produce(topic, record.value, record.key, timestamp=at_ms)
        producer.flush()
        query = world.query(plan, records_per_batch_max=60)
        query.start()
        query.process_all()
        query.stop()
        assert (query.figures.read, query.figures.written) == (400, 200)
        first, *rest = query.read_of_batches.values()
        assert 20 <= first <= 40
        # Of each topic, at most 60.
        assert all(30 <= count <= 120 for count in rest[:-1])
    found = [TopicRecord(m.key(), m.value(), m.timestamp()[1]) for m in world.results(400)]
    assert rows(found) == rows(world.expected(plan))


def test_a_failed_lookup_of_times_fails_the_micro_batch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: TopicTimes, _time_ms: int, _places: object) -> Listed:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the leader is silent"))

    world.send(30)
    query = world.query(world.plan(JOIN_TABLE), records_per_batch_max=10)
    with monkeypatch.context() as patched:
        patched.setattr(TopicTimes, "offsets_after", refuse)
        query.start()
        wait_until(lambda: query.life.state is QueryState.ERROR, "the query ends", 60)
    (error,) = query.status().errors
    assert "the leader is silent" in error.message
    assert error.type == SYSTEM
    # Where the topics go on need not be known: then it is from the second round on.
    monkeypatch.setattr(kafka_ranges, "planned_sources", lambda _checkpoint: ["{}"])
    query.life.restart()
    wait_until(lambda: query.figures.read == 30, "all records", 60)
    assert max(query.read_of_batches.values()) <= 15


def test_state_goes_on_where_more_partitions_move_no_key_and_else_stops(world: World) -> None:
    plan = world.plan(WINDOWED)
    query = world.query(plan)
    world.send_stream(40)
    query.start()
    query.process_all()
    written = query.figures.written

    def fails_after(partitions: int) -> str:
        topic = world.names["s"]
        added = world.kafka.admin.create_partitions([NewPartitions(topic, partitions)])
        added[topic].result()
        world.send_stream(40)
        wait_until(lambda: query.life.state is QueryState.ERROR, "the query ends", 60)
        return query.status().errors[-1].message

    assert "has more than 2 partitions now" in fails_after(4)
    query.life.restart()
    query.process_all()
    written += query.figures.written
    want = world.expected(plan)
    assert last(world.results(written)) == {r.key: (r.value, r.timestamp_ms) for r in want}

    assert "has more than 4 partitions now" in fails_after(5)
    query.life.restart()
    (error,) = query.status().errors[-1:]
    assert "has 5 partitions, and had 2 when the query began" in error.message
    assert error.type == USER


def test_two_streams_are_joined_as_columns_and_go_on_after_a_restart(world: World) -> None:
    plan = world.plan(JOIN_STREAMS)
    written = 0
    for seed in (1, 2):
        world.send(300, seed)
        query = world.query(plan)
        query.start()
        query.process_all()
        assert query.figures.read == 300
        assert query.figures.by_columns > 100
        written += query.figures.written
        query.stop()
    want = world.expected(plan)
    got = [(m.key() or b"", m.value() or b"", m.timestamp()[1]) for m in world.results(written)]
    assert sorted(got) == rows(want)
    assert len({name for _, value, _ in got if (name := json.loads(value)["NAME"])}) == 2


def test_a_join_and_a_group_are_two_operators_and_exactly_once(world: World) -> None:
    plan = world.plan(JOIN_AND_GROUP)
    world.send(60)
    query = world.query(plan, guarantee=Guarantee.EXACTLY_ONCE, emits_every_change=True)
    query.start()
    query.process_all()
    want = world.expected(plan)
    got = world.results(len(want))
    assert last(got) == {r.key: (r.value, r.timestamp_ms) for r in want}
    assert len(got) == len(want)
    assert all(m.headers() is None for m in got)


def test_why_a_query_failed_is_told(world: World) -> None:
    plan = world.plan(WINDOWED)
    assert isinstance(plan.step, TableSink)
    with pytest.raises(MissingTopicError, match="nowhere"):
        world.query(replace(plan, step=replace(plan.step, topic="nowhere"))).start()
    query = world.query(plan, guarantee=Guarantee.EXACTLY_ONCE)
    query.start()
    query.process_all()
    stream = query.life.stream
    assert stream is not None
    query._sink._committer = object()  # type: ignore[union-attr,assignment]
    world.send(10)
    assert query.await_end(60)
    status = query.status()
    assert status.state is QueryState.ERROR
    (error,) = status.errors
    assert error.message.startswith("AttributeError: 'object' object has no attribute 'commit'")
    assert error.type == "UNKNOWN"


def test_the_engine_s_runner_hosts_queries(world: World) -> None:
    plan = world.plan(WINDOWED)
    world.send(40)
    servers, directory = world.kafka.bootstrap_servers, str(world.directory)
    options = SparkQueryOptions(servers, directory, reads_in_workers=True)
    runner = SparkQueryRunner(options, lambda: world.spark)
    settings = {"ksql.streams.auto.offset.reset": "earliest"}
    asked = PersistentQuery(plan, "", "group", settings)
    assert "stores ['Aggregate-1-figures', 'Aggregate-1']" in runner.describe(asked)
    assert "Topics are read by the workers, as columns" in runner.describe(asked)
    hosted = runner.start(asked, is_paused=True)
    assert hosted.state is QueryState.PAUSED
    hosted.resume()
    want = {r.key: (r.value, r.timestamp_ms) for r in world.expected(plan)}
    assert last(world.results(len(want))) == want
    assert hosted.state is QueryState.RUNNING
    # Results can be read before their micro-batch is over.
    wait_until(lambda: sum(batch.input_rows for batch in hosted.batches()) == 35, "the figures")
    hosted.stop(forget=True)
    assert not (world.directory / plan.query_id).exists()
    missing = replace(plan, step=replace(plan.step, topic="nowhere"))  # type: ignore[arg-type]
    failed = runner.start(PersistentQuery(missing, "", "group", settings))
    assert failed.state is QueryState.ERROR
    assert failed.failures[0].type == "USER"
    runner.close()


def test_a_session_is_warmed_by_a_query_that_leaves_nothing(world: World) -> None:
    world.send(20)
    options = SparkQueryOptions(world.kafka.bootstrap_servers, str(world.directory))
    no, yes = threading.Event(), threading.Event()
    yes.set()
    topic = world.names["s"]
    assert warm(world.spark, options, no, no, topic)
    assert not warm(world.spark, options, no, yes, topic), "a statement waits"
    assert not warm(world.spark, options, yes, no, topic), "the server ends"
    assert list(world.directory.iterdir()) == []
    nowhere = world.kafka.name("nowhere")
    with pytest.raises(StreamingQueryException, match="UnknownTopicOrPartition"):
        warm(world.spark, options, no, no, nowhere)

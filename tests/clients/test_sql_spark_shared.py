"""SQL queries that share one stream of Spark's, over a real broker."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from client_matrix import KEPT
from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic, OffsetSpec
from pyspark.sql import SparkSession

from barnabas.app.testing import Kafka
from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import CoordinatorError
from barnabas.spark.supervision import QueryState
from barnabas.sql.engine.queries import PersistentQuery
from barnabas.sql.engine.shared_runner import SharedHosted
from barnabas.sql.engine.spark_runner import SparkHosted, SparkQueryRunner
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.compiler import PlanCompiler
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.spark import shared_members
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import Written
from barnabas.sql.spark.placement import place_plan
from barnabas.sql.spark.shared_commits import SharedCommits
from barnabas.sql.spark.shared_worker import member_parcel
from support.node_process import wait_until
from support.spark import shared_session
from support.spark_process import SparkProcess
from support.sql_queries import plans_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning", "ignore::DeprecationWarning"
)

SOURCES = """
CREATE STREAM s (k STRING KEY, v INT, site STRING) WITH (kafka_topic='{s}', value_format='JSON');
CREATE TABLE t (k STRING PRIMARY KEY, name STRING) WITH (kafka_topic='{t}', value_format='JSON');
"""
FILTER = "CREATE STREAM q AS SELECT k, v FROM s WHERE v > 3;"
COUNT = "CREATE TABLE q AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k;"
JOIN = "CREATE STREAM q AS SELECT s.k, s.v, t.name FROM s JOIN t ON s.k = t.k;"
SLOW = pytest.mark.slow
MOVES = "CREATE TABLE q AS SELECT site, COUNT(*) AS n FROM s GROUP BY site;"
ONCE = {"ksql.streams.processing.guarantee": "exactly_once_v2"}
BOTH = pytest.mark.parametrize(
    "settings", [pytest.param({}, id="at-least-once"), pytest.param(ONCE, id="exactly-once")]
)
"""At least once, micro-batches last; exactly once, they end with their ranges."""
GUARANTEES = pytest.mark.parametrize(
    "settings",
    [pytest.param({}, id="at-least-once"), pytest.param(ONCE, id="exactly-once", marks=SLOW)],
)
STARVED = "Python worker failed to connect back"
"""Spark waits ten seconds for the start of a process, which a busy machine may need."""
PROCESS = Path(__file__).with_name("sql_spark_shared_process.py")
PARTITIONS = 3
START_MS = 1_700_000_000_000
Last = dict[bytes, tuple[bytes | None, int]]


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return shared_session()


class World:
    """Topics of one test, a runner, and what the driver makes of the same records."""

    def __init__(self, kafka: Kafka, spark: SparkSession, directory: Path) -> None:
        self.kafka, self.spark, self.directory = kafka, spark, directory
        self.names = {name: kafka.topic(name, PARTITIONS, KEPT) for name in ("s", "t")}
        self.sent: list[tuple[str, TopicRecord]] = []
        self.notes: list[Any] = []
        self.all_asked: dict[str, PersistentQuery] = {}
        self.runner = self.new_runner()

    def new_runner(self, **options: Any) -> SparkQueryRunner:
        return SparkQueryRunner(
            SparkQueryOptions(
                self.kafka.bootstrap_servers,
                str(self.directory),
                **{"is_shared": True, **options},
            ),
            lambda: self.spark,
            note=lambda query_id, entry: self.notes.append((query_id, entry)),
        )

    def asked(self, statement: str, reset: str = "earliest", **settings: Any) -> PersistentQuery:
        topics = dict.fromkeys(self.names.values(), PARTITIONS)
        (plan,) = plans_of(SOURCES.format(**self.names) + statement, topics)
        sink = self.kafka.topic("q", PARTITIONS, KEPT)
        plan = replace(
            plan,
            query_id=self.kafka.name("query"),
            step=replace(plan.step, topic=sink),  # type: ignore[arg-type,type-var]
        )
        properties = {"ksql.streams.auto.offset.reset": reset, **settings}
        asked = self.all_asked[plan.query_id] = PersistentQuery(plan, "", "group", properties)
        return asked

    def start(self, asked: PersistentQuery) -> SharedHosted:
        hosted = self.runner.start(asked)
        assert isinstance(hosted, SharedHosted)
        return hosted

    def send(self, first: int, count: int, name: str = "s") -> None:
        """Records of 7 keys, which differ by their number."""
        producer = self.kafka.producer()
        for number in range(first, first + count):
            value: Mapping[str, Any] = {"V": number % 10, "SITE": f"site{number % 4}"}
            if name == "t":
                value = {"NAME": f"n{number}"}
            at_ms = START_MS + 100 * number
            record = TopicRecord(f"k{number % 7}".encode(), json.dumps(value).encode(), at_ms)
            self.sent.append((self.names[name], record))
            producer.produce(self.names[name], record.value, record.key, timestamp=at_ms)
        producer.flush()

    def piped(self, plan: QueryPlan, skipped: int = 0) -> list[TopicRecord]:
        """The driver's results of all that was sent."""
        driver = Driver([plan], PlanCompiler(functions()))
        for topic, record in self.sent[skipped:]:
            driver.pipe(topic, TopicRecord(record.key, record.value, record.timestamp_ms))
        return driver.topics[plan.step.topic]

    def expected(self, plan: QueryPlan, skipped: int = 0) -> Last:
        return {r.key or b"": (r.value, r.timestamp_ms) for r in self.piped(plan, skipped)}

    def results(self, plan: QueryPlan) -> list[Any]:
        """All that the sink has now and that is committed, in the order of each partition."""
        topic = plan.step.topic
        consumer = self.kafka.consumer(isolation_level="read_committed", enable_partition_eof=True)
        try:
            beginning = [TopicPartition(topic, one, OFFSET_BEGINNING) for one in range(PARTITIONS)]
            consumer.assign(beginning)
            found: list[Any] = []
            ended: set[int | None] = set()
            while len(ended) < PARTITIONS:
                for message in consumer.consume(500, 1.0):
                    error = message.error()
                    if error is None:
                        found.append(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
            return found
        finally:
            consumer.close()

    def ends(self, topic: str) -> list[int]:
        """Of each partition."""
        asked = {TopicPartition(topic, one): OffsetSpec.latest() for one in range(PARTITIONS)}
        listed = self.kafka.admin.list_offsets(asked)
        return [listed[place].result().offset for place in asked]

    def last(self, plan: QueryPlan) -> Last:
        return {m.key() or b"": (m.value(), m.timestamp()[1]) for m in self.results(plan)}

    def await_last(self, plan: QueryPlan, skipped: int = 0) -> None:
        want = self.expected(plan, skipped)
        self.await_results(plan, lambda: self.last(plan) == want)

    def await_count(self, plan: QueryPlan, count: int) -> None:
        self.await_results(plan, lambda: len(self.results(plan)) == count)

    def await_results(self, plan: QueryPlan, are_right: Callable[[], bool]) -> None:
        """Wait for a query's results; start it again if it failed because the machine is busy."""

        def is_there() -> bool:
            if are_right():
                return True
            for hosted in self.runner._running:
                is_asked = hosted.is_of(self.all_asked[plan.query_id])
                if is_asked and hosted.state is QueryState.ERROR:
                    assert STARVED in hosted.failures[-1].message, hosted.failures
                    hosted.restart()
            return False

        wait_until(is_there, "the results", 90)


@pytest.fixture
def world(kafka: Kafka, spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    made = World(kafka, spark, tmp_path)
    yield made
    made.runner.close()


@BOTH
def test_queries_of_all_kinds_share_one_stream(world: World, settings: dict[str, str]) -> None:
    world.send(0, 5, "t")
    world.send(5, 200)
    asked = [world.asked(statement, **settings) for statement in (FILTER, COUNT, JOIN)]
    hosted = [world.start(one) for one in asked]
    for one in asked:
        world.await_last(one.plan)
    world.send(300, 200)
    late = world.asked(COUNT)
    hosted.append(world.start(late))
    for one in (*asked, late):
        world.await_last(one.plan)
    assert [one.state for one in hosted] == [QueryState.RUNNING] * 4
    # Each record once: what is written of a stream is exact, as nothing failed.
    assert len(world.results(asked[0].plan)) == len(world.piped(asked[0].plan))
    wait_until(lambda: hosted[0].figures["rows_in"] == 400, "the figures")
    wait_until(lambda: sum(one.input_rows for one in hosted[0].batches()) == 400, "the batches")
    want = sorted((end, end) for end in world.ends(world.names["s"]))
    # They are published behind the figures.
    wait_until(lambda: sorted(hosted[0].positions().values()) == want, "the positions")
    assert "It shares micro-batches" in world.runner.describe(late)
    assert "transformWithState" in world.runner.describe(late)


def test_a_query_that_moves_records_has_its_own_stream(world: World) -> None:
    world.send(0, 50)
    asked = world.asked(MOVES)
    assert isinstance(world.runner.start(asked), SparkHosted)
    world.await_last(asked.plan)
    reason = "It has its own micro-batches: its records move to the partitions of other keys"
    assert reason in world.runner.describe(asked)


@GUARANTEES
def test_records_stay_where_one_task_does_all(world: World, settings: dict[str, str]) -> None:
    world.runner.close()
    world.runner = world.new_runner(tasks_max=1)
    world.send(0, 50)
    asked = [world.asked(statement, **settings) for statement in (MOVES, FILTER)]
    hosted = [world.start(one) for one in asked]
    for one in asked:
        world.await_last(one.plan)
    world.send(50, 50)
    for one in asked:
        world.await_last(one.plan)
    assert "transformWithState" in hosted[0].explain()
    assert len(world.results(asked[1].plan)) == len(world.piped(asked[1].plan))


def test_a_join_is_complete_when_it_catches_up_exactly_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_members, "_RECORDS_MIN", 60)
    world.runner.close()
    world.runner = world.new_runner(records_per_batch_max=60)
    producer = world.kafka.producer()
    # All rows of the table are older than all records of the stream, which has another order.
    for number in range(400):
        is_row = number < 200
        name, value = ("t", {"NAME": f"n{number}"}) if is_row else ("s", {"V": number, "SITE": ""})
        key = b"k%d" % (number if is_row else number * 7 % 200)
        record = TopicRecord(key, json.dumps(value).encode(), START_MS + number)
        world.sent.append((world.names[name], record))
        producer.produce(world.names[name], record.value, key, timestamp=record.timestamp_ms)
    producer.flush()
    asked = world.asked(JOIN, **ONCE)
    hosted = world.start(asked)
    world.await_count(asked.plan, 200)
    found = sorted((m.key(), m.value(), m.timestamp()[1]) for m in world.results(asked.plan))
    want = world.piped(asked.plan)
    assert len(want) == 200
    assert found == sorted((r.key, r.value, r.timestamp_ms) for r in want)
    assert all(batch.input_rows <= 120 for batch in hosted.batches())


def test_only_what_is_committed_is_read(world: World) -> None:
    asked, other = world.asked(FILTER, **ONCE), world.asked(FILTER)
    world.start(asked)
    world.start(other)
    producer = world.kafka.producer(transactional_id=world.kafka.name("writer"))
    producer.init_transactions()
    for number, is_kept in ((1, True), (2, False), (3, True)):
        producer.begin_transaction()
        for v in range(4, 9):
            value = json.dumps({"V": v, "SITE": f"{number}"}).encode()
            producer.produce(world.names["s"], value, b"k", timestamp=START_MS + v)
        producer.flush()
        if is_kept:
            producer.commit_transaction()
        else:
            world.await_count(other.plan, 10)
            world.await_count(asked.plan, 5)
            producer.abort_transaction()
    world.await_count(asked.plan, 10)
    world.await_count(other.plan, 15)


def test_what_was_decided_is_in_the_state_once_and_not_written_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has not committed a micro-batch whose results are committed."""
    asked = [world.asked(statement, **ONCE) for statement in (COUNT, FILTER)]
    commit, failures = SharedCommits.commit, [RuntimeError("the disk is full")]

    def fail_afterwards(commits: SharedCommits, number: int, written: Sequence[Written]) -> None:
        commit(commits, number, written)
        if written and failures:
            raise failures.pop()

    world.send(0, 40)
    hosts = [world.start(one) for one in asked]
    for one in asked:
        world.await_last(one.plan)
    monkeypatch.setattr(SharedCommits, "commit", fail_afterwards)
    world.send(40, 40)
    wait_until(lambda: {one.state for one in hosts} == {QueryState.ERROR}, "the failure", 60)
    written = len(world.results(asked[1].plan))
    assert written > len(world.piped(asked[1].plan)) / 2
    # One that comes later has to do the same before it reads on.
    hosts[1].restart()
    world.send(80, 40)
    world.await_last(asked[1].plan)
    hosts[0].restart()
    for one in asked:
        world.await_last(one.plan)
    assert len(world.results(asked[1].plan)) == len(world.piped(asked[1].plan))
    assert [one.state for one in hosts] == [QueryState.RUNNING] * 2


@SLOW
def test_results_that_brokers_abort_after_the_decision_are_written_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [world.asked(statement, **ONCE) for statement in (COUNT, FILTER)]
    commit, failures = TransactionControl.commit, [CoordinatorError("the coordinator is away")]

    def abort_instead(control: TransactionControl, one: Any) -> bool:
        if not failures:
            return commit(control, one)
        control.abort(one.transactional_id)
        raise failures.pop()

    world.send(0, 40)
    hosts = [world.start(one) for one in asked]
    for one in asked:
        world.await_last(one.plan)
    monkeypatch.setattr(TransactionControl, "commit", abort_instead)
    world.send(40, 40)
    wait_until(lambda: {one.state for one in hosts} == {QueryState.ERROR}, "the failure", 60)
    for hosted in hosts:
        hosted.restart()
    for one in asked:
        world.await_last(one.plan)
    assert not failures
    assert len(world.results(asked[1].plan)) == len(world.piped(asked[1].plan))


@SLOW
def test_a_query_from_the_latest_offset_reads_on_where_it_was(world: World) -> None:
    first = world.asked(COUNT)
    world.send(0, 40)
    world.start(first)
    world.await_last(first.plan)
    asked = world.asked(COUNT, "latest")
    hosted = world.start(asked)
    hosted.pause()
    assert hosted.state is QueryState.PAUSED
    world.send(40, 60)
    world.await_last(first.plan)
    assert world.last(asked.plan) == {}
    hosted.resume()
    world.await_last(asked.plan, skipped=40)


def test_state_and_offsets_outlive_the_server(world: World) -> None:
    counted, filtered = world.asked(COUNT), world.asked(FILTER)
    world.send(0, 70)
    for one in (counted, filtered):
        world.start(one)
        world.await_last(one.plan)
    world.runner.close()
    world.send(70, 70)
    # The setting is for new queries alone.
    world.runner = world.new_runner(is_shared=False)
    world.start(counted)
    world.await_last(counted.plan)
    world.start(filtered)
    world.await_last(filtered.plan)
    assert len(world.results(filtered.plan)) == len(world.piped(filtered.plan))


def test_one_server_at_a_time_has_the_stream(world: World) -> None:
    asked = world.asked(FILTER)
    world.start(asked)
    second = world.new_runner()
    try:
        refused = second.start(asked)
        assert refused.state is QueryState.ERROR
        assert "in use by another server" in refused.failures[-1].message
        own = world.asked(MOVES)
        world.send(0, 20)
        assert second.start(own).state is QueryState.RUNNING
        assert "its records move" in second.describe(own)
        world.await_last(own.plan)
    finally:
        second.close()


@SLOW
def test_a_query_changes_its_guarantee(world: World) -> None:
    asked = world.asked(FILTER)
    world.send(0, 40)
    hosted = world.start(asked)
    for guarantee in (ONCE, {}):
        world.await_last(asked.plan)
        hosted.pause()
        hosted = world.start(replace(asked, properties={**asked.properties, **guarantee}))
        world.send(len(world.sent), 40)
    world.await_last(asked.plan)
    assert len(world.results(asked.plan)) == len(world.piped(asked.plan))


@SLOW
def test_a_query_whose_checkpoint_was_deleted_begins_anew(world: World) -> None:
    asked = world.asked(COUNT)
    world.send(0, 40)
    hosted = world.start(asked)
    world.await_last(asked.plan)
    hosted.pause()
    shutil.rmtree(world.directory / asked.query_id)
    hosted.resume()
    # Its old state would count all records twice.
    wait_until(lambda: hosted.figures["rows_in"] == 80, "all records again", 60)
    world.await_last(asked.plan)


def test_a_query_that_fails_leaves_the_others(world: World) -> None:
    failing, counted = world.asked(JOIN), world.asked(COUNT)
    world.send(0, 7, "t")
    world.send(10, 40)
    hosts = [world.start(one) for one in (failing, counted)]
    for one in (failing, counted):
        world.await_last(one.plan)
    table = world.names["t"]
    world.kafka.admin.delete_topics([table])[table].result()
    wait_until(lambda: hosts[0].state is QueryState.ERROR, "the failure", 60)
    assert hosts[0].failures[-1].type == "USER", hosts[0].failures
    world.send(60, 40)
    world.await_last(counted.plan)
    assert hosts[1].state is QueryState.RUNNING
    hosts[0].restart()
    assert hosts[0].state is QueryState.ERROR
    made = NewTopic(table, PARTITIONS, 1, config=KEPT)
    wait_until(lambda: not failed(world.kafka.admin.create_topics([made])[table]), "the topic")

    def starts() -> bool:
        hosts[0].restart()
        return hosts[0].state is QueryState.RUNNING

    wait_until(starts, "the start")
    world.await_last(failing.plan)
    # The new topic has fewer records than were read of the old one.
    world.send(105, 3, "t")
    wait_until(lambda: hosts[0].figures["rows_in"] == 7 + 80 + 3, "the new topic's records", 60)
    world.send(110, 40)
    world.await_last(failing.plan)


@GUARANTEES
def test_a_query_whose_code_fails_reads_its_records_again(
    world: World, settings: dict[str, str]
) -> None:
    failing, counted = world.asked(COUNT, **settings), world.asked(COUNT, **settings)
    world.send(0, 40)
    hosts = [world.start(one) for one in (failing, counted)]
    for one in (failing, counted):
        world.await_last(one.plan)
    participant = world.runner._stream._participants[failing.query_id]
    assert hosts[0].state is QueryState.RUNNING
    broken = replace(place_plan(failing.plan, hosts[0]._options, None).hosted.hosting, plan="{}")
    participant.parcel = member_parcel(broken)

    def has_failed() -> bool:
        # A micro-batch that has begun still has the plan that works.
        world.send(len(world.sent), 5)
        return hosts[0].state is QueryState.ERROR

    wait_until(has_failed, "the failure", 90)
    world.await_last(counted.plan)
    assert "Error" in hosts[0].failures[-1].message
    hosts[0].restart()
    world.await_last(failing.plan)
    assert [one.state for one in hosts] == [QueryState.RUNNING] * 2


def test_spark_s_failure_stops_all_until_they_start_again(world: World) -> None:
    asked = [world.asked(COUNT), world.asked(FILTER)]
    world.send(0, 40)
    hosts = [world.start(one) for one in asked]
    for one in asked:
        world.await_last(one.plan)
    stream = world.runner._stream.life.stream
    assert stream is not None
    stream.stop()
    wait_until(lambda: {one.state for one in hosts} == {QueryState.ERROR}, "the failure")
    world.send(40, 40)
    for hosted in hosts:
        hosted.restart()
    for one in asked:
        world.await_last(one.plan)


def test_what_a_terminated_query_leaves_is_deleted(world: World) -> None:
    asked, other = world.asked(COUNT), world.asked(FILTER)
    world.send(0, 40)
    hosts = [world.start(one) for one in (asked, other)]
    for one in (asked, other):
        world.await_last(one.plan)

    def rows() -> int | None:
        """The rows of state, once a micro-batch has ended: its results come before."""
        operators = world.runner._stream.life.progress().get("stateOperators")
        return int(operators[0]["numRowsTotal"]) if operators else None

    wait_until(lambda: bool(rows()), "the state", 60)
    hosts[0].stop(forget=True)
    assert not world.runner._stream.knows(asked.query_id)
    wait_until(lambda: rows() == 0, "the deletion of its state", 60)
    again = world.start(asked)
    want = world.expected(asked.plan)
    wait_until(lambda: again.figures["rows_in"] == 40, "all records again", 60)
    assert world.last(asked.plan) == want


def test_partitions_that_a_topic_gets(world: World) -> None:
    filtered, counted = world.asked(FILTER), world.asked(COUNT)
    world.send(0, 40)
    hosts = [world.start(one) for one in (filtered, counted)]
    for one in (filtered, counted):
        world.await_last(one.plan)
    topic = world.names["s"]
    world.kafka.admin.create_partitions([NewPartitions(topic, PARTITIONS + 1)])[topic].result()
    world.send(40, 200)
    world.await_last(filtered.plan)
    wait_until(lambda: hosts[1].state is QueryState.ERROR, "the failure", 60)
    assert "more than 3 partitions now" in hosts[1].failures[-1].message
    hosts[1].restart()
    assert "create the query again" in hosts[1].failures[-1].message
    assert hosts[0].state is QueryState.RUNNING


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_nothing_is_lost_or_counted_twice_when_the_server_is_killed(
    world: World, tmp_path: Path, guarantee: str
) -> None:
    asked = [world.asked(COUNT), world.asked(JOIN), world.asked(FILTER)]
    paths = []
    for number, one in enumerate(asked):
        path = tmp_path / f"plan-{number}"
        path.write_text(encode_plan(one.plan), encoding="utf-8")
        paths.append(str(path))
    directory = str(world.directory / "state")
    arguments = [world.kafka.bootstrap_servers, directory, guarantee, *paths]
    world.send(0, 7, "t")
    for number in range(6):
        running = SparkProcess(PROCESS, arguments)
        try:
            for part in range(4):
                world.send(100 + 400 * number + 100 * part, 100)
                # The last time in the middle of what it does.
                wait_for(running, 1 + 90 * part * len(asked))
        finally:
            running.kill()
    running = SparkProcess(PROCESS, arguments)
    try:
        for one in asked:
            world.await_last(one.plan)
            want = sorted((r.key, r.value, r.timestamp_ms) for r in world.piped(one.plan))
            got = sorted((m.key(), m.value(), m.timestamp()[1]) for m in world.results(one.plan))
            if guarantee == "exactly_once_v2":
                assert got == want
            # At least once, some may be there again, but all of them are right.
            assert set(got) == set(want)
    finally:
        running.kill()


def wait_for(running: SparkProcess, records: int) -> None:
    """Wait until a process's queries have read so many, all of them together."""

    def has_read() -> bool:
        told = json.loads(running.ask())
        assert [one for one in told["failures"] if STARVED not in one] == []
        return bool(told["read"] >= records)

    wait_until(has_read, "the records", 300)


def failed(future: Any) -> bool:
    return future.exception() is not None

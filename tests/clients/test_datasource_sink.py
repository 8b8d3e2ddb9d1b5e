"""The exactly-once sink against brokers, without Spark: tasks, driver and crashes as calls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from time import time_ns

import pyarrow
import pytest
from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_CREATE_TIME, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType
from confluent_kafka.cimpl import Message

from barnabas.app.testing import Kafka
from barnabas.java.hash import murmur2
from barnabas.kafka import topic_log
from barnabas.kafka.transactions import TransactionControl
from barnabas.spark.datasource.committer import Committer, task_prefix
from barnabas.spark.datasource.journal import Journal
from barnabas.spark.datasource.options import SinkOptions, read_options
from barnabas.spark.datasource.protocol import (
    Abort,
    Commit,
    Decision,
    Effect,
    Event,
    LostTransactionError,
    NotPreparedError,
    Prepared,
    ReadDecision,
    WriteDecision,
)
from barnabas.spark.datasource.sink import JobWriter, close_committer
from barnabas.spark.datasource.task import (
    IdPool,
    TaskPlace,
    WriteError,
    close_connections,
    write_rows,
)
from support import apache_kafka
from support.cluster_processes import ClusterProcesses
from support.node_process import wait_until

TASKS = 2
ROWS = 20
PARTITIONS = 3


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One node of Apache Kafka."""
    if not apache_kafka.AVAILABLE:
        pytest.skip(apache_kafka.MISSING)
    directory = tmp_path_factory.mktemp("apache")
    with ClusterProcesses(directory, 1, program=apache_kafka.ApacheKafka()) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture(params=["barnabas", pytest.param("kafka", marks=pytest.mark.slow)])
def brokers(kafka_bootstrap_servers: str, request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A cluster of Barnabas, and one of Apache Kafka."""
    is_ours = request.param == "barnabas"
    servers = kafka_bootstrap_servers if is_ours else request.getfixturevalue("apache")
    with Kafka(servers, request.node.name) as handle:
        yield handle


class CrashError(Exception):
    """The driver dies."""


class CrashingCommitter(Committer):
    """Dies before, or after, it has done something of a kind."""

    crash: tuple[str, type[Effect]] | None = None

    def _do(self, effect: Effect) -> Event:
        if self.crash == ("before", type(effect)):
            raise CrashError
        event = super()._do(effect)
        if self.crash == ("after", type(effect)):
            raise CrashError
        return event


class World:
    """A sink and its topic. Each call of `tasks` is a new run in new processes."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.topic = kafka.topic("out", PARTITIONS)
        self.sink = kafka.name("sink")
        self.options: SinkOptions = read_options(
            {
                "kafka.bootstrap.servers": kafka.bootstrap_servers,
                "topic": self.topic,
                "decisionTopic": kafka.name("decisions"),
            }
        )
        self.prefix = task_prefix(self.sink)
        self.wanted: set[str] = set()
        self.committers: list[Committer] = []

    def close(self) -> None:
        for committer in self.committers:
            committer.close()
        close_connections()

    def tasks(self, batch: int, salt: str = "") -> list[Prepared]:
        return [self.task(batch, task, IdPool(), salt) for task in range(TASKS)]

    def task(self, batch: int, task: int, pool: IdPool, salt: str = "") -> Prepared:
        values = [f"{batch}/{task}/{n}{salt}" for n in range(ROWS)]
        rows = pyarrow.record_batch({"key": values, "value": values})
        place = TaskPlace(self.prefix, batch, task)
        (prepared,) = write_rows(self.options, place, iter([rows]), pool)
        assert prepared.records == ROWS
        return prepared

    def want(self, batch: int, salt: str = "") -> None:
        self.wanted |= {f"{batch}/{task}/{n}{salt}" for task in range(TASKS) for n in range(ROWS)}

    def committer(self, crash: tuple[str, type[Effect]] | None = None) -> Committer:
        committer = CrashingCommitter(self.options, self.sink)
        committer.crash = crash
        self.committers.append(committer)
        return committer

    def check(self) -> None:
        """Committed records are what is wanted, up to a last record of each partition."""
        producer = self.kafka.producer()
        places = [TopicPartition(self.topic, n, OFFSET_BEGINNING) for n in range(PARTITIONS)]
        for place in places:
            producer.produce(self.topic, "end", partition=place.partition)
        producer.flush(60)
        consumer = self.kafka.consumer(isolation_level="read_committed")
        consumer.assign(places)
        found: list[str] = []
        while found.count("end") < PARTITIONS:
            message = consumer.poll(60.0)
            assert message is not None, f"{len(found)} of {len(self.wanted)} records"
            found.append(message.value().decode())
        consumer.close()
        assert sorted(found) == sorted([*self.wanted, *["end"] * PARTITIONS])


@pytest.fixture
def world(brokers: Kafka) -> Iterator[World]:
    world = World(brokers)
    yield world
    world.close()


def test_batches_come_once_and_ids_are_used_again(world: World) -> None:
    pool, committer = IdPool(), world.committer()
    ids = set()
    for batch in range(3):
        prepared = [world.task(batch, task, pool) for task in range(TASKS)]
        ids |= {one.transactional_id for one in prepared}
        committer.commit(batch, prepared, was_retried=False)
        world.want(batch)
    assert len(ids) == TASKS
    world.check()


CRASHES = [("after", WriteDecision), ("after", Commit)]
MORE_CRASHES = [
    ("before", ReadDecision),
    ("after", ReadDecision),
    ("before", WriteDecision),
    ("before", Commit),
    ("before", Abort),
    ("after", Abort),
]


@pytest.mark.parametrize(
    "crash",
    [*CRASHES, *(pytest.param(one, marks=pytest.mark.slow) for one in MORE_CRASHES)],
    ids=lambda crash: f"{crash[0]} {crash[1].__name__}",
)
def test_a_driver_that_dies_is_followed_by_another(
    world: World, crash: tuple[str, type[Effect]]
) -> None:
    first = world.committer()
    first.commit(0, world.tasks(0), was_retried=False)
    world.want(0)
    world.want(1)
    if crash[1] is Abort:  # that comes in a second run only
        with pytest.raises(CrashError):
            world.committer(("after", WriteDecision)).commit(1, world.tasks(1), was_retried=False)
    with pytest.raises(CrashError):
        world.committer(crash).commit(1, world.tasks(1), was_retried=False)
    world.committer().commit(1, world.tasks(1), was_retried=False)
    world.check()


def test_a_driver_that_wakes_up_changes_nothing(world: World) -> None:
    zombie = world.committer()
    zombie.commit(0, world.tasks(0), was_retried=False)
    late = world.tasks(1)
    successor = world.committer()
    successor.commit(1, world.tasks(1), was_retried=False)
    zombie.commit(1, late, was_retried=False)
    successor.commit(2, world.tasks(2), was_retried=False)
    for batch in range(3):
        world.want(batch)
    world.check()


def test_a_commit_that_fails_aborts_only_what_is_not_decided(world: World) -> None:
    prepared = world.tasks(0)
    with pytest.raises(CrashError):
        world.committer(("after", WriteDecision)).commit(0, prepared, was_retried=False)
    world.committer().abort(0, prepared)  # as Spark does then
    world.committer().commit(0, world.tasks(0), was_retried=False)
    world.want(0)
    undecided = world.tasks(1)
    world.committer().abort(1, undecided)
    world.committer().commit(1, world.tasks(1), was_retried=False)
    world.want(1)
    world.check()


def time_out(world: World, one: Prepared) -> None:
    """End a transaction as brokers do when its time is over."""
    control = TransactionControl(world.options.access)
    control.abort(one.transactional_id)
    control.close()


def test_what_times_out_before_the_decision_is_told(world: World) -> None:
    prepared = world.tasks(0)
    time_out(world, prepared[1])
    committer = world.committer()
    with pytest.raises(NotPreparedError, match="nothing of it is written"):
        committer.commit(0, prepared, was_retried=False)
    committer.abort(0, prepared)
    committer.commit(0, world.tasks(0), was_retried=False)
    world.want(0)
    world.check()


@pytest.mark.parametrize("gone", [1, TASKS])
def test_what_times_out_after_the_decision_is_replaced(world: World, gone: int) -> None:
    prepared = world.tasks(0)
    with pytest.raises(CrashError):
        world.committer(("after", WriteDecision)).commit(0, prepared, was_retried=False)
    for one in prepared[:gone]:
        time_out(world, one)
    world.committer().commit(0, world.tasks(0), was_retried=False)
    world.want(0)
    world.check()


def test_what_cannot_be_replaced_is_told(world: World) -> None:
    prepared = world.tasks(0)
    with pytest.raises(CrashError):
        world.committer(("after", WriteDecision)).commit(0, prepared, was_retried=False)
    time_out(world, prepared[0])
    for _ in range(2):
        others = world.tasks(0, salt="x")
        committer = world.committer()
        with pytest.raises(LostTransactionError, match=f"{ROWS} records of tasks 0 are missing"):
            committer.commit(0, others, was_retried=False)
        committer.abort(0, others)
    world.wanted = {f"0/1/{n}" for n in range(ROWS)}
    world.check()


def test_what_a_killed_task_leaves_open_does_not_hold_up_readers(world: World) -> None:
    world.task(0, 0, IdPool())  # nobody hears of it
    committer = world.committer()
    committer.commit(0, world.tasks(0), was_retried=True)
    control = TransactionControl(world.options.access)
    wait_until(lambda: not control.open_ids(world.prefix), "the abort of the lost transaction")
    control.close()
    world.want(0)
    world.check()


def test_columns_become_records(brokers: Kafka) -> None:
    one, other = brokers.topic("one", 4), brokers.topic("other")
    options = read_options(
        {
            "kafka.bootstrap.servers": brokers.bootstrap_servers,
            "kafka.compression.type": "zstd",
            "decisionTopic": brokers.name("decisions"),
        }
    )
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    header = pyarrow.list_(pyarrow.struct({"key": pyarrow.string(), "value": pyarrow.binary()}))
    rows = pyarrow.record_batch(
        {
            "topic": [one, one, other],
            "partition": pyarrow.array([3, None, None], pyarrow.int32()),
            "key": pyarrow.array([b"k", b"key", None], pyarrow.binary()),
            "value": pyarrow.array(["v", None, "w"]),
            "timestamp": pyarrow.array([at, at, None], pyarrow.timestamp("us", "UTC")),
            "headers": pyarrow.array([[{"key": "h", "value": b"1"}], None, []], header),
        }
    )
    sink = brokers.name("sink")
    (prepared,) = write_rows(options, TaskPlace(task_prefix(sink), 0, 0), iter([rows]), IdPool())
    committer = Committer(options, sink)
    committer.commit(0, [prepared], was_retried=False)
    committer.close()
    close_connections()
    consumer = brokers.consumer(isolation_level="read_committed")
    places = [*((one, n) for n in range(4)), (other, 0)]
    consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
    messages = sorted(consumer.consume(3, 60.0), key=lambda m: m.value() or b"")
    consumer.close()
    assert [(m.topic(), m.key(), m.value()) for m in messages] == [
        (one, b"key", None),
        (one, b"k", b"v"),
        (other, None, b"w"),
    ]
    assert messages[0].partition() == (murmur2(b"key") & 0x7FFFFFFF) % 4  # as Java's producer
    assert messages[1].partition() == 3
    assert messages[1].headers() == [("h", b"1")]
    stamp = TIMESTAMP_CREATE_TIME, int(at.timestamp() * 1000)
    assert [m.timestamp() for m in messages[:2]] == [stamp, stamp]


def test_a_record_that_brokers_refuse_is_told(brokers: Kafka) -> None:
    topic = brokers.topic("small", config={"max.message.bytes": "1000"})
    options = read_options({"kafka.bootstrap.servers": brokers.bootstrap_servers, "topic": topic})
    rows = pyarrow.record_batch({"value": ["x" * 5_000]})
    place = TaskPlace(task_prefix(brokers.name("sink")), 0, 0)
    with pytest.raises(WriteError, match=r"not acknowledged|cannot write"):
        write_rows(options, place, iter([rows]), IdPool())


def test_a_row_without_a_topic_is_told(brokers: Kafka) -> None:
    options = read_options({"kafka.bootstrap.servers": brokers.bootstrap_servers})
    rows = pyarrow.record_batch({"value": ["x"], "topic": pyarrow.array([None], pyarrow.string())})
    place = TaskPlace(task_prefix(brokers.name("sink")), 0, 0)
    with pytest.raises(WriteError, match="a row has no topic"):
        write_rows(options, place, iter([rows]), IdPool())


def test_a_driver_that_wakes_up_leaves_its_successor_s_transactions_alone(world: World) -> None:
    zombie = world.committer()
    zombie.commit(0, world.tasks(0), was_retried=False)
    world.want(0)
    late = world.tasks(1)
    successor = world.committer(("after", WriteDecision))
    prepared = world.tasks(1)
    with pytest.raises(CrashError):
        successor.commit(1, prepared, was_retried=False)
    world.want(1)
    zombie._sweep(time_ns())  # as at the end of a commit
    zombie.abort(1, late)
    zombie.abort(0, [])
    control = TransactionControl(world.options.access)
    assert not control.lost(prepared)
    control.close()
    world.committer().commit(1, world.tasks(1), was_retried=False)
    world.check()


def test_a_decision_behind_what_another_sink_has_left_open_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = world.options
    first = Journal(options.connection, options.decision_topic, world.sink)
    first.take_over()
    other = world.kafka.producer(transactional_id=world.kafka.name("other"))
    other.init_transactions(60)
    other.begin_transaction()
    other.produce(options.decision_topic, "{}", "other", partition=0)
    assert other.flush(60) == 0
    decision = Decision(7, (Prepared(0, "x", 1, 2, 3, 4),))
    first.write(decision)

    class Reader(topic_log.Consumer):  # type: ignore[misc,name-defined]  # of C
        """The other's transaction ends when all that comes before it is read."""

        is_open = True

        def poll(self, timeout: float = 60.0) -> Message | None:
            message: Message | None = super().poll(timeout)
            if self.is_open and message is not None and message.error():
                other.abort_transaction(60)
                self.is_open = False
            return message

    monkeypatch.setattr(topic_log, "Consumer", Reader)
    second = Journal(options.connection, options.decision_topic, world.sink)
    second.take_over()
    assert second.last == decision


def test_decisions_are_kept_for_ever(world: World) -> None:
    options = world.options
    Journal(options.connection, options.decision_topic, world.sink).take_over()
    topic = ConfigResource(ResourceType.TOPIC, options.decision_topic)
    config = world.kafka.admin.describe_configs([topic])[topic].result(60)
    assert config["cleanup.policy"].value == "compact"


def test_a_decision_on_many_tasks_fits(world: World) -> None:
    options = world.options
    decisions = Journal(options.connection, options.decision_topic, world.sink)
    decisions.take_over()
    made = tuple(
        Prepared(task, f"{world.prefix}{task % 7:032x}.{task // 7}", 2**40, 0, 10**6, 2**62 + task)
        for task in range(10_000)
    )
    decisions.write(Decision(0, made))
    decisions.take_over()
    assert decisions.last == Decision(0, made)


def test_a_job_whose_tasks_are_all_killed_leaves_nothing_open(world: World) -> None:
    world.task(0, 0, IdPool())  # nobody hears of it
    JobWriter(world.options, world.sink).abort([None])
    close_committer()
    control = TransactionControl(world.options.access)
    wait_until(lambda: not control.open_ids(world.prefix), "the abort of the lost transaction")
    control.close()

"""A task's columns are written to their topic once or not at all, despite faults of brokers.

Each fault is an answer of the protocol that our own producer has to understand: the table has the
outcome of the transaction. With several nodes leaders and coordinators really move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from client_cluster import NODES, move_leaders
from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from barnabas.app.testing import Kafka
from barnabas.base.ids import TopicPartition as Place
from barnabas.cli.admin import Admin, partitions
from barnabas.cli.connection import Connection as Brokers
from barnabas.java.hash import java_abs, java_hash
from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import Connection, WireError
from barnabas.protocol.apis import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.spark.datasource.committer import Committer, task_prefix
from barnabas.spark.datasource.options import SinkOptions, read_options
from barnabas.spark.datasource.protocol import Prepared
from barnabas.spark.datasource.task import Transaction, WriteError, close_connections
from barnabas.spark.record_columns import RecordColumns

PIECES, RECORDS = 3, 40
"""A task's columns, and the records of each."""
STAMP_MS = 1_700_000_000_000

Call = Callable[[], Any]


class World:
    """A topic, a sink, and the transaction of its one task."""

    def __init__(
        self, kafka: Kafka, partitions: int = 1, config: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.kafka = kafka
        self.partitions = partitions
        self._ends = 0
        self.topic = kafka.topic("out", partitions, {"retention.ms": "-1", **config})
        self.sink = kafka.name("sink")
        self.id = f"{task_prefix(self.sink)}one"
        self.options: SinkOptions = read_options(
            {
                "kafka.bootstrap.servers": kafka.bootstrap_servers,
                "decisionTopic": kafka.name("decisions"),
            }
        )
        self.wanted = [b"%d/%d" % (n, m) for n in range(PIECES) for m in range(RECORDS)]

    def write(self) -> tuple[Prepared, ...]:
        """Write as a task does. Raises KafkaException, WriteError."""
        transaction = Transaction(self.options, lambda: self.id)
        assert transaction.takes_columns
        try:
            for start in range(0, len(self.wanted), RECORDS):
                values = self.wanted[start : start + RECORDS]
                columns = RecordColumns.of(values, values, [STAMP_MS] * RECORDS)
                transaction.send_columns(self.topic, columns)
            return transaction.prepare(0)
        except BaseException:
            transaction.abort()
            raise

    def commit(self, prepared: tuple[Prepared, ...]) -> None:
        committer = Committer(self.options, self.sink)
        try:
            committer.commit(0, prepared, was_retried=False)
        finally:
            committer.close()

    def committed(self) -> list[bytes | None]:
        """What readers of committed records see; fails while a transaction is open."""
        producer = self.kafka.producer()
        self._ends += self.partitions
        for number in range(self.partitions):
            producer.produce(self.topic, "end", partition=number)
        producer.flush(60)
        consumer = self.kafka.consumer(isolation_level="read_committed")
        consumer.assign(
            [TopicPartition(self.topic, n, OFFSET_BEGINNING) for n in range(self.partitions)]
        )
        found: list[bytes | None] = []
        while found.count(b"end") < self._ends:
            message = consumer.poll(60.0)
            assert message is not None, f"{len(found)} records"
            assert message.error() is None
            found.append(message.value())
        consumer.close()
        return [value for value in found if value != b"end"]

    def fence(self) -> None:
        control = TransactionControl(self.options.access)
        control.abort(self.id)
        control.close()

    def move_leaders(self) -> None:
        with self.admin() as admin:
            move_leaders(admin, [Place(self.topic, number) for number in range(self.partitions)])

    def move_coordinator(self) -> None:
        topic = "__transaction_state"
        with self.admin() as admin:
            count = len(partitions(admin, [topic]))
            move_leaders(admin, [Place(topic, java_abs(java_hash(self.id)) % count)])

    def admin(self) -> Admin:
        return Admin(Brokers(self.kafka.bootstrap_servers, {}, 60))


@pytest.fixture
def world(kafka: Kafka) -> Iterator[World]:
    yield World(kafka)
    close_connections()


# --- what may happen to a request ------------------------------------------------------------

Happening = Callable[[World, Any, Any, Call], Any]
"""Takes the API, the request, and what sends it; returns the answer or raises."""


def lost(_world: World, _api: Any, _request: Any, call: Call) -> Any:
    call()
    raise WireError("the answer is lost")


def unsent(_world: World, _api: Any, _request: Any, _call: Call) -> Any:
    raise WireError("the request is lost")


def told(code: ErrorCode) -> Happening:
    """It was done, but the broker says something else: it is no longer the one to ask."""

    def happen(_world: World, api: Any, _request: Any, call: Call) -> Any:
        answer = call()
        _set_code(api, answer, code)
        return answer

    return happen


def refused(code: ErrorCode) -> Happening:
    """Of a produce request: nothing is stored."""

    def happen(_world: World, _api: Any, request: Any, _call: Call) -> Any:
        topics = [
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(index=part.index, error_code=int(code))
                    for part in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
        return ProduceResponse(responses=topics)

    return happen


def before(do: Callable[[World], None]) -> Happening:
    def happen(world: World, _api: Any, _request: Any, call: Call) -> Any:
        do(world)
        return call()

    return happen


def between(do: Callable[[World], None]) -> Happening:
    """The answer is lost, too."""

    def happen(world: World, _api: Any, _request: Any, call: Call) -> Any:
        call()
        do(world)
        raise WireError("the answer is lost")

    return happen


def _set_code(api: Any, answer: Any, code: ErrorCode) -> None:
    if api is PRODUCE:
        for topic in answer.responses:
            for part in topic.partition_responses:
                part.error_code = int(code)
    elif api is ADD_PARTITIONS_TO_TXN:
        for topic in answer.results_by_topic_v3_and_below:
            for part in topic.results_by_partition:
                part.partition_error_code = int(code)
    elif api is DESCRIBE_TRANSACTIONS:
        answer.transaction_states[0].error_code = int(code)
    else:
        answer.error_code = int(code)


# --- the table -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """Which requests it befalls, counted from 0. `is_written`: all is there once, else nothing."""

    api: Any
    numbers: tuple[int, ...]
    happening: Happening
    is_written: bool = True


E = ErrorCode
FAULTS = {
    "a produce request is lost": Fault(PRODUCE, (0,), unsent),
    "its answer is lost": Fault(PRODUCE, (1,), lost),
    "two answers in a row are lost": Fault(PRODUCE, (1, 2), lost),
    "it was stored before: DUPLICATE_SEQUENCE_NUMBER": Fault(
        PRODUCE, (1,), told(E.DUPLICATE_SEQUENCE_NUMBER)
    ),
    "the leader has moved, with the records": Fault(PRODUCE, (1,), told(E.NOT_LEADER_OR_FOLLOWER)),
    "the leader has moved, without them": Fault(PRODUCE, (1,), refused(E.NOT_LEADER_OR_FOLLOWER)),
    "too few replicas, after it was stored": Fault(
        PRODUCE, (1,), told(E.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    ),
    # A broker has forgotten what it acknowledged; the next batch does not follow.
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Fault(PRODUCE, (1,), refused(E.NONE), is_written=False),
    "the broker refuses the records": Fault(
        PRODUCE, (2,), refused(E.INVALID_RECORD), is_written=False
    ),
    "the epoch is fenced between batches": Fault(
        PRODUCE, (1,), before(World.fence), is_written=False
    ),
    "the epoch is fenced, and the answer lost": Fault(
        PRODUCE, (2,), between(World.fence), is_written=False
    ),
    "the epoch is fenced when all is sent": Fault(
        DESCRIBE_TRANSACTIONS, (0,), before(World.fence), is_written=False
    ),
    **{
        f"{name} when the transaction {when}": Fault(api, (0,), happening)
        for when, api in {
            "begins": INIT_PRODUCER_ID,
            "gets partitions": ADD_PARTITIONS_TO_TXN,
            "is prepared": DESCRIBE_TRANSACTIONS,
            "is committed": END_TXN,
        }.items()
        for name, happening in {
            "the coordinator has moved": told(E.NOT_COORDINATOR),
            "the coordinator loads": told(E.COORDINATOR_LOAD_IN_PROGRESS),
            "the answer is lost": lost,
            "the request is lost": unsent,
        }.items()
    },
}
MOVES = {
    "leaders move between send and answer": Fault(PRODUCE, (1,), between(World.move_leaders)),
    "leaders move before the send": Fault(PRODUCE, (2,), before(World.move_leaders)),
    **{
        f"the coordinator moves {when}": Fault(api, (0,), happening)
        for when, (api, happening) in {
            "before partitions are added": (ADD_PARTITIONS_TO_TXN, before(World.move_coordinator)),
            "after they are": (ADD_PARTITIONS_TO_TXN, between(World.move_coordinator)),
            "before the commit": (END_TXN, before(World.move_coordinator)),
            "after it": (END_TXN, between(World.move_coordinator)),
        }.items()
    },
}


def outcome(world: World, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Write and commit while it happens: whether that was done."""
    counts: Counter[Any] = Counter()
    happened: list[int] = []
    call = Connection.call

    def faulty(connection: Connection, api: Any, request: Any, *more: Any) -> Any:
        number = counts[api]
        counts[api] += 1
        if api is not fault.api or number not in fault.numbers:
            return call(connection, api, request, *more)
        happened.append(number)
        return fault.happening(world, api, request, lambda: call(connection, api, request, *more))

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "call", faulty)
        try:
            world.commit(world.write())
            is_written = True
        except (KafkaException, WriteError):
            is_written = False
    assert tuple(happened) == fault.numbers
    return is_written


def check(world: World, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(world, fault, monkeypatch) == fault.is_written
    wanted = world.wanted if fault.is_written else []
    assert sorted(world.committed(), key=bytes) == sorted(wanted)  # type: ignore[arg-type]
    if not fault.is_written:  # as Spark does: the task runs again
        world.id += "/again"
        world.commit(world.write())
        assert sorted(world.committed(), key=bytes) == sorted(world.wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FAULTS)
def test_all_is_there_once_or_nothing_is(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(world, FAULTS[name], monkeypatch)


@pytest.mark.skipif(NODES == 1, reason="one node leads everything")
@pytest.mark.parametrize("name", MOVES)
def test_all_is_there_once_while_leaders_and_coordinators_move(
    kafka: Kafka, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(World(kafka, 3), MOVES[name], monkeypatch)
    close_connections()


def test_a_topic_that_takes_small_batches_gets_them_in_the_same_transaction(kafka: Kafka) -> None:
    world = World(kafka, 2, {"max.message.bytes": "500"})
    world.commit(world.write())
    assert sorted(world.committed(), key=bytes) == sorted(world.wanted)  # type: ignore[arg-type]
    close_connections()

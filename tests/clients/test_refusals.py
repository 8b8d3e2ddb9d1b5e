"""Producers, transactions and groups that do what they must not: Apache Kafka's error each time.

`tests/golden/refusals` says what Apache Kafka 4.3.1 answered to the same cases;
`--barnabas-bootstrap HOST:PORT` runs them against it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.app.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from support.refusals import METADATA_BYTES_MAX, SEQUENCE_MAX, Wire

Case = Callable[[Wire], int]
LONG = "m" * (METADATA_BYTES_MAX + 1)


@pytest.fixture
def wire(kafka_bootstrap_servers: str) -> Iterator[Wire]:
    wire = Wire(kafka_bootstrap_servers)
    yield wire
    wire.close()


# Initialising


def init_with_an_empty_id(wire: Wire) -> int:
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    return wire.raw.call(request, InitProducerIdResponse).error_code


def init_as_a_stranger(wire: Wire) -> int:
    wire.take()
    return wire.init(producer_id=wire.producer_id + 1000, epoch=0).error_code


def init_with_an_old_epoch(version: int) -> Case:
    def case(wire: Wire) -> int:
        wire.take()
        old = wire.epoch
        wire.take()
        wire.take()
        return wire.init(producer_id=wire.producer_id, epoch=old, version=version).error_code

    return case


def init_with_the_epoch_it_has(wire: Wire) -> int:
    wire.take()
    return wire.init(producer_id=wire.producer_id, epoch=wire.epoch).error_code


def init_for_the_epoch_before(wire: Wire) -> int:
    """Its answer was lost, and it asks again."""
    wire.take()
    answer = wire.init(producer_id=wire.producer_id, epoch=wire.epoch)
    again = wire.init(producer_id=wire.producer_id, epoch=wire.epoch)
    assert (again.producer_id, again.producer_epoch) == (answer.producer_id, answer.producer_epoch)
    return again.error_code


def init_idempotent_with_an_id(wire: Wire) -> int:
    wire.take_idempotent()
    return wire.init(None, producer_id=wire.producer_id, epoch=wire.epoch).error_code


INITIALISING: dict[str, Case] = {
    "an empty id": init_with_an_empty_id,
    "a time-out above the maximum": lambda w: w.init(timeout_ms=900_001).error_code,
    "the maximum": lambda w: w.init(timeout_ms=900_000).error_code,
    "no time": lambda w: w.init(timeout_ms=0).error_code,
    "negative time": lambda w: w.init(timeout_ms=-1).error_code,
    "a producer id without an epoch": lambda w: w.init(producer_id=5).error_code,
    "an epoch without a producer id": lambda w: w.init(epoch=5).error_code,
    "a producer id that nobody has": lambda w: w.init(producer_id=5, epoch=0).error_code,
    "another's producer id": init_as_a_stranger,
    "an old epoch": init_with_an_old_epoch(5),
    "an old epoch, version 3": init_with_an_old_epoch(3),
    "the epoch that it has": init_with_the_epoch_it_has,
    "the epoch before": init_for_the_epoch_before,
    "an idempotent producer again": init_idempotent_with_an_id,
}


# Sequences and epochs


def sequences(*steps: tuple[int, int]) -> Case:
    """Base sequences and counts of batches; the answer to the last."""

    def case(wire: Wire) -> int:
        wire.take_idempotent()
        for base, count in steps[:-1]:
            assert wire.produce(base, count=count) == ErrorCode.NONE
        base, count = steps[-1]
        return wire.produce(base, count=count)

    return case


def produce_with_epoch(change: int, sequence: int) -> Case:
    def case(wire: Wire) -> int:
        wire.take_idempotent()
        wire.epoch = 5
        assert wire.produce(0, count=3) == ErrorCode.NONE
        return wire.produce(sequence, epoch=5 + change)

    return case


def full_circle(last: tuple[int, int]) -> Case:
    """The first batch of a producer may have any sequence; this one is at the end of them."""
    return sequences((SEQUENCE_MAX - 1, 2), last)


SEQUENCES: dict[str, Case] = {
    "the next": sequences((0, 3), (3, 1)),
    "a gap": sequences((0, 3), (4, 1)),
    "the same again": sequences((0, 3), (0, 3)),
    "a part again": sequences((0, 3), (1, 2)),
    "one that is too old to be known": sequences(*((n, 1) for n in range(7)), (0, 1)),
    "the first is not 0": sequences((7, 1)),
    "after the last comes 0": full_circle((0, 1)),
    "after the last comes 1": full_circle((1, 1)),
    "a batch across the end": sequences((SEQUENCE_MAX - 1, 4), (2, 1)),
    "a batch across the end, and a gap": sequences((SEQUENCE_MAX - 1, 4), (3, 1)),
    "an older epoch": produce_with_epoch(-1, 3),
    "a newer epoch from 0": produce_with_epoch(1, 0),
    "a newer epoch that goes on": produce_with_epoch(1, 3),
}


# Transactions


def fenced(act: Callable[[Wire, int], int]) -> Case:
    """What a producer meets whose successor has taken the id: `act` gets its epoch."""

    def case(wire: Wire) -> int:
        wire.take()
        old = wire.epoch
        wire.take()
        return act(wire, old)

    return case


def after(*steps: Callable[[Wire], object]) -> Case:
    """The answer of the last step, a producer having taken the id before the first."""

    def case(wire: Wire) -> int:
        wire.take()
        for step in steps[:-1]:
            step(wire)
        answer = steps[-1](wire)
        assert isinstance(answer, int)
        return answer

    return case


def overtaken_within(act: Callable[[Wire, int], int]) -> Case:
    """As `fenced`, with a transaction under way that the successor has aborted."""

    def case(wire: Wire) -> int:
        wire.take()
        old = wire.epoch
        wire.add_partitions()
        assert wire.produce(0, transactional=True, version=11) == ErrorCode.NONE
        wire.take()
        return act(wire, old)

    return case


def add(wire: Wire) -> int:
    return wire.add_partitions()[0]


TRANSACTIONS: dict[str, Case] = {
    "add: an old epoch": fenced(lambda w, old: w.add_partitions(producer_epoch=old)[0]),
    "add: an epoch yet to come": after(lambda w: w.add_partitions(producer_epoch=w.epoch + 1)[0]),
    "add: another's producer id": after(lambda w: w.add_partitions(producer_id=7)[0]),
    "add: an id that nobody has": after(lambda w: w.add_partitions(transactional_id="none")[0]),
    "add: an empty id": after(lambda w: w.add_partitions(transactional_id="")[0]),
    "add: a topic that is not there": after(lambda w: w.add_partitions(["nowhere"])[0]),
    "add: one that is there beside it": after(lambda w: w.add_partitions([w.topic, "nowhere"])[0]),
    "offsets: an old epoch": fenced(lambda w, old: w.add_offsets(producer_epoch=old)),
    "offsets: an old epoch, version 1": fenced(
        lambda w, old: w.add_offsets(producer_epoch=old, version=1)
    ),
    "offsets: another's producer id": after(lambda w: w.add_offsets(producer_id=7)),
    "offsets: an id that nobody has": after(lambda w: w.add_offsets(transactional_id="none")),
    "offsets: an empty id": after(lambda w: w.add_offsets(transactional_id="")),
    "offsets: no group": after(lambda w: w.add_offsets("")),
    "end: nothing begun, commit": after(lambda w: w.end()),
    "end: nothing begun, abort": after(lambda w: w.end(committed=False)),
    "end: nothing begun, commit, version 5": after(lambda w: w.end(version=5)),
    "end: nothing begun, abort, version 5": after(lambda w: w.end(committed=False, version=5)),
    "end: commit twice": after(add, Wire.end, Wire.end),
    "end: abort after a commit": after(add, Wire.end, lambda w: w.end(committed=False)),
    "end: commit after an abort": after(add, lambda w: w.end(committed=False), Wire.end),
    "end: an old epoch": fenced(lambda w, old: w.end(producer_epoch=old)),
    "end: an old epoch, version 1": fenced(lambda w, old: w.end(producer_epoch=old, version=1)),
    "end: an old epoch, version 5": fenced(lambda w, old: w.end(producer_epoch=old, version=5)),
    "end: an epoch yet to come": after(add, lambda w: w.end(producer_epoch=w.epoch + 1)),
    "end: another's producer id": after(add, lambda w: w.end(producer_id=7)),
    "end: an empty id": after(lambda w: w.end(transactional_id="")),
    "end: aborted by a successor": overtaken_within(lambda w, old: w.end(producer_epoch=old)),
    "end: aborted by a successor, version 5": overtaken_within(
        lambda w, old: w.end(producer_epoch=old, version=5)
    ),
    "produce: aborted by a successor": overtaken_within(
        lambda w, old: w.produce(1, transactional=True, epoch=old, version=11)
    ),
    "produce: aborted by a successor, version 12": overtaken_within(
        lambda w, old: w.produce(1, transactional=True, epoch=old)
    ),
    "produce: a partition that was not added": after(
        lambda w: w.produce(0, transactional=True, version=11)
    ),
    "produce: the same, version 12": after(lambda w: w.produce(0, transactional=True)),
    "produce: an id that nobody has": after(
        lambda w: w.produce(0, transactional=True, name="none", version=11)
    ),
    "produce: the same id, version 12": after(
        lambda w: w.produce(0, transactional=True, name="none")
    ),
    "produce: an old epoch, version 12": fenced(
        lambda w, old: w.produce(0, transactional=True, epoch=old)
    ),
    "produce: not in the transaction": after(add, lambda w: w.produce(0)),
    "produce: after the end": after(
        add,
        lambda w: w.produce(0, transactional=True, version=11),
        Wire.end,
        lambda w: w.await_state("CompleteCommit"),
        lambda w: w.produce(1, transactional=True, version=11),
    ),
    "produce: a gap in a transaction": after(
        add,
        lambda w: w.produce(0, transactional=True, version=11),
        lambda w: w.produce(2, transactional=True, version=11),
    ),
}


# A transaction that outlived its time-out


def too_late(act: Callable[[Wire], int], version: int = 3) -> Case:
    def case(wire: Wire) -> int:
        wire.time_out(version)
        return act(wire)

    return case


def init_to_go_on(wire: Wire) -> int:
    return wire.init(producer_id=wire.producer_id, epoch=wire.epoch).error_code


TOO_LATE: dict[str, Case] = {
    "commit": too_late(Wire.end),
    "commit, version 1": too_late(lambda w: w.end(version=1)),
    "abort": too_late(lambda w: w.end(committed=False)),
    "commit, version 5": too_late(lambda w: w.end(version=5), 5),
    "abort, version 5": too_late(lambda w: w.end(committed=False, version=5), 5),
    "add": too_late(add),
    "offsets": too_late(Wire.add_offsets),
    "offsets of a group": too_late(Wire.txn_commit),
    "produce": too_late(lambda w: w.produce(1, transactional=True, version=11)),
    "produce, version 12": too_late(lambda w: w.produce(1, transactional=True), 5),
    "init, to go on": too_late(init_to_go_on),
    "init, to go on, version 5": too_late(init_to_go_on, 5),
    "init anew": too_late(lambda w: w.init().error_code),
}


# Offsets


def of_member(act: Callable[[Wire, str, int], int]) -> Case:
    """With a stable classic group of one member."""
    return lambda wire: act(wire, *wire.join_classic())


def of_consumer(act: Callable[[Wire, int], int], joins: int = 1) -> Case:
    """With a group of the consumer protocol whose one member is called `member`."""

    def case(wire: Wire) -> int:
        epoch = wire.join()
        for number in range(joins - 1):
            wire.join(f"member-{number}")
        return act(wire, epoch)

    return case


def in_transaction(act: Callable[..., int], group: Callable[..., Case] | None = None) -> Case:
    def begun(wire: Wire, *member: object) -> int:
        wire.take()
        assert wire.add_offsets() == ErrorCode.NONE
        return act(wire, *member)

    return begun if group is None else group(begun)


OFFSETS: dict[str, Case] = {
    "nobody's group": lambda w: w.commit(),
    "no group": lambda w: w.commit(group=""),
    "a stranger to a group without members": lambda w: w.commit("stranger", 1),
    "a generation without a member": lambda w: w.commit("", 1),
    "as much metadata as may be": lambda w: w.commit(metadata=LONG[1:]),
    "too much metadata": lambda w: w.commit(metadata=LONG),
    "no metadata": lambda w: w.commit(metadata=None),
    "a topic that is not there": lambda w: w.commit(topic="nowhere"),
    "a topic id that is not there": lambda w: w.commit(topic="nowhere", version=10),
    "a partition that is not there": lambda w: w.commit(partition=9),
    "a member": of_member(lambda w, m, g: w.commit(m, g)),
    "a partition that it does not own": of_member(lambda w, m, g: w.commit(m, g)),
    "no member, in a group with members": of_member(lambda w, m, g: w.commit()),
    "a stranger": of_member(lambda w, m, g: w.commit("stranger", g)),
    "an old generation": of_member(lambda w, m, g: w.commit(m, g - 1)),
    "a generation to come": of_member(lambda w, m, g: w.commit(m, g + 1)),
    "an instance that is not there": of_member(lambda w, m, g: w.commit(m, g, instance_id="i")),
    "heartbeat of a stranger": of_member(lambda w, m, g: w.heartbeat_classic("stranger", g)),
    "heartbeat of an old generation": of_member(lambda w, m, g: w.heartbeat_classic(m, g - 1)),
    "heartbeat without a group": lambda w: w.heartbeat_classic("m", 1, ""),
    "a consumer": of_consumer(lambda w, e: w.commit("member", e)),
    "a consumer, version 8": of_consumer(lambda w, e: w.commit("member", e, version=8)),
    "a consumer's old epoch": of_consumer(lambda w, e: w.commit("member", e - 1)),
    "a consumer's old epoch, version 8": of_consumer(
        lambda w, e: w.commit("member", e - 1, version=8)
    ),
    "a consumer's epoch to come": of_consumer(lambda w, e: w.commit("member", e + 1)),
    "a stranger to consumers": of_consumer(lambda w, e: w.commit("stranger", e)),
    "no member, among consumers": of_consumer(lambda w, e: w.commit()),
    "txn: nobody's group": in_transaction(lambda w: w.txn_commit()),
    "txn: no group": in_transaction(lambda w: w.txn_commit(group="")),
    "txn: a stranger": in_transaction(lambda w: w.txn_commit("stranger", 1)),
    "txn: a generation without a member": in_transaction(lambda w: w.txn_commit("", 1)),
    "txn: too much metadata": in_transaction(lambda w: w.txn_commit(metadata=LONG)),
    "txn: a topic that is not there": in_transaction(lambda w: w.txn_commit(topic="nowhere")),
    "txn: a partition that is not there": in_transaction(lambda w: w.txn_commit(partition=9)),
    "txn: a member": in_transaction(lambda w, m, g: w.txn_commit(m, g), of_member),
    "txn: no member, in a group with members": in_transaction(
        lambda w, m, g: w.txn_commit(), of_member
    ),
    "txn: an old generation": in_transaction(lambda w, m, g: w.txn_commit(m, g - 1), of_member),
    "txn: a stranger among members": in_transaction(
        lambda w, m, g: w.txn_commit("stranger", g), of_member
    ),
    "txn: an instance that is not there": in_transaction(
        lambda w, m, g: w.txn_commit(m, g, instance_id="i"), of_member
    ),
    "txn: a consumer": in_transaction(lambda w, e: w.txn_commit("member", e), of_consumer),
    "txn: a consumer's old epoch": in_transaction(
        lambda w, e: w.txn_commit("member", e - 1), of_consumer
    ),
    "txn: a consumer's epoch to come": in_transaction(
        lambda w, e: w.txn_commit("member", e + 1), of_consumer
    ),
    "txn: a consumer's old epoch, version 2": in_transaction(
        lambda w, e: w.txn_commit(version=2), of_consumer
    ),
    "txn: an old producer epoch": in_transaction(lambda w: w.txn_commit(producer_epoch=-1)),
    "txn: not begun, version 4": after(lambda w: w.txn_commit(version=4)),
    "txn: not begun, version 5": after(Wire.txn_commit),
    "txn: an id that nobody has": after(lambda w: w.txn_commit(transactional_id="none")),
    "txn: an old producer epoch, version 5": fenced(
        lambda w, old: w.txn_commit(producer_epoch=old)
    ),
    "txn: an old producer epoch, version 4": fenced(
        lambda w, old: w.txn_commit(producer_epoch=old, version=4)
    ),
}


# Groups of the consumer protocol


def static(act: Callable[[Wire], int]) -> Case:
    def case(wire: Wire) -> int:
        wire.join(instance_id="instance")
        return act(wire)

    return case


def beat(member_id: str = "member", epoch: int = 0, **fields: object) -> Case:
    return lambda wire: wire.heartbeat(member_id, epoch, **fields).error_code


CONSUMERS: dict[str, Case] = {
    "no group": beat(group_id=""),
    "no member id": beat(""),
    "an epoch below all": beat(epoch=-3),
    "a group that is not there": beat(epoch=1),
    "leaving a group that is not there": beat(epoch=-1),
    "no rebalance time-out": beat(rebalance_timeout_ms=-1),
    "no topics": beat(subscribed_topic_names=None),
    "an empty list of topics": beat(subscribed_topic_names=[]),
    "topics owned already": beat(topic_partitions=None),
    "an empty instance id": beat(instance_id=""),
    "an empty rack": beat(rack_id=""),
    "an assignor that is not there": beat(server_assignor="best"),
    "a broken pattern": beat(subscribed_topic_regex="(", subscribed_topic_names=None),
    "a pattern that looks ahead": beat(subscribed_topic_regex="(?=a)", subscribed_topic_names=None),
    "a pattern that looks back": beat(subscribed_topic_regex=r"(a)\1", subscribed_topic_names=None),
    "an empty pattern": beat(subscribed_topic_regex="", subscribed_topic_names=None),
    "a pattern that others need hours for": beat(
        subscribed_topic_regex="(a+)+(a+)+(a+)+$", subscribed_topic_names=None
    ),
    "a stranger": of_consumer(lambda w, e: w.heartbeat("stranger", e).error_code),
    "an old epoch": of_consumer(lambda w, e: w.heartbeat("member", e - 1 or 77).error_code),
    "an epoch to come": of_consumer(lambda w, e: w.heartbeat("member", e + 1).error_code),
    "a stranger leaves": of_consumer(lambda w, e: w.heartbeat("stranger", -1).error_code),
    "another with the same instance": static(
        lambda w: w.heartbeat("other", instance_id="instance").error_code
    ),
    "an instance that is not there": of_consumer(
        lambda w, e: w.heartbeat("member", e, instance_id="instance").error_code
    ),
    "another's instance": static(lambda w: w.heartbeat("o", 1, instance_id="instance").error_code),
    "a consumer in a classic group": of_member(lambda w, m, g: w.heartbeat().error_code),
    "joining twice": of_consumer(lambda w, e: w.heartbeat().error_code),
}

TABLES = {
    "initialising": INITIALISING,
    "sequences": SEQUENCES,
    "transactions": TRANSACTIONS,
    "offsets": OFFSETS,
    "consumers": CONSUMERS,
    "too late": TOO_LATE,
}
GOLDEN = Path(__file__).parents[1] / "golden" / "refusals" / "kafka-4.3.1.txt"
EXPECTED = {
    (table, name): ErrorCode[error]
    for table, name, error in (line.split(" | ") for line in GOLDEN.read_text().splitlines())
}
OURS = {("too late", "commit, version 5"): ErrorCode.PRODUCER_FENCED}
"""A transaction that the coordinator has ended: Kafka's answer would be the end of the client."""
CASES = [(table, name) for table, cases in TABLES.items() for name in cases]


def test_every_case_was_put_to_kafka() -> None:
    assert set(CASES) == set(EXPECTED)
    assert OURS.keys() < EXPECTED.keys()


@pytest.mark.parametrize(
    ("table", "name"), [pytest.param(*c, id=": ".join(c)) for c in CASES if c[0] != "too late"]
)
def test_the_error_is_kafkas(wire: Wire, table: str, name: str) -> None:
    assert ErrorCode(TABLES[table][name](wire)) == EXPECTED[table, name]


@pytest.fixture(scope="module")
def impatient() -> Iterator[str]:
    """A node that looks for transactions that have outlived their time-outs all the time."""
    config = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    with Cluster(config=config) as cluster:
        yield cluster.bootstrap_servers


@pytest.mark.parametrize("name", TOO_LATE)
def test_the_error_is_kafkas_after_a_time_out(impatient: str, name: str) -> None:
    wire = Wire(impatient)
    try:
        found = ErrorCode(TOO_LATE[name](wire))
    finally:
        wire.close()
    place = "too late", name
    assert found == OURS.get(place, EXPECTED[place])

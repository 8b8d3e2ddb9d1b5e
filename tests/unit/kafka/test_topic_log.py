"""Logs of topics over a node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from barnabas.app.testing import Kafka
from barnabas.kafka import topic_log
from barnabas.kafka.admin import Admin
from barnabas.kafka.fenced_writer import AppendError, FencedError
from barnabas.kafka.planned_topics import TopicCreationError, TopicLogError, TopicPlan
from barnabas.kafka.topic_log import LogLostError, LogRecord, TopicLog
from support.node_process import wait_until
from support.patience import PATIENCE_S


class Made:
    """A log and what it took."""

    def __init__(self, kafka: Kafka, topic: str, **how: Any) -> None:
        self.taken: list[LogRecord] = []
        settings = {"bootstrap.servers": kafka.bootstrap_servers}
        self.log = TopicLog(settings, topic, self.taken.append, **how)

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.taken]


Make = Callable[..., Made]


@pytest.fixture
def make(kafka: Kafka) -> Iterator[Make]:
    """Makes logs of a topic of this test, and opens them."""
    topic = kafka.name("state")
    with ExitStack() as stack:

        def made(plan: TopicPlan | None = None, **how: Any) -> Made:
            one = Made(kafka, topic, **how)
            stack.callback(one.log.close)
            one.log.open(plan or TopicPlan(topic, config={"cleanup.policy": "compact"}))
            return one

        yield made


def recreate(kafka: Kafka, topic: str) -> None:
    kafka.admin.delete_topics([topic])[topic].result(PATIENCE_S)
    wait_until(lambda: topic not in kafka.admin.list_topics().topics, "the end of the topic")
    kafka.admin.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE_S)


def test_what_is_written_is_taken_by_all(make: Make) -> None:
    one, two = make(follows=True), make(follows=True)
    for sent in [one.log.send(b"k", b"%d" % n) for n in range(20)]:
        sent.result(PATIENCE_S)
    two.log.read_to_end()
    assert two.values == [b"%d" % n for n in range(20)]
    late = make()
    late.log.read_to_end()
    assert late.taken == two.taken


def test_a_topic_that_was_there_is_checked(make: Make) -> None:
    checked: list[str] = []
    first = make()
    second = TopicLog(first.log._settings, first.log.topic, lambda _: None)
    second.open(TopicPlan(first.log.topic), check=lambda c: checked.append(c["cleanup.policy"]))
    second.close()
    assert checked == ["compact"]


def test_a_topic_that_brokers_refuse_is_not_opened(make: Make) -> None:
    with pytest.raises(TopicCreationError, match="Unable to create topic"):
        make(TopicPlan("no/topic"))


def test_a_writer_fences_the_one_before(make: Make, kafka: Kafka) -> None:
    id_ = kafka.name("leader")
    one, two = make(is_committed_only=True), make(is_committed_only=True)
    one.log.lead(id_)
    assert one.log.append([(b"a", b"1"), (b"b", b"2")]) == [0, 1]
    two.log.lead(id_)
    assert two.values == [b"1", b"2"]
    with pytest.raises(FencedError):
        one.log.append([(b"a", b"3")])
    assert not one.log.leads
    two.log.append([(b"a", b"4")])
    one.log.read_to_end()
    assert one.values == [b"1", b"2", b"4"]


def test_a_topic_that_was_created_again_is_lost(make: Make, kafka: Kafka) -> None:
    made = make(is_committed_only=True)
    made.log.lead(kafka.name("leader"))
    made.log.append([(b"a", b"1")])
    made.log.read_to_end()
    recreate(kafka, made.log.topic)
    made.log._leader = None
    with pytest.raises(LogLostError, match="not the one that was read"):
        made.log.lead(kafka.name("leader"))
    assert made.values == [b"1"]


def test_a_log_that_follows_reads_a_new_topic_from_its_start(
    make: Make, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_log, "CHECK_S", 0.1)
    made = make(follows=True, reads_again=True)
    for sent in [made.log.send(b"k", b"%d" % n) for n in range(3)]:
        sent.result(PATIENCE_S)
    made.log.read_to_end()
    recreate(kafka, made.log.topic)
    writer = make(follows=True)
    for sent in [writer.log.send(b"k", b"new %d" % n) for n in range(5)]:
        sent.result(PATIENCE_S)
    wait_until(lambda: made.values[3:] == [b"new %d" % n for n in range(5)], "the new records")


def test_the_end_of_a_new_topic_is_not_that_of_the_one_before(make: Make, kafka: Kafka) -> None:
    made, other = make(follows=True, reads_again=True), make()
    for sent in [made.log.send(b"k", b"%d" % n) for n in range(3)]:
        sent.result(PATIENCE_S)
    made.log.read_to_end()
    other.log.read_to_end()
    recreate(kafka, made.log.topic)
    make(follows=True).log.send(b"k", b"new").result(PATIENCE_S)
    made.log.read_to_end()
    assert made.values[3:] == [b"new"]
    with pytest.raises(LogLostError):
        other.log.read_to_end()


def test_a_new_topic_that_a_log_was_cut_off_from_is_read_once(make: Make, kafka: Kafka) -> None:
    made = make(follows=True, reads_again=True)
    for sent in [made.log.send(b"k", b"%d" % n) for n in range(3)]:
        sent.result(PATIENCE_S)
    made.log.read_to_end()
    recreate(kafka, made.log.topic)
    make(follows=True).log.send(b"k", b"new").result(PATIENCE_S)
    wait_until(lambda: made.values[3:] == [b"new"], "the record of the new topic")
    made.log._check()  # as a writer does from time to time
    made.log.read_to_end()
    assert made.values[3:] == [b"new"]


def test_a_record_that_cannot_be_taken_is_read_again_with_those_after_it(make: Make) -> None:
    writer = make(follows=True)
    for sent in [writer.log.send(b"k", b"%d" % n) for n in range(5)]:
        sent.result(PATIENCE_S)
    taken: list[int] = []
    failures = [KeyError("not now")]

    def take(record: LogRecord) -> None:
        if record.offset == 2 and failures:
            raise failures.pop()
        taken.append(record.offset)

    log = TopicLog(writer.log._settings, writer.log.topic, take)
    log.open()
    with pytest.raises(KeyError):
        log.read_to_end()
    log.read_to_end()
    log.close()
    assert taken == [0, 1, 2, 3, 4]


def test_to_pass_over_records_of_a_partition_moves_no_other(make: Make, kafka: Kafka) -> None:
    topic = kafka.name("two")
    kafka.admin.create_topics([NewTopic(topic, 2)])[topic].result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in ("0", "1", "2"):
        producer.produce(topic, value, partition=1)
    assert not producer.flush(30)
    (deleted,) = kafka.admin.delete_records([TopicPartition(topic, 1, 2)]).values()
    deleted.result(PATIENCE_S)
    taken: list[bytes | None] = []
    log = TopicLog(
        {"bootstrap.servers": kafka.bootstrap_servers}, topic, lambda one: taken.append(one.value)
    )
    log.open()
    log.pass_over(0, 0)
    log.read_to_end()
    log.close()
    assert taken == [b"2"]


def test_a_caller_that_gives_up_stops_nobody_else(make: Make) -> None:
    made = make(follows=True)
    given_up = made.log.send(b"k", b"1")
    given_up.cancel()
    made.log.send(b"k", b"2").result(PATIENCE_S)


def test_nobody_waits_for_what_a_closed_log_has_not_written(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_log, "FLUSH_S", 0.1)
    made = make(follows=True)
    made.log._settings = {"bootstrap.servers": "127.0.0.1:1"}
    sent = made.log.send(b"k", b"1")
    made.log.close()
    assert isinstance(sent.exception(0), TopicLogError)


def test_what_fails_in_a_thread_of_the_log_does_not_end_it(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(follows=True)
    failed = threading.Barrier(3)
    for name in ("_poll", "_serve_once"):
        whole = getattr(made.log, name)

        def fail(*given: Any, name: str = name, whole: Any = whole) -> None:
            monkeypatch.setattr(made.log, name, whole)
            failed.wait(PATIENCE_S)
            raise ValueError(name)

        monkeypatch.setattr(made.log, name, fail)
    failed.wait(PATIENCE_S)
    made.log.send(b"k", b"1").result(PATIENCE_S)
    made.log.read_to_end()
    assert made.values == [b"1"]


def test_a_check_that_nobody_answers_keeps_no_write_waiting(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(follows=True)
    monkeypatch.setattr(topic_log, "CHECK_S", 0.0)
    monkeypatch.setattr(topic_log, "CHECK_REQUEST_S", 0.2)
    made.log._admin = Admin({"bootstrap.servers": "127.0.0.1:1"})
    for n in range(4):
        made.log.send(b"k", b"%d" % n).result(PATIENCE_S)


def test_a_log_that_is_lost_says_so_each_time(make: Make) -> None:
    made = make()
    made.log.lost = LogLostError("it is another one")
    depths = []
    for _ in range(3):
        with pytest.raises(LogLostError) as raised:
            made.log.read_to_end()
        depths.append(len(raised.traceback))
    assert len(set(depths)) == 1


def test_more_records_than_the_client_queues_are_an_error_of_the_log(
    make: Make, kafka: Kafka
) -> None:
    made = make(is_committed_only=True, producer={"queue.buffering.max.messages": 1})
    made.log.lead(kafka.name("leader"))
    with pytest.raises(AppendError, match="cannot write"):
        made.log.append([(b"a", b"%d" % n) for n in range(1000)])
    assert not made.log.leads

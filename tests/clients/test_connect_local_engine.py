"""Tasks of the local engine on a cluster: topics, groups, offsets, dead letters."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, ClassVar

import pytest
from client_matrix import KEPT
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from barnabas.app.testing import Kafka
from barnabas.connect.tasks import kafka_group
from barnabas.connect.tasks.local import LocalEngine
from barnabas.schemas.data.errors import ConnectError
from support.connect.tasks import (
    STRING,
    TaskRun,
    TopicOffsets,
    read_messages,
    read_topic,
    wait_for_tasks,
)


def worker(kafka: Kafka) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": kafka.name("workers"),
        "key.converter": STRING,
        "barnabas.connect.plugins": "FileStreamSource,FileStreamSink,support.connect.step_source",
        "value.converter": STRING,
        "producer.linger.ms": "1",
        # A member that a busy machine silences must not lose its partitions, and write lines twice.
        "consumer.session.timeout.ms": "60000",
        "consumer.heartbeat.interval.ms": "200",
    }


def committed(kafka: Kafka, connector: str, topic: str, partitions: int = 1) -> list[int]:
    places = [TopicPartition(topic, number) for number in range(partitions)]
    asked = [ConsumerGroupTopicPartitions(f"connect-{connector}", places)]
    (found,) = kafka.admin.list_consumer_group_offsets(asked).values()
    return [one.offset for one in found.result(30).topic_partitions]


@pytest.mark.parametrize("is_exactly_once", [pytest.param(False, marks=pytest.mark.slow), True])
def test_file_source_goes_on_after_a_stop(
    kafka: Kafka, engine: LocalEngine, tmp_path: Path, is_exactly_once: bool
) -> None:
    topic, stored, name = kafka.name("lines"), kafka.topic("offsets", 2), kafka.name("source")
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, name)
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"line {number}\n" for number in range(1000)))
    settings = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "batch.size": "20",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.default.partitions": "1",
        "topic.creation.groups": "kept",
        "topic.creation.kept.include": ".*lines.*",
        "topic.creation.kept.partitions": "1",
        "topic.creation.kept.retention.ms": "-1",
        "producer.override.compression.type": "lz4",
    }
    given = worker(kafka)

    def run() -> TaskRun:
        return TaskRun(
            engine,
            name,
            settings,
            given,
            offsets,
            offsets_topic=stored,
            is_exactly_once=is_exactly_once,
        )

    first = run()
    position = [({"filename": str(file)}, {"position": file.stat().st_size})]
    first.wait_until(lambda: offsets.all() == position)
    first.stop()
    with file.open("a") as more:
        more.write("the end\n")
    second = run()
    second.wait_until(lambda: offsets.all()[0][1]["position"] == file.stat().st_size)
    second.stop()
    expected = [f"line {number}".encode() for number in range(1000)] + [b"the end"]
    assert [value for _, value in read_topic(kafka.bootstrap_servers, topic)] == expected
    assert first.log.states == ["RUNNING", "STOPPED"]
    assert first.log.topics == [topic]


def test_exactly_once_source_is_fenced_by_its_next_run(
    kafka: Kafka, engine: LocalEngine, tmp_path: Path
) -> None:
    topic, stored, name = kafka.topic("lines"), kafka.topic("offsets"), kafka.name("source")
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, name)
    file = tmp_path / "lines.txt"
    file.write_text("1\n")
    settings = {"connector.class": "FileStreamSource", "file": str(file), "topic": topic}
    given = worker(kafka)
    zombie = TaskRun(
        engine, name, settings, given, offsets, offsets_topic=stored, is_exactly_once=True
    )
    zombie.wait_until(offsets.all)
    other = TaskRun(
        engine, name, settings, given, offsets, offsets_topic=stored, is_exactly_once=True
    )
    other.wait_until(lambda: other.log.states == ["RUNNING"])
    with file.open("a") as more:
        more.write("2\n")
    with pytest.raises(ConnectError, match="taken over"):
        zombie.wait_until(lambda: False)
    other.wait_until(lambda: offsets.all() == [({"filename": str(file)}, {"position": 4})])
    assert [value for _, value in read_topic(kafka.bootstrap_servers, topic)] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("boundary", "text", "expected"),
    [
        ({"transaction.boundary": "interval"}, "ab c d", "abcd"),
        ({"transaction.boundary": "connector"}, "ab| cd! e;| f", "abe"),
    ],
)
def test_transactions_end_where_they_are_wanted(
    kafka: Kafka, engine: LocalEngine, boundary: dict[str, str], text: str, expected: str
) -> None:
    topic, stored, name = kafka.topic("out"), kafka.topic("offsets"), kafka.name("source")
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, name)
    settings = {
        "connector.class": "support.connect.step_source:StepSource",
        "topic": topic,
        "text": text,
        **boundary,
    }
    task = TaskRun(
        engine, name, settings, worker(kafka), offsets, offsets_topic=stored, is_exactly_once=True
    )
    letters = sum(letter.isalpha() for letter in text)
    task.wait_until(lambda: task.task.metrics().get("source-record-poll-total") == letters)
    task.stop()
    values = [value for _, value in read_topic(kafka.bootstrap_servers, topic)]
    assert b"".join(value or b"" for value in values).decode() == expected
    assert ({"steps": 0}, {"n": 3}) in offsets.all()


def test_sink_tasks_share_a_topic_and_dead_letters_keep_what_failed(
    kafka: Kafka, engine: LocalEngine, tmp_path: Path
) -> None:
    topic, dead, name = kafka.topic("in", 3, KEPT), kafka.name("dead"), kafka.name("sink")
    offsets = TopicOffsets(kafka.bootstrap_servers, "unused", name)
    producer = kafka.producer()
    for number in range(300):
        producer.produce(topic, f"{number}".encode(), partition=number % 3)
    producer.produce(topic, b"\xff", b"key", partition=0, headers=[("h", b"x")], timestamp=7)
    assert producer.flush(30) == 0
    file = tmp_path / "out.txt"
    settings = {
        "connector.class": "FileStreamSink",
        "file": str(file),
        "topics.regex": topic.replace("-", "."),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    given = worker(kafka)
    tasks = [TaskRun(engine, name, settings, given, offsets, task=task) for task in range(2)]
    wait_for_tasks(
        tasks,
        lambda: committed(kafka, name, topic, 3) == [101, 100, 100],
        lambda: f"{committed(kafka, name, topic, 3)} {file.exists() and file.read_text()!r}",
    )
    for task in tasks:
        task.stop()
    assert sorted(map(int, file.read_text().split())) == list(range(300))
    (letter,) = read_messages(kafka.bootstrap_servers, dead)
    assert (letter.key(), letter.value(), letter.timestamp()[1]) == (b"key", b"\xff", 7)
    headers = dict(letter.headers())
    assert headers["h"] == b"x"
    assert headers["__connect.errors.topic"] == topic.encode()
    assert headers["__connect.errors.offset"] == b"100"
    third = TaskRun(engine, name, settings, given, offsets)
    kafka.produce(topic, [b"300"])
    third.wait_until(lambda: sum(committed(kafka, name, topic, 3)) == 302)
    third.stop()
    assert len(file.read_text().split()) == 301


def members(kafka: Kafka, connector: str) -> int:
    """Return how many there are; -1 while the group deals its partitions out."""
    (asked,) = kafka.admin.describe_consumer_groups([f"connect-{connector}"]).values()
    found = asked.result(30)
    is_settled = found.state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY)
    return len(found.members) if is_settled else -1


class TalkativeConsumer(Consumer):
    """librdkafka's consumer, which tells all that it does in its group."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__({**settings, "debug": "cgrp", "log_level": 7})


@pytest.mark.slow
def test_task_without_partitions_leaves_its_group(
    kafka: Kafka,
    engine: LocalEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # It is seldom known why a member stays. Only a failure shows what was said.
    monkeypatch.setattr(kafka_group, "Consumer", TalkativeConsumer)
    caplog.set_level(logging.DEBUG, "barnabas.connect.tasks")
    topic, name = kafka.topic("in"), kafka.name("sink")
    settings = {"connector.class": "FileStreamSink", "file": str(tmp_path / "o"), "topics": topic}
    given = worker(kafka)
    offsets = TopicOffsets(kafka.bootstrap_servers, "unused", name)
    tasks = [TaskRun(engine, name, settings, given, offsets, task=task) for task in range(2)]

    def owned() -> list[float]:
        return sorted(one.task.metrics().get("partition-count", 0.0) for one in tasks)

    wait_for_tasks(tasks, lambda: members(kafka, name) == 2 and owned() == [0, 1], owned)
    idle = next(one for one in tasks if not one.task.metrics().get("partition-count"))
    idle.stop()
    tasks.remove(idle)
    wait_for_tasks(tasks, lambda: members(kafka, name) == 1, lambda: members(kafka, name), 40)
    tasks[0].stop()
    assert "UNSUBSCRIBE" in caplog.text


class TroubledConsumer(Consumer):
    """librdkafka's consumer, whose calls fail the first time."""

    left: ClassVar[dict[str, int]] = {}

    def _fail_at_first(self, name: str, code: int) -> None:
        if self.left[name]:
            self.left[name] -= 1
            raise KafkaException(KafkaError(code))

    def list_topics(self, *given: Any, **named: Any) -> Any:
        self._fail_at_first("list_topics", KafkaError._TRANSPORT)
        return super().list_topics(*given, **named)

    def committed(self, *given: Any, **named: Any) -> Any:
        self._fail_at_first("committed", KafkaError._TIMED_OUT)
        return super().committed(*given, **named)

    def offsets_for_times(self, *given: Any, **named: Any) -> Any:
        self._fail_at_first("offsets_for_times", KafkaError.LEADER_NOT_AVAILABLE)
        return super().offsets_for_times(*given, **named)

    def commit(self, *given: Any, **named: Any) -> Any:
        self._fail_at_first("commit", KafkaError.REBALANCE_IN_PROGRESS)
        return super().commit(*given, **named)


def test_sink_gets_over_calls_that_fail_once(
    kafka: Kafka, engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_group, "Consumer", TroubledConsumer)
    monkeypatch.setattr(kafka_group, "_SOON_SECONDS", 0.1)
    left = {"list_topics": 1, "committed": 1, "offsets_for_times": 1, "commit": 1}
    monkeypatch.setattr(TroubledConsumer, "left", left)
    topic, name = kafka.topic("in"), kafka.name("sink")
    kafka.produce(topic, [b"a", b"b"])
    file = tmp_path / "out.txt"
    settings = {"connector.class": "FileStreamSink", "file": str(file), "topics.regex": topic}
    offsets = TopicOffsets(kafka.bootstrap_servers, "unused", name)
    task = TaskRun(engine, name, settings, worker(kafka), offsets)
    task.wait_until(lambda: committed(kafka, name, topic) == [2])
    task.stop()
    assert file.read_text() == "a\nb\n"
    assert set(left.values()) == {0}


def test_sink_reads_committed_transactions_only(
    kafka: Kafka, engine: LocalEngine, tmp_path: Path
) -> None:
    topic, name = kafka.topic("in"), kafka.name("sink")
    producer = kafka.producer(transactional_id=name)
    producer.init_transactions(30)
    for value, ends in ((b"a", "commit"), (b"b", "abort"), (b"c", "commit")):
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(30) == 0
        getattr(producer, f"{ends}_transaction")(30)
    file = tmp_path / "out.txt"
    settings = {
        "connector.class": "FileStreamSink",
        "file": str(file),
        "topics": topic,
        "consumer.override.isolation.level": "read_committed",
    }
    offsets = TopicOffsets(kafka.bootstrap_servers, "unused", name)
    task = TaskRun(engine, name, settings, worker(kafka), offsets)
    task.wait_until(lambda: committed(kafka, name, topic) == [6])
    task.stop()
    assert file.read_text() == "a\nc\n"


@pytest.mark.parametrize("is_exactly_once", [False, True])
def test_record_that_the_brokers_refuse(
    kafka: Kafka, engine: LocalEngine, tmp_path: Path, is_exactly_once: bool
) -> None:
    topic = kafka.topic("lines", config={"max.message.bytes": "500"})
    stored, name = kafka.topic("offsets"), kafka.name("source")
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, name)
    file = tmp_path / "lines.txt"
    file.write_text(f"1\n{'x' * 1000}\n")
    task = TaskRun(
        engine,
        name,
        {
            "connector.class": "FileStreamSource",
            "file": str(file),
            "topic": topic,
            "errors.tolerance": "all",
            "producer.override.batch.num.messages": "1",
        },
        worker(kafka),
        offsets,
        offsets_topic=stored,
        is_exactly_once=is_exactly_once,
    )
    if is_exactly_once:  # brokers commit no transaction that lacks a record
        with pytest.raises(ConnectError, match="Unrecoverable exception"):
            task.wait_until(lambda: False)
        assert read_topic(kafka.bootstrap_servers, topic) == []
        return
    task.wait_until(offsets.all)
    assert [value for _, value in read_topic(kafka.bootstrap_servers, topic)] == [b"1"]
    task.wait_until(lambda: task.task.metrics().get("total-records-skipped") == 1)

"""Runs a connector's tasks on an engine and a cluster, without a worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.connect.record import JsonMap, offset_key, offset_value
from barnabas.connect.tasks.base import RunningTask, TaskEngine, TaskId, TaskPlan
from barnabas.connect.testing import TaskLog
from support.node_process import wait_until

STRING = "org.apache.kafka.connect.storage.StringConverter"
WAIT_SECONDS = 60.0
NO_LEADER_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
"""Kafka's answer if a broker does not lead a new partition yet."""


class TopicOffsets:
    """Offsets of sources in a topic; an OffsetReader and what stores them, both without caches."""

    def __init__(self, bootstrap_servers: str, topic: str, connector: str) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._connector = connector

    def offset(self, partition: JsonMap) -> JsonMap | None:
        """Return the offset of a source partition."""
        wanted = dict(partition)
        return next((offset for one, offset in self.all() if dict(one) == wanted), None)

    def all(self) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Return all (partition, offset), of committed transactions."""
        found: dict[bytes, bytes | None] = {}
        for key, value in read_topic(self._servers, self._topic):
            found[key or b""] = value
        pairs = []
        for key, value in found.items():
            connector, partition = json.loads(key)
            if connector == self._connector and value is not None:
                pairs.append((partition, json.loads(value)))
        return pairs

    def store(self, connector: str, offsets: Sequence[tuple[JsonMap, JsonMap]]) -> None:
        """Store offsets."""
        producer = Producer({"bootstrap.servers": self._servers, "acks": "all"})
        for partition, offset in offsets:
            producer.produce(self._topic, offset_value(offset), offset_key(connector, partition))
        assert producer.flush(WAIT_SECONDS) == 0


def place_of(owner: type) -> str:
    """Return how a step of `doomed_task` names a class."""
    return f"{owner.__module__}:{owner.__qualname__}"


def read_topic(bootstrap_servers: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Return keys and values of a topic's committed records, up to its end as it is now."""
    return [(one.key(), one.value()) for one in read_messages(bootstrap_servers, topic)]


def read_messages(bootstrap_servers: str, topic: str) -> list[Any]:
    """Return a topic's committed records, up to its end as it is now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reads-topics",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # an empty answer marks the end
        }
    )
    found = []
    try:
        for number in consumer.list_topics(topic, WAIT_SECONDS).topics[topic].partitions:
            # A client that does not know the leader yet may take a second to ask for it.
            place = TopicPartition(topic, number)
            wait_until(lambda place=place: _is_led(consumer, place), "a leader", WAIT_SECONDS)
            consumer.assign([TopicPartition(topic, number, 0)])
            while (message := consumer.poll(WAIT_SECONDS)) is not None and not message.error():
                found.append(message)
            assert message is not None, "no answer"
        return found
    finally:
        consumer.close()


def _is_led(consumer: Consumer, place: TopicPartition) -> bool:
    try:
        consumer.get_watermark_offsets(place, WAIT_SECONDS)
    except KafkaException as error:
        if error.args[0].code() not in NO_LEADER_YET:
            raise
        return False
    return True


class TaskRun:
    """One task that runs."""

    def __init__(
        self,
        engine: TaskEngine,
        name: str,
        settings: Mapping[str, str],
        worker: Mapping[str, str],
        offsets: TopicOffsets,
        *,
        task: int = 0,
        offsets_topic: str | None = None,
        is_exactly_once: bool = False,
    ) -> None:
        self.log = TaskLog()
        plan = TaskPlan(TaskId(name, task), settings, {}, worker, offsets_topic, is_exactly_once)
        self.task: RunningTask = engine.start_task(plan, self.log, offsets, offsets.store)

    def stop(self) -> None:
        """Stop it and wait for its end."""
        self.task.stop()
        assert self.task.join(WAIT_SECONDS), "the task does not end"

    def wait_until(self, is_so: Callable[[], Any], seconds: float = WAIT_SECONDS) -> None:
        """Wait for a condition. Raises what has ended the task."""
        wait_for_tasks([self], is_so, seconds=seconds)


def wait_for_tasks(
    runs: Sequence[TaskRun],
    is_so: Callable[[], Any],
    tell: Callable[[], Any] = str,
    seconds: float = WAIT_SECONDS,
) -> None:
    """Wait for a condition. Raises what has ended one of the tasks; `tell` is asked in the end."""

    def happens() -> bool:
        if is_so():
            return True
        for run in runs:
            if run.log.error is not None:
                raise run.log.error
        return False

    def shown() -> str:
        tasks = [f"{run.log.states} {run.task.metrics()}" for run in runs]
        return "\n".join([str(tell()), *tasks])

    wait_until(happens, "what the tasks are to do", seconds, shown)

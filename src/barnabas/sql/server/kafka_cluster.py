"""A real Kafka cluster, through confluent-kafka: `engine.cluster.Cluster` for a server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import NewTopic as AdminTopic
from confluent_kafka.admin import OffsetSpec

from barnabas.kafka.admin import Admin, Listed
from barnabas.kafka.ordered_producer import OrderedProducer
from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.sql.engine.cluster import ClusterError, NewTopic, Start, Take, TopicInfo
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.server.kafka_follower import TIMEOUT_S, KafkaFollower, asked

_log = logging.getLogger(__name__)
_ROOM_S = 0.1
_BOUNDS_S = 5.0
"""The caller can do without the answer."""

QUIET: Final = {"log_level": 2}
"""Of every client of the server: what librdkafka logs goes to standard error, past our own log.
While no broker answers it is a line for each attempt of each client, many times a second."""


class _Outcome:
    """The outcome of the records that a thread has written: the last refusal."""

    failure: KafkaError | None = None

    def take(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.failure = error


class KafkaCluster:
    """`settings`: librdkafka's, `bootstrap.servers` among them."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**QUIET, **settings}
        self._admin = Admin(self._settings, TIMEOUT_S)
        self._producer = OrderedProducer(
            {
                **self._settings,
                "enable.idempotence": True,
                **JAVA_PARTITIONER,
                "linger.ms": 5,
                "queue.buffering.max.messages": 200_000,
            }
        )
        self._own = threading.local()
        self._cluster_id = ""

    @property
    def cluster_id(self) -> str:
        if not self._cluster_id:
            metadata = asked(self._admin.metadata)
            self._cluster_id = str(metadata.cluster_id or "")
        return self._cluster_id

    # --- topics ------------------------------------------------------------------------------

    def topics(self) -> Mapping[str, TopicInfo]:
        metadata = asked(self._admin.metadata)
        return {
            name: TopicInfo(
                name,
                tuple(len(part.replicas) for _, part in sorted(topic.partitions.items())),
            )
            for name, topic in metadata.topics.items()
            if topic.partitions
        }

    def create_topic(self, topic: NewTopic) -> None:
        wanted = AdminTopic(
            topic.name,
            num_partitions=topic.partitions,
            replication_factor=-1 if topic.replicas is None else topic.replicas,
            config=dict(topic.config),
        )
        asked(lambda: self._admin.create([wanted]))
        self._wait_until(lambda: topic.name in self.topics(), f"topic {topic.name} to be there")

    def delete_topic(self, name: str) -> None:
        asked(lambda: self._admin.delete(name))
        self._wait_until(lambda: name not in self.topics(), f"topic {name} to be gone")

    def _wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Other brokers hear of what the controller did a moment later."""
        deadline = time.monotonic() + TIMEOUT_S
        while not is_so():
            if time.monotonic() > deadline:
                raise ClusterError(f"timed out waiting for {what}")
            time.sleep(0.02)

    def topic_config(self, name: str) -> Mapping[str, str]:
        settings: dict[str, str] = asked(lambda: self._admin.configuration(name))
        return settings

    def bounds(
        self, places: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], tuple[int, int]]:
        def ask(spec: OffsetSpec) -> Listed:
            wanted = {TopicPartition(*place): spec for place in places}
            return self._admin.offsets(wanted, _BOUNDS_S)

        starts = asked(lambda: ask(OffsetSpec.earliest()))
        ends = asked(lambda: ask(OffsetSpec.latest()))
        return {place: (starts[place], ends[place]) for place in places}

    # --- writing -----------------------------------------------------------------------------

    def write(self, topic: str, record: TopicRecord) -> None:
        options: dict[str, Any] = {"on_delivery": self._outcome().take}
        if record.partition is not None:
            options["partition"] = record.partition
        if record.headers:
            options["headers"] = list(record.headers)
        while True:
            try:
                self._producer.produce(
                    topic,
                    record.value,
                    record.key,
                    timestamp=record.timestamp_ms,
                    **options,
                )
                break
            except BufferError:
                self._producer.poll(_ROOM_S)
            except KafkaException as error:
                raise ClusterError(str(error.args[0].str())) from error
        self._producer.poll(0)

    def _outcome(self) -> _Outcome:
        """Of this thread's records since it flushed: queries and inserts share the producer."""
        outcome: _Outcome | None = getattr(self._own, "outcome", None)
        if outcome is None:
            outcome = self._own.outcome = _Outcome()
        return outcome

    def flush(self) -> None:
        left = self._producer.flush(TIMEOUT_S)
        failure = self._outcome().failure
        self._own.outcome = None
        if failure is not None:
            raise ClusterError(failure.str())
        if left:
            raise ClusterError(f"{left} records could not be written in {TIMEOUT_S:.0f} s")

    # --- reading -----------------------------------------------------------------------------

    def follow(
        self,
        topics: Sequence[str],
        take: Take,
        start: Start,
        *,
        group: str | None = None,
        after_batch: Callable[[], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> KafkaFollower:
        counts = self.topics()
        for topic in topics:
            if topic not in counts:
                raise ClusterError(f"Topic '{topic}' does not exist.")
        partitions = [
            TopicPartition(topic, number)
            for topic in dict.fromkeys(topics)
            for number in range(counts[topic].partitions)
        ]
        return KafkaFollower(
            self._settings, self._admin, partitions, take, start, group, after_batch, on_error
        )

    def forget_group(self, group: str) -> None:
        try:
            self._admin.delete_group(group)
        except KafkaException as error:
            _log.info("the group %s is not deleted: %s", group, error.args[0].str())

    def close(self) -> None:
        """Write what is left to write, and close the connections."""
        self._producer.flush(TIMEOUT_S)
        self._producer.purge()

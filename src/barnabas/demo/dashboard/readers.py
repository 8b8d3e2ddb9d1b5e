"""Threads that read topics, and states of connectors, into the dashboard's state.

`OutputReader` has no group: it reads the pipeline's results and the station table from their
beginning each time, keeping the latest value per key, so a restart shows exact figures again.
`ActivityReader` is the consumer group `dashboard`: it follows `user-activity` and commits what it
has shown, so its lag is a real one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from barnabas.demo.access import client_config
from barnabas.demo.catchup import TopicEnds
from barnabas.demo.connectors import connector_states
from barnabas.demo.dashboard.state import FEED_LENGTH_MAX, DashboardState
from barnabas.demo.reading import AvroValues, read_row
from barnabas.demo.topics import OUTPUT_TOPICS, STATIONS, USER_ACTIVITY
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient

DASHBOARD_GROUP = "dashboard"
_BATCH_RECORDS_MAX = 500
_POLL_SECONDS = 0.25
_TICK_SECONDS = 0.5
_RATE_SECONDS = 5.0
_AWAY = {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT}
_ABSENT = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}


class ReaderThread(threading.Thread):
    """A thread that runs `read` until it is asked to stop, over and over after Kafka errors."""

    def __init__(self, name: str, bootstrap: str, state: DashboardState) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.state = state
        self.stopping = threading.Event()

    def run(self) -> None:
        """Read; start again if Kafka fails beyond librdkafka's retries, or if the registry does."""
        while not self.stopping.is_set():
            try:
                self.read()
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() in _AWAY:
                    self.state.set_connection("lost", reason.str())
                self.stopping.wait(1.0)
            except RegistryError:
                self.stopping.wait(1.0)

    def read(self) -> None:
        """Read until `stopping` is set."""
        raise AssertionError("a reader says what it reads")

    def stop(self) -> None:
        """Ask it to stop and wait for its end."""
        self.stopping.set()
        self.join(timeout=10.0)

    def on_error(self, error: KafkaError) -> None:
        """Note what librdkafka reports by itself: all brokers down."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.state.set_connection("lost", "no broker answers")

    def topic_ends(self, client_id: str) -> TopicEnds:
        """Return what asks for the ends of topics."""
        settings: dict[str, Any] = {
            **client_config(self.bootstrap),
            "client.id": client_id,
            "error_cb": self.on_error,
            "log_level": 3,
        }
        return TopicEnds(settings)

    def consumer(self, group: str, **settings: Any) -> Consumer:
        """Return a consumer with what all of the dashboard's consumers have in common."""
        return Consumer(
            {
                **client_config(self.bootstrap),
                "client.id": f"barnabas-{self.name}",
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 1000,
                "topic.metadata.refresh.interval.ms": 5000,
                "error_cb": self.on_error,
                "log_level": 3,
                **settings,
            }
        )


class OutputReader(ReaderThread):
    """Reads the station table and every output topic, upserting by key."""

    def __init__(self, bootstrap: str, registry: RegistryClient, state: DashboardState) -> None:
        super().__init__("output-reader", bootstrap, state)
        self._values = AvroValues(registry)

    def read(self) -> None:
        """Assign each topic once it exists, and apply its records."""
        # What is aborted or still open is not read. The end of a partition says where reading is:
        # behind the last record there may be a transaction's marker.
        consumer = self.consumer(
            "dashboard-outputs",
            **{"isolation.level": "read_committed", "enable.partition.eof": True},
        )
        missing = {STATIONS, *OUTPUT_TOPICS}
        positions: dict[str, dict[int, int]] = {name: {} for name in missing}
        try:
            while not self.stopping.is_set():
                if missing:
                    missing -= self._assign_existing(consumer, missing)
                if len(missing) == len(positions):
                    self.stopping.wait(0.5)
                    continue
                messages = consumer.consume(_BATCH_RECORDS_MAX, _POLL_SECONDS)
                for message in messages:
                    if is_end(message):
                        topic, partition, offset = place_of(message)
                        positions[topic][partition] = offset
                    elif usable(message):
                        topic, partition, offset = place_of(message)
                        key, value = message.key() or b"", message.value()
                        if topic == STATIONS:
                            self.state.set_station(key.decode(), self._values.read(value))
                        elif value is not None:
                            row = read_row(topic, key, value, self._values)
                            if row is not None:
                                self.state.apply(topic, key, row)
                        positions[topic][partition] = offset + 1
                if messages:
                    read = {topic: sum(of.values()) for topic, of in positions.items()}
                    self.state.set_outputs_read(read)
        finally:
            consumer.close()

    def _assign_existing(self, consumer: Consumer, wanted: set[str]) -> set[str]:
        known = consumer.list_topics(timeout=10.0).topics
        existing = {name for name in wanted if name in known and known[name].partitions}
        new = [
            TopicPartition(name, partition, OFFSET_BEGINNING)
            for name in existing
            for partition in known[name].partitions
        ]
        if new:
            consumer.incremental_assign(new)
        return existing


class ActivityReader(ReaderThread):
    """The consumer group `dashboard` on `user-activity`."""

    def __init__(self, bootstrap: str, registry: RegistryClient, state: DashboardState) -> None:
        super().__init__("activity-reader", bootstrap, state)
        self._values = AvroValues(registry)

    def read(self) -> None:
        """Follow the topic, committing twice a second what was shown."""
        consumer = self.consumer(
            DASHBOARD_GROUP, **{"session.timeout.ms": 10_000, "heartbeat.interval.ms": 2_000}
        )
        consumer.subscribe([USER_ACTIVITY])
        rate = Rate(_RATE_SECONDS)
        newest: deque[dict[str, Any]] = deque(maxlen=FEED_LENGTH_MAX)
        uncommitted = False
        tick_at = time.monotonic()
        try:
            while not self.stopping.is_set():
                messages = consumer.consume(_BATCH_RECORDS_MAX, _POLL_SECONDS)
                good = [message for message in messages if usable(message)]
                events = (self._values.read(m.value()) for m in good[-FEED_LENGTH_MAX:])
                newest.extend(event for event in events if event is not None)
                uncommitted = uncommitted or bool(good)
                now = time.monotonic()
                rate.add(now, len(good))
                if now < tick_at:
                    continue
                tick_at = now + _TICK_SECONDS
                if uncommitted:
                    consumer.commit(asynchronous=True)
                    uncommitted = False
                read = _records_read(consumer)
                self.state.add_activity(list(newest), read, rate.per_second(now))
                newest.clear()
        finally:
            if uncommitted:
                consumer.commit(asynchronous=False)
            consumer.close()


class Rate:
    """Events per second over a sliding span of wall time."""

    def __init__(self, span_seconds: float) -> None:
        self._span_seconds = span_seconds
        self._counts: deque[tuple[float, int]] = deque()
        self._total = 0

    def add(self, now: float, count: int) -> None:
        """Count `count` events at the monotonic time `now`."""
        self._counts.append((now, count))
        self._total += count

    def per_second(self, now: float) -> float:
        """Return the mean rate over the span that ends now."""
        while self._counts and self._counts[0][0] <= now - self._span_seconds:
            self._total -= self._counts.popleft()[1]
        return self._total / self._span_seconds


def is_end(message: Message) -> bool:
    """Return whether it says that a partition was read to its end, which is its offset."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def usable(message: Message) -> bool:
    """Return whether it holds a record; raises KafkaException for what cannot be retried."""
    error = message.error()
    if error is None:
        return True
    if error.code() not in _ABSENT and not error.retriable():
        raise KafkaException(error)
    return False


def place_of(message: Message) -> tuple[str, int, int]:
    """Return a record's topic, partition and offset."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset


def _records_read(consumer: Consumer) -> int:
    """Return how many records the group has read since the topic's beginning.

    Nothing deletes or compacts records of the topic here, so positions count records.
    """
    positions = consumer.position(consumer.assignment())
    unread = [p for p in positions if p.offset < 0]
    offsets = {(p.topic, p.partition): p.offset for p in positions if p.offset >= 0}
    if unread:
        for place in consumer.committed(unread, timeout=10.0):
            if place.offset >= 0:
                offsets[place.topic, place.partition] = place.offset
    return sum(offsets.values())


_EVERY_SECONDS = 2.0


class ConnectorMonitor(ReaderThread):
    """Asks the workers' REST interfaces, as any client could."""

    def __init__(self, bootstrap: str, urls: Sequence[str], state: DashboardState) -> None:
        super().__init__("connector-monitor", bootstrap, state)
        self._known: dict[str, dict[str, str]] = {url: {} for url in urls}

    def read(self) -> None:
        """Look until `stopping` is set."""
        while not self.stopping.is_set():
            self.state.set_connectors(self.look())
            self.stopping.wait(_EVERY_SECONDS)

    def look(self) -> dict[str, str]:
        """Return each connector's state; DOWN are those whose worker does not answer any more."""
        for url, known in self._known.items():
            states = connector_states(url)
            self._known[url] = dict.fromkeys(known, "DOWN") if states is None else states
        return {name: state for known in self._known.values() for name, state in known.items()}

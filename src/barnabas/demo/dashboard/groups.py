"""The lag of the demo's consumer groups, asked from the brokers as any monitoring tool would."""

from __future__ import annotations

import time
from collections import deque
from functools import cached_property
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from barnabas.demo.dashboard.committer import RECOMMENDATIONS_GROUP, WAREHOUSE_GROUP
from barnabas.demo.dashboard.readers import DASHBOARD_GROUP, ReaderThread
from barnabas.demo.dashboard.state import DashboardState, GroupStatus
from barnabas.demo.topics import (
    CHARGING_EVENTS,
    GROUP_CHARGING,
    GROUP_STATIONS,
    STATION_STATUS,
    USER_ACTIVITY,
)

_EVERY_SECONDS = 1.0
_REQUEST_SECONDS = 10.0
_RATE_SPAN_SECONDS = 10.0
LAG_HISTORY_LENGTH_MAX = 60
_ENDS_LENGTH_MAX = 600

Place = tuple[str, int]
"""A topic and a partition."""

WATCHED_GROUPS = {
    DASHBOARD_GROUP: USER_ACTIVITY,
    RECOMMENDATIONS_GROUP: USER_ACTIVITY,
    WAREHOUSE_GROUP: USER_ACTIVITY,
    GROUP_CHARGING: CHARGING_EVENTS,
    GROUP_STATIONS: STATION_STATUS,
}
"""Group to the topic that it reads: three share one topic, two have one each."""


class GroupMonitor(ReaderThread):
    """Looks once a second at committed offsets and log end offsets."""

    def __init__(self, bootstrap: str, state: DashboardState) -> None:
        super().__init__("group-monitor", bootstrap, state)
        self._histories = {group: History() for group in WATCHED_GROUPS}
        self._furthest = Furthest()

    def read(self) -> None:
        """Look until `stopping` is set."""
        # A consumer of each group, which joins nothing. The admin client could ask too, but
        # librdkafka (2.16) ends the process with a segmentation fault where its answer is
        # NOT_COORDINATOR, as at the start of several nodes, and with an abort where the
        # coordinator goes away meanwhile: github.com/confluentinc/librdkafka, 5040 and 5397.
        consumers = {group: self.consumer(group) for group in WATCHED_GROUPS}
        try:
            while not self.stopping.is_set():
                ends = end_offsets(self._admin, sorted(set(WATCHED_GROUPS.values())))
                self.state.set_records(sum(ends.values()), self._furthest.lost(ends))
                self.state.set_groups(look(consumers, ends, self._histories))
                self.state.set_connection("connected")
                self.stopping.wait(_EVERY_SECONDS)
        finally:
            for consumer in consumers.values():
                consumer.close()

    @cached_property
    def _admin(self) -> AdminClient:
        """One for the thread's whole life.

        The traceback of a failed answer keeps a client until the garbage collector comes by, and
        librdkafka aborts where that is in one of the client's own threads.
        """
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "barnabas-group-monitor",
            "error_cb": self.on_error,
            "log_level": 3,
        }
        return AdminClient(settings)


class History:
    """Positions and lags of one group over the last seconds."""

    def __init__(self) -> None:
        self._positions: deque[tuple[float, int]] = deque()
        self._ends: deque[tuple[float, int]] = deque(maxlen=_ENDS_LENGTH_MAX)
        self.lags: deque[int] = deque(maxlen=LAG_HISTORY_LENGTH_MAX)

    def behind_seconds(self, now: float, position: int, end: int) -> float:
        """Return how long ago the topic was first seen to be further than the group is now."""
        self._ends.append((now, end))
        return next((now - then for then, before in self._ends if before > position), 0.0)

    def add(self, now: float, position: int, lag: int) -> float:
        """Note where the group is; returns records per second over the last ten seconds."""
        self.lags.append(lag)
        self._positions.append((now, position))
        while len(self._positions) > 2 and self._positions[1][0] <= now - _RATE_SPAN_SECONDS:
            self._positions.popleft()
        then, before = self._positions[0]
        return (position - before) / (now - then) if now > then else 0.0


class Furthest:
    """How far each partition was seen to go."""

    def __init__(self) -> None:
        self._ends: dict[Place, int] = {}

    def lost(self, ends: dict[Place, int]) -> int:
        """Return how many records that were readable are gone: partitions that went back."""
        for place, end in ends.items():
            self._ends[place] = max(end, self._ends.get(place, 0))
        return sum(self._ends[place] - end for place, end in ends.items())


def look(
    consumers: dict[str, Consumer], ends: dict[Place, int], histories: dict[str, History]
) -> list[GroupStatus]:
    """Return where each watched group is; a topic that does not exist yet counts as empty.

    Raises KafkaException where the brokers do not answer.
    """
    statuses = []
    for group, topic in WATCHED_GROUPS.items():
        partitions = {p: end for (name, p), end in ends.items() if name == topic}
        committed = committed_offsets(consumers[group], topic, sorted(partitions))
        status = GroupStatus(group, topic, end=sum(partitions.values()))
        status.is_spark = group != DASHBOARD_GROUP
        if committed:
            status.position = sum(committed.values())
            status.lag = sum(
                max(0, end - committed.get(partition, 0)) for partition, end in partitions.items()
            )
            history = histories[group]
            now = time.monotonic()
            rate = history.add(now, status.position, status.lag)
            behind = history.behind_seconds(now, status.position, status.end)
            status.behind_seconds = round(behind, 1)
            status.per_second = round(max(0.0, rate), 1)
            status.lag_history = list(history.lags)
        statuses.append(status)
    return statuses


def end_offsets(admin: AdminClient, topics: list[str]) -> dict[Place, int]:
    """Return the log end offset of each partition of those topics that exist."""
    futures = admin.describe_topics(TopicCollection(topics), request_timeout=_REQUEST_SECONDS)
    wanted: dict[TopicPartition, OffsetSpec] = {}
    latest: OffsetSpec = OffsetSpec.latest()
    for name, future in futures.items():
        try:
            description = future.result()
        except KafkaException as error:
            if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                raise
            continue
        for partition in description.partitions:
            wanted[TopicPartition(name, partition.id)] = latest
    if not wanted:
        return {}
    answers = admin.list_offsets(wanted, request_timeout=_REQUEST_SECONDS)
    return {(place.topic, place.partition): f.result().offset for place, f in answers.items()}


def committed_offsets(consumer: Consumer, topic: str, partitions: list[int]) -> dict[int, int]:
    """Return the offsets that a consumer's group has committed, by partition; empty if none."""
    if not partitions:
        return {}
    places = [TopicPartition(topic, partition) for partition in partitions]
    committed = consumer.committed(places, timeout=_REQUEST_SECONDS)
    return {place.partition: place.offset for place in committed if place.offset >= 0}

"""The lag of the demo's consumer groups, asked from the brokers as any monitoring tool would."""

from __future__ import annotations

import time
from collections import deque

from confluent_kafka import Consumer, TopicPartition

from barnabas.demo.dashboard.readers import DASHBOARD_GROUP, ReaderThread
from barnabas.demo.dashboard.state import DashboardState, GroupStatus, ReaderStatus
from barnabas.demo.topics import (
    INPUT_TOPICS,
    RECOMMENDATIONS_GROUP,
    USER_ACTIVITY,
    consumer_groups,
)

_EVERY_SECONDS = 1.0
_REQUEST_SECONDS = 10.0
_RATE_SPAN_SECONDS = 10.0
LAG_HISTORY_LENGTH_MAX = 60
_ENDS_LENGTH_MAX = 600

Place = tuple[str, int]
"""A topic and a partition."""

Groups = dict[str, tuple[str, ...]]
"""Each with the topics that it reads."""


def watched_groups(*, is_iceberg: bool = False) -> Groups:
    """Return the groups that are shown: this page's own, the ranking's and the warehouse's."""
    return {DASHBOARD_GROUP: (USER_ACTIVITY,), **consumer_groups(is_iceberg=is_iceberg)}


class GroupMonitor(ReaderThread):
    """Looks once a second at committed offsets and log end offsets."""

    def __init__(self, bootstrap: str, state: DashboardState, groups: Groups) -> None:
        super().__init__("group-monitor", bootstrap, state)
        self._groups = groups
        self._histories = {group: History() for group in groups}
        self._furthest = Furthest()
        self._ends = self.topic_ends("barnabas-group-monitor")

    def read(self) -> None:
        """Look until `stopping` is set."""
        # A consumer of each group, which joins nothing. The admin client could ask too, but
        # librdkafka (2.16) ends the process with a segmentation fault where its answer is
        # NOT_COORDINATOR, as at the start of several nodes, and with an abort where the
        # coordinator stops during the call: github.com/confluentinc/librdkafka, 5040 and 5397.
        consumers = {group: self.consumer(group) for group in self._groups}
        try:
            while not self.stopping.is_set():
                read = {topic for topics in self._groups.values() for topic in topics}
                ends = self._ends.of(sorted({*INPUT_TOPICS, *read}))
                inputs = {place: end for place, end in ends.items() if place[0] in INPUT_TOPICS}
                self.state.set_records(sum(inputs.values()), self._furthest.lost(inputs))
                self.state.set_groups(look(self._groups, consumers, ends, self._histories))
                self.state.set_connection("connected")
                self.stopping.wait(_EVERY_SECONDS)
        finally:
            for consumer in consumers.values():
                consumer.close()


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


def fill(
    status: ReaderStatus, offsets: dict[Place, int], ends: dict[Place, int], history: History
) -> None:
    """Say how far a reader is whose next offsets are those; without any it has said nothing yet."""
    own = {place: end for place, end in ends.items() if place[0] in status.topics}
    status.end = sum(own.values())
    if not offsets:
        return
    status.position = sum(offsets.values())
    status.lag = sum(max(0, end - offsets.get(place, 0)) for place, end in own.items())
    now = time.monotonic()
    rate = history.add(now, status.position, status.lag)
    status.behind_seconds = round(history.behind_seconds(now, status.position, status.end), 1)
    status.per_second = round(max(0.0, rate), 1)
    status.lag_history = list(history.lags)


class Furthest:
    """The last known end of each partition."""

    def __init__(self) -> None:
        self._ends: dict[Place, int] = {}

    def lost(self, ends: dict[Place, int]) -> int:
        """Return how many records that were readable are gone: partitions that went back."""
        for place, end in ends.items():
            self._ends[place] = max(end, self._ends.get(place, 0))
        return sum(self._ends[place] - end for place, end in ends.items())


def look(
    groups: Groups,
    consumers: dict[str, Consumer],
    ends: dict[Place, int],
    histories: dict[str, History],
) -> list[GroupStatus]:
    """Return where each watched group is; a topic that does not exist yet counts as empty.

    Raises KafkaException where the brokers do not answer.
    """
    statuses = []
    for group, topics in groups.items():
        places = sorted(place for place in ends if place[0] in topics)
        committed = committed_offsets(consumers[group], places)
        status = GroupStatus(group, list(topics), is_spark=group == RECOMMENDATIONS_GROUP)
        fill(status, committed, ends, histories[group])
        statuses.append(status)
    return statuses


def committed_offsets(consumer: Consumer, places: list[Place]) -> dict[Place, int]:
    """Return the offsets that a consumer's group has committed; empty if none."""
    if not places:
        return {}
    asked = [TopicPartition(topic, partition) for topic, partition in places]
    committed = consumer.committed(asked, timeout=_REQUEST_SECONDS)
    return {(at.topic, at.partition): at.offset for at in committed if at.offset >= 0}

"""Topics in memory, as a cluster for the engine of SQL.

A record that is written goes to every follower before `write` returns, except where the writer is
a follower itself: then it waits its turn, so that all followers see all records in one order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from barnabas.kafka.memory import MemoryTopics, Place
from barnabas.sql.engine.cluster import ClusterError, NewTopic, Start, Take, TopicInfo
from barnabas.sql.runtime.topics import TopicRecord


class MemoryCluster:
    """One partition to each topic unless it is made with more; records are spread by no rule but
    that of their `partition`."""

    def __init__(self) -> None:
        self.cluster_id = "memory"
        self._lock = threading.RLock()
        self._topics: dict[str, NewTopic] = {}
        self._logs = MemoryTopics[TopicRecord]()
        self.records = self._logs.written
        self._followers: list[_MemoryFollower] = []
        self._pending: deque[tuple[str, TopicRecord]] = deque()
        self._is_handing_on = False
        self._groups: dict[str, dict[Place, tuple[int, int]]] = {}
        """By group and partition the first record that it took, and the one after its last."""

    def topics(self) -> Mapping[str, TopicInfo]:
        with self._lock:
            return {
                name: TopicInfo(name, (topic.replicas or 1,) * topic.partitions)
                for name, topic in self._topics.items()
            }

    def create_topic(self, topic: NewTopic) -> None:
        with self._lock:
            if topic.name not in self._topics:
                self._topics[topic.name] = topic
                self._logs.create(topic.name, topic.partitions)

    def delete_topic(self, name: str) -> None:
        with self._lock:
            self._topics.pop(name, None)
            self._logs.delete(name)

    def topic_config(self, name: str) -> Mapping[str, str]:
        with self._lock:
            if name not in self._topics:
                raise ClusterError(f"Topic '{name}' does not exist.")
            return self._topics[name].config

    def bounds(
        self, places: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], tuple[int, int]]:
        return {place: (0, self._logs.end(place)) for place in places}

    def end(self, place: Place) -> int:
        """The offset that the next record of a partition gets."""
        return self._logs.end(place)

    def write(self, topic: str, record: TopicRecord) -> None:
        with self._lock:
            if topic not in self._topics:
                raise ClusterError(f"Topic '{topic}' does not exist.")
            written = self._logs.put(topic, replace(record, partition=record.partition or 0))
            self._pending.append((topic, written))
            self._hand_on()

    def _hand_on(self) -> None:
        if self._is_handing_on:
            return
        self._is_handing_on = True
        try:
            while self._pending:
                topic, record = self._pending.popleft()
                for follower in list(self._followers):
                    follower.offer(topic, record)
        finally:
            self._is_handing_on = False

    def flush(self) -> None:
        pass

    def follow(
        self,
        topics: Sequence[str],
        take: Take,
        start: Start,
        *,
        group: str | None = None,
        after_batch: Callable[[], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> _MemoryFollower:
        with self._lock:
            done = self._groups.setdefault(group, {}) if group is not None else {}
            follower = _MemoryFollower(self, topics, take, done, after_batch, on_error)
            for place in self._logs.places(topics):
                begin = 0 if start is Start.EARLIEST else self._logs.end(place)
                done.setdefault(place, (begin, begin))
            waiting = {(*_place(topic, record), record.offset) for topic, record in self._pending}
            earlier = [
                (record.timestamp_ms, topic, record)
                for topic in dict.fromkeys(topics)
                for record in self.records.get(topic, ())
                if record.offset >= done[_place(topic, record)][0]
                and (*_place(topic, record), record.offset) not in waiting
            ]
            earlier.sort(key=lambda item: item[0])
            for _, topic, record in earlier:
                follower.offer(topic, record)
            self._followers.append(follower)
            self._hand_on()
        return follower

    def remove(self, follower: _MemoryFollower) -> None:
        """Hand nothing on to it from now on."""
        with self._lock:
            if follower in self._followers:
                self._followers.remove(follower)

    def forget_group(self, group: str) -> None:
        with self._lock:
            self._groups.pop(group, None)


class _MemoryFollower:
    def __init__(
        self,
        cluster: MemoryCluster,
        topics: Sequence[str],
        take: Take,
        done: dict[Place, tuple[int, int]],
        after_batch: Callable[[], None] | None,
        on_error: Callable[[Exception], None] | None,
    ) -> None:
        self._cluster = cluster
        self._topics = frozenset(topics)
        self._take = take
        self._done = done
        self._after_batch = after_batch
        self._on_error = on_error
        self._is_closed = False

    def offer(self, topic: str, record: TopicRecord) -> None:
        if self._is_closed or topic not in self._topics:
            return
        place = _place(topic, record)
        first, stop = self._done.setdefault(place, (0, 0))
        try:
            self._take(topic, replace(record), record.offset < stop)
            if self._after_batch is not None:
                self._after_batch()
        except Exception as error:  # any error ends only this follower
            self.close()
            if self._on_error is None:
                raise
            self._on_error(error)
            return
        self._done[place] = (first, max(stop, record.offset + 1))

    def wait_until_caught_up(self, timeout_s: float) -> bool:
        return True

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        return {
            place: (stop, self._cluster.end(place))
            for place, (_, stop) in self._done.items()
            if place[0] in self._topics
        }

    def close(self) -> None:
        self._is_closed = True
        self._cluster.remove(self)


def _place(topic: str, record: TopicRecord) -> Place:
    return topic, record.partition or 0

"""A follower of topics of a real cluster: a consumer, and a thread that hands on its records.

What a group has done lies in its committed offsets; the metadata of a commit holds the offset that
the group began at, so that a query whose state is in memory can build it up again.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from barnabas.kafka.admin import Admin, Listed
from barnabas.sql.engine.cluster import ClusterError, Start, Take
from barnabas.sql.runtime.topics import TopicRecord

_log = logging.getLogger(__name__)
TIMEOUT_S = 30.0
_BATCH_MAX = 1_000
_POLL_S = 0.1
_COMMIT_S = 1.0
_ENDS_S = 5.0
_PAUSE_S = 0.1
_CHECK_S = 5.0
"""The interval at which the existence of the topics is checked."""
_LASTING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
"""Errors that do not pass by waiting."""


class KafkaFollower:
    """Hands on the records of partitions from when it is made until it is closed."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        admin: Admin,
        partitions: list[TopicPartition],
        take: Take,
        start: Start,
        group: str | None,
        after_batch: Callable[[], None] | None,
        on_error: Callable[[Exception], None] | None,
    ) -> None:
        self._admin = admin
        self._take = take
        self._after_batch = after_batch
        self._on_error = on_error
        self._group = group
        self._consumer = Consumer(
            {
                **settings,
                "group.id": group or "barnabas-sql-follower",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
            }
        )
        self._keys = [(p.topic, p.partition) for p in partitions]
        self._begun: dict[tuple[str, int], int] = {}
        self._done: dict[tuple[str, int], int] = {}
        self._known_ends: dict[tuple[str, int], int] = {}
        try:
            self._find_start(partitions, start)
        except BaseException:
            self._consumer.close()
            raise
        self._next = dict(self._begun)
        self._lock = threading.Condition()
        self._is_closed = False
        self._committed_at = self._checked_at = time.monotonic()
        self._missing: set[str] = set()
        self._is_dirty = True
        self._consumer.assign(
            [
                TopicPartition(topic, number, self._begun[topic, number])
                for topic, number in self._keys
            ]
        )
        self._thread = threading.Thread(target=self._run, name=f"follow {group or ''}", daemon=True)
        self._thread.start()

    def _find_start(self, partitions: list[TopicPartition], start: Start) -> None:
        bounds = dict(zip(self._keys, self._bounds(), strict=True))
        committed = self._committed(partitions)
        for key in self._keys:
            low, high = bounds[key]
            begin = low if start is Start.EARLIEST else high
            first, stop = committed.get(key, (begin, begin))
            if stop > high:  # the topic is another one of that name: nothing of it is done
                first = stop = low
            self._begun[key], self._done[key] = max(first, low), stop
            self._known_ends[key] = high

    def _bounds(self) -> list[tuple[int, int]]:
        """The first offset and the end of each partition."""
        places = [TopicPartition(topic, number) for topic, number in self._keys]
        return [asked(partial(self._bounds_of, place)) for place in places]

    def _bounds_of(self, place: TopicPartition) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
        return int(low), int(high)

    def _committed(
        self, partitions: list[TopicPartition]
    ) -> dict[tuple[str, int], tuple[int, int]]:
        """By partition where the group began, and what it has done."""
        if self._group is None:
            return {}
        committed = asked(lambda: self._consumer.committed(partitions, timeout=TIMEOUT_S))
        return {(p.topic, p.partition): (_first(p), p.offset) for p in committed if p.offset >= 0}

    def _run(self) -> None:
        try:
            if self._group is not None:
                self._commit()
            while not self._is_closed:
                self._read()
            if self._is_dirty:
                self._commit()
        except Exception as error:  # noqa: BLE001  whatever it is: the follower's owner has to know
            if not self._is_closed:
                _log.warning("reading %s ends: %s", self._keys, error)
                if self._on_error is not None:
                    self._on_error(error)
        finally:
            self._consumer.close()

    def _read(self) -> None:
        messages = self._consumer.consume(_BATCH_MAX, _POLL_S)
        good = [message for message in messages if message.error() is None]
        # The order of a partition stays; among partitions the earliest record is first.
        for message in _in_order(good):
            if self._is_closed:
                break
            key = (str(message.topic()), int(message.partition() or 0))
            offset = int(message.offset() or 0)
            self._take(key[0], _record(message), offset < self._done[key])
            self._next[key] = offset + 1
        if good:
            self._is_dirty = True
            if self._after_batch is not None:
                self._after_batch()
        for message in messages:
            self._note(message)
        self._note_ends()
        if time.monotonic() - self._checked_at > _CHECK_S:
            self._check_topics()
        if messages:
            with self._lock:
                self._lock.notify_all()
        if self._is_dirty and time.monotonic() - self._committed_at > _COMMIT_S:
            self._commit()

    def _check_topics(self) -> None:
        """Raise ClusterError once a topic is missing at two looks: librdkafka would wait for it."""
        missing = set()
        for topic in dict.fromkeys(topic for topic, _ in self._keys):
            try:
                error = self._consumer.list_topics(topic, timeout=_CHECK_S).topics[topic].error
            except KafkaException:  # no broker answers: it says nothing about topics
                error = None
            if error is not None and error.code() in _LASTING:
                missing.add(topic)
        lasting = sorted(missing & self._missing)
        if lasting:
            raise ClusterError(f"Topic '{lasting[0]}' does not exist.")
        self._missing = missing
        self._checked_at = time.monotonic()

    def _note_ends(self) -> None:
        """The partitions' ends as the last fetches told them: `positions` asks nobody."""
        for key in self._keys:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(*key), cached=True)
            self._known_ends[key] = max(int(high), self._next[key])

    def _note(self, message: Message) -> None:
        """The end of a partition, which markers of transactions may stand before, or an error."""
        failure = message.error()
        if failure is None:
            return
        if failure.code() == KafkaError._PARTITION_EOF:
            key = (str(message.topic()), int(message.partition() or 0))
            self._next[key] = max(self._next[key], int(message.offset() or 0))
        elif failure.fatal() or failure.code() in _LASTING:
            raise ClusterError(failure.str())
        else:
            _log.debug("reading %s: %s", self._keys, failure.str())

    def _commit(self) -> None:
        if self._group is None:
            return
        offsets = []
        for key in self._keys:
            done = max(self._done[key], self._next[key])
            offsets.append(TopicPartition(*key, done, f"first={self._begun[key]}"))
        self._consumer.commit(offsets=offsets, asynchronous=False)
        self._is_dirty = False
        self._committed_at = time.monotonic()

    def wait_until_caught_up(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        ends = self._ends(deadline)
        while self._thread.is_alive():
            if all(self._next[key] >= ends[key] for key in self._keys):
                return True
            if time.monotonic() > deadline:
                return False
            with self._lock:
                self._lock.wait(0.02)
        return False

    def _ends(self, deadline: float) -> Listed:
        """Raises ClusterError. A try is short, as a leader may be dead."""
        wanted = {TopicPartition(*key): OffsetSpec.latest() for key in self._keys}
        while True:
            left_s = deadline - time.monotonic()
            try:
                return self._admin.offsets(wanted, min(max(left_s, _PAUSE_S), _ENDS_S))
            except KafkaException as error:
                failure = error.args[0]
                if left_s <= 0 or failure.code() in _LASTING:
                    raise ClusterError(str(failure.str())) from error
            time.sleep(_PAUSE_S)

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        return {key: (max(self._next[key], 0), self._known_ends[key]) for key in self._keys}

    def close(self) -> None:
        self._is_closed = True
        if threading.current_thread() is not self._thread:
            self._thread.join()


def _in_order(messages: list[Message]) -> list[Message]:
    """Sorted by time, but each partition's messages by offset."""
    by_partition: dict[tuple[Any, Any], list[Message]] = {}
    for message in messages:
        by_partition.setdefault((message.topic(), message.partition()), []).append(message)
    if len(by_partition) <= 1:
        return sorted(messages, key=lambda message: int(message.offset() or 0))
    for own in by_partition.values():
        own.sort(key=lambda message: int(message.offset() or 0))
    heads = [(own[0].timestamp()[1], number, 0) for number, own in enumerate(by_partition.values())]
    heapq.heapify(heads)
    logs, ordered = list(by_partition.values()), []
    while heads:
        _, number, place = heapq.heappop(heads)
        ordered.append(logs[number][place])
        if place + 1 < len(logs[number]):
            heapq.heappush(heads, (logs[number][place + 1].timestamp()[1], number, place + 1))
    return ordered


def _record(message: Message) -> TopicRecord:
    given: Any = message.headers()
    headers = tuple(_header(name, value) for name, value in given or ())
    return TopicRecord(
        message.key(),
        message.value(),
        int(message.timestamp()[1]),
        headers,
        int(message.partition() or 0),
        int(message.offset() or 0),
    )


def _header(name: Any, value: Any) -> tuple[str, bytes | None]:
    return str(name), value.encode() if isinstance(value, str) else value


def _first(place: TopicPartition) -> int:
    """Return where the group began, as the commit's metadata tells."""
    text = place.metadata or ""
    return int(text.removeprefix("first=")) if text.startswith("first=") else place.offset


def asked(ask: Callable[[], Any]) -> Any:
    """Return the result of a call to the cluster; its KafkaException becomes a ClusterError."""
    try:
        return ask()
    except KafkaException as error:
        raise ClusterError(_why(error.args[0])) from error


def _why(error: Any) -> str:
    """An error in words; the name of its code where the broker gives no message."""
    text = str(error.str()).rstrip()
    return f"{text} {error.name()}" if text.endswith(":") else text

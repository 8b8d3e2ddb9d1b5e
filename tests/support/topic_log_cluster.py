"""A topic of one partition in memory, with clients in place of confluent-kafka's, for TopicLog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException

TOPIC = "state"


@dataclass
class Entry:
    """A record, or a marker where `key` is None; `state` is that of its transaction."""

    key: bytes | None
    value: bytes | None
    transaction: list[str] = field(default_factory=lambda: ["committed"])

    @property
    def state(self) -> str:
        return self.transaction[0]


class Cluster:
    """The topic, and what goes wrong next."""

    def __init__(self) -> None:
        self.topic_id = 1
        self.log: dict[int, Entry] = {}
        self.end = 0
        self.epochs: dict[str, int] = {}
        self.open: dict[str, list[str]] = {}
        self.fault: str = ""
        """Of the next commit: "lost" is its acknowledgement, or the whole "request"."""

    def put(self, entry: Entry) -> int:
        self.log[self.end] = entry
        self.end += 1
        return self.end - 1

    def last_stable(self) -> int:
        waiting = (o for o, entry in sorted(self.log.items()) if entry.state == "open")
        return next(waiting, self.end)

    def committed(self) -> list[tuple[int, bytes | None, bytes | None]]:
        stable = self.last_stable()
        return [
            (offset, entry.key, entry.value)
            for offset, entry in sorted(self.log.items())
            if offset < stable and entry.key is not None and entry.state == "committed"
        ]

    def finish(self, transactional_id: str, outcome: str) -> None:
        transaction = self.open.pop(transactional_id, None)
        if transaction is not None:
            transaction[0] = outcome
            self.put(Entry(None, None))

    def compact(self) -> None:
        """Keep the last record of each key, and the last offset, as Kafka does."""
        last = {e.key: o for o, e in sorted(self.log.items()) if e.state == "committed"}
        stable = self.last_stable()
        self.log = {
            offset: entry
            for offset, entry in self.log.items()
            if offset >= stable or last.get(entry.key) == offset or offset == self.end - 1
        }

    def cut_off(self) -> None:
        """Lose all records, as a leader that was not in sync does."""
        self.log, self.end, self.open = {}, 0, {}

    def make_again(self) -> None:
        self.topic_id += 1
        self.cut_off()

    def producer(self, settings: dict[str, Any]) -> Producer:
        return Producer(self, str(settings["transactional.id"]))

    def consumer(self, settings: dict[str, Any]) -> Consumer:
        return Consumer(self, settings["isolation.level"] == "read_committed")

    def admin(self, _settings: object = None) -> Admin:
        return Admin(self)


class Producer:
    """Writes in transactions."""

    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._epoch = 0
        self._reports: list[Callable[[], None]] = []

    def init_transactions(self, _seconds: float) -> None:
        cluster = self._cluster
        cluster.finish(self._id, "aborted")
        self._epoch = cluster.epochs[self._id] = cluster.epochs.get(self._id, 0) + 1

    def begin_transaction(self) -> None: ...

    def produce(
        self,
        _topic: str,
        value: bytes | None,
        key: bytes,
        partition: int,
        on_delivery: Callable[[None, Any], None],
    ) -> None:
        assert partition == 0
        self._check()
        transaction = self._cluster.open.setdefault(self._id, ["open"])
        offset = self._cluster.put(Entry(key, value, transaction))
        message = SimpleNamespace(offset=lambda: offset)
        self._reports.append(lambda: on_delivery(None, message))

    def commit_transaction(self, _seconds: float) -> None:
        fault, self._cluster.fault = self._cluster.fault, ""
        reports, self._reports = self._reports, []
        for report in reports:
            report()
        self._check()
        if fault != "request":
            self._cluster.finish(self._id, "committed")
        if fault:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def _check(self) -> None:
        if self._cluster.epochs[self._id] != self._epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED))


class Consumer:
    """Reads from an offset on; the end is reported once, as librdkafka does."""

    def __init__(self, cluster: Cluster, is_committed_only: bool) -> None:
        self._cluster = cluster
        self._is_committed_only = is_committed_only
        self._next = 0
        self._told_end = -1
        self._has_failed = False

    def assign(self, places: Sequence[Any]) -> None:
        self._next = max(places[0].offset, 0)
        self._told_end, self._has_failed = -1, False

    def poll(self, _seconds: float) -> Any:
        cluster = self._cluster
        if self._next > cluster.end and not self._has_failed:
            self._has_failed = True  # `auto.offset.reset` is `error`: it reads no more
            return _message(self._next, error=KafkaError(KafkaError._AUTO_OFFSET_RESET))
        end = cluster.last_stable() if self._is_committed_only else cluster.end
        while not self._has_failed and self._next < end:
            offset, self._next = self._next, self._next + 1
            entry = cluster.log.get(offset)
            hidden = entry is not None and self._is_committed_only and entry.state != "committed"
            if entry is not None and entry.key is not None and not hidden:
                return _message(offset, entry)
        if self._next == self._told_end or self._has_failed:
            return None
        self._told_end = self._next
        return _message(self._next, error=KafkaError(KafkaError._PARTITION_EOF))

    def consume(self, count: int, _seconds: float) -> list[Any]:
        found = (self.poll(0.0) for _ in range(count))
        return [message for message in found if message is not None]

    def close(self) -> None: ...


class Admin:
    """Answers of the topic."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe_topics(self, _topics: object, *, request_timeout: float) -> dict[str, Future[Any]]:
        partition = SimpleNamespace(leader=object())
        found = SimpleNamespace(partitions=[partition], topic_id=self._cluster.topic_id)
        return {TOPIC: _done(found)}

    def list_offsets(
        self, asked: Any, *, request_timeout: float, isolation_level: IsolationLevel
    ) -> dict[Any, Future[Any]]:
        committed_only = isolation_level == IsolationLevel.READ_COMMITTED
        end = self._cluster.last_stable() if committed_only else self._cluster.end
        return dict.fromkeys(asked, _done(SimpleNamespace(offset=end)))


def _done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def _message(offset: int, entry: Entry | None = None, error: KafkaError | None = None) -> Any:
    return SimpleNamespace(
        partition=lambda: 0,
        offset=lambda: offset,
        error=lambda: error,
        key=lambda: entry and entry.key,
        value=lambda: entry and entry.value,
    )

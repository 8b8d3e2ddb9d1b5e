"""Topics in memory that replace a cluster in tests.

A record is a dataclass of its product, with at least `key`, `partition` and `offset`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from threading import RLock
from typing import Any, Generic, TypeVar

R = TypeVar("R", bound=Any)
Place = tuple[str, int]


class MemoryTopics(Generic[R]):
    """Topics with their records, and the committed offsets of groups. Threads may share it."""

    def __init__(self, partitions: int = 1) -> None:
        self.partitions = partitions
        """Of topics that come to be by being written to."""
        self.lock = RLock()
        self.topics: dict[str, list[list[R]]] = {}
        """By topic the records of each partition."""
        self.written: dict[str, list[R]] = {}
        """By topic its records in the order of writing."""
        self.committed: dict[str, dict[Place, int]] = {}
        """By group the offset that it goes on at."""

    def create(self, topic: str, partitions: int | None = None) -> None:
        """Make a topic, if it is not there."""
        with self.lock:
            count = partitions or self.partitions
            self.topics.setdefault(topic, [[] for _ in range(count)])
            self.written.setdefault(topic, [])

    def delete(self, topic: str) -> None:
        """Delete a topic, if it is there."""
        with self.lock:
            self.topics.pop(topic, None)
            self.written.pop(topic, None)

    def put(self, topic: str, record: R) -> R:
        """Write a record, where its key says if it has no partition. Returns it with its place."""
        with self.lock:
            self.create(topic)
            logs = self.topics[topic]
            number = record.partition
            if number is None:
                number = zlib.crc32(record.key) % len(logs) if record.key else 0
            logs += [[] for _ in range(number + 1 - len(logs))]
            written: R = replace(record, partition=number, offset=len(logs[number]))
            logs[number].append(written)
            self.written[topic].append(written)
            return written

    def places(self, topics: Iterable[str]) -> list[Place]:
        """Return the partitions of topics."""
        with self.lock:
            return [
                (topic, number)
                for topic in topics
                for number in range(len(self.topics.get(topic, ())))
            ]

    def read(self, place: Place, start: int = 0, end: int | None = None) -> list[R]:
        """Return the records of a partition from one offset up to another; none of no topic."""
        topic, number = place
        with self.lock:
            logs = self.topics.get(topic, ())
            return logs[number][start:end] if number < len(logs) else []

    def end(self, place: Place) -> int:
        """Return the offset that the next record of a partition gets."""
        topic, number = place
        with self.lock:
            logs = self.topics.get(topic, ())
            return len(logs[number]) if number < len(logs) else 0

    def commit(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Commit offsets of a group."""
        with self.lock:
            self.committed.setdefault(group, {}).update(offsets)

    def forget_group(self, group: str) -> None:
        """Delete a group."""
        with self.lock:
            self.committed.pop(group, None)

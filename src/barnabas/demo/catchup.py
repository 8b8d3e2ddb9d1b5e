"""Lag of pipeline and dashboard: log end offsets of the brokers against reports of both."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from barnabas.demo.topics import INPUT_TOPICS, OUTPUT_TOPICS, STATIONS
from barnabas.kafka.admin import Admin, Listed


class TopicEnds:
    """Asks with clients of librdkafka's `settings`, made at first use."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = Admin(settings)

    def of(self, topics: Sequence[str]) -> Listed:
        """Return the log end offset of each partition of those topics that exist.

        Raises KafkaException where brokers do not answer.
        """
        latest: OffsetSpec = OffsetSpec.latest()
        wanted = {
            TopicPartition(name, partition.id): latest
            for name, topic in self._admin.describe(topics).items()
            for partition in topic.partitions
        }
        return self._admin.offsets(wanted) if wanted else {}


@dataclass(slots=True, frozen=True)
class Backlog:
    """The remaining work, in records; `known` is False if something did not answer."""

    pipeline: int
    """Records that the statements and consumer groups have not processed, in all."""
    dashboard: int
    """Result records that the dashboard has not read."""
    known: bool

    @property
    def nothing(self) -> bool:
        """True if everything published is processed and shown."""
        return self.known and not (self.pipeline or self.dashboard)


UNKNOWN = Backlog(0, 0, known=False)


def read_json(path: str) -> Any:
    """Return a JSON file's content, None where it does not exist (yet)."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as source:
        return json.load(source)


def measure(ends_of: TopicEnds, page: dict[str, Any] | None) -> Backlog:
    """Ask for end offsets and compare them with the page."""
    if page is None:
        return UNKNOWN
    try:
        ends = ends_of.of([STATIONS, *INPUT_TOPICS, *OUTPUT_TOPICS])
    except KafkaException:
        return UNKNOWN
    topic_ends: Counter[str] = Counter()
    for (name, _), end in ends.items():
        topic_ends[name] += end
    return backlog_of(page, topic_ends)


def backlog_of(page: dict[str, Any], topic_ends: Mapping[str, int]) -> Backlog:
    """Compare ends with the page's account: of statements, of groups, and of itself."""
    readers = [*page["statements"], *page["groups"]]
    read = page["outputs_read"]
    return Backlog(
        pipeline=sum(_behind(reader, topic_ends) for reader in readers),
        dashboard=sum(max(0, topic_ends[name] - read.get(name, 0)) for name in OUTPUT_TOPICS),
        known=bool(page["statements"] and page["groups"])
        and all(reader["lag"] is not None for reader in readers),
    )


def _behind(reader: dict[str, Any], topic_ends: Mapping[str, int]) -> int:
    """Return a reader's lag; the page's own ends may be a second old."""
    position: int = reader["position"]
    return max(0, sum(topic_ends[topic] for topic in reader["topics"]) - position)

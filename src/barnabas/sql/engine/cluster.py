"""The engine's interface to a Kafka cluster, which tests implement in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from barnabas.sql.runtime.topics import TopicRecord


class ClusterError(Exception):
    """The cluster refuses something, or does not answer."""


@dataclass(frozen=True)
class TopicInfo:
    """`replicas`: of each partition, in order."""

    name: str
    replicas: tuple[int, ...] = (1,)

    @property
    def partitions(self) -> int:
        return len(self.replicas)


@dataclass(frozen=True)
class NewTopic:
    """A topic to be made; `replicas` None: as many as the broker gives by default."""

    name: str
    partitions: int
    replicas: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)


class Start(Enum):
    """The start of a follower."""

    EARLIEST = "earliest"
    LATEST = "latest"


Take = Callable[[str, TopicRecord, bool], None]
"""Gets a topic's name, a record of it, and whether the group had it done before it stopped."""


class Follower(Protocol):
    """Passes on records of topics as they arrive, in its own thread or the writer's."""

    def wait_until_caught_up(self, timeout_s: float) -> bool:
        """Return whether every record is handed on that was there when the call began."""
        ...

    def positions(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """By topic and partition the next offset to be handed on, and the end of the partition."""
        ...

    def close(self) -> None:
        """Stop; no record is handed on once this returns."""
        ...


class Cluster(Protocol):
    """A Kafka cluster. Every call may raise ClusterError."""

    @property
    def cluster_id(self) -> str: ...

    def topics(self) -> Mapping[str, TopicInfo]:
        """All topics by name."""
        ...

    def create_topic(self, topic: NewTopic) -> None:
        """Make the topic; nothing is done if it is there already."""
        ...

    def delete_topic(self, name: str) -> None:
        """Delete the topic, if it is there."""
        ...

    def topic_config(self, name: str) -> Mapping[str, str]:
        """The topic's configuration."""
        ...

    def bounds(
        self, places: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], tuple[int, int]]:
        """By topic and partition its first offset and its end."""
        ...

    def write(self, topic: str, record: TopicRecord) -> None:
        """Write a record, which may be done after the call returned: see `flush`, which is for
        the same thread to call."""
        ...

    def flush(self) -> None:
        """Wait until all that was written is in its topics. Raises ClusterError for what this
        thread wrote."""
        ...

    def follow(
        self,
        topics: Sequence[str],
        take: Take,
        start: Start,
        *,
        group: str | None = None,
        after_batch: Callable[[], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> Follower:
        """Hand on the topics' records from `start` on, and all later ones.

        With a `group` it is remembered what was handed on, once `after_batch` returned. A follower
        of that group that starts later begins where the first one began, and says for each record
        whether it is one of those. An error of `take` ends the follower: `on_error` gets
        it.
        """
        ...

    def forget_group(self, group: str) -> None:
        """Forget what a group had done."""
        ...

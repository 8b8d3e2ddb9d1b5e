"""Share-partitions of a share group by stage: initializing, initialized, deleting.

A topic that members subscribe to goes from nothing to *initializing* (the share coordinators are
being asked) to *initialized* (its partitions may be assigned). Deleting its offsets or the group
takes it through *deleting*, until the share coordinators have forgotten it.
Source: Kafka's ShareGroupStatePartitionMetadataInfo.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.ids import Uuid
from barnabas.protocol.messages.group_records import (
    ShareGroupStatePartitionMetadataTopicInfo,
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)

UNKNOWN_NAME = "<UNKNOWN>"


class TopicState(NamedTuple):
    """A topic by name, and some of its partitions, ascending."""

    name: str
    partitions: tuple[int, ...]

    def plus(self, partitions: Iterable[int]) -> "TopicState":
        """With more partitions."""
        return TopicState(self.name, tuple(sorted({*self.partitions, *partitions})))

    def without(self, partitions: Iterable[int]) -> "TopicState":
        """With fewer partitions."""
        gone = frozenset(partitions)
        return TopicState(self.name, tuple(n for n in self.partitions if n not in gone))


Topics = Mapping[Uuid, TopicState]
Partitions = Mapping[Uuid, Iterable[int]]


@dataclass(frozen=True, slots=True)
class StateMetadata:
    """The content of the record; topics by id."""

    initializing: Topics = field(default_factory=dict)
    initialized: Topics = field(default_factory=dict)
    deleting: Mapping[Uuid, str] = field(default_factory=dict)
    """Names by id."""

    def begun(self, topics: Topics) -> "StateMetadata":
        """`topics` are being initialised; what of them was to be deleted no longer is."""
        initializing = joined(self.initializing, topics)
        return StateMetadata(
            initializing,
            self.initialized,
            {key: name for key, name in self.deleting.items() if key not in initializing},
        )

    def done(self, partitions: Partitions, names: Mapping[Uuid, str]) -> "StateMetadata":
        """`partitions` are initialised. `names` are those of all topics that exist."""
        fresh = {
            topic_id: TopicState(names.get(topic_id, UNKNOWN_NAME), tuple(sorted(numbers)))
            for topic_id, numbers in partitions.items()
        }
        return StateMetadata(
            _less(self.initializing, partitions), joined(self.initialized, fresh), self.deleting
        )

    def given_up(self, partitions: Partitions) -> "StateMetadata":
        """`partitions` could not be initialised; they are tried again some time."""
        return StateMetadata(_less(self.initializing, partitions), self.initialized, self.deleting)

    def without_topics(self, topic_ids: frozenset[Uuid]) -> "StateMetadata":
        """As if `topic_ids` had never been."""
        return StateMetadata(
            {key: topic for key, topic in self.initializing.items() if key not in topic_ids},
            {key: topic for key, topic in self.initialized.items() if key not in topic_ids},
            {key: name for key, name in self.deleting.items() if key not in topic_ids},
        )

    def to_value(self) -> ShareGroupStatePartitionMetadataValue:
        """The value of the record."""
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(self.initializing),
            initialized_topics=_infos(self.initialized),
            deleting_topics=[
                ShareGroupStatePartitionMetadataTopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in self.deleting.items()
            ],
        )

    @classmethod
    def from_value(cls, value: ShareGroupStatePartitionMetadataValue) -> "StateMetadata":
        """Read the value of a record."""
        return cls(
            _topics(value.initializing_topics),
            _topics(value.initialized_topics),
            {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
        )


class RequestTimes:
    """Since when share coordinators have been asked to initialise topics; not in the log.

    Topics that were loaded as *initializing* count as asked for when they were loaded.
    """

    __slots__ = ("_since_ms",)

    def __init__(self) -> None:
        self._since_ms: dict[str, dict[Uuid, int]] = {}

    def since_ms(self, group_id: str, topic_id: Uuid) -> int:
        """Wall time of the last request for the topic; 0 where there was none."""
        return self._since_ms.get(group_id, {}).get(topic_id, 0)

    def asked(
        self, group_id: str, topics: Iterable[Uuid], initializing: Topics, now_ms: int
    ) -> None:
        """`topics` are asked for now; what is not `initializing` any more is forgotten."""
        known = self._since_ms.get(group_id, {})
        kept = {key: since_ms for key, since_ms in known.items() if key in initializing}
        self._since_ms[group_id] = {**kept, **dict.fromkeys(topics, now_ms)}

    def forget(self, group_id: str) -> None:
        """The group is to be deleted."""
        self._since_ms.pop(group_id, None)


def joined(topics: Topics, others: Topics) -> dict[Uuid, TopicState]:
    """The partitions of both."""
    states = dict(topics)
    for topic_id, other in others.items():
        known = states.get(topic_id)
        states[topic_id] = other if known is None else known.plus(other.partitions)
    return states


def _less(topics: Topics, partitions: Partitions) -> dict[Uuid, TopicState]:
    left = {}
    for topic_id, topic in topics.items():
        kept = topic.without(partitions.get(topic_id, ()))
        if kept.partitions:
            left[topic_id] = kept
    return left


def _infos(topics: Topics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=list(topic.partitions)
        )
        for topic_id, topic in topics.items()
    ]


def _topics(infos: list[TopicPartitionsInfo]) -> dict[Uuid, TopicState]:
    return {
        info.topic_id: TopicState(info.topic_name, tuple(sorted(info.partitions))) for info in infos
    }

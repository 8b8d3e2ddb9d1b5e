"""Topology of a Kafka Streams application: subtopologies with their topics.

A topology comes with the first member's heartbeat and is stored in a record. It names
topics; how many partitions internal ones get follows from the topics that exist (`topics.py`).
Source: Kafka's StreamsTopology and ConfiguredTopology.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.protocol.messages import streams_groups as requests
from barnabas.protocol.messages.group_records import (
    StreamsGroupTopologyTopicInfo,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
)


class Status(IntEnum):
    """The statuses that members receive with their assignment; the numbers are the protocol's."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Topology:
    """A topology as its record holds it."""

    __slots__ = ("epoch", "required_topics", "subtopologies", "subtopology_of_topic")

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.epoch = value.epoch
        self.subtopologies: dict[str, Subtopology] = {
            subtopology.subtopology_id: subtopology for subtopology in value.subtopologies
        }
        self.subtopology_of_topic: dict[str, str] = {}
        """Which subtopology reads a topic."""
        required: dict[str, None] = {}
        for subtopology_id, subtopology in self.subtopologies.items():
            for name in source_names(subtopology):
                self.subtopology_of_topic[name] = subtopology_id
                required[name] = None
            required |= dict.fromkeys(topic.name for topic in subtopology.state_changelog_topics)
        self.required_topics = tuple(required)
        """Every topic that must exist before the group can run."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return (self.epoch, self.subtopologies) == (other.epoch, other.subtopologies)

    __hash__ = None  # type: ignore[assignment]  # it is compared and never a key


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A repartition or changelog topic, with its number of partitions decided."""

    name: str
    partitions: int
    replication_factor: int
    """0 stands for the default of the brokers."""
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology whose tasks can be counted."""

    task_count: int
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[InternalTopic, ...]

    @property
    def is_stateful(self) -> bool:
        """True if its tasks have state that standby tasks can keep a copy of."""
        return bool(self.changelog_topics)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that members are told: a status and its detail."""

    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology on the topics that exist."""

    epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """By id, ascending; None where it cannot be told."""
    missing_topics: tuple[InternalTopic, ...] = ()
    problem: Notice | None = None
    """Why the topology cannot run on these topics."""

    @property
    def is_ready(self) -> bool:
        """True if all topics are there as they must be."""
        return self.problem is None

    @property
    def task_counts(self) -> dict[str, int]:
        """The number of tasks of each subtopology."""
        return {key: value.task_count for key, value in (self.subtopologies or {}).items()}


def source_names(subtopology: Subtopology) -> list[str]:
    """The topics that a subtopology reads: those of users, then repartition topics."""
    return [
        *subtopology.source_topics,
        *(topic.name for topic in subtopology.repartition_source_topics),
    ]


def topology_value(topology: requests.StreamsGroupHeartbeatTopology) -> StreamsGroupTopologyValue:
    """The record's form of a topology that a member sent."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[_subtopology(subtopology) for subtopology in topology.subtopologies],
    )


def _subtopology(subtopology: requests.StreamsGroupHeartbeatSubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=list(subtopology.source_topics),
        source_topic_regex=list(subtopology.source_topic_regex),
        state_changelog_topics=[_topic(topic) for topic in subtopology.state_changelog_topics],
        repartition_sink_topics=list(subtopology.repartition_sink_topics),
        repartition_source_topics=[
            _topic(topic) for topic in subtopology.repartition_source_topics
        ],
        copartition_groups=list(subtopology.copartition_groups),
    )


def _topic(topic: requests.TopicInfo) -> StreamsGroupTopologyTopicInfo:
    return StreamsGroupTopologyTopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            TopicConfig(key=config.key, value=config.value) for config in topic.topic_configs
        ],
    )

"""Internal topics of a topology, their partition counts, and its number of tasks.

1. The topics of users must exist.
2. A repartition topic has the partitions that the application fixed, or as many as the widest
   source of the subtopologies that write it; that may take several rounds.
3. Topics that are joined (*copartitioned*) must have equally many partitions; repartition topics
   without a fixed number follow the others.
4. A changelog topic has as many partitions as its subtopology has tasks.

Source: Kafka's InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer and
ChangelogTopics. Not as there: fixed numbers are compared within a copartition group only.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from barnabas.node.coordinator.group.step import Refusal
from barnabas.node.coordinator.group.streams.topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopic,
    Notice,
    Status,
    Topology,
    source_names,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.group_records import StreamsGroupTopologyTopicInfo, Subtopology

PartitionCount = Callable[[str], int | None]
"""Returns the number of partitions of a topic; None if it does not exist."""
TOPICS_SHOWN = 3


def configure(
    topology: Topology, partition_count: PartitionCount, metadata_hash: int
) -> ConfiguredTopology | Refusal:
    """Put a topology on the topics that exist; a refusal where it can never run."""
    try:
        return _Configuration(topology, partition_count).result(metadata_hash)
    except _UnfitTopicsError as unfit:
        return ConfiguredTopology(topology.epoch, metadata_hash, None, problem=unfit.problem)
    except _InvalidTopologyError as invalid:
        return invalid.refusal


class _UnfitTopicsError(Exception):
    """The topics that exist do not suit the topology."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.problem = Notice(status, detail)


class _InvalidTopologyError(Exception):
    """The topology contradicts itself."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.refusal = Refusal(error, message)


class _Configuration:
    """One run: what is decided so far, beside what exists."""

    def __init__(self, topology: Topology, partition_count: PartitionCount) -> None:
        self._topology = topology
        self._subtopologies = topology.subtopologies.values()
        self._existing = partition_count
        self._decided: dict[str, int] = {}

    def result(self, metadata_hash: int) -> ConfiguredTopology:
        copartitioned = [
            names
            for subtopology in self._subtopologies
            for names in _copartition_groups(subtopology)
        ]
        self._check_sources()
        self._decide_repartition_topics()
        for names in copartitioned:
            self._enforce(names)
        self._decide_changelogs()
        subtopologies = {
            subtopology_id: self._configured(subtopology)
            for subtopology_id, subtopology in sorted(self._topology.subtopologies.items())
        }
        missing = self._missing(subtopologies.values())
        problem = None
        if missing:
            shown = summarized([topic.name for topic in missing])
            problem = Notice(
                Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {shown}"
            )
        return ConfiguredTopology(
            self._topology.epoch, metadata_hash, subtopologies, missing, problem
        )

    def _check_sources(self) -> None:
        missing = sorted(
            {
                name
                for subtopology in self._subtopologies
                for name in subtopology.source_topics
                if self._existing(name) is None
            }
        )
        if missing:
            raise _UnfitTopicsError(
                Status.MISSING_SOURCE_TOPICS, f"Source topics {summarized(missing)} are missing."
            )

    def _decide_repartition_topics(self) -> None:
        counts = self._decided
        for subtopology in self._subtopologies:
            for topic in subtopology.repartition_source_topics:
                if topic.partitions:
                    counts[topic.name] = topic.partitions
        is_complete = False
        while not is_complete:
            is_complete, has_progress = True, False
            for subtopology in self._subtopologies:
                for name in subtopology.repartition_sink_topics:
                    if name in counts:
                        continue
                    count = self._widest_known_source(subtopology)
                    if count is None:
                        is_complete = False
                    else:
                        counts[name] = count
                        has_progress = True
            if not is_complete and not has_progress:
                raise _InvalidTopologyError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    "Failed to compute number of partitions for all repartition topics. "
                    "There may be loops in the topology that cannot be resolved.",
                )
        for subtopology in self._subtopologies:
            if any(topic.name not in counts for topic in subtopology.repartition_source_topics):
                raise _InvalidTopologyError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    "Failed to compute number of partitions for all repartition topics, because "
                    "a repartition source topic is never used as a sink topic.",
                )

    def _widest_known_source(self, subtopology: Subtopology) -> int | None:
        counts = [
            *(self._decided.get(topic.name) for topic in subtopology.repartition_source_topics),
            *(self._existing(name) for name in subtopology.source_topics),
        ]
        return max((count for count in counts if count is not None), default=None)

    def _enforce(self, names: tuple[str, ...]) -> None:
        """Give repartition topics of one copartition group the number that all must have."""
        fixed, flexible = self._repartition_topics()
        repartition = {
            name: self._count(name) for name in names if name in fixed or name in flexible
        }
        others = {name: self._count(name) for name in names if name not in repartition}
        if others:
            count = _same(others, others)
        elif any(name in fixed for name in repartition):
            count = _same(
                {name: repartition[name] for name in repartition if name in fixed}, repartition
            )
        else:
            count = max(repartition.values())
        for name, current in repartition.items():
            self._decided[name] = count
            if name in fixed and current != count:
                raise _UnfitTopicsError(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{current}] of repartition topic [{name}] doesn't match "
                    f"number of partitions [{count}] of the source topic.",
                )

    def _repartition_topics(self) -> tuple[Collection[str], Collection[str]]:
        """Names of those with a fixed number of partitions, and of the others."""
        topics = [
            topic
            for subtopology in self._subtopologies
            for topic in subtopology.repartition_source_topics
        ]
        return (
            {topic.name for topic in topics if topic.partitions},
            {topic.name for topic in topics if not topic.partitions},
        )

    def _decide_changelogs(self) -> None:
        counts = {
            subtopology.subtopology_id: self._task_count(subtopology)
            for subtopology in self._subtopologies
        }
        for subtopology in self._subtopologies:
            for topic in subtopology.state_changelog_topics:
                self._decided[topic.name] = counts[subtopology.subtopology_id]

    def _task_count(self, subtopology: Subtopology) -> int:
        names = source_names(subtopology)
        if not names:
            raise _InvalidTopologyError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                f"No source topics found for subtopology {subtopology.subtopology_id}",
            )
        return max(self._count(name) for name in names)

    def _count(self, name: str) -> int:
        count = self._existing(name)
        if count is None:
            count = self._decided.get(name)
        if count is None:
            raise _InvalidTopologyError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return count

    def _configured(self, subtopology: Subtopology) -> ConfiguredSubtopology:
        return ConfiguredSubtopology(
            self._task_count(subtopology),
            tuple(subtopology.source_topics),
            tuple(self._internal(topic) for topic in subtopology.repartition_source_topics),
            tuple(subtopology.repartition_sink_topics),
            tuple(self._internal(topic) for topic in subtopology.state_changelog_topics),
        )

    def _internal(self, topic: StreamsGroupTopologyTopicInfo) -> InternalTopic:
        partitions = topic.partitions or self._decided[topic.name]
        if partitions < 1:
            raise _InvalidTopologyError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        configs = {config.key: config.value for config in topic.topic_configs}
        return InternalTopic(topic.name, partitions, topic.replication_factor, configs)

    def _missing(self, subtopologies: Iterable[ConfiguredSubtopology]) -> tuple[InternalTopic, ...]:
        missing: dict[str, InternalTopic] = {}
        for subtopology in subtopologies:
            for topic in (*subtopology.repartition_source_topics, *subtopology.changelog_topics):
                existing = self._existing(topic.name)
                if existing is None:
                    missing[topic.name] = topic
                elif existing != topic.partitions:
                    raise _UnfitTopicsError(
                        Status.INCORRECTLY_PARTITIONED_TOPICS,
                        f"Existing topic {topic.name} has different number of partitions: "
                        f"expected {topic.partitions}, found {existing}",
                    )
        return tuple(missing.values())


def summarized(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:TOPICS_SHOWN])
    more = len(names) - TOPICS_SHOWN
    return f"{shown} and {more} additional topics" if more > 0 else shown


def _copartition_groups(subtopology: Subtopology) -> list[tuple[str, ...]]:
    """Names of the topics of each group, which records give by their places."""
    groups: list[tuple[str, ...]] = []
    for group in subtopology.copartition_groups:
        names: dict[str, None] = {}
        repartition = [topic.name for topic in subtopology.repartition_source_topics]
        for places, topics in (
            (group.source_topics, subtopology.source_topics),
            (group.repartition_source_topics, repartition),
        ):
            if any(not 0 <= place < len(topics) for place in places):
                raise _InvalidTopologyError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
            names |= dict.fromkeys(topics[place] for place in places)
        if names:
            groups.append(tuple(names))
    return groups


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    """The one number of partitions that all have."""
    first, *others = counts.values()
    if any(count != first for count in others):
        listed = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise _UnfitTopicsError(
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return first

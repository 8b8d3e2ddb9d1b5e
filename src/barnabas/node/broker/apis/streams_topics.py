"""Topics of Kafka Streams groups; internal ones are created in passing, for members that wait.

A heartbeat that finds topics missing has them created beside itself and tells the member so; a
later heartbeat finds them, or says why they could not be created. Source: Kafka's
AutoTopicCreationManager.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.node.coordinator.group.streams.topology import InternalTopic
from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.node import MetadataNode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import streams_groups
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

CREATION_TIMEOUT_MS = 30_000
"""The time limit for creating topics that another request needs."""
DEFAULT_REPLICATION_FACTOR = -1
REMEMBERED_FAILURES_MAX = 1_000

telemetry = logging.getLogger(__name__)


Subtopology = (
    streams_groups.StreamsGroupHeartbeatSubtopology | streams_groups.StreamsGroupDescribeSubtopology
)


def topic_names(subtopologies: Iterable[Subtopology]) -> Iterator[str]:
    """The topics of any kind that a topology names."""
    for subtopology in subtopologies:
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


@dataclass(slots=True)
class StreamsTopics:
    """Topics being created for streams groups on this node, and recent failures."""

    _creating: set[str] = field(default_factory=set)
    _failures: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Failure reasons by topic, each with the monotonic time until which it is reported and not
    retried."""

    def failures(self, topics: Iterable[InternalTopic], now_ms: int) -> dict[str, str]:
        """Why topics could not be created, by name."""
        failures = {}
        for topic in topics:
            reason, until_ms = self._failures.get(topic.name, ("", 0))
            if until_ms > now_ms:
                failures[topic.name] = reason
        return failures

    def claim(self, topics: Iterable[InternalTopic], now_ms: int) -> list[InternalTopic]:
        """The topics to create now: neither under way nor refused a moment ago.

        Each must be handed to `create`.
        """
        claimed = []
        for topic in topics:
            if topic.name not in self._creating and not self.failures([topic], now_ms):
                self._creating.add(topic.name)
                claimed.append(topic)
        return claimed

    async def create(
        self,
        metadata: MetadataNode,
        topics: list[InternalTopic],
        *,
        asker: Asker,
        failed_until_ms: int,
    ) -> None:
        """Create claimed topics for a client, and remember why some cannot be."""
        request = CreateTopicsRequest(
            topics=[
                creatable(
                    topic.name,
                    topic.partitions,
                    topic.replication_factor or DEFAULT_REPLICATION_FACTOR,
                    topic.configs,
                )
                for topic in topics
            ],
            timeout_ms=CREATION_TIMEOUT_MS,
        )
        try:
            response = await metadata.handle(
                request,
                asker=asker,
                timeout_ms=CREATION_TIMEOUT_MS,
            )
        finally:
            self._creating.difference_update(topic.name for topic in topics)
        assert isinstance(response, CreateTopicsResponse)
        for result in response.topics:
            code = ErrorCode.of(result.error_code)
            if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                continue
            reason = result.error_message or code.name
            telemetry.warning("internal topic %s cannot be created: %s", result.name, reason)
            self._remember(result.name or "", reason, failed_until_ms)

    def _remember(self, name: str, reason: str, until_ms: int) -> None:
        self._failures.pop(name, None)
        self._failures[name] = (reason, until_ms)
        if len(self._failures) > REMEMBERED_FAILURES_MAX:
            del self._failures[next(iter(self._failures))]


def creatable(
    name: str, partitions: int, replicas: int, configs: Mapping[str, str | int]
) -> CreatableTopic:
    """A topic for CreateTopics; -1 stands for the default of the brokers."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ],
    )

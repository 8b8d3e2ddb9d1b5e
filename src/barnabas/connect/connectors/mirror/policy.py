"""Replication policies: how a topic is named in the cluster that it is mirrored to.

Source: ReplicationPolicy, DefaultReplicationPolicy, IdentityReplicationPolicy (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HEARTBEATS: Final = "heartbeats"
SEPARATOR: Final = "replication.policy.separator"
INTERNAL_SEPARATOR: Final = "replication.policy.internal.topic.separator.enabled"


class DefaultReplicationPolicy:
    """`orders` of the cluster `west` is `west.orders` elsewhere."""

    def __init__(self) -> None:
        self._separator = "."
        self._inner = "."

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the connector's settings."""
        if SEPARATOR in settings:
            self._separator = settings[SEPARATOR]
            has_own = settings.get(INTERNAL_SEPARATOR, "true").strip().lower() == "true"
            self._inner = self._separator if has_own else "."

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Return the name of a source's topic in another cluster."""
        return f"{source}{self._separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the cluster that a topic was mirrored from, None for a local topic."""
        head, separator, rest = topic.partition(self._separator)
        # Java's split drops empty parts at the end: `name.` has but one.
        return head if separator and rest.strip(self._separator) else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return a mirrored topic's name in its source, None for a local topic."""
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def original_topic(self, topic: str) -> str:
        """Return a topic's name in the cluster where it began."""
        while True:
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return topic
            topic = upstream

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the topic that maps source offsets to target offsets."""
        return f"mm2-offset-syncs{self._inner}{alias}{self._inner}internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Return the topic of translated group offsets."""
        return f"{alias}{self._inner}checkpoints{self._inner}internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return whether a topic carries heartbeats, from however far."""
        return self.original_topic(topic) == HEARTBEATS

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether a topic is Kafka's or MirrorMaker's own."""
        inner = self._inner
        is_ours = topic.startswith("mm2") and topic.endswith(f"{inner}internal")
        is_checkpoints = topic.endswith(f"{inner}checkpoints{inner}internal")
        return topic.startswith(("__", ".")) or is_ours or is_checkpoints


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Topics keep their names; heartbeats do not, or they would go round in circles."""

    def __init__(self) -> None:
        super().__init__()
        self._source: str | None = None

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the connector's settings."""
        super().configure(settings)
        self._source = settings.get("source.cluster.alias", self._source)

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Return the same name."""
        return super().format_remote_topic(source, topic) if _beats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Return the source, which cannot be seen from the name."""
        return super().topic_source(topic) if _beats(topic) else self._source

    def upstream_topic(self, topic: str) -> str | None:
        """Return the same name."""
        return super().upstream_topic(topic) if _beats(topic) else topic


def is_cycle(policy: DefaultReplicationPolicy, topic: str, target: str) -> bool:
    """Return whether a topic came from the target, so that mirroring it there would never end."""
    while True:
        source = policy.topic_source(topic)
        if source is None:
            return False
        if source == target:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            return False
        topic = upstream


def _beats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS)

"""Topics of the source in the target: created, grown, with the source's settings and rights.

Source: MirrorSourceConnector (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from barnabas.connect.connectors.mirror.cluster import Cluster, is_static
from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.connectors.mirror.policy import is_cycle


class TopicMirror:
    """Keeps the target's topics like the source's; `known` are the source's, with partitions."""

    def __init__(self, flow: Flow, source: Cluster, target: Cluster) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._policy = flow.policy()
        self._filter = flow.plugin("topic.filter.class")
        self._configs = flow.plugin("config.property.filter.class")
        self._beats = bool(flow.values["heartbeats.replication.enabled"])
        self.known: dict[str, int] = {}

    def is_mirrored(self, topic: str) -> bool:
        """Return whether a topic of the source is mirrored."""
        is_wanted = self._filter.should_replicate_topic(topic) or (
            self._beats and self._policy.is_heartbeats_topic(topic)
        )
        return (
            is_wanted
            and not self._policy.is_internal_topic(topic)
            and not is_cycle(self._policy, topic, self._flow.target)
        )

    def remote(self, topic: str) -> str:
        """Return the name in the target."""
        return self._policy.format_remote_topic(self._flow.source, topic)

    def refresh(self) -> bool:
        """Look for topics and partitions, and create them; returns whether any are new or gone.

        Raises ConnectError.
        """
        topics = {
            topic: count
            for topic, count in self._source.partitions().items()
            if self.is_mirrored(topic)
        }
        there = self._target.partitions()
        self._create([topic for topic in topics if self.remote(topic) not in there], topics)
        grown = {
            self.remote(topic): count
            for topic, count in topics.items()
            if count > there.get(self.remote(topic), count)
        }
        if grown:
            self._target.grow(grown)
        is_changed = topics != self.known
        self.known = topics
        return is_changed

    def _create(self, topics: Sequence[str], partitions: Mapping[str, int]) -> None:
        configs = self._source.configs(topics)
        new = [
            NewTopic(
                self.remote(topic),
                num_partitions=partitions[topic],
                replication_factor=int(self._flow.values["replication.factor"]),
                config={
                    entry.name: entry.value or ""
                    for entry in self._entries(configs[topic])
                    if not entry.is_default
                    or self._configs.should_replicate_source_default(entry.name)
                },
            )
            for topic in topics
        ]
        if new:
            self._target.create(new)

    def sync_configs(self) -> None:
        """Give mirrored topics the source's settings. Raises ConnectError."""
        there = self._target.partitions()
        topics = [topic for topic in self.known if self.remote(topic) in there]
        self._target.alter_configs(
            {
                self.remote(topic): [self._change(entry) for entry in self._entries(entries)]
                for topic, entries in self._source.configs(topics).items()
            }
        )

    def _entries(self, entries: Iterable[ConfigEntry]) -> list[ConfigEntry]:
        return [
            entry
            for entry in entries
            if not entry.is_read_only
            and not entry.is_sensitive
            and not is_static(entry)
            and self._configs.should_replicate_config_property(entry.name)
        ]

    def _change(self, entry: ConfigEntry) -> ConfigEntry:
        is_left = entry.is_default and not self._configs.should_replicate_source_default(entry.name)
        kind = AlterConfigOpType.DELETE if is_left else AlterConfigOpType.SET
        return ConfigEntry(entry.name, entry.value, incremental_operation=kind)

    def sync_acls(self) -> None:
        """Give those who may use a topic the same rights on the mirrored one, but for writing.

        Raises ConnectError.
        """
        self._target.create_acls(
            [
                self._remote_acl(binding)
                for binding in self._source.topic_acls() or ()
                if binding.restype is ResourceType.TOPIC
                and binding.resource_pattern_type is ResourcePatternType.LITERAL
                and not _allows(binding, AclOperation.WRITE)
                and self.is_mirrored(binding.name)
            ]
        )

    def _remote_acl(self, binding: AclBinding) -> AclBinding:
        is_all = _allows(binding, AclOperation.ALL)
        return AclBinding(
            ResourceType.TOPIC,
            self.remote(binding.name),
            ResourcePatternType.LITERAL,
            binding.principal,
            binding.host,
            AclOperation.READ if is_all else binding.operation,
            binding.permission_type,
        )


def _allows(binding: AclBinding, operation: AclOperation) -> bool:
    return binding.permission_type is AclPermissionType.ALLOW and binding.operation is operation

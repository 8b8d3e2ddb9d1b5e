"""The settings of MirrorMaker's connectors, beside those that all sources have.

Names, types and defaults are those of MirrorConnectorConfig, MirrorSourceConfig,
MirrorCheckpointConfig and MirrorHeartbeatConfig (Kafka 4.3).
"""

from __future__ import annotations

from typing import Final

from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Validator,
)
from barnabas.connect.connectors.mirror.filters import (
    CONFIGS_EXCLUDED,
    GROUPS_EXCLUDED,
    TOPICS_EXCLUDED,
)

PACKAGE: Final = "org.apache.kafka.connect.mirror."
_LOW, _MEDIUM, _HIGH = Importance.LOW, Importance.MEDIUM, Importance.HIGH
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def _low(
    name: str, kind: ConfigType, default: object, doc: str, validator: Validator | None = None
) -> Setting:
    return Setting(name, kind, default, _LOW, doc, validator=validator)


def _interval(
    name: str, what: str, seconds: int, *, is_enabled: bool = True
) -> tuple[Setting, ...]:
    return (
        _low(f"{name}.enabled", ConfigType.BOOLEAN, is_enabled, f"Whether to {what}."),
        _low(f"{name}.interval.seconds", ConfigType.LONG, seconds, f"How often to {what}."),
    )


def _class(name: str, default: str, doc: str) -> Setting:
    return _low(name, ConfigType.CLASS, PACKAGE + default, doc)


_BASE: Final = (
    _low("enabled", ConfigType.BOOLEAN, True, "Mirror from the source to the target."),
    Setting("source.cluster.alias", ConfigType.STRING, importance=_HIGH,
            doc="The source's short name."),
    Setting("target.cluster.alias", ConfigType.STRING, "target", _HIGH, "The target's short name."),
    _low("admin.timeout.ms", ConfigType.LONG, 60_000, "Timeout of admin requests."),
    _class("replication.policy.class", "DefaultReplicationPolicy", "Policy that names topics."),
    _low("replication.policy.separator", ConfigType.STRING, ".",
         "The separator between the source's name and the topic's."),
    _low("replication.policy.internal.topic.separator.enabled", ConfigType.BOOLEAN, True,
         "Use the separator in names of internal topics too, instead of a dot."),
    _low("forwarding.admin.class", ConfigType.CLASS,
         "org.apache.kafka.clients.admin.ForwardingAdmin",
         "Accepted and not used: requests go to the clusters themselves."),
    _low("metric.reporters", ConfigType.LIST, "", "Accepted and not used: see the worker's."),
    _low("metric.names.formats", ConfigType.LIST, "legacy",
         "Accepted and not used: (Deprecated) how metrics are named.",
         validators.list_of("legacy", "new")),
    Setting("security.protocol", ConfigType.STRING, "PLAINTEXT", _MEDIUM,
            "Protocol to brokers, unless source. or target. overrides it.",
            validator=validators.one_of_any_case(*_PROTOCOLS)),
)  # fmt: skip
_LOCATION: Final = _low(
    "offset-syncs.topic.location",
    ConfigType.STRING,
    "source",
    "The cluster that has the topic of offset syncs: source or target.",
    validators.one_of("source", "target"),
)
_EMIT_SYNCS: Final = _low(
    "emit.offset-syncs.enabled",
    ConfigType.BOOLEAN,
    True,
    "Emit offset syncs; without them no group offsets are translated.",
)
_TOPIC_FILTER: Final = _class(
    "topic.filter.class", "DefaultTopicFilter", "Which topics are mirrored."
)
_POLL: Final = _low(
    "consumer.poll.timeout.ms", ConfigType.LONG, 1000, "Time to wait for the source's records."
)

SOURCE: Final = Definition((
    *_BASE,
    Setting("topics", ConfigType.LIST, ".*", _HIGH, "Topics to mirror: names and patterns."),
    Setting("topics.exclude", ConfigType.LIST, TOPICS_EXCLUDED, _HIGH,
            "Topics not to mirror, even if `topics` matches them: names and patterns."),
    Setting("config.properties.exclude", ConfigType.LIST, CONFIGS_EXCLUDED, _HIGH,
            "Settings of topics that are not mirrored: names and patterns."),
    _TOPIC_FILTER,
    _class("config.property.filter.class", "DefaultConfigPropertyFilter",
           "Which settings of topics are mirrored."),
    _POLL,
    *_interval("refresh.topics", "look for new topics and partitions", 600),
    *_interval("sync.topic.configs", "give mirrored topics the source's settings", 600),
    *_interval("sync.topic.acls", "give mirrored topics the source's rights to read", 600),
    _low("replication.factor", ConfigType.INT, 2, "Replicas of the topics that are created."),
    _low("offset-syncs.topic.replication.factor", ConfigType.SHORT, 3,
         "Replicas of the topic of offset syncs."),
    _low("offset.lag.max", ConfigType.LONG, 100,
         "After how many records of a partition its offsets are noted again."),
    _LOCATION,
    _EMIT_SYNCS,
    _low("heartbeats.replication.enabled", ConfigType.BOOLEAN, True,
         "Mirror heartbeat topics even if `topics` does not match them."),
))  # fmt: skip
CHECKPOINT: Final = Definition((
    *_BASE,
    _POLL,
    Setting("groups", ConfigType.LIST, ".*", _HIGH, "Groups to translate: names and patterns."),
    Setting("groups.exclude", ConfigType.LIST, GROUPS_EXCLUDED, _HIGH,
            "Groups not to translate, even if `groups` matches them: names and patterns."),
    _class("group.filter.class", "DefaultGroupFilter", "Which groups are translated."),
    *_interval("refresh.groups", "look for new groups", 600),
    *_interval("emit.checkpoints", "note the translated offsets of groups", 60),
    *_interval("sync.group.offsets",
               "commit translated offsets in the target, for groups without members there", 60,
               is_enabled=False),
    _low("checkpoints.topic.replication.factor", ConfigType.SHORT, 3,
         "Replicas of the topic of checkpoints."),
    _LOCATION,
    _EMIT_SYNCS,
    _TOPIC_FILTER,
))  # fmt: skip
HEARTBEAT: Final = Definition(
    (
        *_BASE,
        *_interval("emit.heartbeats", "send heartbeats to the target", 1),
        _low(
            "heartbeats.topic.replication.factor",
            ConfigType.SHORT,
            3,
            "Replicas of the topic of heartbeats.",
        ),
    )
)

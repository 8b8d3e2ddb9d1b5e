"""Topic configuration: defaults that come from the broker, and overrides.

Source: LogConfig and ServerTopicConfigSynonyms of Kafka 4.3.
"""

from collections.abc import Mapping
from typing import Any

from barnabas.base.config.definitions import ConfigKey
from barnabas.base.errors import ConfigError
from barnabas.node.config.definitions import TOPIC_KEYS
from barnabas.node.config.node_config import NodeConfig

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
FOLLOWS_RETENTION = -2

TOPIC_CONFIG_DEFS: dict[str, ConfigKey] = TOPIC_KEYS

BROKER_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""Broker keys that give a topic key its default, the first that is set winning, each with the
factor from its unit to the topic key's."""

TOPIC_DEFAULT_KEYS = frozenset(key for keys in BROKER_SYNONYMS.values() for key, _ in keys)
"""Every broker key that is some topic key's default."""


def topic_default(node_config: NodeConfig, name: str) -> Any:
    """The typed value that a topic without overrides has for `name`."""
    for broker_key, factor in BROKER_SYNONYMS.get(name, ()):
        value = node_config.get(broker_key)
        if value is not None:
            scaled = value * factor if factor != 1 else value
            return -1 if name == "retention.ms" and scaled < 0 else scaled
    return TOPIC_KEYS[name].default


def topic_config_values(node_config: NodeConfig, overrides: Mapping[str, str]) -> dict[str, Any]:
    """Every topic key's effective typed value. Raises ConfigError for an unusable override."""
    return {
        name: key.parse(overrides[name]) if name in overrides else topic_default(node_config, name)
        for name, key in TOPIC_KEYS.items()
    }


def validate_topic_overrides(
    overrides: Mapping[str, str], node_config: NodeConfig | None = None
) -> None:
    """Raises ConfigError for an unknown key, an unusable value or values that exclude each other.

    Without `node_config`, keys that are not overridden count with Kafka's defaults.
    """
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        key = TOPIC_KEYS.get(name)
        if key is None:
            raise ConfigError(name, "is not a topic key")
        values[name] = key.parse(text)

    def effective(name: str) -> Any:
        if name in values:
            return values[name]
        return topic_default(node_config, name) if node_config else TOPIC_KEYS[name].default

    if effective("min.compaction.lag.ms") > effective("max.compaction.lag.ms"):
        raise ConfigError("min.compaction.lag.ms", "must not exceed max.compaction.lag.ms")
    if values.get("remote.storage.enable"):
        enabled = node_config is not None and node_config.get_bool(
            "remote.log.storage.system.enable"
        )
        _check_remote(effective, enabled=enabled)


def _check_remote(effective: Any, *, enabled: bool) -> None:
    if not enabled:
        raise ConfigError("remote.storage.enable", "remote storage is off on this broker")
    if "compact" in effective("cleanup.policy"):
        raise ConfigError("remote.storage.enable", "a compacted topic cannot use remote storage")
    for local, total in (
        ("local.retention.ms", "retention.ms"),
        ("local.retention.bytes", "retention.bytes"),
    ):
        kept = effective(local)
        limit = effective(total)
        if limit != -1 and kept != FOLLOWS_RETENTION and (kept == -1 or kept > limit):
            raise ConfigError(local, f"must not exceed {total}")

"""SHOW PROPERTIES: each property with its value, its level, and whether it may be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.sql.engine import config
from barnabas.sql.engine.session import Session

_OF_QUERIES = frozenset(
    """
    auto.offset.reset buffered.records.per.partition cache.max.bytes.buffering
    ksql.fail.on.deserialization.error ksql.cast.strings.preserve.nulls ksql.nested.error.set.null
    ksql.query.retry.backoff.max.ms ksql.query.pull.max.allowed.offset.lag
    ksql.query.pull.table.scan.enabled ksql.timestamp.throw.on.invalid max.task.idle.ms
    task.timeout.ms
    """.split()  # noqa: SIM905  a list of names reads better so
)
"""The properties that a statement may set. Source: ksqlDB's PropertiesList."""
_OF_SYSTEM = frozenset(
    """
    max.poll.records max.poll.interval.ms session.timeout.ms heartbeat.interval.ms fetch.min.bytes
    fetch.max.bytes fetch.max.wait.ms metadata.max.age.ms max.partition.fetch.bytes batch.size
    linger.ms delivery.timeout.ms max.request.size max.block.ms buffer.memory compression.type
    acceptable.recovery.lag commit.interval.ms max.warmup.replicas num.standby.replicas poll.ms
    probing.rebalance.interval.ms processing.guarantee window.size.ms
    """.split()  # noqa: SIM905  a list of names reads better so
)


def property_entities(
    server: Mapping[str, Any], session: Session
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """The properties; the names of those that the session changed; of those at their defaults."""
    own, merged = config.shown(server), config.shown(session.settings)
    defaults = config.shown(config.DEFAULTS)
    listed = [_property(name, value, server) for name, value in merged.items()]
    changed = [name for name, value in merged.items() if own.get(name) != value]
    default = [name for name, value in merged.items() if defaults.get(name) == value]
    return listed, changed, default


def _property(name: str, value: str, server: Mapping[str, Any]) -> dict[str, Any]:
    bare = name.removeprefix(config.STREAMS_PREFIX)
    for prefix in ("consumer.", "producer."):
        bare = bare.removeprefix(prefix)
    is_known = bare in _OF_QUERIES or bare in _OF_SYSTEM
    return {
        "name": name,
        "scope": "KSQL",
        "value": value,
        "editable": is_known and _may_be_set(name, server),
        # By the whole name, as ksqlDB does: those of Kafka Streams have a prefix here.
        "level": "QUERY" if name in _OF_QUERIES else "SERVER",
    }


def _may_be_set(name: str, server: Mapping[str, Any]) -> bool:
    try:
        config.check_may_set(name, server)
    except config.PropertyError:
        return False
    return True

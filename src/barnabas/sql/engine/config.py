"""Settings of a server and of the statements of a session, by ksqlDB's names.

Names of Kafka Streams, of its consumers and producers have `ksql.streams.` before them; statements
may leave that out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.spark.supervision import Restarts
from barnabas.sql.errors import SqlError
from barnabas.sql.processing_log import ROWS_INCLUDE

SERVICE_ID = "ksql.service.id"
PULL_TABLE_SCAN = "ksql.query.pull.table.scan.enabled"
PULL_LIMIT = "ksql.query.pull.limit.clause.enabled"
PULL_ENABLED = "ksql.pull.queries.enable"
PUSH_LIMIT = "ksql.max.push.queries"
QUERY_LIMIT = "ksql.query.persistent.active.limit"
REGISTRY_URL = "ksql.schema.registry.url"
DENYLIST = "ksql.properties.overrides.denylist"
HIDDEN_TOPICS = "ksql.hidden.topics"
READONLY_TOPICS = "ksql.readonly.topics"
PUSH_V2 = "ksql.query.push.v2.enabled"
SUBSTITUTION = "ksql.variable.substitution.enable"
INSERTS_ENABLED = "ksql.insert.into.values.enabled"
SOURCE_TABLES = "ksql.source.table.materialization.enabled"
STREAMS_PREFIX = "ksql.streams."
SINK_PARTITIONS = "ksql.sink.partitions"
SINK_REPLICAS = "ksql.sink.replicas"
INTERNAL_REPLICAS = "ksql.internal.topic.replicas"
ERRORS_MAX = "ksql.query.error.max.queue.size"
RETRY_INITIAL_MS = "ksql.query.retry.backoff.initial.ms"
RETRY_MAX_MS = "ksql.query.retry.backoff.max.ms"
SOUND_AFTER_S = "ksql.query.status.running.threshold.seconds"

DEFAULTS: Mapping[str, Any] = {
    SERVICE_ID: "default_",
    PULL_TABLE_SCAN: True,
    PULL_LIMIT: True,
    PULL_ENABLED: True,
    PUSH_LIMIT: 100,
    QUERY_LIMIT: 2**31 - 1,
    DENYLIST: "",
    HIDDEN_TOPICS: "_confluent.*,__confluent.*,_schemas,__consumer_offsets,"
    "__transaction_state,connect-configs,connect-offsets,connect-status,connect-statuses",
    READONLY_TOPICS: "_confluent.*,__confluent.*,_schemas,__consumer_offsets,"
    "__transaction_state,connect-configs,connect-offsets,connect-status,connect-statuses",
    SUBSTITUTION: True,
    INSERTS_ENABLED: True,
    REGISTRY_URL: "",
    INTERNAL_REPLICAS: 1,
    ERRORS_MAX: 10,
    RETRY_INITIAL_MS: 15_000,
    RETRY_MAX_MS: 900_000,
    SOUND_AFTER_S: 300,
    ROWS_INCLUDE: False,
    "ksql.persistence.default.format.key": "KAFKA",
    "ksql.persistence.default.format.value": "",
    "ksql.output.topic.name.prefix": "",
    "ksql.query.pull.range.scan.enabled": True,
    "ksql.query.pull.stream.enabled": True,
    SOURCE_TABLES: True,
    PUSH_V2: False,
    "ksql.functions.collect_list.limit": 1000,
    "ksql.functions.collect_set.limit": 1000,
    "ksql.streams.auto.offset.reset": "latest",
    "ksql.streams.processing.guarantee": "at_least_once",
    "ksql.streams.bootstrap.servers": "localhost:9092",
    "ksql.streams.num.stream.threads": 4,
    "ksql.streams.commit.interval.ms": 2000,
    "ksql.streams.cache.max.bytes.buffering": 10000000,
    "ksql.streams.max.task.idle.ms": 0,
}

_STREAMS = frozenset(
    """
    acceptable.recovery.lag application.id application.server auto.offset.reset bootstrap.servers
    buffered.records.per.partition cache.max.bytes.buffering client.id commit.interval.ms
    default.deserialization.exception.handler default.key.serde default.production.exception.handler
    default.timestamp.extractor default.value.serde max.task.idle.ms max.warmup.replicas
    metadata.max.age.ms metrics.num.samples metrics.recording.level metrics.sample.window.ms
    num.standby.replicas num.stream.threads poll.ms probing.rebalance.interval.ms
    processing.guarantee receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    replication.factor request.timeout.ms retries retry.backoff.ms rocksdb.config.setter
    security.protocol send.buffer.bytes state.cleanup.delay.ms state.dir task.timeout.ms
    topology.optimization upgrade.from windowstore.changelog.additional.retention.ms
    allow.auto.create.topics check.crcs enable.auto.commit exclude.internal.topics fetch.max.bytes
    fetch.max.wait.ms fetch.min.bytes group.id group.instance.id heartbeat.interval.ms
    isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records partition.assignment.strategy session.timeout.ms value.deserializer
    acks batch.size buffer.memory compression.type delivery.timeout.ms enable.idempotence
    key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection max.request.size
    partitioner.class transaction.timeout.ms transactional.id value.serializer
    """.split()  # noqa: SIM905  a list of names reads better so
)
_KAFKA_PREFIXES = ("consumer.", "producer.", "topic.", "ssl.", "sasl.", "admin.", "main.consumer.")
_OF_SERVER_ONLY = frozenset(
    {
        "ksql.streams.bootstrap.servers",
        "ksql.extension.dir",
        QUERY_LIMIT,
        PULL_ENABLED,
        HIDDEN_TOPICS,
        READONLY_TOPICS,
        SOURCE_TABLES,
        "ksql.headers.columns.enabled",
        ROWS_INCLUDE,
    }
)
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "ksql.streams.auto.offset.reset": ("earliest", "latest"),
    "ksql.streams.processing.guarantee": (
        *("at_least_once", "exactly_once", "exactly_once_beta", "exactly_once_v2"),
    ),
}


class PropertyError(SqlError):
    """A property that there is not, or that a session may not set."""


def full_name(name: str) -> str:
    """The property's name with its prefix; raises PropertyError for one that nobody knows."""
    bare = name.removeprefix(STREAMS_PREFIX)
    if name.startswith("ksql.") and bare == name:
        return name
    if bare in _STREAMS or bare.startswith(_KAFKA_PREFIXES):
        return STREAMS_PREFIX + bare
    raise PropertyError(
        f"Not recognizable as ksql, streams, consumer, or producer property: '{name}'"
    )


def checked(name: str, value: Any, server: Mapping[str, Any]) -> tuple[str, Any]:
    """A session's property with its full name; raises PropertyError if it cannot be set so."""
    key = full_name(name)
    check_may_set(name, server)
    choices = _CHOICES.get(key)
    if choices is not None and str(value).lower() not in choices:
        raise PropertyError(
            f"Invalid value {value} for configuration {name.removeprefix(STREAMS_PREFIX)}: String "
            f"must be one of: {', '.join(choices)}"
        )
    default = DEFAULTS.get(key)
    if isinstance(default, bool) and not isinstance(value, bool):
        text = str(value).strip().lower()
        if text not in ("true", "false"):
            raise PropertyError(
                f"Invalid value {value} for configuration {name}: Expected value to be either true "
                "or false"
            )
        return key, text == "true"
    if isinstance(default, int) and not isinstance(default, bool) and isinstance(value, str):
        try:
            return key, int(value)
        except ValueError:
            raise PropertyError(
                f"Invalid value {value} for configuration {name}: Not a number of type INT"
            ) from None
    return key, value


def check_may_set(name: str, server: Mapping[str, Any]) -> None:
    """Raise PropertyError for a property that is the server's alone."""
    key = full_name(name)
    denied = {part.strip() for part in str(server.get(DENYLIST) or "").split(",") if part.strip()}
    if key in denied or name in denied or key == SERVICE_ID:
        raise PropertyError(
            "One or more properties overrides set locally are prohibited by the KSQL server (use "
            f"UNSET to reset their default value): [{name}]"
        )
    if key in _OF_SERVER_ONLY:
        raise PropertyError(f"Cannot override property '{name}'")


def server_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that statements see, from those of a server's properties file."""
    settings = dict(DEFAULTS)
    for name, value in given.items():
        key = name
        if not name.startswith("ksql."):
            if name not in _STREAMS and not name.startswith(_KAFKA_PREFIXES):
                continue
            key = STREAMS_PREFIX + name
        settings[key] = _typed(DEFAULTS.get(key), value)
    return settings


def _typed(default: Any, value: Any) -> Any:
    if isinstance(default, bool) and isinstance(value, str):
        return value.strip().lower() == "true"
    if isinstance(default, int) and isinstance(value, str) and value.strip().lstrip("-").isdigit():
        return int(value)
    return value


_SECRETS = ("password", "secret", "jaas", "user.info", "credential", "keystore.key", "token")
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s,]*@")


def shown(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as LIST PROPERTIES shows them: as text, without secrets."""
    return {
        name: "[hidden]" if is_secret(name) else _USER_IN_URL.sub("", _text(value))
        for name, value in sorted(settings.items())
    }


def without_secrets(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings as text, without those that hold secrets."""
    return {
        name: _USER_IN_URL.sub("", _text(value))
        for name, value in settings.items()
        if not is_secret(name)
    }


def is_secret(name: str) -> bool:
    """Return whether a property of that name holds something that nobody may see."""
    return any(word in name.lower() for word in _SECRETS)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def patterns(text: Any) -> Iterable[str]:
    """The regular expressions of a list of topics."""
    return [part.strip() for part in str(text or "").split(",") if part.strip()]


def restarts(settings: Mapping[str, Any]) -> Restarts:
    """When a query that failed is started again, as the settings of server and statement say."""

    def number(name: str) -> int:
        try:
            return max(0, int(settings.get(name)))  # type: ignore[arg-type]  # TypeError is caught
        except (TypeError, ValueError):
            return int(DEFAULTS[name])

    return Restarts(number(RETRY_INITIAL_MS), number(RETRY_MAX_MS), number(SOUND_AFTER_S) * 1000)

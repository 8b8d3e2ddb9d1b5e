"""Options of `format("barnabas")`: those of Spark's Kafka sink, and a few more.

`kafka.*` settings have Java's names, as Spark users write them, or librdkafka's. An unknown setting
is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.kafka.security import Security
from barnabas.kafka.setting_names import SECURITY_PREFIXES
from barnabas.kafka.settings import RENAMED, check_servers
from barnabas.kafka.wire import Access
from barnabas.spark.datasource.journal import DEFAULT_TOPIC

DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 900_000
"""The longest that brokers allow by default (transaction.max.timeout.ms)."""
_SERVERS: Final = "kafka.bootstrap.servers"
PRODUCER_SETTINGS: Final = frozenset(
    {
        "batch.num.messages",
        "batch.size",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "compression.level",
        "compression.type",
        "connections.max.idle.ms",
        "delivery.timeout.ms",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "message.max.bytes",
        "message.timeout.ms",
        "metadata.max.age.ms",
        "partitioner",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.timeout.ms",
        "transaction.timeout.ms",
    }
)
"""Of Java's producer and librdkafka's: what is passed on."""
_JAVA_NAMES: Final = frozenset({"max.request.size"})
"""Java's alone."""
_ALWAYS: Final = {
    "acks": ("all", "-1"),
    "enable.idempotence": ("true",),
}
"""The settings that exactly once requires; no other value is allowed."""
_OURS: Final = frozenset({"sinkId", "decisionTopic", "onLostTransaction"})
_SPARKS: Final = frozenset({"checkpointLocation", "path", "includeHeaders", "queryName"})


class OptionError(ValueError):
    """An option is missing, unknown or has a value that it cannot have."""


@dataclass(slots=True, frozen=True)
class SinkOptions:
    """The options of a sink. `producer` are librdkafka's settings without a transactional id.

    `sink_id` names a batch job; a streaming query has the id of its checkpoint.
    """

    producer: Mapping[str, Any] = field(repr=False)
    connection: Mapping[str, Any] = field(repr=False)
    access: Access
    topic: str | None = None
    sink_id: str | None = None
    decision_topic: str = DEFAULT_TOPIC
    skips_lost: bool = False


def read_options(options: Mapping[str, str]) -> SinkOptions:
    """Check the options of a `DataFrameWriter` or `DataStreamWriter`. Raises OptionError."""
    named = f"{', '.join(sorted(_OURS))}, topic"
    given, kafka = sorted_options(options, _OURS | {"topic"}, _SPARKS, named)
    servers = kafka.pop("bootstrap.servers", None)
    if not servers:
        raise OptionError(f"option {_SERVERS} is missing")
    lost = given.get("onLostTransaction", "fail")
    if lost not in ("fail", "skip"):
        raise OptionError(f"onLostTransaction is fail or skip, not {lost}")
    security, access = read_security(servers, kafka)
    connection = _connection(servers, security)
    return SinkOptions(
        producer={**connection, **_producer_settings(kafka)},
        connection=connection,
        access=access,
        topic=given.get("topic"),
        sink_id=given.get("sinkId"),
        decision_topic=given.get("decisionTopic", DEFAULT_TOPIC),
        skips_lost=lost == "skip",
    )


def sorted_options(
    options: Mapping[str, str], known: Iterable[str], sparks: Iterable[str], named: str
) -> tuple[dict[str, str], dict[str, str]]:
    """The known options, and those of Kafka without the prefix; `sparks` are for Spark itself.

    Raises OptionError for others; its text lists those in `named`.
    """
    names = {name.lower(): name for name in known}
    ignored = {name.lower() for name in sparks}
    given: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for option, value in options.items():
        name = option.lower()
        if name.startswith("kafka."):
            kafka[name.removeprefix("kafka.")] = value
        elif name in names:
            given[names[name]] = value
        elif name not in ignored:
            raise OptionError(f"unknown option {option}; there are {named}")
    return given, kafka


def options_of(servers: str, clients: Mapping[str, Any]) -> SinkOptions:
    """Return how a sink writes with librdkafka's settings. Raises ConfigError."""
    connection = _connection(servers, clients)
    access = Security(PropertyKeys(clients)).access(servers)
    return SinkOptions({**connection, **_producer_settings({})}, connection, access)


def _connection(servers: str, security: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **security,
        "bootstrap.servers": servers,
        "client.id": "barnabas-sink",
        # A producer lives for one task: without this it waits up to 500 ms for its coordinator.
        "enable.sparse.connections": False,
    }


def _producer_settings(kafka: Mapping[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "transaction.timeout.ms": DEFAULT_TRANSACTION_TIMEOUT_MS,
        "linger.ms": 5,
        "queue.buffering.max.messages": 500_000,
    }
    for name, value in kafka.items():
        if name in _ALWAYS:
            if value.lower() not in _ALWAYS[name]:
                raise OptionError(f"kafka.{name} is {_ALWAYS[name][0]} for exactly once")
        elif name in PRODUCER_SETTINGS or name in _JAVA_NAMES:
            settings[RENAMED.get(name, name)] = value
        else:
            raise OptionError(f"kafka.{name} is not supported by this sink")
    return settings


def read_security(servers: str, kafka: dict[str, str]) -> tuple[dict[str, str], Access]:
    """Take the settings of security out of `kafka`: for librdkafka, and for our own connections.

    Raises OptionError, for `servers` too.
    """
    given = {name: kafka.pop(name) for name in [*kafka] if name.startswith(SECURITY_PREFIXES)}
    try:
        check_servers(servers, _SERVERS)
        security = Security(
            PropertyKeys({f"kafka.{name}": given[name] for name in given}, ("kafka.",))
        )
        for name in given:
            if name.startswith(("ssl.", "sasl.")) and security.protocol == "PLAINTEXT":
                raise OptionError(f"kafka.{name} needs kafka.security.protocol")
            if not security.reads(name):
                raise OptionError(f"kafka.{name} is not supported here")
        return security.librdkafka(), security.access(servers)
    except ConfigError as error:
        raise OptionError(str(error)) from error

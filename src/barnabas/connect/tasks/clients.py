"""Settings of the Kafka clients that tasks use.

The worker's own (`bootstrap.servers`, `security.protocol` …), over them its `producer.`,
`consumer.` and `admin.` ones, over them the connector's `producer.override.` and so on: all under
Java's names, or librdkafka's. Source: Worker.baseProducerConfigs, baseConsumerConfigs,
adminConfigs (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from barnabas.base.errors import ConfigError as BaseConfigError
from barnabas.base.peer_lines import peer_logger
from barnabas.connect.config.client_overrides import check_overrides, override_policy
from barnabas.connect.config.values import invalid, missing, with_prefix
from barnabas.connect.tasks.chain import Settings
from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.setting_names import SECURITY_PREFIXES
from barnabas.kafka.settings import librdkafka_settings
from barnabas.schemas.data.errors import ConfigError

Client = Literal["producer", "consumer", "admin"]
_log = peer_logger(__name__)
_SHARED: Final = ("bootstrap.servers", "client.dns.lookup", "client.rack")
_AS_THEY_ARE: Final[Mapping[Client, frozenset[str]]] = {
    "producer": frozenset(
        {
            *("acks", "batch.num.messages", "batch.size", "compression.level", "compression.type"),
            *("delivery.timeout.ms", "enable.idempotence", "linger.ms", "message.max.bytes"),
            *("max.in.flight.requests.per.connection", "partitioner", "retries"),
            *("queue.buffering.max.kbytes", "queue.buffering.max.messages", "retry.backoff.ms"),
            *("retry.backoff.max.ms", "transaction.timeout.ms"),
        }
    ),
    "consumer": frozenset(
        {
            *("allow.auto.create.topics", "auto.offset.reset", "check.crcs", "fetch.max.bytes"),
            *("fetch.min.bytes", "fetch.wait.max.ms", "group.id", "group.instance.id"),
            *("group.protocol", "heartbeat.interval.ms", "isolation.level"),
            *("max.partition.fetch.bytes", "max.poll.interval.ms", "session.timeout.ms"),
            *("partition.assignment.strategy", "queued.max.messages.kbytes"),
        }
    ),
    "admin": frozenset(),
}
_ANY_CLIENT: Final = frozenset(
    {
        *("bootstrap.servers", "client.dns.lookup", "client.id", "client.rack"),
        *("connections.max.idle.ms", "metadata.max.age.ms", "reconnect.backoff.max.ms"),
        *("reconnect.backoff.ms", "request.timeout.ms", "socket.timeout.ms"),
        *("socket.connection.setup.timeout.ms", "socket.keepalive.enable"),
        *("socket.send.buffer.bytes", "socket.receive.buffer.bytes"),
    }
)
_DELIVERY_TIMEOUT_MS_MAX: Final = 2_147_483_647
_TRANSACTION_TIMEOUT_MS: Final = 60_000
_TRANSACTION_TIMEOUT_MS_MAX: Final = 900_000
"""Brokers' `transaction.max.timeout.ms`, where nobody says otherwise."""


def java_settings(client: Client, connector: Settings, worker: Settings) -> dict[str, str]:
    """Return what users have set for a client, under their names.

    Raises ConfigError for a setting that the connector may not override: validation refuses it, but
    a configuration may also come from the config topic.
    """
    given = {
        name: value
        for name, value in worker.items()
        if name in _SHARED or name in _ANY_CLIENT or name.startswith(SECURITY_PREFIXES)
    }
    given.pop("client.id", None)
    given |= with_prefix(worker, f"{client}.")
    prefix = f"{client}.override."
    overrides = with_prefix(connector, prefix)
    check_overrides(overrides, override_policy(worker), prefix)
    return given | overrides


def client_settings(
    client: Client, connector: Settings, worker: Settings, defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return librdkafka's settings; what it has no counterpart of is left out.

    Log lines of producers and consumers reach this module's logger when they are polled; nobody
    polls
    those for administration, which say the worst alone. Raises ConfigError.
    """
    given = java_settings(client, connector, worker)
    if not given.get("bootstrap.servers"):
        raise missing("bootstrap.servers")
    try:
        translated = librdkafka_settings(given)
    except BaseConfigError as error:
        raise ConfigError(str(error)) from error
    settings: dict[str, Any] = {"log_level": 2}
    if client != "admin":
        settings = {"log_level": 4, "logger": _log}
    settings |= defaults
    return settings | {
        name: value
        for name, value in translated.items()
        if name.startswith(SECURITY_PREFIXES) or name in _AS_THEY_ARE[client] or name in _ANY_CLIENT
    }


def producer_settings(
    name: str,
    connector: Settings,
    worker: Settings,
    *,
    transactional_id: str | None = None,
    open_ms: int = 0,
) -> dict[str, Any]:
    """Return librdkafka's settings of a task's producer: idempotent, where nobody says otherwise.

    Kafka's is not, so that it writes twice where an acknowledgement is lost. `open_ms` is how long
    transactions stay open on purpose: by default they may last so much longer. Raises ConfigError.
    """
    settings = client_settings(
        "producer",
        connector,
        worker,
        {
            **JAVA_PARTITIONER,
            "client.id": name,
            "enable.idempotence": True,
            "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS_MAX,
            "linger.ms": 5,
            "queue.buffering.max.messages": 500_000,
        },
    )
    if str(settings.get("acks", "all")) not in ("all", "-1"):
        settings["enable.idempotence"] = False
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
        settings["enable.idempotence"] = True
        settings.pop("acks", None)
        timeout_ms = min(_TRANSACTION_TIMEOUT_MS + open_ms, _TRANSACTION_TIMEOUT_MS_MAX)
        settings.setdefault("transaction.timeout.ms", timeout_ms)
        # A record cannot outlive its transaction.
        settings["delivery.timeout.ms"] = int(settings["transaction.timeout.ms"])
    return settings


def consumer_settings(connector_name: str, connector: Settings, worker: Settings) -> dict[str, Any]:
    """Return librdkafka's settings of a sink's consumers. Raises ConfigError."""
    settings = client_settings(
        "consumer",
        connector,
        worker,
        {
            "group.id": f"connect-{connector_name}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "allow.auto.create.topics": False,
            "partition.assignment.strategy": "cooperative-sticky",
        },
    )
    if not str(settings["group.id"]).strip():
        # librdkafka's consumer would end this process.
        raise invalid(
            "group.id", "", "The configured group.id should not be an empty string or whitespace."
        )
    if settings.get("group.protocol", "classic") == "consumer":
        settings.pop("partition.assignment.strategy", None)
    return settings


def admin_settings(connector: Settings, worker: Settings) -> dict[str, Any]:
    """Return librdkafka's settings of a task's administration. Raises ConfigError."""
    return client_settings("admin", connector, worker, {})

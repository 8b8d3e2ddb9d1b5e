"""Options of `format("barnabas")`: those of Spark's Kafka sink, and a few of its own.

`kafka.*` settings are Java's names, as Spark users write them, or librdkafka's. One that we do not
know is refused, not ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.scram import HASHES
from barnabas.kafka.wire import Access
from barnabas.spark.datasource.journal import DEFAULT_TOPIC

DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 900_000
"""The longest that brokers allow by default (transaction.max.timeout.ms)."""
_SERVERS: Final = "kafka.bootstrap.servers"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", *HASHES)
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
_JAVA_NAMES: Final = {"max.request.size": "message.max.bytes"}
_ALWAYS: Final = {
    "acks": ("all", "-1"),
    "enable.idempotence": ("true",),
}
"""What exactly once needs; no other value is allowed."""
_OURS: Final = frozenset({"sinkId", "decisionTopic", "onLostTransaction"})
_SPARKS: Final = frozenset({"checkpointLocation", "path", "includeHeaders", "queryName"})
_JAAS: Final = re.compile(
    r"\.(?P<module>PlainLoginModule|ScramLoginModule)\s+required\s+(?P<options>.*);\s*$", re.DOTALL
)
_JAAS_OPTION: Final = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


class OptionError(ValueError):
    """An option is missing, unknown or has a value that it cannot have."""


@dataclass(slots=True, frozen=True)
class SinkOptions:
    """How a sink writes. `producer` are librdkafka's settings without a transactional id.

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
    known = {name.lower(): name for name in _OURS | _SPARKS | {"topic"}}
    given: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for name, value in options.items():
        if name.lower().startswith("kafka."):
            kafka[name.lower().removeprefix("kafka.")] = value
        elif name.lower() in known:
            given[known[name.lower()]] = value
        else:
            raise OptionError(f"unknown option {name}; there are {', '.join(sorted(_OURS))}, topic")
    servers = kafka.pop("bootstrap.servers", None)
    if not servers:
        raise OptionError(f"option {_SERVERS} is missing")
    lost = given.get("onLostTransaction", "fail")
    if lost not in ("fail", "skip"):
        raise OptionError(f"onLostTransaction is fail or skip, not {lost}")
    security, access = read_security(servers, kafka)
    connection = {
        "bootstrap.servers": servers,
        "client.id": "barnabas-sink",
        # A producer lives for one task: without this it waits up to 500 ms for its coordinator.
        "enable.sparse.connections": False,
        **security,
    }
    return SinkOptions(
        producer={**connection, **_producer_settings(kafka)},
        connection=connection,
        access=access,
        topic=given.get("topic"),
        sink_id=given.get("sinkId"),
        decision_topic=given.get("decisionTopic", DEFAULT_TOPIC),
        skips_lost=lost == "skip",
    )


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
            settings[_JAVA_NAMES.get(name, name)] = value
        else:
            raise OptionError(f"kafka.{name} is not supported by this sink")
    return settings


def read_security(servers: str, kafka: dict[str, str]) -> tuple[dict[str, Any], Access]:
    """Take the settings of security out of `kafka`: for librdkafka, and for our own connections.

    Raises OptionError, for `servers` too.
    """
    for server in servers.split(","):
        if not server.strip().rpartition(":")[2].isdigit():
            raise OptionError(f"{_SERVERS}: {server!r} is not host:port")
    protocol = kafka.pop("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise OptionError(f"kafka.security.protocol is one of {', '.join(_PROTOCOLS)}")
    names = [name for name in kafka if name.startswith(("ssl.", "sasl."))]
    given = {name: kafka.pop(name) for name in names}
    if protocol == "PLAINTEXT":
        if given:
            raise OptionError(f"kafka.{names[0]} needs kafka.security.protocol")
        return {}, Access(servers)
    settings: dict[str, Any] = {"security.protocol": protocol}
    tls: dict[str, Any] = {}
    if protocol.endswith("SSL"):
        settings |= _tls(given, tls)
    mechanism, user, password = None, "", ""
    if protocol.startswith("SASL"):
        mechanism, user, password = _sasl(given)
        settings |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
    if given:
        raise OptionError(f"kafka.{next(iter(given))} is not supported by this sink")
    has_tls = protocol.endswith("SSL")
    return settings, Access(
        servers, has_tls=has_tls, mechanism=mechanism, user=user, password=password, **tls
    )


def _tls(given: dict[str, str], tls: dict[str, Any]) -> dict[str, Any]:
    """Return librdkafka's settings, and put those of our own connections into `tls`."""
    for store in ("truststore", "keystore"):
        kind = given.pop(f"ssl.{store}.type", None)
        if f"ssl.{store}.location" in given and (kind or "JKS").upper() != "PEM":
            raise OptionError(
                f"kafka.ssl.{store}.type must be PEM: Java's key stores cannot be read here"
            )
    settings: dict[str, Any] = {}
    certificate = given.pop("ssl.keystore.location", None)
    checks = given.pop("ssl.endpoint.identification.algorithm", "https")
    names = {
        "ca_path": ("ssl.ca.location", given.pop("ssl.truststore.location", None)),
        "ca_pem": ("ssl.ca.pem", given.pop("ssl.truststore.certificates", None)),
        "certificate_path": ("ssl.certificate.location", certificate),
        "key_path": ("ssl.key.location", certificate),
        "key_password": ("ssl.key.password", None),
    }
    for own, (name, java_value) in names.items():
        value = given.pop(name, java_value)
        if value is not None:
            tls[own] = settings[name] = value
    tls["checks_host"] = checks.lower() == "https"
    settings["ssl.endpoint.identification.algorithm"] = "https" if tls["checks_host"] else "none"
    return settings


def _sasl(given: dict[str, str]) -> tuple[str, str, str]:
    mechanism = given.pop("sasl.mechanism", given.pop("sasl.mechanisms", "")).upper()
    if mechanism not in _MECHANISMS:
        raise OptionError(
            f"kafka.sasl.mechanism is one of {', '.join(_MECHANISMS)}, not {mechanism or 'empty'}"
        )
    user, password = given.pop("sasl.username", None), given.pop("sasl.password", None)
    jaas = given.pop("sasl.jaas.config", None)
    if jaas is not None:
        module = _JAAS.search(jaas)
        if module is None:
            raise OptionError("kafka.sasl.jaas.config has no PlainLoginModule or ScramLoginModule")
        pairs = _JAAS_OPTION.findall(module["options"])
        found = {name: quoted.replace('\\"', '"') or plain for name, quoted, plain in pairs}
        user, password = found.get("username"), found.get("password")
    if user is None or password is None:
        raise OptionError("SASL needs kafka.sasl.username and kafka.sasl.password")
    return mechanism, user, password

"""A server's properties file, with ksqlDB's keys."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from barnabas.base.errors import ConfigError
from barnabas.base.private_files import state_directory
from barnabas.base.tls.contexts import (
    PropertyKeys,
    configured_key,
    https_client,
    https_listener,
    trusted_pem,
)
from barnabas.kafka.security import Security
from barnabas.kafka.setting_names import SECURITY_NAMES
from barnabas.schemas.registry_client import RegistryClient, RegistryTls
from barnabas.sql.engine import config
from barnabas.sql.server.hosts import SESSION_TIMEOUT_MS, HeartbeatConfig
from barnabas.web.guard import only_loopback
from barnabas.web.listening import ListenAddress

if TYPE_CHECKING:
    import httpx
    from starlette.types import ASGIApp

    from barnabas.web.protection import Protection
    from barnabas.web.watch import Watch

DEFAULT_LISTENERS = "http://127.0.0.1:8088"
"""This machine alone, until somebody decides who else may ask."""
RUNNER = "barnabas.sql.runner"
"""`spark` or `local`: what runs persistent queries."""
MASTER = "barnabas.sql.spark.master"
"""Spark's master, as `local[2]` or `spark://host:7077`."""
TASKS = "barnabas.sql.spark.tasks"
"""The number of tasks that share the partitions of a query's stage."""
DEFAULT_TRIGGER_MS = 100
TRIGGER = "barnabas.sql.spark.trigger.ms"
"""No micro-batch of a query begins sooner after its last one began."""
MARK_RESULTS = "barnabas.sql.mark.results"
"""Exactly once, headers of results say which micro-batch they are of."""
STARTS_COLD = "barnabas.sql.spark.start.cold"
"""`true`: Spark starts with the first query, not with the server."""
WORKERS_READ = "barnabas.sql.spark.workers.read"
"""`true`: workers read topics, as columns; `false`: Spark's source does, record by record."""
SHARED = "ksql.runtime.feature.shared.enabled"
"""`true`: new queries share micro-batches, where that can be done."""
PIPELINES = "barnabas.sql.pipelines"
"""Pipelines in Python that share the Spark session: `module:function`, separated by commas."""
_DEFAULTS = {WORKERS_READ: "true"}
"""Of properties that are true or false; the others are false."""
STATE_DIRECTORY = "ksql.streams.state.dir"
PEER_USER = "barnabas.sql.peer.user.info"
"""`name:password` with which servers of one service log in at each other."""
CONNECTIONS = "barnabas.sql.connections.max"
_CONNECTIONS_MAX = 1_000
Read = TypeVar("Read")
_HEARTBEAT_KEYS = {
    "send_interval_ms": "ksql.heartbeat.send.interval.ms",
    "check_interval_ms": "ksql.heartbeat.check.interval.ms",
    "window_ms": "ksql.heartbeat.window.ms",
    "missed_threshold": "ksql.heartbeat.missed.threshold.ms",
    "discover_interval_ms": "ksql.heartbeat.discover.interval.ms",
    "lag_interval_ms": "ksql.lag.reporting.send.interval.ms",
}


class ServerConfigError(ValueError):
    """A property's value cannot be used."""


@dataclass(frozen=True)
class ServerConfig:
    """The properties as they are given, and what they mean."""

    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bootstrap_servers(self) -> str:
        servers = self.values.get("bootstrap.servers") or self.values.get(
            "ksql.streams.bootstrap.servers"
        )
        return str(servers or "localhost:9092")

    @property
    def service_id(self) -> str:
        return str(self.values.get(config.SERVICE_ID) or config.DEFAULTS[config.SERVICE_ID])

    @property
    def extension_directory(self) -> str | None:
        """The directory of users' functions, if there is one."""
        return str(self.values.get("ksql.extension.dir") or "") or None

    @property
    def listeners(self) -> tuple[ListenAddress, ...]:
        """The addresses to listen on. Raises ServerConfigError."""
        text = str(self.values.get("listeners") or DEFAULT_LISTENERS)
        return tuple(_listener(part.strip()) for part in text.split(",") if part.strip())

    def advertised(self, listeners: Sequence[ListenAddress]) -> str:
        """The address where other servers find this one, which listens there.

        Raises ServerConfigError.
        """
        text = str(self.values.get("ksql.advertised.listener") or "")
        first = _listener(text) if text else listeners[0]
        if first.host in ("0.0.0.0", "::"):
            first = replace(first, host=socket.gethostname())
        return str(first)

    @property
    def heartbeats(self) -> HeartbeatConfig:
        """Settings of the heartbeats between servers. Raises ServerConfigError."""
        numbers = {name: self._number(key) for name, key in _HEARTBEAT_KEYS.items()}
        return HeartbeatConfig(
            is_enabled=self._is_true("ksql.heartbeat.enable"),
            reports_lag=self._is_true("ksql.lag.reporting.enable"),
            **{name: number for name, number in numbers.items() if number is not None},
        )

    @property
    def session_timeout_ms(self) -> int:
        """Time that other servers wait for a silent one before they take over its queries."""
        for prefix in ("consumer.", ""):
            timeout_ms = self._number(f"{config.STREAMS_PREFIX}{prefix}session.timeout.ms")
            if timeout_ms is not None:
                return timeout_ms
        return SESSION_TIMEOUT_MS

    def _number(self, key: str) -> int | None:
        text = str(self.values.get(key) or "").strip()
        if not text:
            return None
        if not text.isdigit() or int(text) == 0:
            raise ServerConfigError(f"{key} is a positive number, not {text}")
        return int(text)

    def _is_true(self, key: str) -> bool:
        return str(self.values.get(key) or "").strip().lower() == "true"

    @property
    def connections_max(self) -> int:
        """The number of connections that clients may have at once. Raises ServerConfigError."""
        return self._number(CONNECTIONS) or _CONNECTIONS_MAX

    @property
    def internal_replicas(self) -> int | None:
        """Replicas of the server's own topics; None: as many as the broker gives."""
        return self._number(config.INTERNAL_REPLICAS)

    def peer_client(self) -> httpx.AsyncClient:
        """A client of the other servers of the service. Raises ServerConfigError."""
        import httpx  # here: Spark starts before it is read

        user, colon, password = str(self.values.get(PEER_USER) or "").partition(":")
        tls = self._secured(https_client)
        return httpx.AsyncClient(
            auth=(user, password) if colon else None, verify=tls, trust_env=False
        )

    @property
    def kafka(self) -> dict[str, Any]:
        """librdkafka's settings for clients of the cluster. Raises ServerConfigError."""
        settings: dict[str, Any] = {"bootstrap.servers": self.bootstrap_servers}
        name = self.values.get(f"{config.STREAMS_PREFIX}client.id") or self.values.get("client.id")
        if name:
            settings["client.id"] = name
        return settings | self._secured(lambda values: kafka_security(values).librdkafka())

    @property
    def java_kafka(self) -> dict[str, str]:
        """Settings of the login for Spark's own clients. Raises ServerConfigError."""
        return self._secured(lambda values: kafka_security(values).java())

    def _secured(self, read: Callable[[Mapping[str, Any]], Read]) -> Read:
        try:
            return read(self.values)
        except ConfigError as error:
            raise ServerConfigError(str(error)) from error

    @property
    def listener_tls(self) -> ssl.SSLContext | None:
        """TLS of the listeners, if one of them speaks https. Raises ServerConfigError."""
        if not any(listener.is_tls for listener in self.listeners):
            return None
        return self._secured(https_listener)

    @property
    def is_on_loopback(self) -> bool:
        """True if only this machine reaches the listeners, by what they are called here."""
        return only_loopback(listener.host for listener in self.listeners)

    def protected(self, app: ASGIApp, watch: Watch | None = None) -> Protection:
        """The application behind what the properties ask for. Raises ServerConfigError."""
        from barnabas.sql.server.protection import protected  # here: Spark starts before it is read

        is_on_loopback = self.is_on_loopback
        return self._secured(
            lambda values: protected(app, values, is_on_loopback=is_on_loopback, watch=watch)
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The properties that statements can see."""
        return {**self.values, "bootstrap.servers": self.bootstrap_servers}

    @property
    def runs_on_spark(self) -> bool:
        """True if Spark runs persistent queries. Raises ServerConfigError."""
        runner = str(self.values.get(RUNNER) or "spark").lower()
        if runner not in ("spark", "local"):
            raise ServerConfigError(f"{RUNNER} is spark or local, not {runner}")
        return runner == "spark"

    @property
    def spark_master(self) -> str:
        return str(self.values.get(MASTER) or "local[2]")

    @property
    def pipelines(self) -> tuple[str, ...]:
        """The pipelines that run beside the statements. Raises ServerConfigError."""
        text = str(self.values.get(PIPELINES) or "")
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if names and not self.runs_on_spark:
            raise ServerConfigError(f"{PIPELINES} needs the runner spark")
        return names

    @property
    def is_exactly_once(self) -> bool:
        """The default guarantee of queries."""
        guarantee = self.values.get(config.STREAMS_PREFIX + "processing.guarantee")
        return str(guarantee or "").lower().startswith("exactly_once")

    @property
    def spark_trigger_ms(self) -> int:
        """Raises ServerConfigError."""
        return self._whole_number(TRIGGER) or DEFAULT_TRIGGER_MS

    @property
    def commit_interval_ms(self) -> int:
        """Raises ServerConfigError."""
        key = config.STREAMS_PREFIX + "commit.interval.ms"
        return self._whole_number(key) or int(str(config.DEFAULTS[key]))

    @property
    def spark_tasks(self) -> int | None:
        """Raises ServerConfigError."""
        return self._whole_number(TASKS)

    def is_set(self, key: str) -> bool:
        """Return whether a property is true, or is so by default. Raises ServerConfigError."""
        value = str(self.values.get(key) or _DEFAULTS.get(key, "false")).lower()
        if value not in ("true", "false"):
            raise ServerConfigError(f"{key} is true or false, not {value}")
        return value == "true"

    def _whole_number(self, key: str) -> int | None:
        given = self.values.get(key)
        if given in (None, ""):
            return None
        if not str(given).isdecimal() or int(str(given)) < 1:
            raise ServerConfigError(f"{key} is a whole number from 1, not {given}")
        return int(str(given))

    @property
    def state_directory(self) -> str:
        """Where queries have their checkpoints: it has to outlive the server."""
        given = self.values.get(STATE_DIRECTORY)
        if given:
            return os.path.join(str(given), self.service_id)
        return os.path.join(state_directory(), "sql", self.service_id)

    @property
    def registry_urls(self) -> tuple[str, ...]:
        text = str(self.values.get(config.REGISTRY_URL) or "")
        return tuple(url.strip() for url in text.split(",") if url.strip())

    @property
    def registry_user(self) -> str | None:
        """`name:password` for the schema registry."""
        user = self.values.get("ksql.schema.registry.basic.auth.user.info")
        return None if user is None else str(user)

    @property
    def registry_tls(self) -> RegistryTls | None:
        """TLS with the registry, if anything of it is set. Raises ServerConfigError."""
        if not any(name.startswith("ksql.schema.registry.ssl.") for name in self.values):
            return None
        return self._secured(registry_tls)

    def schemas(self) -> RegistryClient | None:
        """The schema registry, if one is configured. Raises ServerConfigError."""
        if not self.registry_urls:
            return None
        tls = self.registry_tls
        try:
            context = None if tls is None else tls.context()
        except (OSError, ValueError) as error:
            raise ServerConfigError(
                f"ksql.schema.registry.ssl: the certificates cannot be used: {error}"
            ) from error
        return RegistryClient(self.registry_urls, user_info=self.registry_user, tls=context)


def kafka_security(values: Mapping[str, Any]) -> Security:
    """Read the login of the server's Kafka clients: `security.protocol`, `sasl.*` and `ssl.*`.

    They may have `ksql.streams.` before them. Raises ConfigError.
    """
    prefixes = (config.STREAMS_PREFIX, "")
    # Listeners have further settings that begin with ssl.
    given = {
        name: value
        for name, value in values.items()
        if name.removeprefix(config.STREAMS_PREFIX) in SECURITY_NAMES
    }
    security = Security(PropertyKeys(given, prefixes))
    security.login()
    return security


def registry_tls(values: Mapping[str, Any]) -> RegistryTls:
    """Read TLS to the schema registry from the keys under its prefix. Raises ConfigError."""
    keys = PropertyKeys(values, ("ksql.schema.registry.",))
    try:
        authorities, own = trusted_pem(keys), configured_key(keys)
    except ConfigError as error:
        raise ConfigError(keys.key(error.key), error.message) from error
    checks_names = keys.find("ssl.endpoint.identification.algorithm") != ""
    return RegistryTls(authorities, own, checks_names)


def _listener(text: str) -> ListenAddress:
    parts = urlsplit(text if "//" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError as error:
        raise ServerConfigError(f"no listener: {text}") from error
    if parts.scheme not in ("http", "https") or parts.hostname is None or port is None:
        raise ServerConfigError(f"a listener is http://HOST:PORT, not {text}")
    return ListenAddress(parts.hostname, port, parts.scheme == "https")

"""A server's properties file, with ksqlDB's keys."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from barnabas.base.config.errors import ConfigError
from barnabas.pipeline.sql.engine import config
from barnabas.pipeline.sql.formats.schema_store import HttpSchemaStore, RegistryTls
from barnabas.pipeline.sql.server.security.kafka import java, librdkafka
from barnabas.pipeline.sql.server.security.login import with_login
from barnabas.pipeline.sql.server.security.stores import listener_context, registry_tls

DEFAULT_LISTENERS = "http://0.0.0.0:8088"
RUNNER = "barnabas.sql.runner"
"""`spark` or `local`: what runs persistent queries."""
MASTER = "barnabas.sql.spark.master"
"""Spark's master, as `local[2]` or `spark://host:7077`."""
STATE_DIRECTORY = "ksql.streams.state.dir"
Read = TypeVar("Read")


class ServerConfigError(ValueError):
    """A property's value cannot be used."""


@dataclass(frozen=True)
class Listener:
    """An address to listen on."""

    host: str
    port: int
    is_tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True)
class ServerConfig:
    """The properties as they are given, and what they mean."""

    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bootstrap_servers(self) -> str:
        found = self.values.get("bootstrap.servers") or self.values.get(
            "ksql.streams.bootstrap.servers"
        )
        return str(found or "localhost:9092")

    @property
    def service_id(self) -> str:
        return str(self.values.get(config.SERVICE_ID) or config.DEFAULTS[config.SERVICE_ID])

    @property
    def extension_directory(self) -> str | None:
        """Where functions of users are, if they are anywhere."""
        return str(self.values.get("ksql.extension.dir") or "") or None

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Where to listen. Raises ServerConfigError."""
        text = str(self.values.get("listeners") or DEFAULT_LISTENERS)
        return tuple(_listener(part.strip()) for part in text.split(",") if part.strip())

    @property
    def advertised(self) -> str:
        """Where other servers and clients find this one, as `host:port`."""
        text = str(self.values.get("ksql.advertised.listener") or "")
        first = _listener(text) if text else self.listeners[0]
        host = "localhost" if first.host in ("0.0.0.0", "::") else first.host
        return f"{host}:{first.port}"

    @property
    def kafka(self) -> dict[str, Any]:
        """librdkafka's settings for clients of the cluster. Raises ServerConfigError."""
        found: dict[str, Any] = {"bootstrap.servers": self.bootstrap_servers}
        name = self.values.get(f"{config.STREAMS_PREFIX}client.id") or self.values.get("client.id")
        if name:
            found["client.id"] = name
        return found | self._secured(librdkafka)

    @property
    def java_kafka(self) -> dict[str, str]:
        """Settings of the login for Spark's own clients. Raises ServerConfigError."""
        return self._secured(java)

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
        return self._secured(listener_context)

    def with_login(self, app: ASGIApp) -> ASGIApp:
        """The application behind the login that is asked for. Raises ServerConfigError."""
        return self._secured(lambda values: with_login(app, values))

    @property
    def settings(self) -> dict[str, Any]:
        """What statements see of the properties."""
        return {**self.values, "bootstrap.servers": self.bootstrap_servers}

    @property
    def runs_on_spark(self) -> bool:
        """Whether Spark runs persistent queries. Raises ServerConfigError."""
        found = str(self.values.get(RUNNER) or "spark").lower()
        if found not in ("spark", "local"):
            raise ServerConfigError(f"{RUNNER} is spark or local, not {found}")
        return found == "spark"

    @property
    def spark_master(self) -> str:
        return str(self.values.get(MASTER) or "local[2]")

    @property
    def state_directory(self) -> str:
        """Where queries have their checkpoints: it has to outlive the server."""
        given = self.values.get(STATE_DIRECTORY)
        if given:
            return os.path.join(str(given), self.service_id)
        home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        return os.path.join(home, "barnabas", "sql", self.service_id)

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

    def schemas(self) -> HttpSchemaStore | None:
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
        return HttpSchemaStore(self.registry_urls, user_info=self.registry_user, tls=context)


def _listener(text: str) -> Listener:
    parts = urlsplit(text if "//" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError as error:
        raise ServerConfigError(f"no listener: {text}") from error
    if parts.scheme not in ("http", "https") or parts.hostname is None or port is None:
        raise ServerConfigError(f"a listener is http://HOST:PORT, not {text}")
    return Listener(parts.hostname, port, parts.scheme == "https")

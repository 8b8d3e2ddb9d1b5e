"""A server's properties file, with ksqlDB's keys."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from barnabas.pipeline.sql.engine import config
from barnabas.pipeline.sql.formats.schema_store import HttpSchemaStore

DEFAULT_LISTENERS = "http://0.0.0.0:8088"
RUNNER = "barnabas.sql.runner"
"""`spark` or `local`: what runs persistent queries."""
MASTER = "barnabas.sql.spark.master"
"""Spark's master, as `local[2]` or `spark://host:7077`."""
TASKS = "barnabas.sql.spark.tasks"
"""How many tasks share the partitions of a query's stage."""
DEFAULT_TRIGGER_MS = 100
TRIGGER = "barnabas.sql.spark.trigger.ms"
"""No micro-batch of a query begins sooner after its last one began."""
MARK_RESULTS = "barnabas.sql.mark.results"
"""Exactly once, headers of results say which micro-batch they are of."""
PIPELINES = "barnabas.sql.pipelines"
"""Pipelines in Python that share the Spark session: `module:function`, separated by commas."""
STATE_DIRECTORY = "ksql.streams.state.dir"
_TO_LIBRDKAFKA = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.keystore.location": "ssl.certificate.location",
    "ssl.key.location": "ssl.key.location",
    "ssl.ca.location": "ssl.ca.location",
    "ssl.certificate.location": "ssl.certificate.location",
    "ssl.key.password": "ssl.key.password",
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.username": "sasl.username",
    "sasl.password": "sasl.password",
    "client.id": "client.id",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
}


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
        """librdkafka's settings for clients of the cluster."""
        found: dict[str, Any] = {"bootstrap.servers": self.bootstrap_servers}
        for name, own in _TO_LIBRDKAFKA.items():
            for prefix in ("", config.STREAMS_PREFIX):
                value = self.values.get(prefix + name)
                if value not in (None, ""):
                    found[own] = value
        return found

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
    def pipelines(self) -> tuple[str, ...]:
        """What runs beside the statements. Raises ServerConfigError."""
        text = str(self.values.get(PIPELINES) or "")
        found = tuple(name.strip() for name in text.split(",") if name.strip())
        if found and not self.runs_on_spark:
            raise ServerConfigError(f"{PIPELINES} needs the runner spark")
        return found

    @property
    def is_exactly_once(self) -> bool:
        """What a statement's query guarantees unless its session says otherwise."""
        found = self.values.get(config.STREAMS_PREFIX + "processing.guarantee")
        return str(found or "").lower().startswith("exactly_once")

    @property
    def spark_trigger_ms(self) -> int:
        """Raises ServerConfigError."""
        return self._whole_number(TRIGGER) or DEFAULT_TRIGGER_MS

    @property
    def spark_tasks(self) -> int | None:
        """Raises ServerConfigError."""
        return self._whole_number(TASKS)

    def is_set(self, key: str) -> bool:
        """Whether a property is true; false if it is not given. Raises ServerConfigError."""
        found = str(self.values.get(key) or "false").lower()
        if found not in ("true", "false"):
            raise ServerConfigError(f"{key} is true or false, not {found}")
        return found == "true"

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

    def schemas(self) -> HttpSchemaStore | None:
        """The schema registry, if one is configured."""
        if not self.registry_urls:
            return None
        authority = self.values.get("ksql.schema.registry.ssl.truststore.location")
        tls = ssl.create_default_context(cafile=str(authority)) if authority else None
        return HttpSchemaStore(self.registry_urls, user_info=self.registry_user, tls=tls)


def _listener(text: str) -> Listener:
    parts = urlsplit(text if "//" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError as error:
        raise ServerConfigError(f"no listener: {text}") from error
    if parts.scheme not in ("http", "https") or parts.hostname is None or port is None:
        raise ServerConfigError(f"a listener is http://HOST:PORT, not {text}")
    return Listener(parts.hostname, port, parts.scheme == "https")

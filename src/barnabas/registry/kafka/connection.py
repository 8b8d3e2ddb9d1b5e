"""How to reach the brokers: addresses, TLS and SASL, for aiokafka and for our own client."""

import ssl
from dataclasses import dataclass
from typing import Any

from barnabas.base.config.errors import ConfigError
from barnabas.base.jaas import jaas_options
from barnabas.base.tls.contexts import configured_client
from barnabas.kafka.wire import Access
from barnabas.registry.config import RegistryConfig

SERVED_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(slots=True, frozen=True)
class _OwnAccess(Access):
    """With TLS as the registry's settings say."""

    context: ssl.SSLContext | None = None

    def tls(self) -> ssl.SSLContext:
        assert self.context is not None
        return self.context


class Connection:
    """The options of every client of the brokers."""

    def __init__(self, config: RegistryConfig) -> None:
        """Read TLS and SASL. Raises ConfigError."""
        self.request_timeout_ms = config.get_int("kafkastore.request.timeout.ms")
        self.retry_backoff_ms = config.get_int("kafkastore.retry.backoff.ms")
        self._client_id = config.get_str("kafkastore.client.id")
        self._options: dict[str, Any] = {
            "bootstrap_servers": config.bootstrap_servers,
            "metadata_max_age_ms": config.get_int("kafkastore.metadata.max.age.ms"),
            "connections_max_idle_ms": config.get_int("kafkastore.connections.max.idle.ms"),
            "retry_backoff_ms": self.retry_backoff_ms,
            "security_protocol": config.security_protocol,
        }
        if config.security_protocol.endswith("SSL"):
            self._options["ssl_context"] = configured_client(config, "kafkastore.")
        if config.security_protocol.startswith("SASL"):
            self._options |= _sasl_options(config)

    def options(self, purpose: str, *, request_timeout_ms: int | None = None) -> dict[str, Any]:
        """Keyword arguments of an aiokafka client. `purpose` becomes part of its id."""
        return self._options | {
            "client_id": f"{self._client_id}-{purpose}",
            "request_timeout_ms": request_timeout_ms or self.request_timeout_ms,
        }

    def access(self, purpose: str) -> Access:
        """Return the same for `kafka.wire`."""
        context = self._options.get("ssl_context")
        return _OwnAccess(
            ",".join(self._options["bootstrap_servers"]),
            has_tls=context is not None,
            mechanism=self._options.get("sasl_mechanism"),
            user=self._options.get("sasl_plain_username", ""),
            password=self._options.get("sasl_plain_password", ""),
            timeout_seconds=self.request_timeout_ms / 1000,
            client_id=f"{self._client_id}-{purpose}",
            context=context,
        )


def _sasl_options(config: RegistryConfig) -> dict[str, Any]:
    mechanism = config.get_str("kafkastore.sasl.mechanism")
    if mechanism not in SERVED_MECHANISMS:
        raise ConfigError(
            "kafkastore.sasl.mechanism",
            f"{mechanism} is not served; set one of {', '.join(SERVED_MECHANISMS)}",
        )
    key = "kafkastore.sasl.jaas.config"
    options = jaas_options(config.get_str(key))
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise ConfigError(
            key,
            f"has no {' and no '.join(missing)}; it is written "
            '<module> required username="…" password="…";',
        )
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": options["username"],
        "sasl_plain_password": options["password"],
    }

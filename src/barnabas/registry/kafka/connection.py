"""Connections to the brokers: addresses, TLS and SASL, for aiokafka and for our own client."""

from dataclasses import replace
from typing import Any

from barnabas.kafka.security import Security
from barnabas.kafka.wire import Access
from barnabas.registry.config import RegistryConfig


class Connection:
    """The options of every client of the brokers."""

    def __init__(self, config: RegistryConfig) -> None:
        """Read TLS and SASL. Raises ConfigError."""
        self.request_timeout_ms = config.get_int("kafkastore.request.timeout.ms")
        self.retry_backoff_ms = config.get_int("kafkastore.retry.backoff.ms")
        self._client_id = config.get_str("kafkastore.client.id")
        self._security = security_of(config)
        self._options: dict[str, Any] = {
            "bootstrap_servers": config.bootstrap_servers,
            "metadata_max_age_ms": config.get_int("kafkastore.metadata.max.age.ms"),
            "connections_max_idle_ms": config.get_int("kafkastore.connections.max.idle.ms"),
            "retry_backoff_ms": self.retry_backoff_ms,
            **self._security.aiokafka(),
        }

    def options(self, purpose: str, *, request_timeout_ms: int | None = None) -> dict[str, Any]:
        """Keyword arguments of an aiokafka client. `purpose` becomes part of its id."""
        return self._options | {
            "client_id": f"{self._client_id}-{purpose}",
            "request_timeout_ms": request_timeout_ms or self.request_timeout_ms,
        }

    def access(self, purpose: str) -> Access:
        """Return the same for `kafka.wire`."""
        access = self._security.access(
            ",".join(self._options["bootstrap_servers"]), self.request_timeout_ms / 1000
        )
        return replace(access, client_id=f"{self._client_id}-{purpose}")


def security_of(config: RegistryConfig) -> Security:
    """TLS and login for the brokers. Raises ConfigError."""
    return Security(_Keys(config))


class _Keys:
    """Keys of the registry by the names of Kafka's clients."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config

    def find(self, name: str) -> str | None:
        """The value, which may be empty; None where it is not set."""
        try:
            return self._config.get_str(self.key(name))
        except KeyError:
            return None

    def key(self, name: str) -> str:
        """The name in the registry's file."""
        return f"kafkastore.{name}"

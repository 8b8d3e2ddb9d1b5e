"""How a worker reaches its Kafka cluster, from the worker's own settings.

`bootstrap.servers`, `security.protocol`, `sasl.*` and `ssl.*` are Kafka's; librdkafka's names of
certificates are taken too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.base.peer_lines import peer_logger
from barnabas.kafka.wire import Access
from barnabas.schemas.data.errors import ConfigError
from barnabas.spark.datasource.options import OptionError, read_security

_log = peer_logger(__name__)
_SECURITY: Final = frozenset(
    {
        "security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.username",
        "sasl.password", "ssl.truststore.type", "ssl.truststore.location",
        "ssl.truststore.certificates", "ssl.keystore.type", "ssl.keystore.location",
        "ssl.key.password", "ssl.endpoint.identification.algorithm", "ssl.ca.location",
        "ssl.ca.pem", "ssl.certificate.location", "ssl.key.location",
    }
)  # fmt: skip


@dataclass(slots=True, frozen=True)
class Clients:
    """`settings` are librdkafka's for any client, `access` is for requests of our own."""

    settings: Mapping[str, Any] = field(repr=False)
    access: Access
    client_id: str = "connect"

    def named(self, purpose: str) -> dict[str, Any]:
        """Return librdkafka's settings of one client; its warnings go to this module's log.

        They are told when the client is polled.
        """
        return {
            "log_level": 4,
            "logger": _log,
            **self.settings,
            "client.id": f"{self.client_id}-{purpose}",
        }

    def patient(self, seconds: float) -> Access:
        """Return the access of requests that may wait so long for their answer."""
        return replace(self.access, timeout_seconds=seconds)


def read_clients(settings: Mapping[str, str], client_id: str = "connect") -> Clients:
    """Read a worker's settings. Raises ConfigError."""
    servers = settings.get("bootstrap.servers", "localhost:9092")
    # Kafka's files may name a store's passwords and types of SASL that nothing asks for.
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    given = {name: settings[name] for name in settings if name in _SECURITY}
    if not protocol.startswith("SASL"):
        given = {name: given[name] for name in given if not name.startswith("sasl.")}
    if not protocol.endswith("SSL"):
        given = {name: given[name] for name in given if not name.startswith("ssl.")}
    try:
        security, access = read_security(servers, given)
    except OptionError as error:
        raise ConfigError(str(error).replace("kafka.", "")) from error
    return Clients({"bootstrap.servers": servers, **security}, access, client_id)

"""A worker's connection to its Kafka cluster, from the worker's settings.

`bootstrap.servers`, `security.protocol`, `sasl.*` and `ssl.*` are Kafka's or librdkafka's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.base.errors import ConfigError as BaseConfigError
from barnabas.base.peer_lines import peer_logger
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.kafka.security import Security
from barnabas.kafka.setting_names import SECURITY_NAMES
from barnabas.kafka.settings import check_servers
from barnabas.kafka.wire import Access
from barnabas.schemas.data.errors import ConfigError

_log = peer_logger(__name__)


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


def read_clients(settings: Mapping[str, str], client_id: str = "connect") -> Clients:
    """Read a worker's settings. Raises ConfigError."""
    servers = settings.get("bootstrap.servers", "localhost:9092")
    # Kafka's files may name settings that nothing here asks for.
    given = {name: settings[name] for name in settings if name in SECURITY_NAMES}
    try:
        check_servers(servers)
        security = Security(PropertyKeys(given))
        common = {"bootstrap.servers": servers, **security.librdkafka()}
        return Clients(common, security.access(servers), client_id)
    except BaseConfigError as error:
        raise ConfigError(str(error)) from error

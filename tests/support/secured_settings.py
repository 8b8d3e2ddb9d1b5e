"""Properties of nodes that trust no network, which Barnabas and Apache Kafka both take.

Clients and brokers log in over TLS; so do brokers at the controllers. ACLs are on, and the nodes'
own user is a super user.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from support.certificates import Authority

NODES = "node"
"""The user that the nodes are."""
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_MODULES = "org.apache.kafka.common.security"
PLAIN_LOGIN = f"{_MODULES}.plain.PlainLoginModule required"
SCRAM_LOGIN = f"{_MODULES}.scram.ScramLoginModule required"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
BETWEEN_BROKERS = "SCRAM-SHA-512"
LISTENERS = "CLIENTS", "CONTROLLER"


def password(user: str) -> str:
    """Nobody's but the user's."""
    return f"{user}-secret-9c1f"


@dataclass(frozen=True)
class Security:
    """One cluster's certificates and users."""

    authority: Authority
    users: tuple[str, ...] = ()
    """Who may log in at the clients' listener beside `NODES`: by PLAIN or `BETWEEN_BROKERS`."""

    def settings(self) -> dict[str, str]:
        """Return what all nodes share."""
        common = {
            "listener.security.protocol.map": ",".join(f"{name}:SASL_SSL" for name in LISTENERS),
            "inter.broker.listener.name": "CLIENTS",
            "controller.listener.names": "CONTROLLER",
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
            "sasl.mechanism.inter.broker.protocol": BETWEEN_BROKERS,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": self._plain((NODES, *self.users)),
            "listener.name.controller.plain.sasl.jaas.config": self._plain((NODES,)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.file,
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{NODES}",
        }
        for mechanism in SCRAM:
            key = f"listener.name.clients.{mechanism.lower()}.sasl.jaas.config"
            common[key] = f"{SCRAM_LOGIN} {_own(NODES)};"
        return common

    def node(
        self, node_id: int, host: str, port: int, controller_port: int | None
    ) -> dict[str, str]:
        """One node's own settings; `controller_port` is None for one that is not a controller."""
        listeners = [f"CLIENTS://{host}:{port}"]
        if controller_port is not None:
            listeners.append(f"CONTROLLER://{host}:{controller_port}")
        return {
            "listeners": ",".join(listeners),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.authority.issue(f"node-{node_id}", [host]),
        }

    def format_arguments(self) -> list[str]:
        """Return what `storage format` must be told: nodes log in before anybody can make users."""
        return [
            argument
            for user in (NODES, *self.users)
            for argument in (
                "--add-scram",
                f"{BETWEEN_BROKERS}=[name={user},password={password(user)}]",
            )
        ]

    def client(
        self, bootstrap_servers: str, user: str, mechanism: str = "PLAIN", **settings: Any
    ) -> dict[str, Any]:
        """librdkafka's configuration for a user."""
        return {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.authority.file,
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password(user),
            **settings,
        }

    def _plain(self, users: Iterable[str]) -> str:
        known = " ".join(f'user_{user}="{password(user)}"' for user in users)
        return f"{PLAIN_LOGIN} {_own(NODES)} {known};"


def _own(user: str) -> str:
    return f'username="{user}" password="{password(user)}"'

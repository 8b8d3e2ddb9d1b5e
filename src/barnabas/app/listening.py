"""Listening sockets of a node: their limits, and the error where an address cannot be bound."""

from collections.abc import Iterable

from barnabas.app.logins import Gates
from barnabas.base.errors import ConfigError
from barnabas.base.network import ListenerOptions
from barnabas.node.config.listeners import ListenerConfig
from barnabas.node.config.node_config import (
    PER_IP_KEY,
    PER_IP_OVERRIDES_KEY,
    NodeConfig,
    parse_overrides,
)
from barnabas.node.config.tls import TlsSide, listening_tls
from barnabas.node.net.connection_quotas import (
    CONNECTIONS_KEY,
    CREATION_RATE_KEY,
    ConnectionLimits,
    ListenerLimits,
)
from barnabas.node.net.dialing import listening_options
from barnabas.node.net.server import Server, ServerLimits
from barnabas.node.security.certificate_names import RULES_KEY, CertificateNames

LIMIT_KEYS = (CONNECTIONS_KEY, CREATION_RATE_KEY, PER_IP_KEY, PER_IP_OVERRIDES_KEY)


class CannotListenError(OSError):
    """A listener's address is not available: another process listens there, or it is not ours."""

    def __init__(self, listener: ListenerConfig, cause: OSError) -> None:
        super().__init__(cause.errno, f"cannot listen on {listener}: {cause.strerror}")

    def __str__(self) -> str:
        return str(self.strerror)


def bind_listeners(
    server: Server, config: NodeConfig, listeners: Iterable[ListenerConfig], gates: Gates
) -> list[TlsSide]:
    """Bind the listeners of one role, all or none; returns what those with TLS have of it.

    Raises CannotListenError, and ConfigError for a certificate that cannot be used.
    """
    encrypted = []
    for listener in listeners:
        try:
            tls = listening_tls(config, listener)
            if tls is not None:
                encrypted.append(tls)
            options = listener_options(config, listener, tls)
            server.listen(listener.host, listener.port, options, gates.of(listener))
        except OSError as error:
            server.close()
            raise CannotListenError(listener, error) from error
        except ConfigError:
            server.close()
            raise
    return encrypted


def listener_options(
    config: NodeConfig, listener: ListenerConfig, tls: TlsSide | None
) -> ListenerOptions:
    """The limits of one listener."""
    return ListenerOptions(
        name=listener.name,
        security_protocol=listener.security_protocol,
        frame_size_max_bytes=config.get_int("socket.request.max.bytes"),
        socket=listening_options(config),
        tls=tls,
        is_for_nodes=_is_for_nodes(config, listener.name),
        name_of=CertificateNames(config.listener_value(listener.name, RULES_KEY)).name_of,
    )


def _is_for_nodes(config: NodeConfig, name: str) -> bool:
    """Return whether clients of the cluster have other listeners."""
    if name in config.controller_listener_names:
        return True
    return name == config.inter_broker_listener_name and len(config.broker_listeners) > 1


def server_limits(config: NodeConfig) -> ServerLimits:
    """The limits of all listeners of a node together."""
    return ServerLimits(
        connections=connection_limits(config),
        idle_max_ms=config.get_int("connections.max.idle.ms"),
        queued_bytes_max=config.get_int("queued.max.request.bytes"),
        rate_samples=config.get_int("quota.window.num"),
        rate_sample_ms=config.get_int("quota.window.size.seconds") * 1000,
    )


def connection_limits(config: NodeConfig) -> ConnectionLimits:
    """The part of it that may be changed while the node serves.

    A listener without its own value has the broker's as its own limit.
    """
    return ConnectionLimits(
        connections_max=config.get_int(CONNECTIONS_KEY),
        connections_per_ip_max=config.get_int(PER_IP_KEY),
        connections_per_ip_overrides=parse_overrides(config.get_str(PER_IP_OVERRIDES_KEY)),
        creation_rate_max=config.get_int(CREATION_RATE_KEY),
        listeners={
            listener.name: ListenerLimits(
                connections_max=config.listener_value(listener.name, CONNECTIONS_KEY),
                creation_rate_max=config.listener_value(listener.name, CREATION_RATE_KEY),
            )
            for listener in config.listeners
        },
        protected_listener=config.inter_broker_listener_name,
    )


def follow_limits(server: Server, config: NodeConfig) -> None:
    """Have a server keep to what holds now."""
    server.set_limits(connection_limits(config))

"""Listening sockets of a node: their limits and certificates, and addresses that cannot be bound.

Certificates are followed as files and configuration change, and watched. Nobody notices an expiring
one until nobody can connect, so its end is a metric (`seconds_left`) and is logged when it comes
near.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.app.logins import Gates
from barnabas.base.clock import Clock, Timer
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
CHECK_PERIOD_MS: Final = 60_000
"""The interval at which changed files are logged; connections use them at once."""
_DAY_S: Final = 86_400
WARNED_AT_DAYS: Final = (7, 30)

telemetry = logging.getLogger(__name__)


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


class ListenerCertificates:
    """Of one role's listeners that speak TLS."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sides: Sequence[TlsSide] = ()
        self._told: dict[str, object] = {}
        """The last warning about each listener's certificate."""
        self._timer: Timer | None = None

    def watch(self, sides: Sequence[TlsSide]) -> None:
        """Look after the certificates of these listeners, until `close`."""
        self._sides = sides
        if sides:
            self._check()

    def follow(self, config: NodeConfig) -> None:
        """Use another configuration for new connections."""
        for side in self._sides:
            side.follow(config)

    def seconds_left(self) -> dict[str, float]:
        """Until the certificate of each listener ends; negative if it has ended."""
        now_s = self._clock.now_ms() / 1000
        return {
            side.listener_name: side.certificate.not_after.timestamp() - now_s
            for side in self._sides
            if side.certificate is not None
        }

    def _check(self) -> None:
        for side in self._sides:
            side.refresh()
        for name, seconds in self.seconds_left().items():
            self._tell(name, seconds)
        self._timer = self._clock.call_later(CHECK_PERIOD_MS, self._check)

    def _tell(self, name: str, seconds: float) -> None:
        """Say once that an end comes near: under 30 days, under 7, and when it is there."""
        limit = next((days for days in WARNED_AT_DAYS if seconds < days * _DAY_S), None)
        state = 0 if seconds <= 0 else limit
        if state == self._told.get(name):
            return
        self._told[name] = state
        if state == 0:
            telemetry.error("the certificate of listener %s has expired", name)
        elif state is not None:
            days = int(seconds // _DAY_S)
            telemetry.warning("the certificate of listener %s expires in %d days", name, days)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

"""Sockets made as configured: listening ones, and those to other nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.base.backoff import ExponentialBackoff, RandomSource
from barnabas.base.network import SYSTEM_OPTIONS, SocketOptions, TlsTerms
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.net.login import Login

SETUP_TIMEOUT_MS = 10_000
SETUP_TIMEOUT_KEY = "socket.connection.setup.timeout.ms"
SETUP_TIMEOUT_MAX_KEY = "socket.connection.setup.timeout.max.ms"
BACKLOG_KEY = "socket.listen.backlog.size"
RECEIVE_BUFFER_KEY = "socket.receive.buffer.bytes"
SEND_BUFFER_KEY = "socket.send.buffer.bytes"
SYSTEMS_CHOICE = -1


RECONNECT_BACKOFF_MS = 50
"""Kafka's, for connections between nodes whose owners do not rest themselves."""


def _ten_seconds(_failures: int) -> int:
    return SETUP_TIMEOUT_MS


def _at_once(_failures: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Dialing:
    """The options with which a node opens connections to other nodes."""

    setup_timeout_ms: Callable[[int], int] = _ten_seconds
    """The time limit for opening a connection after so many failures in a row (KIP-601)."""
    options: SocketOptions = SYSTEM_OPTIONS
    reconnect_backoff_ms: Callable[[int], int] = _at_once
    """The pause after a connection was lost, or could not be opened so many times in a row."""
    login: Login | None = None
    """The login at the other side; None: it requires none."""
    tls: TlsTerms | None = None
    """None: they are in plain text."""


PLAIN_DIALING = Dialing()


def dialing_of(
    config: NodeConfig,
    random: RandomSource,
    receive_buffer_key: str | None = RECEIVE_BUFFER_KEY,
    *,
    reconnect_backoff_ms: int = RECONNECT_BACKOFF_MS,
    login: Login | None = None,
    tls: TlsTerms | None = None,
) -> Dialing:
    """Return the options with which a node opens connections.

    `receive_buffer_key` sets their receive buffers; None: they are the system's choice, as those
    to the controller are in Kafka. `reconnect_backoff_ms` does not grow with failures.
    """
    backoff = ExponentialBackoff(
        config.get_int(SETUP_TIMEOUT_KEY), config.get_int(SETUP_TIMEOUT_MAX_KEY), random
    )
    receive_buffer = (
        None if receive_buffer_key is None else buffer_bytes(config, receive_buffer_key)
    )
    rest = ExponentialBackoff(reconnect_backoff_ms, reconnect_backoff_ms, random)
    options = SocketOptions(receive_buffer_bytes=receive_buffer)
    return Dialing(backoff.after, options, rest.after, login, tls)


def listening_options(config: NodeConfig) -> SocketOptions:
    """The socket options of a node's listening sockets."""
    return SocketOptions(
        receive_buffer_bytes=buffer_bytes(config, RECEIVE_BUFFER_KEY),
        send_buffer_bytes=buffer_bytes(config, SEND_BUFFER_KEY),
        backlog=config.get_int(BACKLOG_KEY) if BACKLOG_KEY in config.originals else None,
    )


def buffer_bytes(config: NodeConfig, key: str) -> int | None:
    """The size of a buffer that was set; None leaves it to the system."""
    size = config.get_int(key)
    return None if key not in config.originals or size == SYSTEMS_CHOICE else size

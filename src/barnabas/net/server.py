"""The listeners of a node and the connections behind them, with Kafka's limits on both."""

import logging
from collections import Counter
from dataclasses import dataclass, field

from barnabas.base.clock import Clock, Timer
from barnabas.base.network import Listener, Network, StreamHandler, Transport
from barnabas.net.connection import Connection, Service

SWEEPS_PER_IDLE_PERIOD = 10
"""A connection is closed at most a tenth of the idle time late."""

telemetry = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Kafka's `socket.request.max.bytes`, `max.connections…` and `connections.max.idle.ms`."""

    frame_size_max_bytes: int = 100 << 20
    connections_max: int = 2**31 - 1
    connections_per_ip_max: int = 2**31 - 1
    connections_per_ip_overrides: dict[str, int] = field(default_factory=dict)
    idle_max_ms: int = 600_000


class Server:
    """Accepts connections on any number of listeners and hands frames to one service."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        service: Service,
        limits: ServerLimits,
        *,
        requests_overlap: bool = False,
    ) -> None:
        """`requests_overlap`: a request need not wait for those before it on its connection."""
        self._network = network
        self._clock = clock
        self._service = service
        self._limits = limits
        self._requests_overlap = requests_overlap
        self._listeners: dict[str, Listener] = {}
        self._connections: dict[Connection, None] = {}
        """In the order in which they came, in which they are closed too."""
        self._per_ip: Counter[str] = Counter()
        self._tick = 0
        self._sweep_timer: Timer | None = None
        self._full = False

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def listen(self, name: str, host: str, port: int) -> int:
        """Bind a listener without accepting yet; returns the bound port. Raises OSError."""

        def connected(transport: Transport) -> StreamHandler:
            return self._connected(transport, name)

        listener = self._network.listen(host or "0.0.0.0", port, connected)
        self._listeners[name] = listener
        return listener.port

    def start(self) -> None:
        """Accept on every listener."""
        for listener in self._listeners.values():
            listener.start()
        self._sweep()

    def close_listeners(self) -> None:
        """Refuse new connections; those that exist go on."""
        for listener in self._listeners.values():
            listener.close()

    def close(self) -> None:
        """Close listeners and connections."""
        self.close_listeners()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        for connection in list(self._connections):
            connection.close_when_sent()
        for connection in list(self._connections):
            connection.close()

    def _connected(self, transport: Transport, listener_name: str) -> Connection:
        connection = Connection(
            transport,
            self._service,
            listener_name,
            self._limits.frame_size_max_bytes,
            self._closed,
            may_overlap=self._requests_overlap,
        )
        connection.last_active_tick = self._tick
        self._connections[connection] = None
        host = connection.peer_host
        self._per_ip[host] += 1
        limit = self._limits.connections_per_ip_overrides.get(
            host, self._limits.connections_per_ip_max
        )
        if self._per_ip[host] > limit:
            telemetry.warning("closing a connection of %s: it has %d already", host, limit)
            self._clock.call_later(0, connection.close)
        elif len(self._connections) >= self._limits.connections_max and not self._full:
            self._full = True
            telemetry.warning("max.connections=%d is reached", self._limits.connections_max)
            for listener in self._listeners.values():
                listener.pause()
        return connection

    def _closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        host = connection.peer_host
        self._per_ip[host] -= 1
        if not self._per_ip[host]:
            del self._per_ip[host]
        if self._full and len(self._connections) < self._limits.connections_max:
            self._full = False
            for listener in self._listeners.values():
                listener.start()

    def _sweep(self) -> None:
        """Close what has been idle too long; one timer for all connections."""
        self._tick += 1
        oldest = self._tick - SWEEPS_PER_IDLE_PERIOD
        for connection in list(self._connections):
            if connection.last_active_tick < 0:
                connection.last_active_tick = self._tick
            elif connection.last_active_tick <= oldest and not connection.is_waiting:
                connection.close()
        period_ms = max(1, self._limits.idle_max_ms // SWEEPS_PER_IDLE_PERIOD)
        self._sweep_timer = self._clock.call_later(period_ms, self._sweep)

"""The listeners of a node and the connections behind them, with Kafka's limits on both."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from barnabas.base.clock import Clock, Timer
from barnabas.base.network import Listener, ListenerOptions, Network, StreamHandler, Transport
from barnabas.base.peer_lines import peer_logger
from barnabas.node.net.connection import Connection, Gate, Service
from barnabas.node.net.connection_quotas import ConnectionLimits, ConnectionQuotas, IpRates
from barnabas.node.net.request_memory import RequestMemory
from barnabas.node.net.request_times import RequestTimes

LOGIN_MAX_MS = 600_000
"""Within this a client has to log in where it may be idle for ever."""
SWEEPS_PER_IDLE_PERIOD = 10
"""A connection is closed at most a tenth of the idle time late."""
SILENT_MAX_MS = 1000
"""While file descriptors are short, a connection may be so old without having sent a request."""
ROOM_CONNECTIONS_MAX = 64
"""So many connections are closed at once to get descriptors back."""

telemetry = peer_logger(__name__)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """A server's limits, in Kafka's terms.

    `connections.max.idle.ms`, `queued.max.request.bytes`, `quota.window…` and, in `connections`,
    what may change while it serves. The limits of each listener are in its `ListenerOptions`.
    """

    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    idle_max_ms: int = 600_000
    """Below 0: nobody is closed for being idle."""
    queued_bytes_max: int = -1
    """Bytes of requests that may wait to be handled; below 0 each connection has its own bound."""
    rate_samples: int = 11
    rate_sample_ms: int = 1000


class _Accepting:
    """A listener, and why it may have to wait."""

    __slots__ = ("full_because", "listener", "throttle")

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.full_because: str | None = None
        self.throttle: Timer | None = None
        """Set while new connections wait because they came too fast."""


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
        times: RequestTimes | None = None,
    ) -> None:
        """`requests_overlap`: a request need not wait for those before it on its connection.

        `times`: what counts the requests, where anybody looks at it.
        """
        self._times = times
        self._network = network
        self._clock = clock
        self._service = service
        self._limits = limits
        self._requests_overlap = requests_overlap
        self._quotas = ConnectionQuotas(
            limits.connections,
            rate_samples=limits.rate_samples,
            rate_sample_ms=limits.rate_sample_ms,
        )
        self._memory = (
            RequestMemory(limits.queued_bytes_max) if limits.queued_bytes_max > 0 else None
        )
        self._listeners: dict[str, _Accepting] = {}
        self._connections: dict[Connection, int] = {}
        """When each came, in that order, in which they are closed too."""
        self._outside: dict[Connection, int] = {}
        """Those that may not have logged in yet, and the tick by which they must have."""
        self._tick = 0
        self._sweep_timer: Timer | None = None
        self._is_accepting = False

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def ports(self) -> dict[str, int]:
        """The bound port of each listener, by name."""
        return {name: accepting.listener.port for name, accepting in self._listeners.items()}

    def listen(
        self, host: str, port: int, options: ListenerOptions, gate: Gate | None = None
    ) -> int:
        """Bind a listener without accepting yet; returns the bound port. Raises OSError.

        `gate` is what its clients have to pass before they are served.
        """

        def connected(transport: Transport) -> StreamHandler:
            return self._connected(transport, options, gate)

        regulated = replace(options, make_room=self._make_room)
        listener = self._network.listen(host or "0.0.0.0", port, connected, regulated)
        self._listeners[options.name] = _Accepting(listener)
        self._quotas.add_listener(options.name)
        return listener.port

    def start(self) -> None:
        """Accept on every listener."""
        self._is_accepting = True
        self._regulate()
        self._sweep()

    def set_limits(self, limits: ConnectionLimits) -> None:
        """Follow other limits from now on; a listener that waits for its rate waits on.

        Above a lower number, the connections longest idle are closed.
        """
        if limits != self._quotas.limits:
            self._quotas.limits = limits
            self._close_excess()
            self._regulate()

    def set_ip_rates(self, rates: IpRates) -> None:
        """Limit how fast single addresses may connect, from now on."""
        self._quotas.ip_rates = rates

    def connection_figures(self) -> Iterator[tuple[str, int, float]]:
        """Of each listener its name, its connections and how many a second it accepts."""
        now_ms = self._clock.monotonic_ms()
        for name in self._listeners:
            yield name, self._quotas.count(name), self._quotas.accept_rate(name, now_ms)

    def _regulate(self) -> None:
        """Accept on the listeners that may, and on no others."""
        if not self._is_accepting:
            return
        for name, accepting in self._listeners.items():
            reason = self._quotas.full_because(name)
            if reason is not None and reason != accepting.full_because:
                telemetry.warning("%s is reached", reason)
            accepting.full_because = reason
            if reason is None and accepting.throttle is None:
                accepting.listener.start()
            else:
                accepting.listener.pause()

    def close_listeners(self) -> None:
        """Refuse new connections; those that exist go on."""
        self._is_accepting = False
        for accepting in self._listeners.values():
            if accepting.throttle is not None:
                accepting.throttle.cancel()
                accepting.throttle = None
            accepting.listener.close()

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

    def _connected(
        self, transport: Transport, listener: ListenerOptions, gate: Gate | None
    ) -> Connection:
        connection = Connection(
            transport,
            self._service,
            listener,
            self._closed,
            may_overlap=self._requests_overlap,
            gate=gate,
            memory=self._memory,
            times=self._times,
        )
        if gate is not None:
            self._outside[connection] = self._tick + SWEEPS_PER_IDLE_PERIOD
        connection.last_active_tick = self._tick
        host = connection.peer_host
        now_ms = self._clock.monotonic_ms()
        self._connections[connection] = now_ms
        throttle_ms = self._quotas.opened(listener.name, host, now_ms)
        if throttle_ms:
            self._throttle(listener.name, throttle_ms)
        ip_limit = self._quotas.ip_limit_exceeded(host)
        if ip_limit is not None:
            telemetry.warning("closing a connection from %s: it already has %d", host, ip_limit)
            self._clock.call_later(0, connection.close)
        else:
            ip_throttle_ms = self._quotas.ip_throttle_ms(host, now_ms)
            if ip_throttle_ms:
                self._hold(connection, ip_throttle_ms)
            self._close_excess()
        self._regulate()
        return connection

    def _hold(self, connection: Connection, throttle_ms: int) -> None:
        """Close a connection after a while, unread: its address connects too fast (KIP-612).

        One that was closed at once would only make its client connect again.
        """
        telemetry.debug("%s connects too fast", connection.peer_host)
        connection.mute(self._clock, 2 * throttle_ms)
        timer = self._clock.call_later(throttle_ms, connection.close)
        connection.when_closed(lambda _: timer.cancel())

    def _throttle(self, listener_name: str, throttle_ms: int) -> None:
        """Accept nothing on a listener for so long: connections came too fast (KIP-612)."""
        accepting = self._listeners[listener_name]

        def end() -> None:
            accepting.throttle = None
            self._regulate()

        assert accepting.throttle is None, "a listener that waits accepts nothing"
        accepting.throttle = self._clock.call_later(throttle_ms, end)
        telemetry.debug("listener %s accepts no connections for %d ms", listener_name, throttle_ms)

    def _close_excess(self) -> None:
        """Make room for the brokers' own connections, and for a lower limit.

        Closed are those longest idle, to a tenth of the idle time, of all other listeners.
        """
        excess = self._quotas.excess
        if not excess:
            return
        others = [
            connection
            for connection in self._connections
            if not self._quotas.is_protected(connection.listener_name)
        ]
        others.sort(key=self._idle_since)
        for connection in others[:excess]:
            telemetry.warning(
                "closing a connection from %s: max.connections=%d is exceeded",
                connection.peer_host,
                self._quotas.limits.connections_max,
            )
            connection.close()

    def _make_room(self) -> None:
        """Close connections so that others can be accepted: file descriptors are short.

        First those that have sent no request, the oldest first; without any, those that have been
        idle longest, for at least a tenth of the idle time.
        """
        latest_ms = self._clock.monotonic_ms() - SILENT_MAX_MS
        connections = self._connections
        candidates = [
            connection
            for connection, opened_ms in connections.items()
            if opened_ms <= latest_ms and connection.state is None
        ]
        if not candidates:
            candidates = sorted(
                (
                    connection
                    for connection in connections
                    if 0 <= connection.last_active_tick < self._tick and not connection.is_waiting
                ),
                key=self._idle_since,
            )
        for connection in candidates[:ROOM_CONNECTIONS_MAX]:
            telemetry.warning(
                "closing an idle connection from %s: file descriptors are short",
                connection.peer_host,
            )
            connection.close()

    def _idle_since(self, connection: Connection) -> int:
        tick = connection.last_active_tick
        return self._tick + 1 if tick < 0 else tick

    def _closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self._outside.pop(connection, None)
        self._quotas.closed(connection.listener_name, connection.peer_host)
        self._regulate()

    def _sweep(self) -> None:
        """Close what has been idle too long; one timer for all connections."""
        self._tick += 1
        idle_max_ms = self._limits.idle_max_ms
        oldest = self._tick - SWEEPS_PER_IDLE_PERIOD if idle_max_ms >= 0 else -1
        for connection in list(self._connections):
            if connection.last_active_tick < 0:
                connection.last_active_tick = self._tick
            elif connection.last_active_tick <= oldest and not connection.is_waiting:
                connection.close()
        for connection, tick in list(self._outside.items()):
            if connection.is_admitted:
                del self._outside[connection]
            elif tick <= self._tick:  # however slowly it sends
                telemetry.warning(
                    "closing a connection from %s: it has not logged in", connection.peer_host
                )
                connection.close()
        if idle_max_ms < 0:
            idle_max_ms = LOGIN_MAX_MS
        period_ms = max(1, idle_max_ms // SWEEPS_PER_IDLE_PERIOD)
        self._sweep_timer = self._clock.call_later(period_ms, self._sweep)

"""Limits on the number of connections and on the rate of new ones (KIP-402, KIP-612).

Above a limit on their number, and above the rate, connections are not refused: they wait to be
accepted. The listener over which brokers reach each other is protected where it is not the only
one: limits of the whole broker do not hold it up, its own do. Source: Kafka's ConnectionQuotas.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.base.addresses import normal_address
from barnabas.node.loop.rate import Rate

UNLIMITED = 2**31 - 1
IPS_MAX = 10_000
"""Addresses whose rates are remembered; with more, those that have come longest ago go."""
CONNECTIONS_KEY = "max.connections"
CREATION_RATE_KEY = "max.connection.creation.rate"


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Kafka's `listener.name.<name>.max.connections` and `….max.connection.creation.rate`."""

    connections_max: int = UNLIMITED
    creation_rate_max: int = UNLIMITED
    """Connections a second."""


UNLIMITED_LISTENER = ListenerLimits()


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Kafka's `max.connections…` and `max.connection.creation.rate`."""

    connections_max: int = UNLIMITED
    connections_per_ip_max: int = UNLIMITED
    connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    creation_rate_max: int = UNLIMITED
    """Connections a second."""
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)
    """By name; without an entry a listener has no separate limits."""
    protected_listener: str | None = None


class IpRates:
    """Connections a second of single addresses, as client quotas limit them (KIP-612)."""

    def __init__(self, default: int | None, by_ip: Mapping[str, int]) -> None:
        """`default` is for addresses that have no limit of their own; None: they have none.

        Host names, which Kafka would look up, are skipped.
        """
        self._default = default
        self._by_ip: dict[str, int] = {}
        for ip, rate in by_ip.items():
            address = normal_address(ip)
            if address is not None:
                self._by_ip[address] = rate
        self.is_limiting = default is not None or bool(self._by_ip)

    def limit(self, ip: str) -> int | None:
        """The limit of an address; None: it has none."""
        return self._by_ip.get(normal_address(ip) or ip, self._default)


NO_IP_RATES = IpRates(None, {})


class ConnectionQuotas:
    """Counts the connections of one server. Time is an argument, in monotonic milliseconds."""

    def __init__(self, limits: ConnectionLimits, *, rate_samples: int, rate_sample_ms: int) -> None:
        self.limits = limits
        """May be replaced at any time."""
        self.ip_rates = NO_IP_RATES
        """May be replaced at any time."""
        self._by_ip: dict[str, Rate] = {}
        self._rate_window = rate_samples, rate_sample_ms
        self._rate = Rate(*self._rate_window)
        self._listener_rates: dict[str, Rate] = {}
        self._per_listener: Counter[str] = Counter()
        self._per_ip: Counter[str] = Counter()
        self._total = 0

    def add_listener(self, name: str) -> None:
        """Say which listeners there are, before any connection."""
        self._listener_rates[name] = Rate(*self._rate_window)

    def is_protected(self, listener: str) -> bool:
        """Return whether limits of the whole broker hold this listener up."""
        return listener == self.limits.protected_listener and len(self._listener_rates) > 1

    def opened(self, listener: str, host: str, now_ms: int) -> int:
        """Count a connection. For how many ms its listener must accept none after it."""
        self._total += 1
        self._per_listener[listener] += 1
        self._per_ip[host] += 1
        throttle_ms = 0
        if not self.is_protected(listener):
            self._rate.record(now_ms)
            throttle_ms = self._rate.throttle_ms(self.limits.creation_rate_max, now_ms)
        rate = self._listener_rates[listener]
        rate.record(now_ms)
        limit = self._listener_limits(listener).creation_rate_max
        return max(throttle_ms, rate.throttle_ms(limit, now_ms))

    def ip_throttle_ms(self, host: str, now_ms: int) -> int:
        """For how long a new connection of an address is held before it is closed.

        0: it is served. Source: Kafka's recordIpConnectionMaybeThrottle.
        """
        if not self.ip_rates.is_limiting:
            return 0
        limit = self.ip_rates.limit(host)
        if limit is None:
            return 0
        rate = self._by_ip.pop(host, None)
        if rate is None:
            rate = Rate(*self._rate_window)
            if len(self._by_ip) >= IPS_MAX:
                del self._by_ip[next(iter(self._by_ip))]
        self._by_ip[host] = rate  # the last that came
        rate.record(now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms)
        if throttle_ms:
            rate.record(now_ms, -1)  # it is not served
        return throttle_ms

    def count(self, listener: str) -> int:
        """The number of connections of a listener."""
        return self._per_listener[listener]

    def accept_rate(self, listener: str, now_ms: int) -> float:
        """The connections per second that a listener accepted recently."""
        return self._listener_rates[listener].per_second(now_ms)

    def closed(self, listener: str, host: str) -> None:
        """Count it no more."""
        self._total -= 1
        self._per_listener[listener] -= 1
        self._per_ip[host] -= 1
        if not self._per_ip[host]:
            del self._per_ip[host]

    def ip_limit_exceeded(self, host: str) -> int | None:
        """The limit of an address that has more connections than it may; None if it has not."""
        limits = self.limits
        limit = limits.connections_per_ip_overrides.get(host, limits.connections_per_ip_max)
        return limit if self._per_ip[host] > limit else None

    def full_because(self, listener: str) -> str | None:
        """The limit for which a listener accepts no more at present; None if it accepts."""
        limit = self._listener_limits(listener).connections_max
        if self._per_listener[listener] >= limit:
            return f"max.connections={limit} of listener {listener}"
        limit = self.limits.connections_max
        if self._total >= limit and not self.is_protected(listener):
            return f"max.connections={limit}"
        return None

    @property
    def excess(self) -> int:
        """The number of connections above the broker's limit."""
        return max(0, self._total - self.limits.connections_max)

    def _listener_limits(self, listener: str) -> ListenerLimits:
        return self.limits.listeners.get(listener, UNLIMITED_LISTENER)

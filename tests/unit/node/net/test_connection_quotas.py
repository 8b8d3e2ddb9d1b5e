"""Which connections wait, by number and by rate; time is a number."""

import pytest

from barnabas.node.loop.rate import Rate
from barnabas.node.net.connection_quotas import (
    UNLIMITED,
    ConnectionLimits,
    ConnectionQuotas,
    ListenerLimits,
)

HOST = "10.0.0.1"


def recorded(rate: Rate, *times_ms: int) -> Rate:
    for time_ms in times_ms:
        rate.record(time_ms)
    return rate


# (samples, ms of one) -> when it happened, the limit a second, when it is asked, the answer.
# Worked out from Kafka's Rate: with eleven samples of a second, ten count as elapsed at once.
THROTTLES: dict[str, tuple[tuple[int, int], list[int], int, int, int]] = {
    "nothing has happened": ((11, 1000), [], 1, 0, 0),
    "what the whole span grants": ((11, 1000), [0] * 20, 2, 0, 0),
    "one above it: 0.1/2 of ten seconds": ((11, 1000), [0] * 21, 2, 0, 500),
    "later in the first sample": ((11, 1000), [0] * 21 + [500], 2, 500, 500),
    "far above: never longer than a sample": ((11, 1000), [0] * 100, 2, 0, 1000),
    "spread evenly, below it": ((11, 1000), list(range(0, 30_000, 600)), 2, 29_400, 0),
    "at it: 22 in 10.5 s, as the ends of the span count": (
        (11, 1000),
        list(range(0, 30_000, 500)),
        2,
        29_500,
        500,
    ),
    "a little too fast": ((11, 1000), list(range(0, 20_000, 400)), 2, 19_600, 1000),
    "long ago": ((11, 1000), [0] * 100, 2, 11_000, 0),
    "just not long ago": ((11, 1000), [0] * 100, 2, 10_999, 1000),
    "one sample alone": ((1, 1000), [0, 1], 1000, 1, 1),
    "nothing at all is granted": ((11, 1000), [0], 0, 0, 1000),
    "no limit": ((11, 1000), [0] * 1000, UNLIMITED, 0, 0),
}


@pytest.mark.parametrize("case", THROTTLES)
def test_how_long_to_wait(case: str) -> None:
    window, times_ms, limit, now_ms, expected_ms = THROTTLES[case]
    assert recorded(Rate(*window), *times_ms).throttle_ms(limit, now_ms) == expected_ms


def test_who_waits_as_told_keeps_to_the_rate() -> None:
    rate, now_ms, times_ms = Rate(11, 1000), 0, []
    while now_ms < 60_000:
        rate.record(now_ms)
        times_ms.append(now_ms)
        now_ms += rate.throttle_ms(5, now_ms)
    burst = sum(time_ms == 0 for time_ms in times_ms)
    assert burst == 51
    later = [time_ms for time_ms in times_ms if time_ms > 20_000]
    assert 0.9 <= len(later) / (5 * 40) <= 1.1


# -- quotas


def quotas_of(
    limits: ConnectionLimits, listeners: tuple[str, ...] = ("CLIENT", "BROKERS")
) -> ConnectionQuotas:
    quotas = ConnectionQuotas(limits, rate_samples=11, rate_sample_ms=1000)
    for name in listeners:
        quotas.add_listener(name)
    return quotas


def opened(quotas: ConnectionQuotas, listener: str, count: int, now_ms: int = 0) -> list[int]:
    return [quotas.opened(listener, HOST, now_ms) for _ in range(count)]


def test_without_limits_nobody_waits() -> None:
    quotas = quotas_of(ConnectionLimits())
    assert opened(quotas, "CLIENT", 5_000) == [0] * 5_000
    assert quotas.full_because("CLIENT") is None
    assert quotas.ip_limit_exceeded(HOST) is None
    assert quotas.excess == 0


def test_the_brokers_rate_holds_all_listeners_up_together() -> None:
    quotas = quotas_of(ConnectionLimits(creation_rate_max=1), ("A", "B"))
    assert opened(quotas, "A", 5) == [0] * 5
    assert opened(quotas, "B", 6) == [0] * 5 + [1000]
    assert opened(quotas, "A", 1) == [1000]


def test_a_listeners_rate_holds_it_up_alone() -> None:
    limits = ConnectionLimits(listeners={"A": ListenerLimits(creation_rate_max=1)})
    quotas = quotas_of(limits, ("A", "B"))
    assert opened(quotas, "A", 11) == [0] * 10 + [1000]
    assert opened(quotas, "B", 100) == [0] * 100


def test_the_longer_of_two_waits_counts() -> None:
    limits = ConnectionLimits(
        creation_rate_max=10, listeners={"A": ListenerLimits(creation_rate_max=5)}
    )
    assert opened(quotas_of(limits, ("A",)), "A", 51)[-1] == 200
    limits = ConnectionLimits(
        creation_rate_max=5, listeners={"A": ListenerLimits(creation_rate_max=10)}
    )
    assert opened(quotas_of(limits, ("A",)), "A", 51)[-1] == 200


def test_brokers_own_listener_is_held_up_by_its_own_limits_only() -> None:
    limits = ConnectionLimits(
        connections_max=3,
        creation_rate_max=1,
        listeners={"BROKERS": ListenerLimits(connections_max=20)},
        protected_listener="BROKERS",
    )
    quotas = quotas_of(limits)
    assert opened(quotas, "BROKERS", 15) == [0] * 15
    assert quotas.full_because("BROKERS") is None
    assert quotas.full_because("CLIENT") == "max.connections=3"
    assert quotas.excess == 12
    opened(quotas, "BROKERS", 5)
    assert quotas.full_because("BROKERS") == "max.connections=20 of listener BROKERS"
    # Connections that do not count for the broker do not hold up others either.
    assert opened(quotas, "CLIENT", 10) == [0] * 10


def test_a_listener_that_is_the_only_one_is_not_protected() -> None:
    limits = ConnectionLimits(connections_max=1, protected_listener="CLIENT")
    quotas = quotas_of(limits, ("CLIENT",))
    opened(quotas, "CLIENT", 1)
    assert quotas.full_because("CLIENT") == "max.connections=1"


def test_closed_connections_make_room() -> None:
    limits = ConnectionLimits(
        connections_max=2,
        connections_per_ip_max=0,
        connections_per_ip_overrides={HOST: 1},
    )
    quotas = quotas_of(limits)
    opened(quotas, "CLIENT", 2)
    assert quotas.full_because("CLIENT") == "max.connections=2"
    assert quotas.ip_limit_exceeded(HOST) == 1
    quotas.closed("CLIENT", HOST)
    assert quotas.full_because("CLIENT") is None
    assert quotas.ip_limit_exceeded(HOST) is None
    quotas.opened("CLIENT", "10.0.0.2", 0)
    assert quotas.ip_limit_exceeded("10.0.0.2") == 0


def test_limits_may_be_others_from_one_moment_on() -> None:
    quotas = quotas_of(ConnectionLimits())
    opened(quotas, "CLIENT", 30)
    quotas.limits = ConnectionLimits(connections_max=10, creation_rate_max=1)
    assert quotas.full_because("CLIENT") == "max.connections=10"
    assert quotas.excess == 20
    # The rate knows what came before there was a limit.
    assert opened(quotas, "CLIENT", 1) == [1000]

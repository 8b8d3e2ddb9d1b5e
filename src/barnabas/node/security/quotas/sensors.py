"""Measured rates of clients, against their limits."""

from barnabas.node.loop.rate import Rate, TokenBucket

THROTTLE_SAMPLES = 2
THROTTLE_SAMPLE_MS = 30_000
"""`throttle-time` is the mean over Kafka's `metrics.num.samples` of `metrics.sample.window.ms`."""


class Sensor:
    """The recent use of one limit by the clients that share it. Time is an argument, in monotonic
    ms."""

    __slots__ = ("_throttles", "client_id", "last_used_ms", "user")

    def __init__(self, user: str, client_id: str) -> None:
        self.user = user
        self.client_id = client_id
        self.last_used_ms = 0
        self._throttles = Rate(THROTTLE_SAMPLES, THROTTLE_SAMPLE_MS)

    def throttled(self, throttle_ms: int, now_ms: int) -> None:
        """A client was told to wait so long."""
        self._throttles.record(now_ms, throttle_ms)

    def throttle_time_ms(self, now_ms: int) -> float:
        """The average time that clients were told to wait."""
        return self._throttles.average(now_ms)


class RateSensor(Sensor):
    """Bytes, or parts of the node's time, a second."""

    __slots__ = ("_throttle_max_ms", "limit", "rate")

    def __init__(
        self,
        user: str,
        client_id: str,
        limit: float,
        window: tuple[int, int],
        throttle_max_ms: int | None = None,
    ) -> None:
        """`window` is the number of samples and the ms of one."""
        super().__init__(user, client_id)
        self.limit = limit
        """May be replaced at any time."""
        self.rate = Rate(*window)
        self._throttle_max_ms = throttle_max_ms

    def spend(self, value: float, now_ms: int) -> int:
        """Record `value`; returns for how many ms the client must wait."""
        self.last_used_ms = now_ms
        self.rate.record(now_ms, value)
        return self.excess_ms(now_ms)

    def give_back(self, value: float, now_ms: int) -> None:
        """The recorded value did not take effect."""
        self.rate.record(now_ms, -value)

    def excess_ms(self, now_ms: int) -> int:
        """For how many ms the client must wait as things are."""
        wait_ms = self.rate.excess_ms(self.limit, now_ms)
        return wait_ms if self._throttle_max_ms is None else min(wait_ms, self._throttle_max_ms)


class MutationSensor(Sensor):
    """Partitions created and deleted (KIP-599)."""

    __slots__ = ("bucket", "rate", "was_used")

    def __init__(
        self, user: str, client_id: str, limit: float, window: tuple[int, int], now_ms: int
    ) -> None:
        super().__init__(user, client_id)
        samples, sample_ms = window
        self.bucket = TokenBucket(limit, samples * sample_ms / 1000, now_ms)
        self.rate = Rate(THROTTLE_SAMPLES, THROTTLE_SAMPLE_MS)
        self.was_used = False
        """True if topics were changed here: brokers leave that to the controller."""

    def set_limit(self, limit: float, now_ms: int) -> None:
        """Measure against another limit from now on."""
        self.bucket.set_rate(limit, now_ms)

    def take(self, count: int, now_ms: int) -> None:
        """Take as many tokens, whether they are there or not."""
        self.last_used_ms = now_ms
        self.was_used = True
        self.rate.record(now_ms, count)
        self.bucket.take(count, now_ms)

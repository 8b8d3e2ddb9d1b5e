"""Rates over sampled windows, as Kafka's quotas measure them. Source: Kafka's Rate, SampledStat."""

from collections import deque


class _Sample:
    __slots__ = ("events", "last_ms", "start_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_ms = now_ms
        self.events = 0
        self.total = 0.0


class Rate:
    """Sums over the last `samples_max` samples of `sample_ms` each. Time is an argument.

    All samples but one count as elapsed from the start, so a new client may use their whole quota
    at once.
    """

    __slots__ = ("_sample_ms", "_samples", "_samples_max")

    def __init__(self, samples_max: int, sample_ms: int) -> None:
        self._samples_max = samples_max
        self._sample_ms = sample_ms
        # One more, which may have begun before the span that is measured and reach into it.
        self._samples: deque[_Sample] = deque(maxlen=samples_max + 1)

    def record(self, now_ms: int, value: float = 1) -> None:
        """It has happened once more, or `value` more of it; a negative one takes back."""
        if not self._samples or now_ms - self._samples[-1].start_ms >= self._sample_ms:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[-1]
        sample.events += 1
        sample.total += value
        sample.last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        """The rate at present."""
        span_ms = self._span_ms(now_ms)
        return self._total() * 1000 / span_ms if span_ms else 0.0

    def average(self, now_ms: int) -> float:
        """The mean of the values that were recorded; 0 without any."""
        self._forget(now_ms)
        events = sum(sample.events for sample in self._samples)
        return self._total() / events if events else 0.0

    def excess_ms(self, limit_per_s: float, now_ms: int) -> int:
        """The time without events after which the rate is `limit_per_s` again; 0 if it is not above
        it.

        With a rate of O in a span of W, this is the X for which O * W / (W + X) is the limit.
        The limit is above 0.
        """
        span_ms = self._span_ms(now_ms)
        if not span_ms:
            return 0
        rate = self._total() * 1000 / span_ms
        if rate <= limit_per_s:
            return 0
        return int((rate - limit_per_s) / limit_per_s * span_ms + 0.5)

    def throttle_ms(self, limit_per_s: int, now_ms: int) -> int:
        """As `excess_ms`, but at most one sample's length, as for connections in Kafka."""
        if not limit_per_s:
            return self._sample_ms if self.per_second(now_ms) > 0 else 0
        return min(self.excess_ms(limit_per_s, now_ms), self._sample_ms)

    def _forget(self, now_ms: int) -> None:
        samples = self._samples
        span_ms = self._samples_max * self._sample_ms
        while samples and now_ms - samples[0].last_ms >= span_ms:
            samples.popleft()

    def _span_ms(self, now_ms: int) -> int:
        """The time over which the rate is measured; 0 if nothing was recorded."""
        self._forget(now_ms)
        if not self._samples:
            return 0
        elapsed_ms = now_ms - self._samples[0].start_ms
        missing = self._samples_max - 1 - elapsed_ms // self._sample_ms
        return max(1, elapsed_ms + max(0, missing) * self._sample_ms)

    def _total(self) -> float:
        return sum(sample.total for sample in self._samples)


class TokenBucket:
    """Tokens that are given out faster than they come in, up to a burst. Source: KIP-599.

    Unlike a `Rate`, a large amount is made up for as soon as the tokens have come in again.
    """

    __slots__ = ("_burst_s", "_last_ms", "_per_second", "_tokens")

    def __init__(self, per_second: float, burst_s: float, now_ms: int) -> None:
        """`burst_s`: how long it takes to fill. It is full at first."""
        self._per_second = per_second
        self._burst_s = burst_s
        self._tokens = per_second * burst_s
        self._last_ms = now_ms

    def tokens(self, now_ms: int) -> float:
        """The tokens that are left; negative if more were taken than there were."""
        self._tokens += self._per_second * (now_ms - self._last_ms) / 1000
        self._tokens = min(self._tokens, self._per_second * self._burst_s)
        self._last_ms = now_ms
        return self._tokens

    def take(self, count: float, now_ms: int) -> None:
        """Take more, whether they are there or not."""
        self._tokens = self.tokens(now_ms) - count

    def wait_ms(self, now_ms: int) -> int:
        """The time until no tokens are owed."""
        owed = -self.tokens(now_ms)
        return int(owed / self._per_second * 1000 + 0.5) if owed > 0 else 0

    def set_rate(self, per_second: float, now_ms: int) -> None:
        """Have tokens come in at another rate from now on."""
        self.tokens(now_ms)
        self._per_second = per_second
        self.tokens(now_ms)

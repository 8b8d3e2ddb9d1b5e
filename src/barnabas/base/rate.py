"""Rates over sampled windows, as Kafka's quotas measure them. Source: Kafka's Rate, SampledStat."""

from collections import deque


class _Sample:
    __slots__ = ("count", "last_ms", "start_ms")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_ms = now_ms
        self.count = 0


class Rate:
    """Counts over the last `samples_max` samples of `sample_ms` each. Time is an argument.

    All samples but one count as elapsed from the start, so whoever begins may at once have what
    they grant together.
    """

    __slots__ = ("_sample_ms", "_samples", "_samples_max")

    def __init__(self, samples_max: int, sample_ms: int) -> None:
        self._samples_max = samples_max
        self._sample_ms = sample_ms
        # One more, which may have begun before the span that is measured and reach into it.
        self._samples: deque[_Sample] = deque(maxlen=samples_max + 1)

    def record(self, now_ms: int) -> None:
        """It has happened once more."""
        if not self._samples or now_ms - self._samples[-1].start_ms >= self._sample_ms:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[-1]
        sample.count += 1
        sample.last_ms = now_ms

    def throttle_ms(self, limit_per_s: int, now_ms: int) -> int:
        """How long nothing may happen, for the rate to be `limit_per_s` again; 0: it is not above.

        At most one sample's length, as for connections in Kafka.
        """
        samples = self._samples
        span_ms = self._samples_max * self._sample_ms
        while samples and now_ms - samples[0].last_ms >= span_ms:
            samples.popleft()
        if not samples:
            return 0
        elapsed_ms = now_ms - samples[0].start_ms
        missing = self._samples_max - 1 - elapsed_ms // self._sample_ms
        elapsed_ms = max(1, elapsed_ms + max(0, missing) * self._sample_ms)
        rate = sum(sample.count for sample in samples) * 1000 / elapsed_ms
        if rate <= limit_per_s:
            return 0
        if not limit_per_s:
            return self._sample_ms
        return min(round((rate - limit_per_s) / limit_per_s * elapsed_ms), self._sample_ms)

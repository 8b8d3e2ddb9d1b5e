"""Throttle: how long to wait to keep to a rate, by arithmetic alone. Source: Kafka's Throttler."""

WINDOW_S = 0.3
"""Waiting is decided upon that often; what was not used up before is not saved."""


class Throttle:
    """Bytes per second, at most. Times are seconds of any clock that does not go back."""

    __slots__ = ("_bytes", "_bytes_per_second_max", "_since_s")

    def __init__(self, bytes_per_second_max: float, now_s: float) -> None:
        self._bytes_per_second_max = bytes_per_second_max
        self._since_s = now_s
        self._bytes = 0

    def delay_s(self, size_bytes: int, now_s: float) -> float:
        """Take note of bytes read or written; how long to wait before the next."""
        self._bytes += size_bytes
        elapsed_s = now_s - self._since_s
        if self._bytes_per_second_max == float("inf"):
            return 0.0
        if elapsed_s < WINDOW_S and self._bytes < self._bytes_per_second_max * WINDOW_S:
            return 0.0
        delay_s = max(0.0, self._bytes / self._bytes_per_second_max - elapsed_s)
        self._since_s = now_s + delay_s
        self._bytes = 0
        return delay_s

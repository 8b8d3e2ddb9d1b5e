"""When the metadata log is due for a snapshot: by size or by time (KIP-630, KIP-876)."""


class SnapshotSchedule:
    """Counts what was committed since the last snapshot.

    A snapshot is due when that reaches `bytes_max`, or when anything was committed and
    `interval_ms` passed since the last one; 0 switches the latter off. Source: Kafka's
    SnapshotGenerator.
    """

    __slots__ = ("_bytes", "_bytes_max", "_interval_ms", "_last_ms")

    def __init__(
        self, *, bytes_max: int, interval_ms: int, now_ms: int, loaded_bytes: int = 0
    ) -> None:
        self._bytes_max = bytes_max
        self._interval_ms = interval_ms
        self._bytes = loaded_bytes
        self._last_ms = now_ms

    def committed(self, size_bytes: int) -> None:
        """Count committed records."""
        self._bytes += size_bytes

    def is_due(self, now_ms: int) -> bool:
        """Whether a snapshot should be written now. Times are monotonic milliseconds."""
        if self._bytes >= self._bytes_max:
            return True
        return bool(
            self._bytes and self._interval_ms and now_ms - self._last_ms >= self._interval_ms
        )

    def started(self, now_ms: int) -> None:
        """A snapshot of everything counted so far is under way."""
        self._bytes = 0
        self._last_ms = now_ms

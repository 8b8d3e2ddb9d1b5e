"""Segments of time, as first part of keys in stores: what is too old goes segment by segment.

As in Kafka Streams, entries are hidden exactly when they are past retention, and deleted with
their whole segment, later.
"""

from __future__ import annotations

from barnabas.sql.runtime.stores import Store

_SEGMENT_MIN_MS = 60_000


class Segments:
    """Spans of time: each half the retention, but at least a minute."""

    def __init__(self, retention_ms: int) -> None:
        self.retention_ms = retention_ms
        self._segment_ms = max(retention_ms // 2, _SEGMENT_MIN_MS)

    def of(self, time_ms: int) -> int:
        """The segment of a time."""
        return time_ms // self._segment_ms

    def between(self, low_ms: int, high_ms: int) -> range:
        """The segments of times from low to high, both included."""
        return range(self.of(low_ms), self.of(high_ms) + 1)

    def horizon(self, latest_ms: int) -> int:
        """The first time that is still kept when `latest_ms` is the latest."""
        return latest_ms - self.retention_ms + 1

    def is_live(self, time_ms: int, latest_ms: int) -> bool:
        """Return whether the segment of a time is still kept."""
        return self.of(time_ms) >= self.of(latest_ms - self.retention_ms)

    def expire(self, store: Store, latest_ms: int, expired_until: int) -> int:
        """Delete segments from `expired_until` on that are past retention; the first kept one."""
        live = self.of(max(0, latest_ms - self.retention_ms))
        if live > expired_until:
            for place, _ in store.range((expired_until,), (live,)):
                store.put(place, None)
        return max(live, expired_until)

    def expire_times(self, store: Store, latest_ms: int) -> None:
        """Delete from a store whose keys begin with a time what lies in expired segments."""
        live_ms = self.of(max(0, latest_ms - self.retention_ms)) * self._segment_ms
        for place, _ in store.range((0,), (live_ms,)):
            store.put(place, None)

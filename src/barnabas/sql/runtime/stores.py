"""Where steps keep their state: sorted keys to values, of one partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class Store(Protocol):
    """A sorted map of one step in one partition.

    Keys are tuples of plain values, which the host encodes so that their order stays. Values are
    what can be encoded: None, bool, int, float, str, bytes, Decimal, and lists, tuples and dicts
    of them. Nobody changes a value after it was put.
    """

    def get(self, key: tuple[Any, ...]) -> Any:
        """The value, or None."""
        ...

    def get_all(self, keys: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The values of many keys with equally many parts; None for a key without a value."""
        ...

    def put(self, key: tuple[Any, ...], value: Any) -> None:
        """Set the value; None deletes."""
        ...

    def put_all(self, keys: Sequence[tuple[Any, ...]], values: Sequence[Any]) -> None:
        """The same of many keys, no two of them equal, with equally many parts."""
        ...

    def range(
        self, low: tuple[Any, ...], high: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Entries with low <= key < high, ascending, as they were when the call began."""
        ...

    def numbered(
        self,
        head: tuple[Any, ...],
        keys: Sequence[tuple[Any, ...]],
        lows: Sequence[int],
        highs: Sequence[int],
    ) -> list[list[tuple[int, int, Any]]]:
        """For each key, of entries at (*head, *key, number, other number) both and the value, for
        numbers from the key's low to its high, both included. Keys have equally many parts."""
        ...


# -- segments of time, as first part of keys in stores: what is too old goes segment by segment
#
# As in Kafka Streams, entries are hidden exactly when they are past retention, and deleted with
# their whole segment, later.


_SEGMENT_MIN_MS = 60_000


class Segments:
    """Spans of time: each half the retention, but at least a minute."""

    def __init__(self, retention_ms: int) -> None:
        self.retention_ms = retention_ms
        self.span_ms = max(retention_ms // 2, _SEGMENT_MIN_MS)

    def of(self, time_ms: int) -> int:
        """The segment of a time."""
        return time_ms // self.span_ms

    def between(self, low_ms: int, high_ms: int) -> range:
        """The segments of times from low to high, both included."""
        return range(self.of(low_ms), self.of(high_ms) + 1)

    def horizon(self, latest_ms: int) -> int:
        """The first time that is still kept when `latest_ms` is the latest."""
        return latest_ms - self.retention_ms + 1

    def live_from(self, latest_ms: int) -> int:
        """The first time whose segment is still kept."""
        return self.of(latest_ms - self.retention_ms) * self.span_ms

    def is_live(self, time_ms: int, latest_ms: int) -> bool:
        """Return whether the segment of a time is still kept."""
        return time_ms >= self.live_from(latest_ms)

    def expire(self, store: Store, latest_ms: int, expired_until: int) -> int:
        """Delete segments from `expired_until` on that are past retention; the first kept one."""
        live = self.of(max(0, latest_ms - self.retention_ms))
        if live > expired_until:
            for place, _ in store.range((expired_until,), (live,)):
                store.put(place, None)
        return max(live, expired_until)

    def expire_times(self, store: Store, latest_ms: int) -> None:
        """Delete from a store whose keys begin with a time what lies in expired segments."""
        live_ms = max(0, self.live_from(latest_ms))
        for place, _ in store.range((0,), (live_ms,)):
            store.put(place, None)

"""Timers as data: keys and deadlines, without a clock.

A heartbeat moves a deadline further away thousands of times for each time it is reached, so
moving one later is a dictionary write: the heap keeps the earlier entry, which is put back when
it comes up before its time.
"""

import heapq
from typing import Generic, TypeVar

K = TypeVar("K")


class TimerQueue(Generic[K]):
    """Deadlines by key; a key has one timer at most. Keys must be hashable."""

    __slots__ = ("_deadlines", "_heap", "_next_entry", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[K, int] = {}
        self._queued: dict[K, int] = {}
        """Key to the number of its one valid heap entry."""
        self._heap: list[tuple[int, int, K]] = []
        self._next_entry = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: K) -> bool:
        return key in self._deadlines

    def deadline_ms(self, key: K) -> int | None:
        """Return when `key` is due; None if it has no timer."""
        return self._deadlines.get(key)

    def schedule(self, key: K, deadline_ms: int) -> None:
        """Set or move the timer of `key`."""
        previous = self._deadlines.get(key)
        self._deadlines[key] = deadline_ms
        if previous is None or deadline_ms < previous:
            self._push(key, deadline_ms)

    def cancel(self, key: K) -> None:
        """Forget the timer of `key`; harmless when it has none."""
        if self._deadlines.pop(key, None) is not None:
            del self._queued[key]
            if len(self._heap) > 64 and len(self._heap) > 4 * len(self._deadlines):
                self._rebuild()

    def next_deadline_ms(self) -> int | None:
        """A time before which nothing is due; it may be earlier than the first deadline."""
        while self._heap:
            deadline_ms, entry, key = self._heap[0]
            if self._queued.get(key) == entry:
                return deadline_ms
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now_ms: int) -> K | None:
        """Remove and return the key that is due first; None when none is due at `now_ms`."""
        while self._heap and self._heap[0][0] <= now_ms:
            _, entry, key = heapq.heappop(self._heap)
            if self._queued.get(key) != entry:
                continue
            deadline_ms = self._deadlines[key]
            if deadline_ms > now_ms:
                self._push(key, deadline_ms)
                continue
            del self._deadlines[key]
            del self._queued[key]
            return key
        return None

    def _push(self, key: K, deadline_ms: int) -> None:
        self._next_entry += 1
        self._queued[key] = self._next_entry
        heapq.heappush(self._heap, (deadline_ms, self._next_entry, key))

    def _rebuild(self) -> None:
        """Drop what cancelling left behind."""
        self._heap = [(self._deadlines[key], entry, key) for key, entry in self._queued.items()]
        heapq.heapify(self._heap)

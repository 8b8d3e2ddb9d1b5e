"""Aggregates of tumbling and hopping windows.

A window takes records until the stream time (the latest timestamp that this node has seen in its
partition) is past its end plus the grace period. It is stored as (start, *key) -> [timestamp,
state], so that windows which end together lie together: those older than the retention period are
deleted as a range, and EMIT FINAL reads those that close as a range.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from barnabas.java.time.units import DAY_MS
from barnabas.sql.runtime.aggregates import AggregateNode, Aggregation
from barnabas.sql.runtime.evaluation import Log
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.syntax.tree import Window

Headers = tuple[tuple[str, bytes | None], ...]

NEVER = -1
"""No timestamp seen yet."""


def grace_of(window: Window) -> int:
    """The grace period of a window, in ms: without a GRACE clause a day less the window's size."""
    return max(DAY_MS - window.size_ms, 0) if window.grace_ms is None else window.grace_ms


def retention_of(window: Window) -> int:
    """Return how long a window is kept after its start (a session: after its end), in ms."""
    return max(window.retention_ms or 0, window.size_ms + grace_of(window))


class WindowedAggregateNode(AggregateNode):
    """The aggregates of each tumbling or hopping window of each key."""

    saved = ("stream_time", "latest_start", "emitted_until", "expired_until")

    stream_time = NEVER
    """The latest timestamp of a record."""
    latest_start = NEVER
    """The latest start of a window in the store: its stream time, from which retention counts."""
    emitted_until = NEVER
    """EMIT FINAL: the close time up to which windows were emitted."""
    expired_until = 0
    """Windows that start before this were deleted."""

    is_final = False
    """EMIT FINAL: each window once, when it closes."""

    def __init__(self, name: str, aggregation: Aggregation, window: Window, log: Log) -> None:
        super().__init__(name, aggregation)
        self.size_ms = window.size_ms
        self.advance_ms = window.advance_ms
        self.grace_ms = grace_of(window)
        self._retention_ms = retention_of(window)
        self.log = log

    def process(self, record: Record) -> None:
        key, row = record.key, record.value
        if key is None or row is None:
            return
        timestamp_ms = record.timestamp_ms
        self.stream_time = max(self.stream_time, timestamp_ms)
        close_ms = self.stream_time - self.grace_ms
        for start_ms in self._starts(timestamp_ms):
            window = WindowBounds(start_ms, start_ms + self.size_ms)
            if window.end_ms > close_ms:
                self._add(record, key, row, window)
            else:
                self.log(f"Skipping record for expired window {window}", row, None)
        self.expire()
        if self.is_final:
            self._emit_closed(record, close_ms)

    def _starts(self, timestamp_ms: int) -> range:
        first = max(0, timestamp_ms - self.size_ms + self.advance_ms) // self.advance_ms
        return range(first * self.advance_ms, timestamp_ms + 1, self.advance_ms)

    def _add(self, record: Record, key: Row, row: Row, window: WindowBounds) -> None:
        assert self.store is not None
        place = (window.start_ms, *key)
        stored = self.store.get(place)
        timestamp_ms = max(record.timestamp_ms, stored[0]) if stored else record.timestamp_ms
        old = stored[1] if stored else self.aggregation.initial()
        state = self.aggregation.add(old, row)
        self.store.put(place, [timestamp_ms, state])
        self.latest_start = max(self.latest_start, window.start_ms)
        if not self.is_final:
            self.send(record, window, old, state, timestamp_ms)

    def expire(self) -> None:
        """Delete what is past retention; by whole advances, as windows start at no other time."""
        horizon = self.latest_start - self._retention_ms
        if horizon >= self.expired_until + self.advance_ms:
            assert self.store is not None
            for place, _ in self.store.range((self.expired_until,), (horizon,)):
                self.store.put(place, None)
            self.expired_until = horizon

    def _emit_closed(self, record: Record, close_ms: int) -> None:
        """Emit windows that the record closed, by start and key.

        A window whose start is more than the retention period before the latest one is lost, as
        in ksqlDB, whose store no longer shows it: a gap in the stream longer than the grace
        period swallows the windows before it, unless RETENTION is long enough.
        """
        if self.emitted_until >= close_ms:
            return
        last = close_ms - self.size_ms
        if last < 0:
            return
        first = 0 if self.emitted_until == NEVER else max(0, self.emitted_until - self.size_ms) + 1
        first = max(first, self.latest_start - self._retention_ms)
        assert self.store is not None
        if first <= last:
            for place, (timestamp_ms, state) in self.store.range((first,), (last + 1,)):
                window = WindowBounds(place[0], place[0] + self.size_ms)
                closed = Record(list(place[1:]), None, 0, None, record.headers)
                self.send(closed, window, None, state, timestamp_ms)
        self.emitted_until = close_ms

    def emit_closed(
        self,
        closed_until: Sequence[int],
        latest_starts: Sequence[int],
        headers: Callable[[int], Headers],
    ) -> None:
        """Emit windows that records of a batch closed, after all of them were added: the same as
        after each one, as no record comes into a closed window.

        `closed_until`: after each record, the end of the latest windows that are closed;
        `latest_starts`: the latest start of a window then; `headers`: of a record by its number.
        """
        until_ms = closed_until[-1]
        last = until_ms - self.size_ms
        if self.emitted_until >= until_ms or last < 0:
            return
        first = 0 if self.emitted_until == NEVER else max(0, self.emitted_until - self.size_ms) + 1
        assert self.store is not None
        for place, (timestamp_ms, state) in self.store.range((first,), (last + 1,)):
            window = WindowBounds(place[0], place[0] + self.size_ms)
            number = bisect_left(closed_until, window.end_ms)
            if window.start_ms >= latest_starts[number] - self._retention_ms:
                closed = Record(list(place[1:]), None, 0, None, headers(number))
                self.send(closed, window, None, state, timestamp_ms)
        self.emitted_until = until_ms

    def get(self, key: StoreKey) -> tuple[Row, int] | None:
        """`key` ends with the window's start and end."""
        assert self.store is not None
        *plain, start_ms, end_ms = key
        if start_ms < self.latest_start - self._retention_ms + 1:
            return None
        stored = self.store.get((start_ms, *plain))
        if not stored:
            return None
        window = WindowBounds(start_ms, end_ms)
        return self.aggregation.result(stored[1], plain, window), stored[0]

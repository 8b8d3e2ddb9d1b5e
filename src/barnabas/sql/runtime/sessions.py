"""Aggregates of session windows: records of one key that follow each other within a gap.

A record that falls between sessions merges them: the old ones are deleted downstream (a tombstone
with their bounds), the merged one takes their place. A session is stored as (segment of its end,
*key, end, start) -> state: a key's sessions are found by a range in each segment, and what is past
retention goes segment by segment. With EMIT FINAL a second store has (end, *key, start), in the
order in which sessions close.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from barnabas.sql.runtime.aggregates import AggregateNode, Aggregation, StateRow
from barnabas.sql.runtime.evaluation import Log
from barnabas.sql.runtime.node import OpenStore, StoreKey
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.stores import Segments, Store
from barnabas.sql.runtime.windows import NEVER, Headers, grace_of, retention_of
from barnabas.sql.syntax.tree import Window


class SessionAggregateNode(AggregateNode):
    """The aggregates of each session of each key."""

    saved = ("stream_time", "latest_end", "emitted_until", "expired_until")

    stream_time = NEVER
    latest_end = NEVER
    """The latest end of a session in the store: its stream time, from which retention counts."""
    emitted_until = NEVER
    expired_until = 0
    """Segments before this were deleted."""

    is_final = False

    def __init__(self, name: str, aggregation: Aggregation, window: Window, log: Log) -> None:
        super().__init__(name, aggregation)
        self.gap_ms = window.size_ms
        self.close_after_ms = window.size_ms + grace_of(window)
        self.segments = Segments(retention_of(window))
        self._log = log
        self._by_end: Store | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return (*super().stores, *((f"{self.name}-ends",) if self.is_final else ()))

    def bind(self, open_store: OpenStore) -> None:
        super().bind(open_store)
        self._by_end = open_store(f"{self.name}-ends") if self.is_final else None

    def process(self, record: Record) -> None:
        key, row = record.key, record.value
        if key is None or row is None:
            return
        self.stream_time = max(self.stream_time, record.timestamp_ms)
        close_ms = self.stream_time - self.close_after_ms
        self._add(record, key, row, close_ms)
        if self.is_final:
            self._emit_closed(record, close_ms)

    def _add(self, record: Record, key: Row, row: Row, close_ms: int) -> None:
        start_ms = end_ms = record.timestamp_ms
        state = self.aggregation.initial()
        merged = list(self._near(key, record.timestamp_ms))
        for window, found in merged:
            state = self.aggregation.merge(state, found)
            start_ms, end_ms = min(start_ms, window.start_ms), max(end_ms, window.end_ms)
        window = WindowBounds(start_ms, end_ms)
        if end_ms < close_ms:
            self.note_late(window, row)
            return
        if start_ms != end_ms:
            for old_window, old in merged:
                self._put(key, old_window, None)
                if not self.is_final:
                    self.send(record, old_window, old, None, old_window.end_ms)
        state = self.aggregation.add(state, row)
        self._put(key, window, state)
        if not self.is_final:
            self.send(record, window, None, state, end_ms)

    def note_late(self, window: WindowBounds, row: Row) -> None:
        """Note that a record's session is closed."""
        self._log(f"Skipping record for expired session {window}", row, None)

    def _near(self, key: Row, timestamp_ms: int) -> Iterator[tuple[WindowBounds, StateRow]]:
        """A key's sessions that are no further than the gap from a time, in their order."""
        for window, state in self._ending_from(key, timestamp_ms - self.gap_ms):
            if window.start_ms > timestamp_ms + self.gap_ms:
                return
            yield window, state

    def _ending_from(self, key: Row, from_ms: int) -> Iterator[tuple[WindowBounds, StateRow]]:
        assert self.store is not None
        low = max(0, from_ms, self.segments.horizon(self.latest_end))
        for segment in self.segments.between(low, self.latest_end):
            place = (segment, *key)
            for found, state in self.store.range((*place, low), (*place, self.latest_end + 1)):
                end_ms, start_ms = found[-2:]
                yield WindowBounds(start_ms, end_ms), state

    def ending_from(self, key: Row, from_ms: int) -> list[tuple[WindowBounds, StateRow]]:
        """A key's sessions that end at a time or later, by their ends."""
        return list(self._ending_from(key, from_ms))

    def place(self, key: Row, window: WindowBounds) -> StoreKey:
        """The key of a session in the store."""
        return self.segments.of(window.end_ms), *key, window.end_ms, window.start_ms

    def put_all(
        self, places: Sequence[StoreKey], states: Sequence[StateRow | None], latest_ms: int
    ) -> None:
        """Put the sessions that a batch has changed, at different places; None deletes one. Then
        `expire` must be called. `latest_ms`: the latest time of the batch's records."""
        assert self.store is not None
        self.store.put_all(places, states)
        if self._by_end is not None:
            by_end = [(end_ms, *key, start_ms) for _, *key, end_ms, start_ms in places]
            self._by_end.put_all(by_end, [None if state is None else True for state in states])
        self.stream_time = max(self.stream_time, latest_ms)

    def emit_closed(
        self,
        closed_until: Sequence[int],
        headers: Callable[[int], Headers],
    ) -> None:
        """Emit sessions that records of a batch closed, after all of them were added: the same as
        after each one, if no record extends a session that another one has closed.

        `closed_until`: after each record, the time before which sessions are closed; `headers`: of
        a record by its number.
        """
        until_ms = closed_until[-1]
        if self.emitted_until >= until_ms or until_ms < 1:
            return
        assert self.store is not None
        assert self._by_end is not None
        ends = [
            place for place, _ in self._by_end.range((max(0, self.emitted_until),), (until_ms,))
        ]
        windows = [WindowBounds(start_ms, end_ms) for end_ms, *_, start_ms in ends]
        keys = [list(key) for _, *key, _ in ends]
        states = self.store.get_all(list(map(self.place, keys, windows)))
        for key, window, state in zip(keys, windows, states, strict=True):
            number = bisect_right(closed_until, window.end_ms)
            latest_ms = closed_until[number] + self.close_after_ms
            if state is not None and self.segments.is_live(window.end_ms, latest_ms):
                closed = Record(key, None, 0, None, headers(number))
                self.send(closed, window, None, state, window.end_ms)
        self.emitted_until = until_ms

    def expire(self, latest_ms: int) -> None:
        """Delete what is past retention after a batch whose latest record was then."""
        self._pass(latest_ms)

    def _pass(self, end_ms: int) -> None:
        """Delete what is past retention when a session ends then."""
        if end_ms <= self.latest_end:
            return
        assert self.store is not None
        self.latest_end = end_ms
        self.expired_until = self.segments.expire(self.store, end_ms, self.expired_until)
        if self._by_end is not None:
            self.segments.expire_times(self._by_end, end_ms)

    def _put(self, key: Row, window: WindowBounds, state: StateRow | None) -> None:
        assert self.store is not None
        start_ms, end_ms = window
        self.store.put(self.place(key, window), state)
        if self._by_end is not None:
            self._by_end.put((end_ms, *key, start_ms), None if state is None else True)
        self._pass(end_ms)

    def _emit_closed(self, record: Record, close_ms: int) -> None:
        """Emit sessions that the record closed, by end and key."""
        if self.emitted_until >= close_ms or close_ms < 1:
            return
        assert self.store is not None
        assert self._by_end is not None
        for place, _ in self._by_end.range((max(0, self.emitted_until),), (close_ms,)):
            end_ms, *key, start_ms = place
            state = self.store.get((self.segments.of(end_ms), *key, end_ms, start_ms))
            if state is not None:
                closed = Record(key, None, 0, None, record.headers)
                self.send(closed, WindowBounds(start_ms, end_ms), None, state, end_ms)
        self.emitted_until = close_ms

    def get(self, key: StoreKey) -> tuple[Row, int] | None:
        """`key` ends with the session's start and end."""
        assert self.store is not None
        *plain, start_ms, end_ms = key
        state = self.store.get((self.segments.of(end_ms), *plain, end_ms, start_ms))
        if state is None:
            return None
        return self.aggregation.result(state, plain, WindowBounds(start_ms, end_ms)), end_ms

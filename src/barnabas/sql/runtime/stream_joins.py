"""Joins of two streams: records of one key whose timestamps are near each other.

Each side keeps its records in a store: (segment, *key, timestamp, number) -> row, or several of a
key as one entry (`bundles.py`). A record meets those of the other side from `before` before it to
`after` after it (for the right side the other way round), in the order of their timestamps.

A record of an outer side that meets none is joined to nulls. Without a GRACE clause that is done
at once, even if a partner comes later (ksqlDB's way of old). With one, it waits in a third store,
(timestamp, is left, *key, number) -> row, until the stream time is past its window and the grace
period; a partner that comes earlier takes it out. The stream time is that of both sides together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from barnabas.java.time.units import DAY_MS
from barnabas.sql.runtime.bundles import entries_of
from barnabas.sql.runtime.layout import Joiner
from barnabas.sql.runtime.node import (
    Node,
    OpenStore,
    StoreKey,
    TableNode,
    store_key,
    time_window_key,
)
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.stores import Segments, Store
from barnabas.sql.runtime.windows import NEVER
from barnabas.sql.syntax.tree import Within

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class Side:
    """The search of one side's records for those of the other."""

    before_ms: int
    after_ms: int
    is_outer: bool


class StreamStreamJoinNode(Node):
    """Both sides' processors: `process_left` and `process_right` take the records.

    `joiner` always gets the plan's left row first. `is_outer` tells for each side whether its
    records go on without a partner.
    """

    saved = (
        "stream_time",
        "latest_left",
        "latest_right",
        "expired_left",
        "expired_right",
        "count",
        "waiting_since",
    )

    stream_time = NEVER
    latest_left = NEVER
    latest_right = NEVER
    expired_left = 0
    expired_right = 0
    count = 0
    """Numbers records, so that those of one key and timestamp stay apart."""
    waiting_since: int | None = None
    """No waiting record has an earlier timestamp; None: none waits."""

    def __init__(
        self,
        name: str,
        within: Within,
        joiner: Joiner,
        is_outer: tuple[bool, bool],
        *,
        has_sessions: bool,
    ) -> None:
        super().__init__(name)
        self._joiner = joiner
        self._key = store_key if has_sessions else time_window_key
        before, after = within.before_ms, within.after_ms
        self.sides = (Side(before, after, is_outer[LEFT]), Side(after, before, is_outer[RIGHT]))
        self.waits = within.grace_ms is not None and any(is_outer)
        """True if records of an outer side wait for a partner."""
        # Kafka Streams takes twice the figure before for the window's size here.
        default_grace = max(DAY_MS - 2 * before, 0)
        self.grace_ms = default_grace if within.grace_ms is None else within.grace_ms
        self.segments = Segments(before + after + self.grace_ms)
        self.bundle_ms = max(before + after, 1)
        """The span of bundles: as long as what a record meets."""
        self._stores: tuple[Store, Store] | None = None
        self._waiting: Store | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        names = (f"{self.name}-left", f"{self.name}-right")
        return (*super().stores, *names, *((f"{self.name}-waiting",) if self.waits else ()))

    def bind(self, open_store: OpenStore) -> None:
        super().bind(open_store)
        self._stores = (open_store(f"{self.name}-left"), open_store(f"{self.name}-right"))
        self._waiting = open_store(f"{self.name}-waiting") if self.waits else None

    def process_left(self, record: Record) -> None:
        self._process(record, LEFT)

    def process_right(self, record: Record) -> None:
        self._process(record, RIGHT)

    def process(self, record: Record) -> None:
        raise AssertionError("a join takes records of its left or right side")

    def _process(self, record: Record, side: int) -> None:
        timestamp_ms, row = record.timestamp_ms, record.value
        self.stream_time = max(self.stream_time, timestamp_ms)
        if row is None:
            return
        if record.key is None:
            if self.sides[side].is_outer:
                self._send(record, None, side, row, None, timestamp_ms)
            return
        key = self._key(record.key, record.window)
        if timestamp_ms == self.stream_time:
            self._emit_waiting(record, side)
        self._meet(record, key, side, row)
        self._keep(key, side, timestamp_ms, row)

    def _meet(self, record: Record, key: StoreKey, side: int, row: Row) -> None:
        mine = self.sides[side]
        timestamp_ms = record.timestamp_ms
        until_ms = max(0, timestamp_ms + mine.after_ms)
        has_met = False
        for other_ms, other in self._others(
            key, side, max(0, timestamp_ms - mine.before_ms), until_ms
        ):
            has_met = True
            if self._waiting is not None:
                self._stop_waiting(key, 1 - side, other_ms)
            self._send(record, record.key, side, row, other, max(timestamp_ms, other_ms))
        if has_met or not mine.is_outer:
            return
        if self._waiting is None or until_ms < self.stream_time:
            self._send(record, record.key, side, row, None, timestamp_ms)
            return
        since = self.waiting_since
        self.waiting_since = timestamp_ms if since is None else min(since, timestamp_ms)
        waiting = [row, record.key, record.window and tuple(record.window)]
        self._waiting.put(waiting_place(side, key, timestamp_ms, self.count + 1), waiting)

    def _others(
        self, key: StoreKey, side: int, from_ms: int, until_ms: int
    ) -> Iterator[tuple[int, Row]]:
        """Records of the other side, by timestamp."""
        from_ms = max(from_ms, self.segments.horizon(self.latest(1 - side)))
        for other_ms, _, row in self.kept(key, 1 - side, from_ms, until_ms):
            yield other_ms, row

    def latest(self, side: int) -> int:
        """The latest timestamp of a side's records that have a key and a row."""
        return self.latest_left if side == LEFT else self.latest_right

    def kept(
        self, key: StoreKey, side: int, from_ms: int, until_ms: int
    ) -> list[tuple[int, int, Row]]:
        """Timestamp, number and row of a side's records in its store, in their order."""
        assert self._stores is not None
        if from_ms > until_ms:
            return []
        store, latest = self._stores[side], max(self.latest(side), 0)
        found: list[tuple[int, int, Row]] = []
        for segment in self.segments.between(from_ms, min(until_ms, latest)):
            place = (segment, *key)
            low, high = (*place, from_ms), (*place, self.bundle_end(until_ms) + 1)
            for at, value in store.range(low, high):
                found += entries_of(at[-2], at[-1], value)
        met = [entry for entry in found if from_ms <= entry[0] <= until_ms]
        return sorted(met, key=itemgetter(0, 1))

    def kept_of(
        self, keys: Sequence[StoreKey], side: int, lows: Sequence[int], highs: Sequence[int]
    ) -> list[list[tuple[int, int, Any]]]:
        """The same of different keys, for timestamps from each key's low to its high, as entries of
        the store: rows and bundles, with some records beyond, in any order."""
        assert self._stores is not None
        found: list[list[tuple[int, int, Any]]] = [[] for _ in keys]
        if not keys:
            return found
        ends = list(map(self.bundle_end, highs))
        until_ms = min(max(highs), max(self.latest(side), 0))
        for segment in self.segments.between(min(lows), until_ms):
            of_segment = self._stores[side].numbered((segment,), keys, lows, ends)
            for entries, more in zip(found, of_segment, strict=True):
                entries += more
        return found

    def bundle_end(self, time_ms: int) -> int:
        """The latest timestamp that a bundle may have which has this one."""
        return time_ms - time_ms % self.bundle_ms + self.bundle_ms - 1

    def _keep(self, key: StoreKey, side: int, timestamp_ms: int, row: Row) -> None:
        assert self._stores is not None
        self.count += 1
        latest = self.pass_time(side, timestamp_ms)
        if self.segments.is_live(timestamp_ms, latest):
            place = (self.segments.of(timestamp_ms), *key, timestamp_ms, self.count)
            self._stores[side].put(place, row)

    def keep_all(self, side: int, places: Sequence[StoreKey], entries: Sequence[Any]) -> None:
        """Put rows and bundles of a side's records into its store."""
        assert self._stores is not None
        self._stores[side].put_all(places, entries)

    def pass_time(self, side: int, timestamp_ms: int) -> int:
        """Delete what is past retention when a side has a record then; its latest timestamp."""
        assert self._stores is not None
        store, latest = self._stores[side], max(self.latest(side), timestamp_ms)
        if side == LEFT:
            self.latest_left = latest
            self.expired_left = self.segments.expire(store, latest, self.expired_left)
        else:
            self.latest_right = latest
            self.expired_right = self.segments.expire(store, latest, self.expired_right)
        return latest

    def _stop_waiting(self, key: StoreKey, side: int, timestamp_ms: int) -> None:
        """Records of that key, side and timestamp have met one."""
        assert self._waiting is not None
        place = (timestamp_ms, side == LEFT, *key)
        for found, _ in self._waiting.range((*place, 0), (*place, self.count + 1)):
            self._waiting.put(found, None)

    def waiting_before(self, until_ms: int) -> Iterator[tuple[StoreKey, list[Any]]]:
        """Records that wait, before a time: their places, and each as [row, key, window]."""
        assert self._waiting is not None
        return self._waiting.range((0,), (until_ms,))

    def put_waiting(self, places: Sequence[StoreKey], waiting: Sequence[list[Any] | None]) -> None:
        """Put records that wait, at different places; None: it waits no more."""
        assert self._waiting is not None
        self._waiting.put_all(places, waiting)

    def _emit_waiting(self, record: Record, side: int) -> None:
        """Join to nulls what has waited long enough, the oldest first."""
        since = self.waiting_since
        if since is None or self._waiting is None:
            return
        closed_ms = self.stream_time - self.grace_ms
        if since + self.sides[side].after_ms >= closed_ms:
            return
        is_open = [False, False]
        self.waiting_since = None
        for place, (row, key, window) in self.waiting_before(closed_ms):
            timestamp_ms, of = place[0], LEFT if place[1] else RIGHT
            if timestamp_ms + self.sides[of].after_ms >= closed_ms:
                self._note_waiting(timestamp_ms)
                is_open[of] = True
                if all(is_open):
                    break
                continue
            self._waiting.put(place, None)
            bounds = WindowBounds(*window) if window else None
            waited = Record(key, None, timestamp_ms, bounds, record.headers)
            self._send(waited, key, of, row, None, timestamp_ms)
        self._note_waiting(closed_ms)

    def _note_waiting(self, timestamp_ms: int) -> None:
        if self.waiting_since is None:
            self.waiting_since = timestamp_ms

    def _send(
        self,
        record: Record,
        key: Row | None,
        side: int,
        row: Row,
        other: Row | None,
        timestamp_ms: int,
    ) -> None:
        joined = self._joiner(row, other, key) if side == LEFT else self._joiner(other, row, key)
        self.forward(
            Record(
                key,
                joined,
                timestamp_ms,
                record.window,
                record.headers,
                record.partition,
                record.offset,
            )
        )


def waiting_place(side: int, key: StoreKey, timestamp_ms: int, number: int) -> StoreKey:
    """Return the place of a record that waits; it will have this number in its side's store."""
    return (timestamp_ms, side == LEFT, *key, number - 1)


class StreamTableJoinNode(Node):
    """Joins each record of a stream to the row that the table has for its key now.

    Changes of the table emit nothing. A record without a value is dropped; one without a key goes
    on alone if the join is a left one.
    """

    def __init__(
        self,
        table: TableNode,
        joiner: Joiner,
        *,
        is_left: bool,
    ) -> None:
        super().__init__()
        self.table = table
        self._get = table.get
        self._joiner = joiner
        self._is_left = is_left

    def process(self, record: Record) -> None:
        key, row = record.key, record.value
        if row is None:
            return
        table_row = None if key is None else self._get(store_key(key, record.window))
        if table_row is None and not self._is_left:
            return
        record.value = self._joiner(row, table_row[0] if table_row else None, key)
        self.forward(record)

"""Joins the records of a batch: makes a frame of the joined rows, then changes the join's state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.stream_joins.meeting import (
    KEPT,
    Arrivals,
    Batch,
    Span,
    meetings,
    spans_of,
    spans_of_keys,
)
from barnabas.sql.columns.stream_joins.waiting import NEVER_MET, Lone, Looks, Waited, wait
from barnabas.sql.columns.vectors import Indexes, Mask, Vector, concatenated, vector_of
from barnabas.sql.runtime.bundles import BUNDLE_RECORDS_MAX, Bundle, bundle_of, bundled
from barnabas.sql.runtime.forms import JoinForm
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.stream_joins import LEFT, RIGHT, StreamStreamJoinNode, waiting_place
from barnabas.sql.runtime.windows import NEVER
from barnabas.sql.types import Value

NO_ROW = -1
"""Stands for the row of a side that has none."""


class _Kept:
    """Records of one side from before the batch. Their numbers go on behind those of the batch."""

    def __init__(self, behind: int, width: int) -> None:
        """`width`: the number of their rows' columns."""
        self._behind = behind
        self.times: list[int] = []
        self.numbers: list[int] = []
        self.keys: list[StoreKey] = []
        self.columns: list[list[Value]] = [[] for _ in range(width)]

    def add(self, key: StoreKey, bundle: Bundle) -> int:
        """The number of the first of a bundle."""
        first = self._behind + len(self.times)
        self.times += bundle.times_ms
        self.numbers += bundle.numbers
        self.keys += [key] * len(bundle.times_ms)
        for column, more in zip(self.columns, bundle.columns, strict=True):
            column += more
        return first

    def listed(self, numbers: Sequence[int]) -> list[list[Value]]:
        """The columns of certain of them, then their keys' first part."""
        return [
            *([column[number] for number in numbers] for column in self.columns),
            [self.keys[number][0] for number in numbers],
        ]


class _Joined(NamedTuple):
    """Joined rows: the places of the records that they follow from, the rows of both sides, and
    timestamps. `waited`: their records have waited, and go before others of the same place."""

    places: Indexes
    waited: Mask
    rows: tuple[Indexes, Indexes]
    times: Indexes


class BatchJoin:
    """The join of a batch. `frame` and `keep` need `join` to have returned True.

    `frame`: the joined rows. `places`: of the records that they follow from.
    """

    frame: Frame
    places: Indexes

    def __init__(self, node: StreamStreamJoinNode, batch: Batch) -> None:
        assert isinstance(node.form, JoinForm)
        self._node, self._form, self._batch = node, node.form, batch
        self._sizes = [len(frame) for frame in batch.frames]
        widths = [len(frame.columns) for frame in batch.frames]
        self._kept = (
            _Kept(self._sizes[LEFT], widths[LEFT]),
            _Kept(self._sizes[RIGHT], widths[RIGHT]),
        )
        self._times = np.maximum(np.maximum.accumulate(batch.times), node.stream_time)
        """The stream time of each record."""
        self._made: list[_Joined] = []
        self._met_at = [np.zeros(0, np.int64), np.zeros(0, np.int64)]
        """When a side's records, with those that are kept, meet another for the first time."""
        self._waited: Waited | None = None
        self._emitted: list[StoreKey] = []

    def join(self) -> bool:
        """Join the batch; False if the row engine must decide. Changes nothing."""
        lone = {side: self._meet(side) for side in (LEFT, RIGHT)}
        if self._node.waits:
            self._wait(lone)
        return self._show()

    # --- which rows there are ----------------------------------------------------------------

    def _meet(self, side: int) -> Indexes:
        """Let a side's records meet the other's before them; which of the arrivals wait."""
        node, batch, other = self._node, self._batch, 1 - side
        mine, others = batch.arrivals[side], batch.arrivals[other]
        span = spans_of(mine, others, node.sides[side], node.segments, node.latest(other))
        kept, numbers = self._read(other, mine, span)
        there = Arrivals(*(np.concatenate(both) for both in zip(kept, others, strict=True)))
        at, met = meetings(mine, span, there)
        rows = np.concatenate([self._sizes[other] + numbers, batch.keyed[other]])[met]
        places = mine.places[at]
        first = np.full(self._sizes[other] + len(numbers), NEVER_MET)
        first[rows[::-1]] = places[::-1]  # of several the last assignment counts
        self._met_at[other] = first
        self._join(side, places, batch.keyed[side][at], rows, there.times[met])
        if not node.sides[side].is_outer:
            return np.zeros(0, np.int64)
        alone = np.ones(len(mine.places), np.bool_)
        alone[at] = False
        waits = alone & (span.highs >= self._times[mine.places])
        if not node.waits:
            waits[:] = False
        keyless = np.ones(self._sizes[side], np.bool_)
        keyless[batch.keyed[side]] = False
        done = np.concatenate([batch.keyed[side][alone & ~waits], np.flatnonzero(keyless)])
        nothing = np.full(len(done), NO_ROW)
        self._join(side, batch.places[side][done], done, nothing, nothing)
        return np.flatnonzero(waits)

    def _read(self, side: int, arrivals: Arrivals, span: Span) -> tuple[Arrivals, Indexes]:
        """Read what the store of a side has for the keys of the other's arrivals, in the order in
        which it came; and which of the records that are kept each is."""
        node, kept, batch = self._node, self._kept[side], self._batch
        codes: list[int] = []
        if node.latest(side) != NEVER and len(arrivals.keys):
            lows, highs = spans_of_keys(arrivals, span, len(batch.keys))
            found = np.flatnonzero(lows <= highs)
            keys = [batch.keys[code] for code in found.tolist()]
            listed = node.kept_of(keys, side, lows[found].tolist(), highs[found].tolist())
            for code, key, entries in zip(found.tolist(), keys, listed, strict=True):
                before = len(kept.times)
                for entry in entries:
                    kept.add(key, bundle_of(*entry))
                codes += [code] * (len(kept.times) - before)
        # Bundles overlap.
        order = np.argsort(np.array(kept.numbers, np.int64))
        times, of = (np.array(listed, np.int64)[order] for listed in (kept.times, codes))
        return Arrivals(np.full(len(codes), KEPT), times, of), order

    def _join(
        self, side: int, places: Indexes, mine: Indexes, others: Indexes, others_ms: Indexes
    ) -> None:
        """Add joined rows of a side's records in the batch."""
        rows = (mine, others) if side == LEFT else (others, mine)
        times = np.maximum(self._batch.times[places], others_ms)
        self._made.append(_Joined(places, np.zeros(len(places), np.bool_), rows, times))

    def _wait(self, waiting: dict[int, Indexes]) -> None:
        """Add rows of records that have waited long enough."""
        node, batch = self._node, self._batch
        lone = [self._lone(side, waiting[side]) for side in (LEFT, RIGHT)]
        places = np.concatenate([arrivals.places for arrivals in batch.arrivals])
        at_stream_time = np.sort(places[batch.times[places] == self._times[places]])
        looks = Looks(at_stream_time, batch.sides[at_stream_time], batch.times[at_stream_time])
        met_at = {place[-1]: met for place, met in self._met_waiting()}
        waited, kept = wait(node, (lone[LEFT], lone[RIGHT]), looks, batch.keys, met_at)
        self._waited = waited
        sides: tuple[list[int], list[int]] = ([], [])
        for _, waiter in waited.emitted:
            side, row = (LEFT if waiter.is_left else RIGHT), waiter.at
            if waiter.is_kept:
                place, (values, key, _) = kept[waiter.at]
                self._emitted.append(place)
                bundle = bundle_of(waiter.timestamp_ms, waiter.number, values)
                row = self._kept[side].add(tuple(key), bundle)
            sides[side].append(row)
            sides[1 - side].append(NO_ROW)
        self._made.append(
            _Joined(
                np.array([place for place, _ in waited.emitted], np.int64),
                np.ones(len(waited.emitted), np.bool_),
                (np.array(sides[LEFT], np.int64), np.array(sides[RIGHT], np.int64)),
                np.array([waiter.timestamp_ms for _, waiter in waited.emitted], np.int64),
            )
        )

    def _lone(self, side: int, waiting: Indexes) -> Lone:
        """A side's arrivals that begin to wait."""
        batch = self._batch
        arrivals, indexes = batch.arrivals[side], batch.keyed[side][waiting]
        return Lone(
            Arrivals(*(column[waiting] for column in arrivals)),
            indexes,
            self._node.count + batch.numbers[side][waiting],
            self._met_at[side][indexes],
        )

    def _met_waiting(self) -> Iterator[tuple[StoreKey, int]]:
        """The places of records that may have waited before the batch, and now meet another; and
        when they do."""
        node = self._node
        if node.waiting_since is None:
            return
        for side in (LEFT, RIGHT):
            if node.sides[side].is_outer:
                kept, met_at = self._kept[side], self._met_at[side][self._sizes[side] :]
                for at in np.flatnonzero(met_at != NEVER_MET).tolist():
                    yield (
                        waiting_place(side, kept.keys[at], kept.times[at], kept.numbers[at]),
                        int(met_at[at]),
                    )

    # --- joined rows as columns --------------------------------------------------------------

    def _show(self) -> bool:
        """Make the frame of all joined rows; False if columns cannot hold them."""
        places, waited, times = (
            np.concatenate([made[at] for made in self._made]) for at in (0, 1, 3)
        )
        order = np.lexsort((~waited, places))
        rows = [
            np.concatenate([made.rows[side] for made in self._made])[order]
            for side in (LEFT, RIGHT)
        ]
        left, right = (self._side(side, rows[side]) for side in (LEFT, RIGHT))
        if left is None or right is None:
            return False
        at = np.arange(len(order))
        at[rows[LEFT] == NO_ROW] += len(order)
        (*left_columns, left_key), (*right_columns, right_key) = left, right
        key = concatenated([left_key, right_key]).take(at)
        wide = [*left_columns, *right_columns, key]
        self.places = places[order]
        self.frame = Frame(
            np.arange(len(order), dtype=np.int64),
            [wide[place] for place in self._form.places],
            [key],
            None if key.valid is None or key.valid.all() else key.valid,
            times[order],
            np.zeros(len(order), np.bool_),
        )
        return True

    def _side(self, side: int, rows: Indexes) -> list[Vector] | None:
        """The columns of a side's rows, which may be of the batch, kept or missing, then its key.
        None if columns cannot hold them."""
        frame, kept, size = self._batch.frames[side], self._kept[side], self._sizes[side]
        before = rows >= size
        used, of = np.unique(rows[before] - size, return_inverse=True)
        at = rows.copy()
        at[before] = size + of
        at[rows == NO_ROW] = size + len(used)
        listed = kept.listed(used.tolist())
        doubt = np.zeros(len(used) + 1, np.bool_)
        vectors = []
        for vector, values in zip((*frame.columns, *frame.keys), listed, strict=True):
            more = vector_of(vector.type, [*values, None], doubt)
            vectors.append(concatenated([vector, more]).take(at))
        return None if doubt.any() else vectors

    # --- state -------------------------------------------------------------------------------

    def keep(self) -> None:
        """Change the join's state as the row engine does."""
        node, batch = self._node, self._batch
        if self._waited is not None:
            self._keep_waiting(self._waited)
        for side in (LEFT, RIGHT):
            arrivals, keyed = batch.arrivals[side], batch.keyed[side]
            if len(keyed):
                numbers = node.count + batch.numbers[side]
                keep(node, side, arrivals, numbers, batch.keys, batch.frames[side].part(keyed))
        node.count += batch.count
        if len(self._times):
            node.stream_time = int(self._times[-1])

    def _keep_waiting(self, waited: Waited) -> None:
        node, batch = self._node, self._batch
        changed: dict[StoreKey, list[Any] | None] = dict.fromkeys(self._emitted)
        changed.update((place, None) for place, _ in self._met_waiting())
        for side in (LEFT, RIGHT):
            of_side = [waiter for waiter in waited.left if waiter.is_left == (side == LEFT)]
            indexes = np.array([waiter.at for waiter in of_side], np.int64)
            keys = batch.codes[side][indexes].tolist()
            for waiter, row, code in zip(
                of_side, batch.frames[side].rows(indexes), keys, strict=True
            ):
                key = batch.keys[code]
                place = waiting_place(side, key, waiter.timestamp_ms, waiter.number + 1)
                changed[place] = [row, key, None]
        node.put_waiting(list(changed), list(changed.values()))
        node.waiting_since = waited.since


# --- what is kept of a batch: bundles of its records, by key and time ------------------------


def keep(
    node: StreamStreamJoinNode,
    side: int,
    arrivals: Arrivals,
    numbers: Indexes,
    keys: Sequence[StoreKey],
    frame: Frame,
) -> None:
    """Put a side's records into its store, but for those past retention by the last of them.

    `arrivals` of at least one record, whose rows are those of `frame`. `numbers`: of each in the
    store.
    """
    latest = node.pass_time(side, int(arrivals.times.max()))
    live = np.flatnonzero(arrivals.times >= node.segments.live_from(latest))
    # Of one key and time, the first to arrive has the lowest number.
    order = live[np.lexsort((arrivals.times[live], arrivals.keys[live]))]
    if not len(order):
        return
    times, codes, numbers = arrivals.times[order], arrivals.keys[order], numbers[order]
    bounds = [*_starts(node, times, codes).tolist(), len(order)]
    lasts = np.array(bounds[1:]) - 1
    sizes = np.diff(bounds)
    back_ms = (np.repeat(times[lasts], sizes) - times).tolist()
    back = (np.repeat(numbers[lasts], sizes) - numbers).tolist()
    columns = [column.take(order).to_list() for column in frame.columns]
    places = zip(
        (times[lasts] // node.segments.span_ms).tolist(),
        codes[lasts].tolist(),
        times[lasts].tolist(),
        numbers[lasts].tolist(),
        strict=True,
    )
    node.keep_all(
        side,
        [(segment, *keys[code], time_ms, number) for segment, code, time_ms, number in places],
        [
            # The collector of garbage passes over tuples of plain values, but not over lists.
            tuple([column[a] for column in columns])
            if b == a + 1
            else bundled(back_ms[a:b], back[a:b], [column[a:b] for column in columns])
            for a, b in pairwise(bounds)
        ],
    )


def _starts(node: StreamStreamJoinNode, times: Indexes, codes: Indexes) -> Indexes:
    """The places at which bundles begin, of records sorted by key and timestamp."""
    is_start = np.ones(len(times), np.bool_)
    is_start[1:] = codes[1:] != codes[:-1]
    for span_ms in (node.segments.span_ms, node.bundle_ms):
        spans = times // span_ms
        is_start[1:] |= spans[1:] != spans[:-1]
    at = np.arange(len(times))
    since = at - np.maximum.accumulate(np.where(is_start, at, 0))
    return np.flatnonzero(since % BUNDLE_RECORDS_MAX == 0)

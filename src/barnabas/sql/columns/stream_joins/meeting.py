"""Both sides of a stream-stream join in a batch, and which of their records meet in its window.

A record of a batch meets those of the other side that come before it, in the batch or in the
join's store. Both are sorted by key and timestamp: the records that one meets lie together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.vectors import Indexes, concatenated, key_codes
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.stores import Segments
from barnabas.sql.runtime.stream_joins import LEFT, RIGHT, Side
from barnabas.sql.runtime.windows import NEVER

KEPT = -1
"""The place of records that were there before the batch."""


class Arrivals(NamedTuple):
    """Records with a key, in their order: their places among the records of both sides, their
    timestamps, and the numbers of their keys."""

    places: Indexes
    times: Indexes
    keys: Indexes


class Span(NamedTuple):
    """Of each record the earliest and the latest timestamp of those that it meets."""

    lows: Indexes
    highs: Indexes


def spans_of(
    mine: Arrivals, others: Arrivals, side: Side, segments: Segments, latest_ms: int
) -> Span:
    """`others`: the other side's records of the batch; `latest_ms`: the latest before them."""
    latest = np.full(len(mine.places), latest_ms, np.int64)
    before = np.searchsorted(others.places, mine.places)
    seen = np.flatnonzero(before)
    latest[seen] = np.maximum(latest[seen], np.maximum.accumulate(others.times)[before[seen] - 1])
    horizons = segments.horizon(0) + latest
    lows = np.maximum(np.maximum(mine.times - side.before_ms, 0), horizons)
    return Span(lows, np.maximum(mine.times + side.after_ms, 0))


def spans_of_keys(mine: Arrivals, span: Span, count: int) -> Span:
    """The same of each of so many keys; nothing where it has no record."""
    lows = np.full(count, np.iinfo(np.int64).max)
    highs = np.full(count, NEVER, np.int64)
    np.minimum.at(lows, mine.keys, span.lows)
    np.maximum.at(highs, mine.keys, span.highs)
    return Span(lows, highs)


def meetings(mine: Arrivals, span: Span, others: Arrivals) -> tuple[Indexes, Indexes]:
    """The pairs of records that meet, as indexes in both, in the order of `mine` and by timestamp.

    Of equal timestamps the one that comes first in `others` is first.
    """
    order = np.lexsort((others.times, others.keys))
    # Timestamps as ranks, so that a key and a timestamp are one number.
    known = np.unique(others.times)
    step = len(known) + 1
    sorted_places = others.keys[order] * step + np.searchsorted(known, others.times[order])
    of_key = mine.keys * step
    first = np.searchsorted(sorted_places, of_key + np.searchsorted(known, span.lows))
    last = np.searchsorted(sorted_places, of_key + np.searchsorted(known, span.highs, side="right"))
    counts = np.maximum(last - first, 0)
    at = np.repeat(np.arange(len(counts)), counts)
    starts = first - (np.cumsum(counts) - counts)
    met = order[np.arange(len(at)) + starts[at]]
    earlier = others.places[met] < mine.places[at]
    return at[earlier], met[earlier]


# -- the batch: its records in the row engine's order


class Part(NamedTuple):
    """A side's records, when each is due, and what gives their headers by their places."""

    frame: Frame
    due: Indexes
    headers: Callable[[int], tuple[Header, ...]] | None


class Batch:
    """Lists and tuples of two have the left side first.

    `places`: of each side's records among all. `keyed`: which have a key; `arrivals` are those, and
    `numbers` counts them from 1. `codes`: which of the different `keys` each record has. `times`,
    `sides`: of all records in order. `count`: of those with a key.
    """

    def __init__(self, parts: tuple[Part, Part], first: int) -> None:
        """`first`: the side of which records come first where both are due."""
        self._parts = parts
        self.frames = tuple(part.frame for part in parts)
        sizes = [len(frame) for frame in self.frames]
        sides = (first, 1 - first)
        order = np.argsort(np.concatenate([parts[side].due for side in sides]), kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        cut = sizes[first]
        by_first = (places[:cut], places[cut:])
        self.places = by_first if first == LEFT else by_first[::-1]
        self.sides = np.empty(len(order), np.int64)
        self._indexes = np.empty(len(order), np.int64)
        self.times = np.empty(len(order), np.int64)
        for side in (LEFT, RIGHT):
            self.sides[self.places[side]] = side
            self._indexes[self.places[side]] = np.arange(sizes[side])
            self.times[self.places[side]] = self.frames[side].timestamps
        self._find_keys(sizes)

    def _find_keys(self, sizes: Sequence[int]) -> None:
        keys = [concatenated(both) for both in zip(*(f.keys for f in self.frames), strict=True)]
        codes = key_codes(keys, sum(sizes))
        has_key = np.concatenate([frame.keyed() for frame in self.frames])
        with_key = np.flatnonzero(has_key)
        _, firsts, of = np.unique(codes[with_key], return_index=True, return_inverse=True)
        codes[with_key] = of
        lists = [key.take(with_key[firsts]).to_list() for key in keys]
        self.keys: list[StoreKey] = list(zip(*lists, strict=True))
        cut = sizes[LEFT]
        self.keyed = (np.flatnonzero(has_key[:cut]), np.flatnonzero(has_key[cut:]))
        self.codes = (codes[:cut], codes[cut:])
        in_order = np.zeros(len(self.times), np.int64)
        arrivals = []
        for side in (LEFT, RIGHT):
            keyed, times = self.keyed[side], self.frames[side].timestamps
            places = self.places[side][keyed]
            arrivals.append(Arrivals(places, times[keyed], self.codes[side][keyed]))
            in_order[places] = 1
        self.arrivals = (arrivals[LEFT], arrivals[RIGHT])
        counted = np.cumsum(in_order)
        self.numbers = (counted[arrivals[LEFT].places], counted[arrivals[RIGHT].places])
        self.count = len(with_key)

    def headers_of(self, places: Indexes) -> Callable[[int], tuple[Header, ...]] | None:
        """Return what gives headers of records that follow from those at these places."""
        if all(part.headers is None for part in self._parts):
            return None

        def headers(number: int) -> tuple[Header, ...]:
            place = places[number]
            part = self._parts[self.sides[place]]
            if part.headers is None:
                return ()
            return part.headers(int(part.frame.places[self._indexes[place]]))

        return headers

"""Which records of two streams meet within a join's window.

A record of a batch meets those of the other side that come before it, in the batch or in the
join's store. Both are sorted by key and timestamp: the records that one meets lie together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from barnabas.sql.columns.vectors import Indexes
from barnabas.sql.runtime.stores import Segments
from barnabas.sql.runtime.stream_joins import Side
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

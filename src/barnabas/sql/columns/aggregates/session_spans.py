"""Which session each record of a batch extends or begins, and how its bounds change."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from barnabas.sql.columns.vectors import Indexes, Mask
from barnabas.sql.runtime.records import WindowBounds


class Clock(NamedTuple):
    """Of each record its time, the end of the earliest session that it may extend, and the time
    before which sessions are closed by then."""

    times: Indexes
    lows: Indexes
    closes: Indexes


class Spans(NamedTuple):
    """The session of each record and its bounds, in the order of the records.

    `of`: the number of its session, -1 if it is late. `starts`, `ends`: the session's bounds with
    it. `old_starts`, `old_ends`: those without it; -1 if it begins the session. Of each session
    `keys` has the number of its key, and `stored` which of the key's stored ones it was; -1 for
    none. `late`: records in order with the bounds that they would have given.
    """

    of: Indexes
    starts: Indexes
    ends: Indexes
    old_starts: Indexes
    old_ends: Indexes
    keys: Indexes
    stored: Indexes
    late: Sequence[tuple[int, WindowBounds]]

    def has_grown(self) -> Mask:
        """Return which records have given a session other bounds."""
        same: Mask = (self.old_starts == self.starts) & (self.old_ends == self.ends)
        return (self.of >= 0) & (self.old_ends >= 0) & ~same


def spans_of(
    of_key: Indexes, clock: Clock, gap_ms: int, stored: Sequence[Sequence[WindowBounds]]
) -> Spans | None:
    """Return None if a record merges sessions, or begins one inside of one that is lost.

    `of_key`: the number of each record's key. `stored`: of each key the sessions in the store, by
    their ends.
    """
    size = len(of_key)
    of, starts, old_starts, old_ends = (np.full(size, -1, np.int64) for _ in range(4))
    none = np.zeros(0, np.int64)
    spans = Spans(of, starts, starts.copy(), old_starts, old_ends, none, none, [])
    order = np.argsort(of_key, kind="stable")
    keys = of_key[order]
    ends = np.array([found[-1].end_ms if found else -1 for found in stored], np.int64)
    times, before = clock.times[order], _before(clock.times[order], keys, ends)
    # One that is closed, or behind others of its key, needs a look at all sessions of the key.
    odd = (times < before) | (times < clock.closes[order])
    odd |= (before == times) & (before < clock.lows[order])
    is_odd = np.zeros(len(stored), np.bool_)
    is_odd[keys[odd]] = True
    in_order = ~is_odd[keys]
    spans = _together(spans, order[in_order], of_key, clock, stored)
    if not is_odd.any():
        return spans
    return _one_by_one(spans, order[~in_order], of_key, clock, gap_ms, stored)


def _before(times: Indexes, keys: Indexes, ends: Indexes) -> Indexes:
    """The end of the key's latest session before each record, for records by key in order."""
    before = np.empty_like(times)
    before[1:] = times[:-1]
    first = np.diff(keys, prepend=-1) != 0
    before[first] = ends[keys[first]]
    return before


def _together(
    spans: Spans,
    order: Indexes,
    of_key: Indexes,
    clock: Clock,
    stored: Sequence[Sequence[WindowBounds]],
) -> Spans:
    """Records by key, whose times ascend from the end of the key's latest session on."""
    if not len(order):
        return spans
    starts = np.array([found[-1].start_ms if found else -1 for found in stored], np.int64)
    ends = np.array([found[-1].end_ms if found else -1 for found in stored], np.int64)
    counts = np.array([len(found) for found in stored], np.int64)
    keys, times = of_key[order], clock.times[order]
    before = _before(times, keys, ends)
    begins = before < clock.lows[order]
    heads = np.flatnonzero(begins | (np.diff(keys, prepend=-1) != 0))
    of = np.zeros(len(order), np.int64)
    of[heads[1:]] = 1
    of = np.cumsum(of)
    head_keys = keys[heads]
    first = np.where(begins[heads], times[heads], starts[head_keys])
    spans.of[order] = of
    spans.starts[order] = first[of]
    spans.ends[order] = times
    spans.old_starts[order] = np.where(begins, -1, first[of])
    spans.old_ends[order] = np.where(begins, -1, before)
    from_store = np.where(begins[heads], -1, counts[head_keys] - 1)
    return spans._replace(keys=head_keys, stored=from_store)


class _Session:
    """A session on its way through the records of its key."""

    __slots__ = ("end_ms", "number", "place", "start_ms")

    def __init__(self, start_ms: int, end_ms: int, place: int) -> None:
        self.start_ms, self.end_ms = start_ms, end_ms
        self.place = place
        self.number = -1


def _one_by_one(
    spans: Spans,
    order: Indexes,
    of_key: Indexes,
    clock: Clock,
    gap_ms: int,
    stored: Sequence[Sequence[WindowBounds]],
) -> Spans | None:
    """Records by key, each where it belongs among the key's sessions."""
    late: list[tuple[int, WindowBounds]] = []
    made_keys: list[int] = []
    made_stored: list[int] = []
    count = len(spans.keys)
    entries = zip(
        of_key[order].tolist(),
        order.tolist(),
        clock.times[order].tolist(),
        clock.lows[order].tolist(),
        clock.closes[order].tolist(),
        strict=True,
    )
    for key, records in groupby(entries, key=lambda entry: entry[0]):
        sessions = [
            _Session(window.start_ms, window.end_ms, place)
            for place, window in enumerate(stored[key])
        ]
        for _, record, time_ms, low_ms, close_ms in records:
            near: _Session | None = None
            is_shared = False
            for session in sessions:
                if session.end_ms < low_ms:
                    if session.start_ms <= time_ms <= session.end_ms:
                        return None
                    continue
                if session.start_ms > time_ms + gap_ms:
                    break
                is_shared = near is not None
                near = near or session
            if is_shared:
                return None
            start_ms = end_ms = time_ms
            if near is not None:
                start_ms, end_ms = min(near.start_ms, time_ms), max(near.end_ms, time_ms)
            if end_ms < close_ms:
                late.append((record, WindowBounds(start_ms, end_ms)))
                continue
            if near is None:
                near = _Session(time_ms, time_ms, -1)
                insort(sessions, near, key=attrgetter("end_ms"))
            else:
                spans.old_starts[record], spans.old_ends[record] = near.start_ms, near.end_ms
            if near.number < 0:
                near.number = count + len(made_keys)
                made_keys.append(key)
                made_stored.append(near.place)
            near.start_ms, near.end_ms = start_ms, end_ms
            spans.of[record] = near.number
            spans.starts[record], spans.ends[record] = start_ms, end_ms
    return spans._replace(
        keys=np.concatenate([spans.keys, np.array(made_keys, np.int64)]),
        stored=np.concatenate([spans.stored, np.array(made_stored, np.int64)]),
        late=sorted(late),
    )

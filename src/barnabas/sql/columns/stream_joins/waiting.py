"""Records of outer sides that wait for a partner, until their window and the grace period are over.

A record at the stream time emits those that have waited long enough. Only those few records are
looked at one by one that, by the oldest one that may wait, can have something to emit.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from barnabas.sql.columns.stream_joins.meeting import Arrivals
from barnabas.sql.columns.vectors import Indexes
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.rows_encoding import encode_key, encode_keys
from barnabas.sql.runtime.stream_joins import LEFT, RIGHT, StreamStreamJoinNode

NEVER_MET = np.iinfo(np.int64).max


class Lone(NamedTuple):
    """Records of one side and batch that begin to wait: which of the side's they are, their numbers
    in its store, and the places of those that they meet first."""

    arrivals: Arrivals
    indexes: Indexes
    numbers: Indexes
    met_at: Indexes


class Looks(NamedTuple):
    """Records at the stream time: their places, sides, and that time."""

    places: Indexes
    sides: Indexes
    times: Indexes


class Waiter(NamedTuple):
    """A record that waits; in the order in which the store has them, with its `key` encoded.

    `at`: which of its side in the batch it is, or which of those that waited before.
    """

    timestamp_ms: int
    is_left: bool
    key: bytes
    number: int
    at: int
    is_kept: bool
    met_at: int


class Waited(NamedTuple):
    """`emitted`: in order, with the place of the record that emits each. `left`: those of the batch
    that still wait. `since`: no waiting record is earlier; None: none waits."""

    emitted: Sequence[tuple[int, Waiter]]
    left: Sequence[Waiter]
    since: int | None


def wait(
    node: StreamStreamJoinNode,
    lone: tuple[Lone, Lone],
    looks: Looks,
    keys: Sequence[StoreKey],
    met_at: Mapping[int, int],
) -> tuple[Waited, Sequence[tuple[StoreKey, list[Any]]]]:
    """Follow waiting records through a batch; also return those that waited before it.

    `lone`: by side. `keys`: what the arrivals' keys are. `met_at`: by number, where records that
    may have waited before the batch meet another.
    """
    since = node.waiting_since
    coming = _coming(lone, encode_keys(keys))
    oldest = min((waiter.timestamp_ms for _, waiter in coming), default=None)
    if since is not None:
        oldest = since if oldest is None else min(oldest, since)
    events = _events(node, coming, looks, oldest)
    if not any(waiter is None for _, _, waiter, _ in events):
        still = [waiter for _, waiter in coming if waiter.met_at == NEVER_MET]
        return Waited([], still, oldest), []
    until_ms = max(closed for *_, closed in events)
    kept = list(node.waiting_before(until_ms))
    waiting: tuple[list[Waiter], list[Waiter]] = ([], [])
    for at, ((timestamp_ms, is_left, *key, number), _) in enumerate(kept):
        met = met_at.get(number, NEVER_MET)
        waiter = Waiter(timestamp_ms, is_left, encode_key(key), number, at, True, met)
        waiting[LEFT if is_left else RIGHT].append(waiter)
    emitted: list[tuple[int, Waiter]] = []
    for place, side, begins, closed_ms in events:
        if begins is not None:
            insort(waiting[side], begins)
            since = begins.timestamp_ms if since is None else min(since, begins.timestamp_ms)
        elif since is not None and since + node.sides[side].after_ms < closed_ms:
            ripe, since = _look(node, waiting, place, closed_ms)
            emitted += [(place, waiter) for waiter in ripe]
    gone = {waiter.number for _, waiter in emitted}
    still = [w for _, w in coming if w.met_at == NEVER_MET and w.number not in gone]
    return Waited(emitted, still, since), kept


def _coming(lone: tuple[Lone, Lone], encoded: Sequence[bytes]) -> list[tuple[int, Waiter]]:
    """Records that begin to wait, with their places."""
    coming = []
    for side in (LEFT, RIGHT):
        arrivals, *others = lone[side]
        columns = (*arrivals, *others)
        for place, time_ms, key, at, number, met in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            waiter = Waiter(time_ms, side == LEFT, encoded[key], number - 1, at, False, met)
            coming.append((place, waiter))
    return coming


def _events(
    node: StreamStreamJoinNode,
    coming: Sequence[tuple[int, Waiter]],
    looks: Looks,
    oldest_ms: int | None,
) -> list[tuple[int, int, Waiter | None, int]]:
    """In their order, records that begin to wait and those that may emit: place, side, what begins
    to wait, and the time before which windows are closed."""
    events: list[tuple[int, int, Waiter | None, int]] = []
    if oldest_ms is not None:
        afters = np.array([side.after_ms for side in node.sides], np.int64)
        closed = looks.times - node.grace_ms
        may = np.flatnonzero(oldest_ms + afters[looks.sides] < closed)
        events += [
            (place, side, None, closed_ms)
            for place, side, closed_ms in zip(
                looks.places[may].tolist(),
                looks.sides[may].tolist(),
                closed[may].tolist(),
                strict=True,
            )
        ]
    events += [(place, LEFT if w.is_left else RIGHT, w, 0) for place, w in coming]
    # A record first emits others, and then may begin to wait.
    return sorted(events, key=lambda event: (event[0], event[2] is not None))


def _look(
    node: StreamStreamJoinNode,
    waiting: tuple[list[Waiter], list[Waiter]],
    place: int,
    closed_ms: int,
) -> tuple[list[Waiter], int]:
    """Take out what has waited long enough; since when others may wait."""
    ripe: list[Waiter] = []
    since = closed_ms
    for side in (LEFT, RIGHT):
        waiters = waiting[side]
        end = bisect_left(waiters, (closed_ms - node.sides[side].after_ms,))
        ripe += [waiter for waiter in waiters[:end] if waiter.met_at >= place]
        while end < len(waiters) and waiters[end].met_at < place:
            end += 1
        del waiters[:end]
        if waiters:
            since = min(since, waiters[0].timestamp_ms)
    ripe.sort()
    return ripe, since

"""What a stream-stream join keeps of a batch: bundles of its records, by key and time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.stream_joins.meeting import Arrivals
from barnabas.sql.columns.vectors import Indexes
from barnabas.sql.runtime.bundles import BUNDLE_RECORDS_MAX, bundled
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.stream_joins import StreamStreamJoinNode


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

"""The results of the sessions of a batch, and HAVING for them.

With HAVING, each record of a session leaves up to two results:

    the earlier bounds are deleted    if the session's row was a result, and the bounds are not both
                                      the time of the record
    a row                             if the condition holds for the session with the record

Of the results for one key and the same bounds, the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from barnabas.sql.columns.aggregates.adding import Argument
from barnabas.sql.columns.aggregates.having import Having
from barnabas.sql.columns.aggregates.session_spans import Spans
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.vectors import Indexes, Mask, Vector
from barnabas.sql.errors import FAILURES
from barnabas.sql.runtime.aggregates import Aggregation, StateRow
from barnabas.sql.runtime.records import Row, WindowBounds
from barnabas.sql.types import Value

Stored = Sequence[tuple[WindowBounds, StateRow]]


class Batch(NamedTuple):
    """Records of a batch and the sessions that they belong to.

    `added`: the records that are not late; `of`: the session of each of those; `columns`: what the
    aggregates take of them. Of each session: its last record, its key, its bounds, and its stored
    bounds and state, if it was stored.
    """

    frame: Frame
    spans: Spans
    added: Indexes
    of: Indexes
    columns: Sequence[Vector | None]
    lasts: Indexes
    keys: Sequence[Row]
    windows: Sequence[WindowBounds]
    before: Sequence[tuple[WindowBounds, StateRow] | None]

    def states(self, place: int) -> list[tuple[Value] | None]:
        """The values that were stored at a place of the sessions' states."""
        return [None if found is None else (found[1][place],) for found in self.before]


class Results(NamedTuple):
    """The results of a batch, as the records that leave them: those that leave a tombstone of the
    session's earlier bounds, and those that leave a row, with the states of these rows. `states`:
    the sessions' states with all records."""

    tombstones: Indexes
    rows: Indexes
    row_states: Sequence[StateRow]
    states: Sequence[StateRow]


def batch_of(
    frame: Frame,
    columns: Sequence[Vector | None],
    spans: Spans,
    keys: Sequence[Row],
    stored: Sequence[Stored],
) -> Batch:
    """`keys`, `stored`: by the numbers in `spans.keys`."""
    added = np.flatnonzero(spans.of >= 0)
    of = spans.of[added]
    lasts = np.zeros(len(spans.keys), np.int64)
    lasts[of] = added
    return Batch(
        frame,
        spans,
        added,
        of,
        [None if column is None else column.take(added) for column in columns],
        lasts,
        [keys[key] for key in spans.keys.tolist()],
        list(map(WindowBounds, spans.starts[lasts].tolist(), spans.ends[lasts].tolist())),
        [
            None if at < 0 else stored[key][at]
            for key, at in zip(spans.keys.tolist(), spans.stored.tolist(), strict=True)
        ],
    )


def shown(
    batch: Batch, having: Having, aggregation: Aggregation, arguments: Sequence[Argument]
) -> Results | None:
    """Return what HAVING lets out; None if the row engine must decide."""
    added, of = batch.added, batch.of
    width = len(aggregation.kept)
    after = [batch.frame.columns[place].take(added).to_list() for place in aggregation.kept]
    try:
        for number, (argument, column) in enumerate(zip(arguments, batch.columns, strict=True)):
            after.append(argument.each_of_sessions(batch.states(width + number), of, column))
    except FAILURES:
        return None
    known = [at for at, found in enumerate(batch.before) if found is not None]
    stored = [found for found in batch.before if found is not None]
    states = [[state[place] for _, state in stored] + values for place, values in enumerate(after)]
    spans = batch.spans
    bounds = [
        [window[side] for window, _ in stored] + all_of[added].tolist()
        for side, all_of in enumerate((spans.starts, spans.ends))
    ]
    sessions = [*known, *of.tolist()]
    parts = range(len(batch.frame.keys))
    keys = [[batch.keys[at][part] for at in sessions] for part in parts]
    holds = having.holds(aggregation, states[:width], states[width:], [*bounds, *keys])
    if holds is None:
        return None
    was_shown = np.zeros(len(batch.keys), np.bool_)
    was_shown[known] = holds[: len(known)]
    tombstones, rows = _last_of_each(batch, was_shown, holds[len(known) :])
    at_rows = np.searchsorted(added, rows).tolist()
    at_lasts = np.searchsorted(added, batch.lasts).tolist()
    return Results(tombstones, rows, _state_rows(after, at_rows), _state_rows(after, at_lasts))


def _state_rows(columns: Sequence[Sequence[Value]], at: Sequence[int]) -> list[StateRow]:
    return [[values[place] for values in columns] for place in at]


def _last_of_each(batch: Batch, was_shown: Mask, holds: Mask) -> tuple[Indexes, Indexes]:
    """The records whose tombstone, or row, is the last result with its bounds."""
    spans, added, of = batch.spans, batch.added, batch.of
    order = np.argsort(of, kind="stable")
    begins = np.diff(of[order], prepend=-1) != 0
    earlier = np.empty(len(of), np.bool_)
    earlier[order[1:]] = holds[order[:-1]]
    earlier[order[begins]] = was_shown[of[order[begins]]]
    is_point = spans.starts[added] == spans.ends[added]
    deletes = earlier & (spans.old_ends[added] >= 0) & ~is_point
    gone, made = added[deletes], added[holds]
    places = np.concatenate([2 * gone, 2 * made + 1])
    sessions = spans.of[places // 2]
    starts = np.concatenate([spans.old_starts[gone], spans.starts[made]])
    ends = np.concatenate([spans.old_ends[gone], spans.ends[made]])
    by_bounds = np.lexsort((places, ends, starts, sessions))
    is_last = np.ones(len(places), np.bool_)
    is_last[:-1] = False
    for values in (sessions, starts, ends):
        sorted_values = values[by_bounds]
        is_last[:-1] |= sorted_values[:-1] != sorted_values[1:]
    last = np.sort(places[by_bounds[is_last]])
    return last[last % 2 == 0] // 2, last[last % 2 == 1] // 2

"""The aggregate of a batch by key and session window.

    records of a key ─▶ the session that each extends or begins ─▶ one state for each session

Each time a session grows, it leaves a tombstone with its earlier bounds: tombstones go to the sink
as columns. Its row is made once, from its last state. Keys whose records come in the
order of their times are handled together, others one record after the other. The row engine
decides about a batch in which a record merges two sessions, as states are then merged in an order
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.aggregates.adding import Argument, columns_to_add
from barnabas.sql.columns.aggregates.session_spans import Clock, Spans, spans_of
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.streams import Made
from barnabas.sql.columns.vectors import Indexes, Vector, key_codes
from barnabas.sql.errors import FAILURES
from barnabas.sql.runtime.aggregates import StateRow, failure
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.sessions import SessionAggregateNode
from barnabas.sql.runtime.stage import Emitted, Stage
from barnabas.sql.runtime.topics import TopicRecord, TopicWriter

_BOUNDS_BYTES = 16
Stored = Sequence[tuple[WindowBounds, StateRow]]


class SessionAggregate:
    """The aggregate of a stage with the sink behind it."""

    def __init__(
        self,
        stage: Stage,
        node: SessionAggregateNode,
        arguments: Sequence[Argument],
        writer: Callable[[], TopicWriter],
    ) -> None:
        self._stage, self._node = stage, node
        self._arguments = tuple(arguments)
        self._writer = writer

    def run(
        self, frame: Frame, headers: Callable[[int], tuple[Header, ...]] | None
    ) -> Emitted | Made | None:
        """Return the results of certain records; None, before anything has changed, if the row
        engine must decide."""
        columns = columns_to_add(frame, self._arguments)
        if columns is None:
            return None
        if not len(frame):
            return []
        node = self._node
        if node.stream_time != node.latest_end:
            return None
        codes = key_codes(frame.keys, len(frame))
        _, firsts, of_key = np.unique(codes, return_index=True, return_inverse=True)
        keys = list(zip(*(key.take(firsts).to_list() for key in frame.keys), strict=True))
        stored = self._stored(keys, of_key, frame.timestamps)
        clock = self._clock(frame.timestamps)
        windows = [[window for window, _ in found] for found in stored]
        spans = spans_of(of_key, clock, node.gap_ms, windows)
        if spans is None:
            return None
        return self._changed(frame, columns, headers, spans, keys, stored)

    def _stored(
        self, keys: Sequence[tuple[Any, ...]], of_key: Indexes, times: Indexes
    ) -> list[Stored]:
        """Of each key the sessions that its records may extend."""
        earliest = np.full(len(keys), np.iinfo(np.int64).max)
        np.minimum.at(earliest, of_key, times)
        find, gap_ms = self._node.ending_from, self._node.gap_ms
        return [
            find(key, from_ms)
            for key, from_ms in zip(keys, (earliest - gap_ms).tolist(), strict=True)
        ]

    def _clock(self, times: Indexes) -> Clock:
        node = self._node
        stream_times = np.maximum(np.maximum.accumulate(times), node.stream_time)
        latest = np.concatenate([[node.latest_end], stream_times[:-1]])
        horizons = node.segments.horizon(0) + latest
        lows = np.maximum(np.maximum(times - node.gap_ms, horizons), 0)
        return Clock(times, lows, stream_times - node.close_after_ms)

    def _changed(
        self,
        frame: Frame,
        columns: Sequence[Vector | None],
        headers: Callable[[int], tuple[Header, ...]] | None,
        spans: Spans,
        keys: Sequence[Row],
        stored: Sequence[Stored],
    ) -> Emitted | Made:
        node = self._node
        self._note_late(frame, spans)
        added = np.flatnonzero(spans.of >= 0)
        of = spans.of[added]
        lasts = np.zeros(len(spans.keys), np.int64)
        lasts[of] = added
        before = [
            None if at < 0 else stored[key][at]
            for key, at in zip(spans.keys.tolist(), spans.stored.tolist(), strict=True)
        ]
        taken = [None if column is None else column.take(added) for column in columns]
        old_states = [None if found is None else found[1] for found in before]
        states = self._states(frame, lasts, of, taken, old_states)
        windows = list(map(WindowBounds, spans.starts[lasts].tolist(), spans.ends[lasts].tolist()))
        of_groups = [keys[key] for key in spans.keys.tolist()]
        places = list(map(node.place, of_groups, windows))
        new: list[StateRow | None] = list(states)
        for key, found, window in zip(of_groups, before, windows, strict=True):
            if found is not None and found[0] != window:
                places.append(node.place(key, found[0]))
                new.append(None)
        node.put_all(places, new, int(frame.timestamps.max()))
        return self._made(frame, headers, spans, lasts, of_groups, windows, states)

    def _states(
        self,
        frame: Frame,
        lasts: Indexes,
        of: Indexes,
        columns: Sequence[Vector | None],
        before: Sequence[StateRow | None],
    ) -> list[StateRow]:
        """The sessions' states with all of their records."""
        aggregation = self._node.aggregation
        made = [frame.columns[place].take(lasts).to_list() for place in aggregation.kept]
        width = len(made)
        for number, (column, argument) in enumerate(zip(columns, self._arguments, strict=True)):
            place = width + number
            found = [None if state is None else (state[place],) for state in before]
            try:
                made.append(argument.added_to_sessions(found, of, column))
            except FAILURES as error:
                raise failure(error) from error
        return [list(row) for row in zip(*made, strict=True)]

    def _note_late(self, frame: Frame, spans: Spans) -> None:
        if not spans.late:
            return
        late = np.array([place for place, _ in spans.late], np.int64)
        for (_, window), row in zip(spans.late, frame.rows(late), strict=True):
            self._node.note_late(window, row)

    def _made(
        self,
        frame: Frame,
        headers: Callable[[int], tuple[Header, ...]] | None,
        spans: Spans,
        lasts: Indexes,
        keys: Sequence[Row],
        windows: Sequence[WindowBounds],
        states: Sequence[StateRow],
    ) -> Emitted | Made:
        """Tombstones of bounds that sessions had, and the sessions' rows, in the order of the
        records that they follow from."""
        rows = self._rows(frame, headers, lasts, keys, windows, states)
        grown = np.flatnonzero(spans.has_grown())
        of = spans.of[grown]
        known = np.array([row is not None for row in rows], np.bool_)
        grown, of = grown[known[of]], of[known[of]]
        written = [row for row in rows if row is not None]
        if not written:
            return []
        prefixes = pa.array(
            [None if row is None else (row.key or b"")[:-_BOUNDS_BYTES] for row in rows],
            pa.binary(),
        )
        gone_keys = pc.binary_join_element_wise(
            prefixes.take(pa.array(of)),
            _bounds(spans.old_ends[grown], spans.old_starts[grown]),
            pa.scalar(b"", pa.binary()),
        )
        records = np.concatenate([grown, lasts[known]])
        # Of one record the tombstone comes first.
        order = np.argsort(np.concatenate([2 * grown, 2 * lasts[known] + 1]), kind="stable")
        taken = pa.array(order)
        row_keys = pa.array([row.key for row in written], pa.binary())
        row_values = pa.array([row.value for row in written], pa.binary())
        stamps = np.array([row.timestamp_ms for row in written], np.int64)
        places = frame.places[records[order]]
        return Made(
            places,
            pa.concat_arrays([gone_keys, row_keys]).take(taken),
            pa.concat_arrays([pa.nulls(len(grown), pa.binary()), row_values]).take(taken),
            np.concatenate([spans.old_ends[grown], stamps])[order],
            None if headers is None else [headers(place) for place in places.tolist()],
            0,
        )

    def _rows(
        self,
        frame: Frame,
        headers: Callable[[int], tuple[Header, ...]] | None,
        lasts: Indexes,
        keys: Sequence[Row],
        windows: Sequence[WindowBounds],
        states: Sequence[StateRow],
    ) -> list[TopicRecord | None]:
        """The sessions' rows as bytes; None if one cannot be written."""
        node, write = self._node, self._writer().write
        places = frame.places[lasts].tolist()
        for place, key, window, state in zip(places, keys, windows, states, strict=True):
            given = () if headers is None else headers(place)
            record = Record(list(key), None, 0, None, given)
            node.send(record, window, None, state, window.end_ms)
        return [write(record) for _, record in self._stage.emitted()]


def _bounds(ends: Indexes, starts: Indexes) -> Any:
    """Bounds as they end the keys of a topic."""
    data = np.stack([ends, starts], axis=1).astype(">i8").tobytes()
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_BOUNDS_BYTES), len(ends), [None, pa.py_buffer(data)]
    )
    return fixed.cast(pa.binary())

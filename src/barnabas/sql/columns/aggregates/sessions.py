"""The aggregate of a batch by key and session window.

    records of a key ─▶ the session that each extends or begins ─▶ one state for each session

Each time a session grows, it leaves a tombstone with its earlier bounds: tombstones go to the sink
as columns. Its row is made once, from its last state; with HAVING, from the last one that is a
result (`session_results.py`). Keys whose records come in the order of their times are handled
together, others one record after the other. The row engine decides about a batch in which a record
merges two sessions, as states are then merged in an order of their own, and, with EMIT FINAL, about
one in which a record extends a session that the batch has closed before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql.columns.aggregates.adding import Argument, columns_to_add
from barnabas.sql.columns.aggregates.having import Having
from barnabas.sql.columns.aggregates.session_results import Batch, Results, Stored, batch_of, shown
from barnabas.sql.columns.aggregates.session_spans import Clock, Spans, spans_of
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.streams import Made
from barnabas.sql.columns.vectors import Indexes, key_codes
from barnabas.sql.errors import FAILURES
from barnabas.sql.runtime.aggregates import StateRow, failure
from barnabas.sql.runtime.records import Record, WindowBounds
from barnabas.sql.runtime.sessions import SessionAggregateNode
from barnabas.sql.runtime.stage import Emitted, Stage
from barnabas.sql.runtime.topics import TopicRecord, TopicWriter
from barnabas.sql.runtime.windows import NEVER

_BOUNDS_BYTES = 16


class SessionAggregate:
    """The aggregate of a stage with the sink behind it."""

    def __init__(
        self,
        stage: Stage,
        node: SessionAggregateNode,
        arguments: Sequence[Argument],
        having: Having | None,
        writer: Callable[[], TopicWriter],
    ) -> None:
        self._stage, self._node, self._having = stage, node, having
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
        if spans is None or (node.is_final and self._must_take_turns(spans, clock)):
            return None
        batch = batch_of(frame, columns, spans, keys, stored)
        results = self._results(batch)
        if results is None:
            return None
        self._note_late(frame, spans)
        self._put(batch, results.states)
        if not node.is_final:
            node.expire(int(frame.timestamps.max()))
            return self._made(batch, headers, results)
        given = headers or (lambda _: ())
        places = frame.places
        node.emit_closed(clock.closes.tolist(), lambda number: given(int(places[number])))
        node.expire(int(frame.timestamps.max()))
        return self._stage.emitted()

    def _must_take_turns(self, spans: Spans, clock: Clock) -> bool:
        """EMIT FINAL: return whether rows, or notes of HAVING, come out between changes."""
        if self._having is not None and spans.late:
            return True
        closed = np.concatenate([[NEVER], clock.closes[:-1]])
        is_result = spans.old_ends >= max(0, self._node.emitted_until)
        return bool(((spans.of >= 0) & is_result & (spans.old_ends < closed)).any())

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

    def _results(self, batch: Batch) -> Results | None:
        """Return None if the row engine must decide."""
        if self._having is not None and not self._node.is_final:
            return shown(batch, self._having, self._node.aggregation, self._arguments)
        states = self._states(batch)
        return Results(np.flatnonzero(batch.spans.has_grown()), batch.lasts, states, states)

    def _put(self, batch: Batch, states: Sequence[StateRow]) -> None:
        node = self._node
        places = list(map(node.place, batch.keys, batch.windows))
        new: list[StateRow | None] = list(states)
        for key, found, window in zip(batch.keys, batch.before, batch.windows, strict=True):
            if found is not None and found[0] != window:
                places.append(node.place(key, found[0]))
                new.append(None)
        node.put_all(places, new, int(batch.frame.timestamps.max()))

    def _states(self, batch: Batch) -> list[StateRow]:
        """The sessions' states with all of their records."""
        kept = self._node.aggregation.kept
        made = [batch.frame.columns[place].take(batch.lasts).to_list() for place in kept]
        width = len(made)
        for number, (column, argument) in enumerate(
            zip(batch.columns, self._arguments, strict=True)
        ):
            try:
                made.append(
                    argument.added_to_sessions(batch.states(width + number), batch.of, column)
                )
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
        batch: Batch,
        headers: Callable[[int], tuple[Header, ...]] | None,
        results: Results,
    ) -> Emitted | Made:
        """Tombstones of bounds that sessions had, and the sessions' rows, in the order of the
        records that they follow from."""
        spans, frame = batch.spans, batch.frame
        made = self._rows(batch, headers, results)
        written = [row for row in made if row is not None]
        known = np.array([row is not None for row in made], np.bool_)
        prefixes = self._prefixes(batch, results, made)
        gone = results.tombstones
        gone = gone[prefixes.is_valid().to_numpy(zero_copy_only=False)[spans.of[gone]]]
        if not written and not len(gone):
            return []
        gone_keys = pc.binary_join_element_wise(
            prefixes.take(pa.array(spans.of[gone])),
            _bounds(spans.old_ends[gone], spans.old_starts[gone]),
            pa.scalar(b"", pa.binary()),
        )
        of_rows = results.rows[known]
        records = np.concatenate([gone, of_rows])
        # Of one record the tombstone comes first.
        order = np.argsort(np.concatenate([2 * gone, 2 * of_rows + 1]), kind="stable")
        taken = pa.array(order)
        row_keys = pa.array([row.key for row in written], pa.binary())
        row_values = pa.array([row.value for row in written], pa.binary())
        stamps = np.array([row.timestamp_ms for row in written], np.int64)
        places = frame.places[records[order]]
        return Made(
            places,
            pa.concat_arrays([gone_keys, row_keys]).take(taken),
            pa.concat_arrays([pa.nulls(len(gone), pa.binary()), row_values]).take(taken),
            np.concatenate([spans.old_ends[gone], stamps])[order],
            None if headers is None else [headers(place) for place in places.tolist()],
            0,
        )

    def _rows(
        self,
        batch: Batch,
        headers: Callable[[int], tuple[Header, ...]] | None,
        results: Results,
    ) -> list[TopicRecord | None]:
        """The sessions' rows as bytes; None if one cannot be written."""
        node, write = self._node, self._writer().write
        spans, at = batch.spans, results.rows
        entries = zip(
            batch.frame.places[at].tolist(),
            spans.of[at].tolist(),
            map(WindowBounds, spans.starts[at].tolist(), spans.ends[at].tolist()),
            results.row_states,
            strict=True,
        )
        for place, session, window, state in entries:
            given = () if headers is None else headers(place)
            record = Record(list(batch.keys[session]), None, 0, None, given)
            node.send(record, window, None, state, window.end_ms)
        return [write(record) for _, record in self._stage.emitted()]

    def _prefixes(self, batch: Batch, results: Results, rows: Sequence[TopicRecord | None]) -> Any:
        """The sessions' keys as bytes, without bounds; NULL for those without tombstones."""
        spans = batch.spans
        found: dict[int, bytes] = {
            session: (row.key or b"")[:-_BOUNDS_BYTES]
            for session, row in zip(spans.of[results.rows].tolist(), rows, strict=True)
            if row is not None
        }
        node = self._node if self._having is None else self._having.node
        write = self._writer().write
        for session in np.unique(spans.of[results.tombstones]).tolist():
            if session not in found:
                window = batch.windows[session]
                node.forward(Record(list(batch.keys[session]), None, window.end_ms, window))
                for _, record in self._stage.emitted():
                    written = write(record)
                    if written is not None and written.key is not None:
                        found[session] = written.key[:-_BOUNDS_BYTES]
        return pa.array([found.get(session) for session in range(len(batch.keys))], pa.binary())


def _bounds(ends: Indexes, starts: Indexes) -> Any:
    """Bounds as they end the keys of a topic."""
    data = np.stack([ends, starts], axis=1).astype(">i8").tobytes()
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(_BOUNDS_BYTES), len(ends), [None, pa.py_buffer(data)]
    )
    return fixed.cast(pa.binary())

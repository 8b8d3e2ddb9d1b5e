"""The aggregate of a batch by key, and by tumbling or hopping window: each group of the state is
read once and written once, and only its last row is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from barnabas.sql.columns.aggregates.adding import Argument, columns_to_add
from barnabas.sql.columns.aggregates.having import Groups, Having, Shown
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.vectors import Indexes, Vector, combined, key_codes
from barnabas.sql.errors import FAILURES
from barnabas.sql.runtime.aggregates import StateRow, StreamAggregateNode, failure
from barnabas.sql.runtime.records import Record, WindowBounds
from barnabas.sql.runtime.stage import Emitted, Stage
from barnabas.sql.runtime.windows import NEVER, WindowedAggregateNode
from barnabas.sql.types import Value


class Late(NamedTuple):
    """Records of windows that are closed, the windows' starts, and the stream time after each
    record of the batch."""

    records: Indexes
    starts: Indexes
    stream_times: Indexes


class FrameAggregate:
    """The aggregate of a stage by time windows or without windows."""

    def __init__(
        self,
        stage: Stage,
        node: StreamAggregateNode | WindowedAggregateNode,
        arguments: Sequence[Argument],
        having: Having | None,
    ) -> None:
        self._stage, self._node, self._having = stage, node, having
        self._arguments = tuple(arguments)

    def run(
        self, frame: Frame, headers: Callable[[int], tuple[Header, ...]] | None
    ) -> Emitted | None:
        """Return the results of certain records; None, before anything has changed, if the row
        engine must decide."""
        columns = columns_to_add(frame, self._arguments)
        if columns is None:
            return None
        return self._aggregate(frame, columns, headers or (lambda _: ()))

    def _aggregate(
        self,
        frame: Frame,
        columns: Sequence[Vector | None],
        headers: Callable[[int], tuple[Header, ...]],
    ) -> Emitted | None:
        node, store = self._node, self._node.store
        assert store is not None
        if not len(frame):
            return []
        groups, late = self._grouped(frame)
        is_final = isinstance(node, WindowedAggregateNode) and node.is_final
        if is_final and self._having is not None and late is not None and len(late.records):
            return None  # notes of late records and of HAVING take turns
        firsts = groups.records[groups.first]
        key_rows = list(zip(*(key.take(firsts).to_list() for key in frame.keys), strict=True))
        starts = groups.starts[groups.first].tolist() if groups.starts is not None else None
        keys = (
            key_rows if starts is None else [(s, *k) for s, k in zip(starts, key_rows, strict=True)]
        )
        initial = node.aggregation.initial()
        stored = [store.get(key) or (NEVER, initial) for key in keys]
        stamps, states = [one[0] for one in stored], [one[1] for one in stored]
        shown = None
        if self._having is not None and not is_final:
            shown = self._shown(self._having, frame, columns, groups, states, key_rows)
            if shown is None:
                return None
        latest = np.array(stamps, np.int64)
        np.maximum.at(latest, groups.of, frame.timestamps[groups.records])
        changed = self._changed(frame, columns, groups, states)
        for place, timestamp_ms, state in zip(keys, latest.tolist(), changed, strict=True):
            store.put(place, [timestamp_ms, state])
        if isinstance(node, WindowedAggregateNode) and late is not None:
            if len(late.records):
                self._note_late(frame, late.records, late.starts)
            if node.is_final:
                self._close(node, frame, late.stream_times, headers)
            node.stream_time = int(late.stream_times[-1])
            node.latest_start = max([node.latest_start, *(starts or ())])
        if not is_final:
            self._emit(frame, groups, key_rows, (stamps, latest), changed, shown, headers)
        if isinstance(node, WindowedAggregateNode):
            node.expire()
        return self._stage.emitted()

    def _emit(
        self,
        frame: Frame,
        groups: Groups,
        key_rows: Sequence[tuple[Value, ...]],
        stamped: tuple[Sequence[int], Indexes],
        changed: Sequence[StateRow],
        shown: Shown | None,
        headers: Callable[[int], tuple[Header, ...]],
    ) -> None:
        """Emit the last row of each group. `stamped`: when the groups changed last, before the
        batch and after it."""
        node, (before, latest) = self._node, stamped
        ends, until = groups.last, latest
        if shown is not None:
            ends, until = shown.places, np.array(before, np.int64)
            counted = np.arange(len(groups.of)) <= ends[groups.of]
            times = frame.timestamps[groups.records[counted]]
            np.maximum.at(until, groups.of[counted], times)
        starts = None if groups.starts is None else groups.starts[groups.first].tolist()
        order = np.argsort(ends, kind="stable")
        for at in order[ends[order] >= 0].tolist():
            window = None
            if isinstance(node, WindowedAggregateNode) and starts is not None:
                window = WindowBounds(starts[at], starts[at] + node.size_ms)
            given = headers(int(frame.places[groups.records[ends[at]]]))
            record = Record(list(key_rows[at]), None, int(until[at]), window, given)
            if shown is None or shown.is_row[at]:
                node.send(record, window, None, changed[at], int(latest[at]))
            elif self._having is not None:
                self._having.node.forward(record)

    @staticmethod
    def _close(
        node: WindowedAggregateNode,
        frame: Frame,
        stream_times: Indexes,
        headers: Callable[[int], tuple[Header, ...]],
    ) -> None:
        """EMIT FINAL: emit the windows that the batch has closed."""
        of_batch = np.maximum.accumulate(frame.timestamps)
        latest_starts = np.maximum(of_batch // node.advance_ms * node.advance_ms, node.latest_start)
        places = frame.places
        node.emit_closed(
            (stream_times - node.grace_ms).tolist(),
            latest_starts.tolist(),
            lambda number: headers(int(places[number])),
        )

    def _shown(
        self,
        having: Having,
        frame: Frame,
        columns: Sequence[Vector | None],
        groups: Groups,
        states: Sequence[StateRow],
        key_rows: Sequence[tuple[Value, ...]],
    ) -> Shown | None:
        aggregation = self._node.aggregation
        others: list[Sequence[Value]] = []
        if groups.starts is not None and isinstance(self._node, WindowedAggregateNode):
            starts = groups.starts[groups.first]
            others += [starts.tolist(), (starts + self._node.size_ms).tolist()]
        others += [[row[place] for row in key_rows] for place in range(len(frame.keys))]
        return having.shown(
            aggregation,
            [frame.columns[place].take(groups.records) for place in aggregation.kept],
            [None if column is None else column.take(groups.records) for column in columns],
            groups,
            states,
            others,
        )

    def _changed(
        self,
        frame: Frame,
        columns: Sequence[Vector | None],
        groups: Groups,
        states: Sequence[StateRow],
    ) -> list[StateRow]:
        """The groups' new state rows."""
        lasts = groups.records[groups.last]
        kept = self._node.aggregation.kept
        made = [frame.columns[place].take(lasts).to_list() for place in kept]
        width = len(made)
        for number, (column, argument) in enumerate(zip(columns, self._arguments, strict=True)):
            before = [state[width + number] for state in states]
            taken = None if column is None else column.take(groups.records)
            try:
                made.append(argument.added(before, groups.of, taken))
            except FAILURES as error:
                raise failure(error) from error
        return [list(row) for row in zip(*made, strict=True)]

    def _grouped(self, frame: Frame) -> tuple[Groups, Late | None]:
        codes = key_codes(frame.keys, len(frame))
        node = self._node
        if not isinstance(node, WindowedAggregateNode):
            return _groups(codes, np.arange(len(frame), dtype=np.int64), None), None
        stamps = frame.timestamps
        stream_times = np.maximum(np.maximum.accumulate(stamps), node.stream_time)
        records, starts = _windows(stamps, node.size_ms, node.advance_ms)
        ends = starts + node.size_ms
        is_late = ends <= stream_times[records] - node.grace_ms
        late = Late(records[is_late], starts[is_late], stream_times)
        if is_late.any():
            records, starts = records[~is_late], starts[~is_late]
        _, window_codes = np.unique(starts, return_inverse=True)
        return _groups(combined(codes[records], window_codes), records, starts), late

    def _note_late(self, frame: Frame, records: Indexes, starts: Indexes) -> None:
        node = self._node
        assert isinstance(node, WindowedAggregateNode)
        distinct, back = np.unique(records, return_inverse=True)
        rows = frame.rows(distinct)
        for at, start_ms in zip(back.tolist(), starts.tolist(), strict=True):
            window = WindowBounds(start_ms, start_ms + node.size_ms)
            node.log(f"Skipping record for expired window {window}", rows[at], None)


def _groups(codes: Indexes, records: Indexes, starts: Indexes | None) -> Groups:
    if not len(codes):
        nothing = np.zeros(0, np.int64)
        return Groups(codes, records, starts, nothing, nothing)
    there = np.zeros(int(codes.max()) + 1, np.bool_)
    there[codes] = True
    of = (np.cumsum(there) - 1)[codes]
    places = np.arange(len(codes), dtype=np.int64)
    count = int(there.sum())
    last = np.zeros(count, np.int64)
    last[of] = places
    first = np.zeros(count, np.int64)
    first[of[::-1]] = places[::-1]
    return Groups(of, records, starts, first, last)


def _windows(stamps: Indexes, size_ms: int, advance_ms: int) -> tuple[Indexes, Indexes]:
    """The records' windows in order: which record, and when the window starts."""
    first = np.maximum(stamps - size_ms + advance_ms, 0) // advance_ms * advance_ms
    if size_ms == advance_ms:
        return np.arange(len(stamps), dtype=np.int64), first
    counts = np.maximum((stamps - first) // advance_ms + 1, 0)
    records = np.repeat(np.arange(len(stamps), dtype=np.int64), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return records, first[records] + (np.arange(len(records)) - before) * advance_ms

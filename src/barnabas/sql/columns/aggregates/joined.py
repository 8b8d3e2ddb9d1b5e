"""Operators that join a stream to a table and aggregate the joined rows.

Any record in doubt sends the whole batch through the row engine, after the table has its earlier
rows back: the batch may have changed it by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.sql.columns.aggregates.programs import Aggregated, aggregate_behind
from barnabas.sql.columns.frames import Frame, together
from barnabas.sql.columns.joins import Joining, JoinParts
from barnabas.sql.columns.merging import ByRows, Merged
from barnabas.sql.columns.steps import Step, run, steps_of
from barnabas.sql.columns.streams import Made
from barnabas.sql.columns.vectors import Indexes
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.records import Row
from barnabas.sql.runtime.stage import Channel, Emitted, Stage
from barnabas.sql.runtime.topics import TopicWriter


class JoinedAggregateProgram(Joining):
    """A stage with both, or two that run together, for whole batches."""

    def __init__(self, parts: JoinParts, after: Sequence[Step], aggregate: Aggregated) -> None:
        super().__init__(parts, after)
        self._aggregate = aggregate
        self._entries: dict[StoreKey, Any] = {}
        """Entries of the table before the batch, for the keys that it has changed."""

    def _joined(
        self, records: Merged, changes: Merged | None, seen: Indexes, cuts: Sequence[int]
    ) -> Emitted | Made | ByRows:
        self._entries.clear()
        made = self._aggregated(records, changes, seen, cuts)
        if made is not None:
            return made
        self._table.put_back(list(self._entries), list(self._entries.values()))
        return self._by_rows(records, changes)

    def _aggregated(
        self, records: Merged, changes: Merged | None, seen: Indexes, cuts: Sequence[int]
    ) -> Emitted | Made | None:
        """Return None if the row engine must decide."""
        frame = self._with_rows(records)
        if len(run(frame, self._before)):
            return None
        done = 0
        frames: list[Frame] = []
        for cut in cuts:
            if changes is not None:
                self._change(changes, done, cut)
                done = cut
            part = self._part(frame, seen, cuts, cut)
            self._look_up(part)
            if len(run(part, self._after)):
                return None
            frames.append(part)
        if changes is not None:
            self._change(changes, done, len(changes.frame))
        return self._aggregate.run(together(frames), records.headers_of())

    def _keep(
        self, keys: Sequence[StoreKey], rows: Sequence[Row | None], timestamps_ms: Sequence[int]
    ) -> None:
        for key, entry in zip(keys, self._table.stored(keys), strict=True):
            self._entries.setdefault(key, entry)
        super()._keep(keys, rows, timestamps_ms)


def joined_aggregate_program(
    parts: JoinParts,
    stage: Stage,
    functions: Mapping[str, Function],
    writer: Callable[[], TopicWriter],
    follower: Stage | None = None,
) -> JoinedAggregateProgram | None:
    """The operator for batches; None if it can only run row by row. `stage` has the join;
    `follower`: the one that takes its records, if it does not have the aggregate itself."""
    nodes, last = parts.behind, stage
    if follower is not None:
        if len(follower.inputs) != 1 or follower.takes_batches or len(follower.outputs) != 1:
            return None
        if not isinstance(follower.inputs[0], Channel):
            return None
        nodes, last = [*nodes[:-1], *follower.chain(0)], follower
    found = aggregate_behind(last, nodes, functions, writer)
    if found is None:
        return None
    between, aggregate = found
    after = steps_of(between, functions)
    return None if after is None else JoinedAggregateProgram(parts, after, aggregate)

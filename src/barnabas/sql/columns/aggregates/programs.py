"""Stages that aggregate a stream by its key: each group of a batch is read and written once.

    topic ─▶ filters, selections ─▶ groups of (key, window) ─▶ state ─▶ HAVING ─▶ last row of each

Used only if the result has the last row of each key and batch: then the rows in between need not be
computed. If a record of a batch is doubtful, the whole batch goes through the row engine, before
any state has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from barnabas.sql.columns.aggregates.adding import arguments_of
from barnabas.sql.columns.aggregates.having import Having
from barnabas.sql.columns.aggregates.sessions import SessionAggregate
from barnabas.sql.columns.aggregates.windows import FrameAggregate
from barnabas.sql.columns.frames import Frame, together
from barnabas.sql.columns.joins import Joining, JoinParts
from barnabas.sql.columns.merging import ByRows, Merged, Source
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.steps import (
    Step,
    needs_row,
    nodes_behind_source,
    only_renames,
    run,
    steps_of,
)
from barnabas.sql.columns.streams import Made
from barnabas.sql.columns.vectors import Indexes
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import TableSink, TableSource
from barnabas.sql.runtime.aggregates import AggregateNode, StreamAggregateNode
from barnabas.sql.runtime.forms import AggregateForm, FilterForm, SinkForm
from barnabas.sql.runtime.node import Node, StoreKey
from barnabas.sql.runtime.records import Row
from barnabas.sql.runtime.sessions import SessionAggregateNode
from barnabas.sql.runtime.stage import Channel, Emitted, Exit, Stage
from barnabas.sql.runtime.tables import TableFilterNode
from barnabas.sql.runtime.topics import TopicWriter
from barnabas.sql.runtime.windows import WindowedAggregateNode


class Aggregated(Protocol):
    """An aggregate and its sink, for frames."""

    def run(
        self, frame: Frame, headers: Callable[[int], tuple[Header, ...]] | None, /
    ) -> Emitted | Made | None:
        """Return the results of certain records; None, before anything has changed, if the row
        engine must decide. `headers`: of a record by its place, if any has some."""
        ...


class AggregateProgram:
    """A stage from a topic to an aggregate and its sink, for whole batches."""

    def __init__(
        self, source: Source, steps: Sequence[Step], aggregate: Aggregated, *, needs_rows: bool
    ) -> None:
        """`needs_rows`: a step may note something of a record without a row."""
        self._needs_rows = needs_rows
        self._source, self._steps = source, tuple(steps)
        self._aggregate = aggregate

    def run(self, inputs: Sequence[Sequence[Any]]) -> Emitted | Made | ByRows:
        """Return what comes out of the stage, or the records if the row engine must run them."""
        (raws,) = inputs
        merged = Merged(self._source, raws)
        frame, rowless = merged.frame, merged.rowless
        if self._needs_rows:
            frame.doubt |= rowless
        frame.keep(~rowless | frame.doubt)
        made: Emitted | Made | None = None
        if not len(run(frame, self._steps)):
            made = self._aggregate.run(frame, merged.headers_of())
        return ByRows(merged.records()) if made is None else made


def aggregate_program(
    stage: Stage,
    functions: Mapping[str, Function],
    source: Source | None,
    writer: Callable[[], TopicWriter],
    feeder: Stage | None = None,
) -> AggregateProgram | None:
    """The stage for batches; None if it can only run row by row. `source`: its input's, or that of
    the stage that feeds it."""
    if len(stage.inputs) != 1 or stage.takes_batches or len(stage.outputs) != 1:
        return None
    if source is None or isinstance(stage.inputs[0], TableSource):
        return None
    found = aggregate_behind(stage, nodes_behind_source(stage, 0, feeder), functions, writer)
    if found is None:
        return None
    between, aggregate = found
    steps = steps_of(between, functions)
    if steps is None:
        return None
    return AggregateProgram(source, steps, aggregate, needs_rows=any(map(needs_row, between)))


def aggregate_behind(
    stage: Stage,
    nodes: Sequence[Node],
    functions: Mapping[str, Function],
    writer: Callable[[], TopicWriter],
) -> tuple[Sequence[Node], Aggregated] | None:
    """The nodes before the only aggregate among `nodes`, which end a stage, and that aggregate
    with what follows. Return None for no aggregate or one that can only run row by row."""
    places = [at for at, node in enumerate(nodes) if isinstance(node, AggregateNode)]
    if len(places) != 1:
        return None
    between, node, after = nodes[: places[0]], nodes[places[0]], nodes[places[0] + 1 :]
    condition: tuple[TableFilterNode, FilterForm] | None = None
    if isinstance(after[0], TableFilterNode) and isinstance(after[0].form, FilterForm):
        condition, after = (after[0], after[0].form), after[1:]
    form = node.form
    if not isinstance(node, AggregateNode) or not isinstance(form, AggregateForm):
        return None
    if not _only_shows(after) or (node.sends_old and condition is None):
        return None
    arguments = arguments_of(form, node, functions)
    if arguments is None:
        return None
    having = None
    if condition is not None:
        having = Having(*condition, functions, [argument.each for argument in arguments])
    if isinstance(node, SessionAggregateNode):
        return between, SessionAggregate(stage, node, arguments, having, writer)
    if not isinstance(node, StreamAggregateNode | WindowedAggregateNode):
        return None
    return between, FrameAggregate(stage, node, arguments, having)


def _only_shows(nodes: Sequence[Node]) -> bool:
    """Return whether the nodes behind the aggregate make of each row one that cannot fail."""
    if len(nodes) < 2:
        return False
    *between, last, end = nodes
    if not isinstance(end, Exit) or not isinstance(last.form, SinkForm):
        return False
    if not isinstance(last.form.step, TableSink):
        return False
    return all(map(only_renames, between))


# --- behind a join of a stream to a table ------------------------------------------------------
#
# Any record in doubt sends the whole batch through the row engine, after the table has its earlier
# rows back: the batch may have changed it by then.


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
        frames: list[Frame] = []
        for _, part in self._parts(frame, changes, seen, cuts):
            if len(run(part, self._after)):
                return None
            frames.append(part)
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

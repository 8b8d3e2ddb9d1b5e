"""Stages that aggregate a stream by its key: each group of a batch is read and written once.

    topic ─▶ filters, selections ─▶ groups of (key, window) ─▶ state ─▶ HAVING ─▶ last row of each

Used only if the result has the last row of each key and batch: then the rows in between need not be
computed. If a record of a batch is doubtful, the whole batch goes through the row engine, before
any state has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from barnabas.java.numbers import wrap_bigint, wrap_integer
from barnabas.sql.columns.compiling import Kernel
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.having import EachState, Groups, Having, Shown, each_count, each_state
from barnabas.sql.columns.kernels import KernelCompiler
from barnabas.sql.columns.merging import ByRows, Merged, Source
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.steps import Step, needs_row, only_renames, run, steps_of
from barnabas.sql.columns.vectors import (
    KEYS,
    WHOLE,
    Indexes,
    Numbers,
    Vector,
    codes_of,
    combined,
)
from barnabas.sql.errors import FAILURES
from barnabas.sql.functions.aggregates.base import Fold
from barnabas.sql.functions.aggregates.extremes import Extreme
from barnabas.sql.functions.catalog import Aggregator, Function
from barnabas.sql.plan.steps import TableSink, TableSource
from barnabas.sql.runtime.aggregates import (
    AggregateNode,
    StateRow,
    StreamAggregateNode,
    failure,
)
from barnabas.sql.runtime.forms import AggregateForm, FilterForm, SinkForm
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.stage import Channel, Emitted, Exit, Stage
from barnabas.sql.runtime.tables import TableFilterNode
from barnabas.sql.runtime.windows import NEVER, WindowedAggregateNode
from barnabas.sql.syntax.expressions import FunctionCall
from barnabas.sql.types import BaseType, Value


class Late(NamedTuple):
    """Records of windows that are closed, the windows' starts, and the stream time after each
    record of the batch."""

    records: Indexes
    starts: Indexes
    stream_times: Indexes


AddAll = Callable[[list[Value], Indexes, Vector], list[Value]]
"""The states of groups with all values of a column added: each value has its group's number."""


class Aggregated(Protocol):
    """An aggregate and its sink, for frames."""

    def run(self, frame: Frame, headers: Callable[[int], tuple[Header, ...]], /) -> Emitted | None:
        """Return what comes of certain records; None, before anything has changed, if the row
        engine must decide."""
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

    def run(self, inputs: Sequence[Sequence[Any]]) -> Emitted | ByRows:
        """Return what comes out of the stage, or the records if the row engine must run them."""
        (raws,) = inputs
        merged = Merged(self._source, raws)
        frame, rowless = merged.frame, merged.rowless
        if self._needs_rows:
            frame.doubt |= rowless
        frame.keep(~rowless | frame.doubt)
        made = None
        if not len(run(frame, self._steps)):
            made = self._aggregate.run(frame, merged.headers)
        return ByRows(merged.records()) if made is None else made


class FrameAggregate:
    """The aggregate of a stage by time windows or without windows."""

    def __init__(
        self,
        stage: Stage,
        node: StreamAggregateNode | WindowedAggregateNode,
        arguments: Sequence[tuple[Kernel | None, AddAll]],
        having: Having | None,
    ) -> None:
        self._stage, self._node, self._having = stage, node, having
        self._arguments = tuple(arguments)

    def run(self, frame: Frame, headers: Callable[[int], tuple[Header, ...]]) -> Emitted | None:
        """Return what comes of certain records; None, before anything has changed, if the row
        engine must decide."""
        columns = [None if kernel is None else kernel(frame) for kernel, _ in self._arguments]
        if frame.doubt.any():
            return None
        if frame.has_key is not None:  # records without a key count nowhere
            kept = np.flatnonzero(frame.has_key)
            columns = [None if column is None else column.take(kept) for column in columns]
            frame.keep(frame.has_key)
        return self._aggregate(frame, columns, headers)

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
        for number, (column, (_, add)) in enumerate(zip(columns, self._arguments, strict=True)):
            before = [state[width + number] for state in states]
            if column is None:
                counts = np.bincount(groups.of, minlength=len(states)).tolist()
                made.append([one + more for one, more in zip(before, counts, strict=True)])
                continue
            try:
                made.append(add(before, groups.of, column.take(groups.records)))
            except FAILURES as error:
                raise failure(error) from error
        return [list(row) for row in zip(*made, strict=True)]

    def _grouped(self, frame: Frame) -> tuple[Groups, Late | None]:
        codes = np.zeros(len(frame), np.int64)
        for key in frame.keys:
            codes = combined(codes, codes_of(key))
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
        columns = [column.take(distinct).to_list() for column in frame.columns]
        rows: list[Row] = (
            [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in distinct]
        )
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


# --- aggregates ------------------------------------------------------------------------------


def _one_by_one(aggregator: Aggregator) -> AddAll:
    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        found = list(states)
        plus = aggregator.add
        for group, value in zip(of.tolist(), column.to_list(), strict=True):
            found[group] = plus(found[group], value)
        return found

    return add


def _count(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
    counted = of if column.valid is None else of[column.valid]
    counts = np.bincount(counted, minlength=len(states)).tolist()
    return [one + more for one, more in zip(states, counts, strict=True)]


def _sums(zero: Numbers, of: Indexes, column: Vector) -> Numbers:
    """Sums from `zero` on, in the order of the records."""
    data = column.data
    if column.valid is not None:
        of, data = of[column.valid], data[column.valid]
    with np.errstate(all="ignore"):
        np.add.at(zero, of, data)
    return zero


def _sum(base: BaseType) -> AddAll:
    dtype = np.float64 if base is BaseType.DOUBLE else np.int64

    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        found: list[Value] = _sums(np.array(states, dtype), of, column).tolist()
        return list(map(wrap_integer, found)) if base is BaseType.INTEGER else found

    return add


def _average(base: BaseType) -> AddAll:
    is_double = base is BaseType.DOUBLE
    dtype = np.float64 if is_double else np.int64
    wrap: Callable[[Value], Value] = float if is_double else wrap_bigint

    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        sums = _sums(np.array([state["SUM"] for state in states], dtype), of, column)
        counts = _count([state["COUNT"] for state in states], of, column)
        return [
            {"SUM": wrap(total), "COUNT": count}
            for total, count in zip(sums.tolist(), counts, strict=True)
        ]

    return add


def _extreme(*, is_least: bool) -> AddAll:
    bounds = np.iinfo(np.int64)
    worst = bounds.max if is_least else bounds.min
    choose = np.minimum if is_least else np.maximum

    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        data = column.data
        if column.valid is not None:
            of, data = of[column.valid], data[column.valid]
        found = np.array([worst if state is None else state for state in states], np.int64)
        choose.at(found, of, data)
        has = np.array([state is not None for state in states], np.bool_)
        has[of] = True
        pairs = zip(found.tolist(), has.tolist(), strict=True)
        return [value if there else None for value, there in pairs]

    return add


def _adding(call: FunctionCall, aggregator: Aggregator, base: BaseType | None) -> AddAll:
    name = call.name.upper()
    is_number = base in (BaseType.INTEGER, BaseType.BIGINT, BaseType.DOUBLE)
    if isinstance(aggregator, Fold) and name == "COUNT":
        return _count
    if isinstance(aggregator, Fold) and name == "SUM" and is_number and base is not None:
        return _sum(base)
    if isinstance(aggregator, Extreme) and base in WHOLE and name in ("MIN", "MAX"):
        return _extreme(is_least=name == "MIN")
    if name == "AVG" and is_number and base is not None:
        return _average(base)
    return _one_by_one(aggregator)


# --- making it -------------------------------------------------------------------------------


def aggregate_program(
    stage: Stage,
    functions: Mapping[str, Function],
    source: Source | None,
    feeder: Stage | None = None,
) -> AggregateProgram | None:
    """The stage for batches; None if it can only run row by row. `source`: its input's, or that of
    the stage that feeds it."""
    if len(stage.inputs) != 1 or stage.takes_batches or len(stage.outputs) != 1:
        return None
    given = stage.inputs[0]
    if source is None or isinstance(given, TableSource):
        return None
    keys = given.keys if isinstance(given, Channel) else given.schema.key
    if any(column.type.base not in KEYS for column in keys):
        return None
    nodes = stage.chain(0)[1:]
    if feeder is not None:
        nodes = [*feeder.chain(0)[1:-1], *nodes]
    found = aggregate_behind(stage, nodes, functions)
    if found is None:
        return None
    between, aggregate = found
    steps = steps_of(between, functions)
    if steps is None:
        return None
    return AggregateProgram(source, steps, aggregate, needs_rows=any(map(needs_row, between)))


def aggregate_behind(
    stage: Stage, nodes: Sequence[Node], functions: Mapping[str, Function]
) -> tuple[Sequence[Node], FrameAggregate] | None:
    """The nodes before the only aggregate among `nodes`, which end a stage, and that aggregate
    with what follows; None if there is none or it can only run row by row."""
    places = [at for at, node in enumerate(nodes) if isinstance(node, AggregateNode)]
    if len(places) != 1:
        return None
    between, node, after = nodes[: places[0]], nodes[places[0]], nodes[places[0] + 1 :]
    if not isinstance(node, StreamAggregateNode | WindowedAggregateNode):
        return None
    condition: tuple[TableFilterNode, FilterForm] | None = None
    if isinstance(after[0], TableFilterNode) and isinstance(after[0].form, FilterForm):
        condition, after = (after[0], after[0].form), after[1:]
    elif node.sends_old:
        return None
    form = node.form
    if not isinstance(form, AggregateForm) or not _only_shows(after):
        return None
    arguments = _arguments(form, node, functions)
    if arguments is None:
        return None
    having = None
    if condition is not None:
        each = [each for _, _, each in arguments]
        having = Having(*condition, functions, each)
    adding = [(kernel, add) for kernel, add, _ in arguments]
    return between, FrameAggregate(stage, node, adding, having)


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


def _arguments(
    form: AggregateForm, node: AggregateNode, functions: Mapping[str, Function]
) -> list[tuple[Kernel | None, AddAll, EachState]] | None:
    compiler = KernelCompiler(form.columns, functions)
    found: list[tuple[Kernel | None, AddAll, EachState]] = []
    for call, aggregator in zip(form.calls, node.aggregation.aggregators, strict=True):
        if not call.arguments:
            if call.name.upper() != "COUNT":
                return None
            found.append((None, _count, each_count))
            continue
        changing = node.aggregation.column_counts[len(found)]
        if changing != 1:
            return None
        sql_type = compiler.type_of(call.arguments[0])
        base = None if sql_type is None else sql_type.base
        kernel = compiler.kernel(call.arguments[0])
        each = each_state(call, aggregator, base)
        found.append((kernel, _adding(call, aggregator, base), each))
    return found

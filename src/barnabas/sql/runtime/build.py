"""From a plan to its stages: makes a node of each step, and cuts where records get a new key.

The walk goes from the sink to the sources and connects on the way back. A `Flow` is what a step
gives to the one that reads it. Streams keep in mind that their key changed, and are cut only where
a step needs the records of a key together (a join, an aggregate), as Kafka Streams does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import QueryPlan, Step
from barnabas.sql.runtime import tables as table_nodes
from barnabas.sql.runtime.aggregates import (
    AggregateNode,
    Aggregation,
    StreamAggregateNode,
    TableAggregateNode,
)
from barnabas.sql.runtime.ends import SinkNode, source_columns, timestamp_reader
from barnabas.sql.runtime.evaluation import Compiler, Log, no_log
from barnabas.sql.runtime.forms import (
    AggregateForm,
    FilterForm,
    JoinForm,
    KeyForm,
    SelectForm,
    SinkForm,
    SourceForm,
)
from barnabas.sql.runtime.graph import Flow, Graph, Parts, changed
from barnabas.sql.runtime.layout import Joiner, Layout, joiner, picker
from barnabas.sql.runtime.mentions import mentioned_names, names_of, references
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.sessions import SessionAggregateNode
from barnabas.sql.runtime.stage import Exit, Result, StagedPlan
from barnabas.sql.runtime.stream_joins import StreamStreamJoinNode, StreamTableJoinNode
from barnabas.sql.runtime.streams import (
    Completion,
    FlatMapNode,
    SelectKeyNode,
    StreamFilterNode,
    StreamGroupByNode,
    StreamSelectNode,
    StreamSourceNode,
    grouper,
)
from barnabas.sql.runtime.table_joins import (
    ResponseNode,
    SubscriptionNode,
    SubscriptionSendNode,
    TableTableJoinNode,
)
from barnabas.sql.runtime.windows import WindowedAggregateNode
from barnabas.sql.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression, NullLiteral
from barnabas.sql.syntax.tree import JoinKind, WindowKind


def build(plan: QueryPlan, compiler: Compiler, log: Log = no_log) -> StagedPlan:
    """The plan, ready to run."""
    builder = _PlanBuilder(compiler, log, mentioned_names(plan.step))
    if isinstance(plan.step, steps.StreamSink | steps.TableSink):
        builder.visit(plan.step)
    else:
        builder.end(builder.visit(plan.step), Result(plan.step.schema), None)
    return StagedPlan(plan, builder.stages(), tuple(builder.channels))


class _PlanBuilder(Graph):
    def visit(self, step: Step) -> Flow:
        return _VISITORS[type(step)](self, step)

    # --- sources and sinks -------------------------------------------------------------------

    def source(self, step: steps.StreamSource | steps.TableSource) -> Flow:
        layout, extras = source_columns(step.schema, step.window, self.mentioned)
        fails = self.compiler.fails_on_timestamps
        timestamp = timestamp_reader(
            step.schema, step.timestamp, self.compiler, self.log, fails=fails
        )
        completion = Completion(extras, timestamp, self.log)
        node: Node
        if isinstance(step, steps.StreamSource):
            node = StreamSourceNode(completion)
        else:
            node = table_nodes.TableSourceNode(
                self.name("Source"), completion, is_rekeyed=self._is_below_rekeying
            )
        if step.timestamp is None:
            node.form = SourceForm(step, layout)
        parts = self.new_parts()
        parts.nodes.append(node)
        parts.inputs.append((step, node.process))
        has_sessions = step.window is not None and step.window.kind is WindowKind.SESSION
        return Flow(node, layout, step.schema.key, parts, has_sessions)

    _is_below_rekeying = False

    def sink(self, step: steps.StreamSink | steps.TableSink) -> Flow:
        return self.end(self.visit(step.source), step, step.timestamp)

    def end(
        self,
        flow: Flow,
        output: steps.StreamSink | steps.TableSink | Result,
        timestamp: steps.TimestampColumn | None,
    ) -> Flow:
        """Let a flow out, with the columns of the output's schema."""
        schema = output.schema
        places = flow.layout.places(names_of(schema.value))
        pick = picker(places, len(flow.layout.columns))
        read = timestamp_reader(schema, timestamp, self.compiler, self.log)
        node = SinkNode(self.name("Sink"), pick, read)
        if read is None and not isinstance(output, Result):
            node.form = SinkForm(output, places)
        parts = self.next(flow, node)
        out = Exit()
        node.forward = out.process
        parts.outputs.append((output, out))
        return Flow(node, Layout(schema.value), schema.key, parts)

    # --- steps without state -----------------------------------------------------------------

    def filter(self, step: steps.StreamFilter | steps.TableFilter) -> Flow:
        flow = self.visit(step.source)
        condition = self.compiler.expression(step.condition, flow.layout.columns)
        node: Node
        if isinstance(step, steps.StreamFilter):
            node = StreamFilterNode(condition, self.log)
        else:
            node = table_nodes.TableFilterNode(flow.table, condition, self.log)
        node.form = FilterForm(step.condition, flow.layout.columns)
        return replace(flow, node=node, parts=self.next(flow, node))

    def select(self, step: steps.StreamSelect | steps.TableSelect) -> Flow:
        flow = self.visit(step.source)
        source = flow.layout
        expressions = {column.name: column.expression for column in step.selected}
        for new, old in zip(step.key_names, names_of(flow.keys), strict=False):
            expressions.setdefault(new, ColumnReference(old))
        hidden = [
            *(c for c in step.schema.key if self._has_key(c, expressions, source)),
            *(c for c in source.columns if c.name in PSEUDO_COLUMNS or c.name in WINDOW_BOUNDS),
        ]
        layout = Layout(step.schema.value).with_hidden(hidden, self.mentioned)
        self.batched.clear()
        made = [expressions.get(c.name, ColumnReference(c.name)) for c in layout.columns]
        columns = [
            self.getter(made_by, source, f"Error computing expression for column {column.name}")
            for made_by, column in zip(made, layout.columns, strict=True)
        ]
        node: Node
        key_places = None
        if isinstance(step, steps.StreamSelect):
            key_places = _kept_keys(step.schema.key, flow.keys)
            node = StreamSelectNode(columns, key_places, tuple(self.batched))
        else:
            node = table_nodes.TableSelectNode(flow.table, columns)
        node.form = SelectForm(made, source.columns, key_places)
        return replace(
            flow, node=node, layout=layout, keys=step.schema.key, parts=self.next(flow, node)
        )

    @staticmethod
    def _has_key(column: Column, expressions: dict[str, Expression], source: Layout) -> bool:
        of = expressions.get(column.name)
        return isinstance(of, ColumnReference) and source.place(of.name) is not None

    def flat_map(self, step: steps.StreamFlatMap) -> Flow:
        flow = self.visit(step.source)
        functions = [
            self.compiler.table_function(call, flow.layout.columns) for call in step.functions
        ]
        made = [
            _column(step.schema, f"KSQL_SYNTH_{number}") for number in range(len(step.functions))
        ]
        layout = Layout(step.schema.value).with_hidden(flow.layout.columns, self.mentioned)
        wide = Layout((*made, *flow.layout.columns))
        count = len(flow.layout.columns)
        places = [
            place + count if place < len(made) else place - len(made)
            for place in wide.places(names_of(layout.columns))
        ]
        node = FlatMapNode(
            functions,
            [call.name for call in step.functions],
            picker(places, count + len(made)),
            self.log,
        )
        return replace(flow, node=node, layout=layout, parts=self.next(flow, node))

    # --- new keys and groups -----------------------------------------------------------------

    def select_key(self, step: steps.StreamSelectKey | steps.TableSelectKey) -> Flow:
        is_table = isinstance(step, steps.TableSelectKey)
        outer, self._is_below_rekeying = self._is_below_rekeying, True
        flow = self.visit(step.source)
        self._is_below_rekeying = outer
        by = () if _is_null(step.expressions) else step.expressions
        source, keys = flow.layout, names_of(flow.keys)
        getters = [
            self.getter(expression, source, "Error computing new key from expression")
            for expression in by
        ]
        of_key = [references(expression) <= set(keys) for expression in by]
        layout, pick, places = self.derive(source, step.schema.key if by else (), step.schema)
        node = SelectKeyNode(getters, of_key, _key_row(source, keys), pick)
        node.form = KeyForm(by, source.columns, places, is_group=False)
        parts = self.next(flow, node)
        keys_now = step.schema.key if by else ()
        rekeyed = Flow(node, layout, keys_now, parts, flow.has_sessions, is_rekeyed=True)
        if not is_table:
            return rekeyed
        rekeyed = self.cut(rekeyed, self.name("SelectKey"))
        table = table_nodes.ToTableNode(self.name("Rekeyed"))
        return replace(rekeyed, node=table, parts=self.next(rekeyed, table))

    def group_by(self, step: steps.StreamGroupBy | steps.TableGroupBy) -> Flow:
        flow = self.visit(step.source)
        group = grouper(
            [self.compiler.expression(e, flow.layout.columns) for e in step.expressions], self.log
        )
        layout, pick, places = self.derive(flow.layout, step.schema.key, step.schema)
        node: Node
        if isinstance(step, steps.StreamGroupBy):
            node = StreamGroupByNode(group, pick)
            node.form = KeyForm(step.expressions, flow.layout.columns, places, is_group=True)
        else:
            node = table_nodes.TableGroupByNode(flow.table, group, pick)
        grouped = Flow(node, layout, step.schema.key, self.next(flow, node))
        return self.through_channel(grouped, self.name("GroupBy"))

    def group_by_key(self, step: steps.StreamGroupByKey) -> Flow:
        flow = self.visit(step.source)
        return self.cut(flow, self.name("GroupBy")) if flow.is_rekeyed else flow

    # --- aggregates --------------------------------------------------------------------------

    def aggregate(
        self, step: steps.StreamAggregate | steps.StreamWindowedAggregate | steps.TableAggregate
    ) -> Flow:
        flow = self.visit(step.source)
        is_windowed = isinstance(step, steps.StreamWindowedAggregate)
        kept = flow.layout.places(step.kept)
        made = [flow.layout.columns[place] for place in kept] + [
            _column(step.schema, f"KSQL_AGG_VARIABLE_{number}")
            for number in range(len(step.functions))
        ]
        bounds = [Column(name, of) for name, of in WINDOW_BOUNDS.items()] if is_windowed else []
        wide = Layout((*made, *bounds, *flow.keys))
        layout = Layout(step.schema.value).with_hidden((*bounds, *flow.keys), self.mentioned)
        pick = changed(wide.places(names_of(layout.columns)), len(made), len(wide.columns))
        aggregation = Aggregation(
            kept,
            [self.compiler.aggregate(call, flow.layout.columns) for call in step.functions],
            pick,
            self.log,
        )
        node = self._aggregate_node(step, aggregation)
        node.form = AggregateForm(step.functions, flow.layout.columns)
        parts = self.next(flow, node)
        return replace(flow, node=node, layout=layout, keys=step.schema.key, parts=parts)

    def _aggregate_node(
        self,
        step: steps.StreamAggregate | steps.StreamWindowedAggregate | steps.TableAggregate,
        aggregation: Aggregation,
    ) -> AggregateNode:
        name = self.name("Aggregate")
        if isinstance(step, steps.StreamAggregate):
            return StreamAggregateNode(name, aggregation)
        if isinstance(step, steps.TableAggregate):
            return TableAggregateNode(name, aggregation)
        if step.window.kind is WindowKind.SESSION:
            return SessionAggregateNode(name, aggregation, step.window, self.log)
        return WindowedAggregateNode(name, aggregation, step.window, self.log)

    def suppress(self, step: steps.TableSuppress) -> Flow:
        """EMIT FINAL is the windowed aggregate's own affair, as in Kafka Streams since 3.3."""
        flow = self.visit(step.source)
        node: Node = flow.node
        while isinstance(node, table_nodes.DerivedTable):
            node = node.parent
        assert isinstance(node, WindowedAggregateNode | SessionAggregateNode), "no windows"
        node.is_final = True
        return flow

    # --- joins -------------------------------------------------------------------------------

    def stream_stream_join(self, step: steps.StreamStreamJoin) -> Flow:
        keeps = (_keeps_left(step.kind), _keeps_right(step.kind))
        name = self.name("Join")
        left, right = self.visit(step.left), self.visit(step.right)
        if left.is_rekeyed:
            left = self.cut(left, f"{name}-left", keeps_no_key=keeps[0])
        if right.is_rekeyed:
            right = self.cut(right, f"{name}-right", keeps_no_key=keeps[1])
        layout, join = self._joined(left, right, step)
        has_sessions = left.has_sessions
        node = StreamStreamJoinNode(name, step.within, join, keeps, has_sessions=has_sessions)
        node.form = _join_form(left, right, step, layout, is_left=keeps[0])
        parts = self._together(left, right, node, node.process_left, node.process_right)
        return Flow(node, layout, step.schema.key, parts, has_sessions)

    def stream_table_join(self, step: steps.StreamTableJoin) -> Flow:
        is_left = _keeps_left(step.kind)
        name = self.name("Join")
        left, right = self.visit(step.left), self.visit(step.right)
        if left.is_rekeyed:
            left = self.cut(left, name, keeps_no_key=is_left)
        layout, join = self._joined(left, right, step)
        right.table.need_view()
        node = StreamTableJoinNode(right.table, join, is_left=is_left)
        node.form = _join_form(left, right, step, layout, is_left=is_left)
        parts = self.next(left, node)
        parts.take_in(right.parts.root())
        return Flow(node, layout, step.schema.key, parts)

    def table_table_join(self, step: steps.TableTableJoin) -> Flow:
        left, right = self.visit(step.left), self.visit(step.right)
        layout, join = self._joined(left, right, step)
        node = TableTableJoinNode(step.kind, left.table, right.table, join)
        parts = self._together(left, right, node, node.process_left, node.process_right)
        return Flow(node, layout, step.schema.key, parts)

    def foreign_key_join(self, step: steps.ForeignKeyJoin) -> Flow:
        left, right = self.visit(step.left), self.visit(step.right)
        name, is_left_join = self.name("ForeignKeyJoin"), _keeps_left(step.kind)
        foreign_key = self.getter(
            step.foreign_key, left.layout, "Error calculating left join expression"
        )
        send = SubscriptionSendNode(left.table, foreign_key, is_left_join=is_left_join)
        left_parts = self.next(left, send)
        subscriptions = SubscriptionNode(f"{name}-subscriptions", right.table)
        right_parts = self.next(right, subscriptions, subscriptions.process_right)
        rows = table_nodes.ToTableNode(f"{name}-left")
        layout, join = self._joined(left, right, step)
        response = ResponseNode(f"{name}-result", rows, join, is_left_join=is_left_join)
        result_parts = self.new_parts()
        result_parts.nodes += [rows, response]
        copied = Node()
        send.forward_row = copied.process
        copies = replace(left, node=copied, parts=left_parts)
        self.channel(copies, f"{name}-row", result_parts, rows.process)
        sent = replace(left, node=send, parts=left_parts)
        self.channel(sent, f"{name}-subscribe", right_parts, subscriptions.process)
        answers = replace(right, node=subscriptions, parts=right_parts)
        self.channel(answers, f"{name}-answer", result_parts, response.process)
        return Flow(response, layout, step.schema.key, result_parts)

    def _together(
        self,
        left: Flow,
        right: Flow,
        node: Node,
        process_left: Callable[[Record], None],
        process_right: Callable[[Record], None],
    ) -> Parts:
        parts = self.next(left, node, process_left)
        parts.take_in(right.parts.root())
        self.next(right, node, process_right)
        return parts

    def _joined(
        self,
        left: Flow,
        right: Flow,
        step: (
            steps.StreamStreamJoin
            | steps.StreamTableJoin
            | steps.TableTableJoin
            | steps.ForeignKeyJoin
        ),
    ) -> tuple[Layout, Joiner]:
        both = Layout(left.layout.columns + right.layout.columns)
        layout, pick, _ = self.derive(both, step.schema.key, step.schema, prefers_made=False)
        return layout, joiner(len(left.layout.columns), len(right.layout.columns), pick)


def _join_form(
    left: Flow,
    right: Flow,
    step: steps.StreamStreamJoin | steps.StreamTableJoin,
    layout: Layout,
    *,
    is_left: bool,
) -> JoinForm:
    wide = Layout((*left.layout.columns, *right.layout.columns, *step.schema.key))
    places = wide.places(names_of(layout.columns))
    return JoinForm(left.layout, right.layout, places, is_left=is_left)


def _keeps_left(kind: JoinKind) -> bool:
    return kind in (JoinKind.LEFT, JoinKind.OUTER)


def _keeps_right(kind: JoinKind) -> bool:
    return kind in (JoinKind.RIGHT, JoinKind.OUTER)


def _column(schema: Schema, name: str) -> Column:
    column = schema.find(name)
    if column is None:
        raise LookupError(f"no column {name} in {schema}")
    return column


def _kept_keys(wanted: Sequence[Column], keys: Sequence[Column]) -> list[int] | None:
    """Places of the key's columns that a selection keeps; None if it keeps all."""
    if len(wanted) == len(keys):
        return None
    return Layout(tuple(keys)).places(names_of(wanted))


def _is_null(expressions: Sequence[Expression]) -> bool:
    return len(expressions) == 1 and isinstance(expressions[0], NullLiteral)


def _key_row(layout: Layout, keys: Sequence[str]) -> Callable[[Row | None], Row]:
    """Return what makes a row of a key alone, for records without a value."""
    width = len(layout.columns)
    places = [layout.place(name) for name in keys]

    def row_of(key: Row | None) -> Row:
        row: list[Any] = [None] * width
        for place, value in zip(places, key or (), strict=False):
            if place is not None:
                row[place] = value
        return row

    return row_of


_VISITORS: dict[type[Any], Callable[[_PlanBuilder, Any], Flow]] = {
    steps.StreamSource: _PlanBuilder.source,
    steps.TableSource: _PlanBuilder.source,
    steps.StreamFilter: _PlanBuilder.filter,
    steps.TableFilter: _PlanBuilder.filter,
    steps.StreamSelect: _PlanBuilder.select,
    steps.TableSelect: _PlanBuilder.select,
    steps.StreamSelectKey: _PlanBuilder.select_key,
    steps.TableSelectKey: _PlanBuilder.select_key,
    steps.StreamFlatMap: _PlanBuilder.flat_map,
    steps.StreamGroupBy: _PlanBuilder.group_by,
    steps.StreamGroupByKey: _PlanBuilder.group_by_key,
    steps.TableGroupBy: _PlanBuilder.group_by,
    steps.StreamAggregate: _PlanBuilder.aggregate,
    steps.StreamWindowedAggregate: _PlanBuilder.aggregate,
    steps.TableAggregate: _PlanBuilder.aggregate,
    steps.TableSuppress: _PlanBuilder.suppress,
    steps.StreamStreamJoin: _PlanBuilder.stream_stream_join,
    steps.StreamTableJoin: _PlanBuilder.stream_table_join,
    steps.TableTableJoin: _PlanBuilder.table_table_join,
    steps.ForeignKeyJoin: _PlanBuilder.foreign_key_join,
    steps.StreamSink: _PlanBuilder.sink,
    steps.TableSink: _PlanBuilder.sink,
}

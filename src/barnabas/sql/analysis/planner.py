"""From an analysed query to the plan that runs it, and to the sink that it may make."""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.sql.analysis.aggregate_node import AggregateNode, window_of
from barnabas.sql.analysis.environment import Environment, check_condition
from barnabas.sql.analysis.joins import join_node
from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.analysis.new_keys import PartitionByNode
from barnabas.sql.analysis.nodes import BuildContext, FilterNode, FlatMapNode, PlanNode, SourceNode
from barnabas.sql.analysis.project_node import ProjectNode
from barnabas.sql.analysis.query import QueryAnalysis
from barnabas.sql.analysis.schemas import check_clash, joined_name
from barnabas.sql.analysis.timestamps import with_timestamps
from barnabas.sql.decimals import fits
from barnabas.sql.errors import AnalysisError
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import (
    Formats,
    QueryPlan,
    ResultKind,
    Step,
    TimestampColumn,
    WindowInfo,
)
from barnabas.sql.schema import ROWTIME, Schema
from barnabas.sql.syntax.limits import check_type
from barnabas.sql.syntax.rewriting import column_references
from barnabas.sql.syntax.tree import Emit, SourceKind
from barnabas.sql.types import Decimal, SqlType

Result = AggregateNode | ProjectNode


@dataclass(frozen=True)
class Sink:
    """The target of a query's result."""

    name: str
    topic: str
    formats: Formats
    timestamp: TimestampColumn | None
    window: WindowInfo | None


def result_node(
    analysis: QueryAnalysis, environment: Environment, target: Schema | None = None
) -> Result:
    """The last node of a query, with all that can be checked before its sink is known; raises
    AnalysisError. `target`: the schema of the stream that INSERT INTO writes to."""
    query = analysis.query
    node: PlanNode
    node = join_node(analysis, environment) if analysis.joins else SourceNode(analysis.source)
    if query.where is not None:
        condition = analysis.rewritten(query.where)
        check_condition(condition, node.schema, "WHERE", environment)
        node = FilterNode(node, with_timestamps(condition))
    if query.partition_by is not None:
        node = PartitionByNode(node, analysis, environment)
    if analysis.table_functions:
        node = FlatMapNode(node, analysis, environment)
    result: Result
    if analysis.group_by is not None:
        result = AggregateNode(node, analysis, environment, target)
    else:
        if analysis.window is not None:
            raise AnalysisError("WINDOW clause requires a GROUP BY clause.", analysis.window.place)
        result = ProjectNode(node, analysis, environment, target)
    if query.emit is Emit.FINAL and (analysis.group_by is None or analysis.window is None):
        raise AnalysisError("EMIT FINAL is only supported for windowed aggregations.")
    return result


def result_window(analysis: QueryAnalysis) -> WindowInfo | None:
    """Return the window of the keys of a query's result."""
    window = window_of(analysis.window)
    if window is not None and analysis.query.emit is not None:
        return replace(window, emit=analysis.query.emit)
    return window or analysis.source.source.window


def plan_with_sink(
    query_id: str,
    analysis: QueryAnalysis,
    result: Result,
    sink: Sink,
    environment: Environment,
) -> QueryPlan:
    """The plan of a query that writes to a sink; raises AnalysisError."""
    result.check_sink_key(sink.name)
    check_clash(result.schema)
    for column in result.schema.columns:
        check_type(column.type)
    built = result.build(BuildContext(environment, _mentioned(analysis, result)))
    make = steps.TableSink if result.kind is SourceKind.TABLE else steps.StreamSink
    step = make(built.step, sink.topic, sink.formats, result.schema, sink.timestamp)
    return _plan(query_id, analysis, result, step, sink.name)


def plan_without_sink(
    query_id: str, analysis: QueryAnalysis, result: Result, environment: Environment
) -> QueryPlan:
    """The plan of a push query: its result are the value's columns of its last step."""
    built = result.build(BuildContext(environment, _mentioned(analysis, result)))
    return _plan(query_id, analysis, result, built.step, None)


def _plan(
    query_id: str, analysis: QueryAnalysis, result: Result, step: Step, sink: str | None
) -> QueryPlan:
    window = result_window(analysis)
    kind = ResultKind.STREAM
    if result.kind is SourceKind.TABLE:
        kind = ResultKind.TABLE if window is None else ResultKind.WINDOWED_TABLE
    names = tuple(aliased.source.name for aliased in analysis.sources)
    return QueryPlan(query_id, names, sink, kind, step, window)


def _mentioned(analysis: QueryAnalysis, result: Result) -> frozenset[str]:
    """Names that a plan's expressions have for columns: joins need not carry any others."""
    query = analysis.query
    expressions = [*(query.group_by or ()), *(query.partition_by or ())]
    expressions += [e for j in analysis.joins for e in (j.left_expression, j.right_expression)]
    expressions += [e for e in (query.where, query.having) if e is not None]
    expressions += analysis.table_functions
    rewritten = [*map(analysis.rewritten, expressions), *result.selected_expressions]
    names = {column.name for expression in rewritten for column in column_references(expression)}
    if analysis.group_by is not None:
        names.add(joined_name(analysis.source.alias, ROWTIME))  # COUNT(*) counts by it
    return frozenset(names)


# --- sinks -----------------------------------------------------------------------------------


def check_existing_sink(existing: DataSource, result: Result) -> None:
    """Raise AnalysisError unless the result's rows are rows of the stream."""
    if existing.kind is not result.kind:
        names = {SourceKind.STREAM: "KSTREAM", SourceKind.TABLE: "KTABLE"}
        raise AnalysisError(
            f"Incompatible data sink and query result. Data sink ({existing.name}) type is "
            f"{names[existing.kind]} but select query result is {names[result.kind]}."
        )
    own, other = result.schema, existing.schema
    if not _is_compatible(own, other):
        raise AnalysisError(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {own}\nSink schema is {other}"
        )


def _is_compatible(own: Schema, other: Schema) -> bool:
    return len(own.columns) == len(other.columns) and all(
        a.name == b.name and a.part is b.part and _fits(a.type, b.type)
        for a, b in zip(own.columns, other.columns, strict=True)
    )


def _fits(own: SqlType, other: SqlType) -> bool:
    """Whether values of the one type are values of the other; only decimals widen by themselves."""
    if isinstance(own, Decimal) and isinstance(other, Decimal):
        return fits(own, other)
    return own == other

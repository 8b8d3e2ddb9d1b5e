"""The analysis of a query: what it reads, joins, filters, groups and selects, checked.

Checks are those that need no plan: known columns, sensible joins, functions in their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.join_conditions import JoinConditions, JoinInfo
from barnabas.sql.analysis.resolving import AliasedSource, check_known, resolve, schema_of
from barnabas.sql.analysis.schemas import SYSTEM_COLUMNS, joined_name
from barnabas.sql.analysis.windows import checked_window
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.schema import PSEUDO_COLUMNS
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import ColumnReference, Expression, FunctionCall
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import parts, rewrite, walk
from barnabas.sql.syntax.tree import Query, SelectItem, SingleColumn, Window

ALL_ROWS = nodes.BytesLiteral(b"\x01")
"""The key by which aggregates without GROUP BY are grouped."""


@dataclass(frozen=True)
class QueryAnalysis:
    """A query whose names are resolved. `table_functions` are those among the selected columns."""

    query: Query
    sources: tuple[AliasedSource, ...]
    joins: tuple[JoinInfo, ...]
    group_by: tuple[Expression, ...] | None
    window: Window | None
    table_functions: tuple[FunctionCall, ...]
    is_persistent: bool

    @property
    def source(self) -> AliasedSource:
        """The source that FROM names first."""
        return self.sources[0]

    @property
    def select(self) -> tuple[SelectItem, ...]:
        return self.query.select

    @property
    def is_pull(self) -> bool:
        return self.query.emit is None

    def rewritten(self, expression: Expression) -> Expression:
        """The expression as steps of a plan have it: columns by the one name they have there."""
        return plan_expression(expression, is_join=bool(self.joins))


def plan_expression(expression: Expression, *, is_join: bool) -> Expression:
    """The expression with `SOURCE.COLUMN` as SOURCE_COLUMN in a join, else as COLUMN."""

    def unqualified(part: Expression) -> Expression | None:
        if not isinstance(part, ColumnReference) or part.source is None:
            return None
        name = joined_name(part.source, part.name) if is_join else part.name
        return ColumnReference(name, place=part.place)

    return rewrite(expression, unqualified)


def analyse_query(query: Query, environment: Environment, *, is_persistent: bool) -> QueryAnalysis:
    """Analyse a query; raises AnalysisError."""
    resolved, sources = resolve(query, environment)
    _check_sources(sources)
    joins = tuple(JoinConditions(sources, environment).infos(resolved.joins))
    group_by, table_functions = _check_select(resolved, environment, is_persistent=is_persistent)
    analysis = QueryAnalysis(
        resolved,
        sources,
        joins,
        group_by,
        checked_window(resolved),
        tuple(table_functions),
        is_persistent,
    )
    _check_columns(analysis)
    _check_value_formats(analysis, has_group_by=resolved.group_by is not None)
    _check_kinds(analysis)
    return analysis


# --- sources ---------------------------------------------------------------------------------


def _check_sources(sources: Sequence[AliasedSource]) -> None:
    for place, aliased in enumerate(sources):
        name = aliased.source.name
        if name not in [other.source.name for other in sources[:place]]:
            continue
        if place > 1:
            raise AnalysisError(
                f"N-way joins do not support multiple occurrences of the same source. Source: "
                f"'{name}'."
            )
        raise AnalysisError(f"Can not join '{name}' to '{name}': self joins are not yet supported.")


_KAFKA_VALUES = (
    "The KAFKA format is for keys. Values can be read and written with it, but nothing can be done "
    "with them that needs a repartition or a changelog. Copy the records to another format first: "
    "CREATE STREAM <name> WITH (VALUE_FORMAT='JSON') AS SELECT * FROM <this stream>;"
)


def _check_value_formats(analysis: QueryAnalysis, *, has_group_by: bool) -> None:
    kafka = ", ".join(
        aliased.alias
        for aliased in analysis.sources
        if aliased.source.formats.value.name == "KAFKA"
    )
    clause = "JOIN" if analysis.joins else "GROUP BY" if has_group_by else ""
    if kafka and clause:
        raise AnalysisError(
            f"Source(s) {kafka} are using the 'KAFKA' value format. This format does not yet "
            f"support {clause}.\n{_KAFKA_VALUES}"
        )


def _check_kinds(analysis: QueryAnalysis) -> None:
    sources = [aliased.source for aliased in analysis.sources]
    if analysis.is_persistent and any(s.is_table and s.is_windowed for s in sources):
        raise AnalysisError("KSQL does not support persistent queries on windowed tables.")
    clashing = [
        backquoted(column.name)
        for source in sources
        for column in source.schema.value
        if column.name in PSEUDO_COLUMNS
    ]
    if clashing:
        raise AnalysisError(
            "Your stream/table has columns with the same name as newly introduced pseudocolumns in "
            "ksqlDB, and cannot be queried as a result. The conflicting names are: "
            f"{', '.join(clashing)}.\n"
        )
    if analysis.table_functions and sources[0].is_table:
        raise AnalysisError("Table source is not supported with table functions")


# --- columns ---------------------------------------------------------------------------------


def _check_columns(analysis: QueryAnalysis) -> None:
    """Every column that a clause refers to must be known."""
    query = analysis.query
    with_window = query.window is not None
    schemas = {s.alias: schema_of(s, with_window=with_window) for s in analysis.sources}
    may_be_synthetic = not analysis.is_pull and query.group_by is None and len(analysis.sources) > 1
    single: list[tuple[Expression | None, str]] = [(query.where, "WHERE")]
    single += [(expression, "GROUP BY") for expression in query.group_by or ()]
    single += [(expression, "PARTITION BY") for expression in query.partition_by or ()]
    single.append((query.having, "HAVING"))
    single += [(i.expression, "SELECT") for i in query.select if isinstance(i, SingleColumn)]
    for expression, clause in single:
        if expression is not None:
            check_known(expression, schemas, clause, may_be_synthetic=may_be_synthetic)


# --- SELECT ----------------------------------------------------------------------------------


def _check_select(
    query: Query, environment: Environment, *, is_persistent: bool
) -> tuple[tuple[Expression, ...] | None, list[FunctionCall]]:
    """Names and functions of selected columns; gives what is grouped by, and table functions."""
    group_by = query.group_by
    table_functions: list[FunctionCall] = []
    for item in query.select:
        if not isinstance(item, SingleColumn):
            continue
        _check_name(item, is_persistent=is_persistent)
        calls = [part for part in walk(item.expression) if isinstance(part, FunctionCall)]
        if group_by is None and any(environment.is_aggregate(call.name) for call in calls):
            group_by = (ALL_ROWS,)
        table_functions += _table_functions(
            item.expression, environment, has_groups=group_by is not None
        )
    return group_by, table_functions


def _check_name(item: SingleColumn, *, is_persistent: bool) -> None:
    """Names of system columns are not free; unaliased they are, but not in a sink."""
    alias = (item.alias or "").upper()
    if alias not in SYSTEM_COLUMNS:
        return
    text = message_text(item.expression)
    if text[text.find(".") + 1 :].upper() != alias:
        raise AnalysisError(
            f"`{alias}` is a reserved column name. You cannot use it as an alias for a column."
        )
    if is_persistent:
        raise AnalysisError(
            f"Reserved column name in select: `{alias}`. Please remove or alias the column."
        )


def _table_functions(
    expression: Expression,
    environment: Environment,
    *,
    has_groups: bool,
    within: str = "",
    case: nodes.SearchedCase | None = None,
) -> list[FunctionCall]:
    """The table functions of a selected expression; raises AnalysisError where they cannot be."""
    calls: list[FunctionCall] = []
    if isinstance(expression, nodes.SearchedCase):
        case = expression
    if isinstance(expression, FunctionCall) and environment.is_table_function(expression.name):
        if within:
            raise AnalysisError(f"Table functions cannot be nested: {within}({expression.name}())")
        if has_groups:
            raise AnalysisError("Table functions cannot be used with aggregations.")
        if case is not None:
            raise AnalysisError(f"Table functions cannot be used in CASE: {message_text(case)}")
        within = expression.name
        calls.append(expression)
    for part in parts(expression):
        calls += _table_functions(
            part, environment, has_groups=has_groups, within=within, case=case
        )
    return calls

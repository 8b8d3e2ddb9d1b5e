"""Aggregates in a query: which calls there are, which columns they need, and what may stand beside
them."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.query import QueryAnalysis
from barnabas.sql.errors import AnalysisError
from barnabas.sql.schema import ROWTIME, WINDOW_BOUNDS, WINDOWEND, WINDOWSTART
from barnabas.sql.syntax.expressions import ColumnReference, Expression, FunctionCall
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import parts, rewrite

AGGREGATE = "KSQL_AGG_VARIABLE_"
"""The prefix of the names of aggregates' columns; a number follows."""


@dataclass
class AggregateAnalysis:
    """`required`: columns that expressions refer to; `arguments`: those of all calls; both in the
    order in which they were found, some more than once."""

    calls: list[FunctionCall] = field(default_factory=list)
    required: list[ColumnReference] = field(default_factory=list)
    arguments: list[Expression] = field(default_factory=list)


def analyse_aggregates(
    analysis: QueryAnalysis, selected: list[Expression], environment: Environment
) -> AggregateAnalysis:
    """The aggregates of a query with groups; raises AnalysisError. All expressions are those of the
    plan. `selected`: what the result's columns are calculated from."""
    return _Analyser(analysis, environment).analyse(selected)


class _Analyser:
    def __init__(self, analysis: QueryAnalysis, environment: Environment) -> None:
        self._environment = environment
        self._query = analysis.query
        self._rewritten = analysis.rewritten
        self._is_windowed = analysis.window is not None
        self._group_by = [analysis.rewritten(e) for e in analysis.group_by or ()]
        self._grouped = list(self._group_by)
        if self._is_windowed:
            self._grouped += [ColumnReference(WINDOWSTART), ColumnReference(WINDOWEND)]
        self._default = analysis.rewritten(ColumnReference(ROWTIME, analysis.source.alias))
        self._found = AggregateAnalysis()
        self._clause = ""
        self._alone: list[Expression] = []
        """Columns of the current expression that stand outside of aggregates and groups."""

    def analyse(self, selected: list[Expression]) -> AggregateAnalysis:
        outside = [e for e in selected if self._has_stray("SELECT", e)]
        if self._query.where is not None:
            self._visit_clause("WHERE", self._rewritten(self._query.where))
        for expression in self._group_by:
            self._visit_clause("GROUP BY", expression)
        stray_having: list[Expression] = []
        if self._query.having is not None:
            self._visit_clause("HAVING", self._rewritten(self._query.having))
            stray_having = [column for column in self._alone if column not in self._grouped]
        self._check(outside, stray_having)
        return self._found

    def _has_stray(self, clause: str, expression: Expression) -> bool:
        self._visit_clause(clause, expression)
        stray = [column for column in self._alone if column not in self._grouped]
        return expression not in self._grouped and bool(stray)

    def _check(self, outside: list[Expression], stray_having: list[Expression]) -> None:
        if not self._found.calls:
            raise AnalysisError(
                "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
            )
        if outside:
            shown = ", ".join(map(message_text, outside))
            raise AnalysisError(
                f"Non-aggregate SELECT expression(s) not part of GROUP BY: {shown}\n"
                "Either add the column(s) to the GROUP BY or remove them from the SELECT."
            )
        if stray_having:
            shown = ", ".join(map(message_text, stray_having))
            raise AnalysisError(
                f"Non-aggregate HAVING expression not part of GROUP BY: {shown}\n"
                "Consider switching the HAVING clause to a WHERE clause before the GROUP BY."
            )

    def _visit_clause(self, clause: str, expression: Expression) -> None:
        self._clause, self._alone = clause, []
        self._visit(expression, within="", in_group=False)

    def _visit(self, expression: Expression, *, within: str, in_group: bool) -> None:
        """`within`: the aggregate around; `in_group`: whether a group expression is around."""
        in_group = in_group or expression in self._grouped
        if isinstance(expression, ColumnReference):
            self._visit_column(expression, within=within, in_group=in_group)
            return
        if isinstance(expression, FunctionCall):
            expression, within = self._visit_call(expression, within)
        for part in parts(expression):
            self._visit(part, within=within, in_group=in_group)

    def _visit_column(self, column: ColumnReference, *, within: str, in_group: bool) -> None:
        is_bound = column.name in WINDOW_BOUNDS
        if not is_bound:
            self._found.required.append(column)
        if in_group and not within and not is_bound:
            return
        if within and self._clause == "GROUP BY":
            raise AnalysisError(
                f"GROUP BY does not support aggregate functions: {within} is an aggregate function."
            )
        if is_bound and self._is_windowed and (within or self._clause != "SELECT"):
            raise AnalysisError(
                f"Window bounds column {column.name} can only be used in the SELECT clause of "
                "windowed aggregations and can not be passed to aggregate functions.\n"
                "See https://github.com/confluentinc/ksql/issues/4397"
            )
        if not within:
            self._alone.append(column)

    def _visit_call(self, call: FunctionCall, within: str) -> tuple[FunctionCall, str]:
        if call.name.upper() not in self._environment.functions:
            raise AnalysisError(f"Can't find any functions with the name '{call.name}'")
        if not self._environment.is_aggregate(call.name):
            return call, within
        if within:
            raise AnalysisError(f"Aggregate functions can not be nested: {within}({call.name}())")
        if not call.arguments:
            call = FunctionCall(call.name, (self._default,), place=call.place)
        self._found.calls.append(call)
        self._found.arguments += call.arguments
        return call, call.name


def with_aggregates(expressions: list[Expression], environment: Environment) -> list[Expression]:
    """The expressions with the columns of aggregates in place of their calls, counted through."""
    count = 0

    def column(part: Expression) -> Expression | None:
        nonlocal count
        if not isinstance(part, FunctionCall) or not environment.is_aggregate(part.name):
            return None
        count += 1
        return ColumnReference(f"{AGGREGATE}{count - 1}", place=part.place)

    return [rewrite(expression, column) for expression in expressions]

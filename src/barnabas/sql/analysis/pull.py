"""Pull queries: which clauses they can have."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.sql.analysis.query import QueryAnalysis
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.schema import ROWOFFSET, ROWPARTITION
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.rewriting import column_references
from barnabas.sql.syntax.tree import SingleColumn

_HELP = (
    " See https://cnfl.io/queries for more info.\n"
    "Add EMIT CHANGES if you intended to issue a push query."
)


def check_pull_query(analysis: QueryAnalysis) -> None:
    """Raise AnalysisError for a pull query with a clause that only push queries have."""
    query = analysis.query
    clauses = {
        "JOIN": analysis.joins,
        "WINDOW": query.window,
        "GROUP BY": analysis.group_by,
        "PARTITION BY": query.partition_by,
        "HAVING": query.having,
    }
    for clause, found in clauses.items():
        if found:
            raise AnalysisError(f"Pull queries don't support {clause} clauses.{_HELP}")
    if query.limit is not None and query.limit < 0:
        raise AnalysisError(
            f"Pull queries don't support negative integers in the LIMIT clause.{_HELP}"
        )
    selected = [item.expression for item in query.select if isinstance(item, SingleColumn)]
    _check_columns(selected, "SELECT")
    _check_columns([] if query.where is None else [query.where], "WHERE")


def _check_columns(expressions: Iterable[Expression], clause: str) -> None:
    """Where a record lies is not known of a table's rows."""
    found = [
        backquoted(column.name)
        for expression in expressions
        for column in column_references(expression)
        if column.name in (ROWPARTITION, ROWOFFSET)
    ]
    if found:
        raise AnalysisError(
            f"Pull queries don't support the following columns in {clause} clauses: "
            f"{', '.join(found)}\n{_HELP}"
        )

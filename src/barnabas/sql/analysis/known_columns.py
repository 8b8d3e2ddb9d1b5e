"""Columns of sources that the clauses of a query refer to: each must be known."""

from __future__ import annotations

from barnabas.sql.analysis.resolving import AliasedSource
from barnabas.sql.analysis.schemas import could_be_synthetic_key, planning_schema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.schema import WINDOW_BOUNDS, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import column_references


def schema_of(aliased: AliasedSource, *, with_window: bool) -> Schema:
    """Return a source's columns as a query sees them; `with_window`: the query makes windows."""
    source = aliased.source
    return planning_schema(source.schema, is_windowed=source.is_windowed or with_window)


def check_known(
    expression: Expression, schemas: dict[str, Schema], clause: str, *, may_be_synthetic: bool
) -> set[str]:
    """Raise AnalysisError for a column that no source has; gives the sources that are used."""
    used = set()
    for column in column_references(expression):
        columns = [
            alias
            for alias, schema in schemas.items()
            if column.source in (None, alias) and schema.find(column.name) is not None
        ]
        is_bound = column.source is None and column.name in WINDOW_BOUNDS and len(columns) > 1
        if not columns or is_bound:
            synthetic = clause == "SELECT" and column.source is None
            if may_be_synthetic and synthetic and could_be_synthetic_key(column.name):
                continue
            raise _unknown_column(column, clause)
        used.add(column.source or columns[0])
    return used


def _unknown_column(column: ColumnReference, clause: str) -> AnalysisError:
    shown = message_text(column)
    text = f"{clause} column '{shown}' cannot be resolved."
    if clause == "PARTITION BY":
        text += (
            f" '{shown}' must be a column in the source schema since PARTITION BY is applied on "
            "the input."
        )
    return AnalysisError(text, column.place)

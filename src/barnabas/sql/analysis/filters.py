"""Conditions of WHERE and HAVING."""

from __future__ import annotations

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.timestamps import with_timestamps
from barnabas.sql.errors import AnalysisError
from barnabas.sql.schema import Schema
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import BOOLEAN


def check_condition(
    condition: Expression, schema: Schema, clause: str, environment: Environment
) -> None:
    """Raise AnalysisError unless the condition is true or false over the schema's columns."""
    try:
        actual = environment.type_of(with_timestamps(condition), schema.columns)
    except AnalysisError as error:
        raise AnalysisError(f"Error in {clause} expression: {error.message}") from error
    if actual != BOOLEAN:
        shown = message_text(condition)
        raise AnalysisError(
            f"Type error in {clause} expression: Should evaluate to boolean but is {shown} "
            f"({actual}) instead."
        )
    if clause == "WHERE":
        environment.check(with_timestamps(condition), schema.columns, "Predicate")

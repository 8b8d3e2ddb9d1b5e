"""The record that INSERT INTO … VALUES writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.pipeline.sql.analysis.commands import InsertValuesCommand
from barnabas.pipeline.sql.expressions.compile import compile_expression
from barnabas.pipeline.sql.functions.catalog import Function
from barnabas.pipeline.sql.syntax.expressions import Expression
from barnabas.pipeline.sql.types import Value


class InsertedRow(NamedTuple):
    """Values of the key's and the value's columns; `timestamp_ms` None: the time of writing."""

    key: tuple[Value, ...]
    value: tuple[Value, ...] | None
    timestamp_ms: int | None


def inserted_row(command: InsertValuesCommand, functions: Mapping[str, Function]) -> InsertedRow:
    """Evaluate a command's expressions. Raises EvaluationError."""

    def values(expressions: tuple[Expression, ...]) -> tuple[Value, ...]:
        return tuple(
            compile_expression(expression, (), functions).evaluate(()) for expression in expressions
        )

    value = None if command.value is None else values(command.value)
    timestamp = None if command.timestamp is None else values((command.timestamp,))[0]
    return InsertedRow(values(command.key), value, timestamp)

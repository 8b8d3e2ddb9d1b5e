"""The record that INSERT INTO … VALUES writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.sql.analysis.commands import InsertValuesCommand
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.expressions.coercion import coerce_literal, coerced_type
from barnabas.sql.expressions.compile import compile_expression
from barnabas.sql.functions.catalog import Function
from barnabas.sql.names import backquoted
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import BIGINT, STRING, Array, BaseType, Map, SqlType, Struct, Value


class InsertedRow(NamedTuple):
    """Values of the key's and the value's columns; `timestamp_ms` None: the time of writing."""

    key: tuple[Value, ...]
    value: tuple[Value, ...] | None
    timestamp_ms: int | None


def inserted_row(command: InsertValuesCommand, functions: Mapping[str, Function]) -> InsertedRow:
    """Evaluate a command's expressions, as values of their columns.

    Raises EvaluationError or AnalysisError.
    """

    def values(expressions: tuple[Expression, ...], columns: Sequence[Column]) -> tuple[Value, ...]:
        return tuple(
            _column_value(expression, column, functions)
            for expression, column in zip(expressions, columns, strict=True)
        )

    schema = command.source.schema
    value = None if command.value is None else values(command.value, schema.value)
    timestamp = None
    if command.timestamp is not None:
        (timestamp,) = values((command.timestamp,), [Column("ROWTIME", BIGINT)])
    return InsertedRow(values(command.key, schema.key), value, timestamp)


def _column_value(
    expression: Expression, column: Column, functions: Mapping[str, Function]
) -> Value:
    compiled = compile_expression(expression, (), functions)
    value = compiled.evaluate(())
    if value is None or compiled.type is None:
        return None
    try:
        return coerced(value, compiled.type, column.type)
    except (AnalysisError, EvaluationError) as error:
        raise AnalysisError(
            f"Expected type {column.type} for field {backquoted(column.name)} but got "
            f"{compiled.type}({message_text(expression)})"
        ) from error


def coerced(value: Value, source: SqlType, target: SqlType) -> Value:
    """The value as one of a wider type; fields that only one of the types has are left out, or
    NULL.

    Text may stand for dates and times. Raises AnalysisError or EvaluationError.
    """
    if value is None or source == target:
        return value
    match source, target:
        case Struct(), Struct():
            return _struct(value, source, target)
        case Array(item), Array(wanted):
            return [coerced(part, item, wanted) for part in value]
        case Map(key, item), Map(wanted_key, wanted):
            return {
                coerced(name, key, wanted_key): coerced(part, item, wanted)
                for name, part in value.items()
            }
    if source == STRING and (target.base.is_time or target.base is BaseType.BYTES):
        return coerce_literal(_Given(value), source, target)
    wider = coerced_type(source, target, is_lax=False)
    if wider is None or wider.base is not target.base:
        raise AnalysisError(f"a {source} is no {target}")
    return coerce_literal(_Given(value), source, target)


def _struct(value: Value, source: Struct, target: Struct) -> Value:
    made = {}
    for field in target.fields:
        own = source.field(field.name)
        made[field.name] = None if own is None else coerced(value[field.name], own.type, field.type)
    return made


class _Given(NamedTuple):
    value: Value

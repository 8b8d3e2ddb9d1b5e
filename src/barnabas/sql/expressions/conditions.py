"""Expressions that are true or false, and CASE, which chooses by them."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql import types
from barnabas.sql.errors import FAILURES, AnalysisError, EvaluationError
from barnabas.sql.expressions.closures import Evaluate, comparing, constant
from barnabas.sql.expressions.coercion import LITERALS
from barnabas.sql.expressions.comparisons import (
    Comparison,
    Convert,
    can_compare,
    comparison,
    refusal,
)
from barnabas.sql.expressions.compiling import Compilers, Compiling
from barnabas.sql.expressions.patterns import is_like, like_matcher
from barnabas.sql.expressions.typing import (
    between_as_comparisons,
    in_list_operands,
    simple_case_as_searched,
)
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import Value


def _compared(compiler: Compiling, node: nodes.Comparison) -> Evaluate:
    left_type, right_type = compiler.type_of(node.left), compiler.type_of(node.right)
    if not can_compare(node.operator, left_type, right_type):
        raise refusal(node, left_type, right_type)
    assert left_type is not None
    assert right_type is not None
    how = comparison(node.operator, left_type, right_type)
    left, convert_left = _operand(compiler, node.left, how.convert_left)
    right, convert_right = _operand(compiler, node.right, how.convert_right)
    return comparing(
        node.operator, left, right, Comparison(convert_left, convert_right, how.compare)
    )


def _operand(
    compiler: Compiling, expression: Expression, convert: Convert | None
) -> tuple[Evaluate, Convert | None]:
    """One side of a comparison and how it is still to be converted: a literal is right now,
    unless it cannot be, which is an error of every record."""
    if isinstance(expression, LITERALS) and convert is not None:
        try:
            return constant(convert(expression.value)), None
        except FAILURES:
            pass
    return compiler.compile(expression), convert


def _between(compiler: Compiling, node: nodes.Between) -> Evaluate:
    def make(inner: Compiling, operand: Expression) -> Evaluate:
        first, second = between_as_comparisons(node, operand)
        lower, upper = _compared(inner, first), _compared(inner, second)
        return lambda row: lower(row) and upper(row)

    return compiler.holding(node.operand, make)


def _condition(compiler: Compiling, expression: Expression) -> Evaluate:
    """An expression that must be true or false: NULL is not a value."""
    sql_type = compiler.type_of(expression)
    if sql_type != types.BOOLEAN:
        text = message_text(expression)
        raise AnalysisError(f"Should evaluate to boolean but is {text} ({sql_type}) instead.")
    evaluate = compiler.compile(expression)
    if isinstance(expression, _NEVER_NULL):
        return evaluate

    def decide(row: Sequence[Value]) -> bool:
        value: bool | None = evaluate(row)
        if value is None:
            raise EvaluationError("a condition is NULL")
        return value

    return decide


def _logical(compiler: Compiling, node: nodes.Logical) -> Evaluate:
    left, right = _condition(compiler, node.left), _condition(compiler, node.right)
    if node.operator is nodes.LogicalOperator.AND:
        return lambda row: left(row) and right(row)
    return lambda row: left(row) or right(row)


def _negated(compiler: Compiling, node: nodes.Not) -> Evaluate:
    operand = _condition(compiler, node.operand)
    return lambda row: not operand(row)


def _is_null(compiler: Compiling, node: nodes.IsNull) -> Evaluate:
    operand = compiler.compile(node.operand)
    return lambda row: operand(row) is None


def _is_not_null(compiler: Compiling, node: nodes.IsNotNull) -> Evaluate:
    operand = compiler.compile(node.operand)
    return lambda row: operand(row) is not None


def _in_list(compiler: Compiling, node: nodes.InList) -> Evaluate:
    operands = in_list_operands(node)
    operand, *items = compiler.common(operands)
    if items and all(isinstance(item, LITERALS) for item in operands[1:]):
        values = frozenset(item(()) for item in items)
        return lambda row: operand(row) in values

    def is_in(row: Sequence[Value]) -> bool:
        value = operand(row)
        return value is not None and any(value == item(row) for item in items)

    return is_in


def _like(compiler: Compiling, node: nodes.Like) -> Evaluate:
    compiler.type_of(node)
    operand, escape = compiler.compile(node.operand), node.escape
    if isinstance(node.pattern, nodes.StringLiteral):
        matches = like_matcher(node.pattern.value, escape)
        return lambda row: matches(operand(row))
    pattern = compiler.compile(node.pattern)
    return lambda row: is_like(operand(row), pattern(row), escape)


def _searched_case(compiler: Compiling, node: nodes.SearchedCase) -> Evaluate:
    compiler.type_of(node)
    whens = [(_condition(compiler, w.condition), compiler.compile(w.result)) for w in node.whens]
    default = compiler.compile(node.default or nodes.NullLiteral())

    def choose(row: Sequence[Value]) -> Value:
        for condition, result in whens:
            if condition(row):
                return result(row)
        return default(row)

    return choose


def _simple_case(compiler: Compiling, node: nodes.SimpleCase) -> Evaluate:
    return compiler.holding(
        node.operand,
        lambda inner, operand: _searched_case(inner, simple_case_as_searched(node, operand)),
    )


_NEVER_NULL = (
    nodes.BooleanLiteral,
    nodes.Comparison,
    nodes.Logical,
    nodes.Not,
    nodes.IsNull,
    nodes.IsNotNull,
    nodes.Between,
    nodes.InList,
    nodes.Like,
)
"""Conditions that are true or false, or fail."""

COMPILERS: Compilers = {
    nodes.Comparison: _compared,
    nodes.Between: _between,
    nodes.Logical: _logical,
    nodes.Not: _negated,
    nodes.IsNull: _is_null,
    nodes.IsNotNull: _is_not_null,
    nodes.InList: _in_list,
    nodes.Like: _like,
    nodes.SearchedCase: _searched_case,
    nodes.SimpleCase: _simple_case,
}

"""Calculation: INTEGER and BIGINT wrap around, DOUBLE follows IEEE 754, DECIMAL is exact or fails.

NULL on either side raises EvaluationError, as in ksqlDB: the whole enclosing expression
becomes NULL, even `COALESCE(a + b, 0)`. Texts are joined by `+`, NULL as the word `null`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from barnabas.java.numbers import wrap_bigint, wrap_integer
from barnabas.sql import types
from barnabas.sql.decimals import (
    EXACT,
    as_decimal_type,
    exact_context,
    product_type,
    quotient_type,
    remainder_type,
    sum_type,
    unit,
)
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.expressions.casts import cast_maker, same
from barnabas.sql.functions.signatures import can_cast_implicitly
from barnabas.sql.syntax.expressions import ArithmeticOperator as Operator
from barnabas.sql.types import BaseType, SqlType, Value

Calculation = Callable[[Any, Any], Any]

_DECIMAL_TYPES: dict[Operator, Callable[[types.Decimal, types.Decimal], types.Decimal]] = {
    Operator.ADD: sum_type,
    Operator.SUBTRACT: sum_type,
    Operator.MULTIPLY: product_type,
    Operator.DIVIDE: quotient_type,
    Operator.MODULUS: remainder_type,
}


def result_type(operator: Operator, left: SqlType | None, right: SqlType | None) -> SqlType:
    """The type of `left operator right`; raises AnalysisError if it cannot be calculated."""
    if left is None or right is None:
        shown = " and ".join("null" if side is None else str(side) for side in (left, right))
        raise AnalysisError(f"Arithmetic on types {shown} are not supported.")
    if operator is Operator.ADD and left == right == types.STRING:
        return types.STRING
    if not (left.base.is_number and right.base.is_number):
        raise AnalysisError(f"Unsupported arithmetic types. {left.base.value} {right.base.value}")
    wider = right if can_cast_implicitly(left.base, right.base) else left
    if wider.base is not BaseType.DECIMAL:
        return wider
    return _DECIMAL_TYPES[operator](as_decimal_type(left), as_decimal_type(right))


def calculation(operator: Operator, left: SqlType, right: SqlType) -> Calculation:
    """What calculates `left operator right` from values of those types; raises ArithmeticError or
    TypeError where there is no result. Raises AnalysisError if the types cannot be calculated."""
    result = result_type(operator, left, right)
    if result == types.STRING:
        return _join
    if isinstance(result, types.Decimal):
        return _decimal_calculation(operator, left, right, result)
    if result == types.DOUBLE:
        calculate = _DOUBLE[operator]
        if BaseType.DECIMAL in (left.base, right.base):
            return lambda one, other: calculate(float(one), float(other))
        return calculate
    return _whole_calculation(operator, wrap_integer if result == types.INTEGER else wrap_bigint)


def _join(left: str | None, right: str | None) -> str:
    return ("null" if left is None else left) + ("null" if right is None else right)


def _whole_calculation(operator: Operator, wrap: Callable[[int], int]) -> Calculation:
    match operator:
        case Operator.ADD:
            return lambda left, right: wrap(left + right)
        case Operator.SUBTRACT:
            return lambda left, right: wrap(left - right)
        case Operator.MULTIPLY:
            return lambda left, right: wrap(left * right)
        case Operator.DIVIDE:
            return lambda left, right: wrap(_truncated_quotient(left, right))
    return lambda left, right: left - right * _truncated_quotient(left, right)


def _truncated_quotient(left: int, right: int) -> int:
    """Rounded towards zero."""
    quotient, remainder = divmod(left, right)
    return quotient + 1 if remainder and quotient < 0 else quotient


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _double_remainder(left: float, right: float) -> float:
    if not right or math.isinf(left):
        return math.nan
    return math.fmod(left, right)


_DOUBLE: dict[Operator, Calculation] = {
    Operator.ADD: lambda left, right: float(left) + right,
    Operator.SUBTRACT: lambda left, right: float(left) - right,
    Operator.MULTIPLY: lambda left, right: float(left) * right,
    Operator.DIVIDE: lambda left, right: _divide_doubles(float(left), float(right)),
    Operator.MODULUS: lambda left, right: _double_remainder(float(left), float(right)),
}


def _decimal_calculation(
    operator: Operator, left: SqlType, right: SqlType, result: types.Decimal
) -> Calculation:
    """A calculation that fails where the result has more digits than its type."""
    context, last_digit = exact_context(result.precision), unit(result.scale)
    calculate: Calculation = {
        Operator.ADD: context.add,
        Operator.SUBTRACT: context.subtract,
        Operator.MULTIPLY: context.multiply,
        Operator.DIVIDE: context.divide,
        Operator.MODULUS: context.remainder,
    }[operator]
    left_cast = cast_maker(left, as_decimal_type(left)) or same
    right_cast = cast_maker(right, as_decimal_type(right)) or same
    return lambda one, other: calculate(left_cast(one), right_cast(other)).quantize(
        last_digit, context=EXACT
    )


def negation(sql_type: SqlType | None) -> Callable[[Any], Any]:
    """Return what calculates `-value`; raises AnalysisError if values of the type have no sign."""
    match sql_type:
        case types.INTEGER:
            return lambda value: wrap_integer(-value)
        case types.BIGINT:
            return lambda value: wrap_bigint(-value)
        case types.DOUBLE:
            return lambda value: -value
        case types.Decimal(precision):
            return exact_context(precision).minus
    raise AnalysisError(f"A {sql_type} has no sign")


def signed(sql_type: SqlType | None) -> Callable[[Any], Any]:
    """Return what calculates `+value`: the value, which must be a number and not NULL."""
    negation(sql_type)

    def plus(value: Value) -> Value:
        if value is None:
            raise EvaluationError("NULL has no sign")
        return value

    return plus

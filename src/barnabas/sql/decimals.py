"""DECIMAL: types that follow from others, and calculation without rounding unless it is asked for,
as Java's BigDecimal has it."""

from __future__ import annotations

import decimal
from decimal import Decimal
from functools import lru_cache

from barnabas.java.numbers import plain_text
from barnabas.sql import types
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.types import BaseType, SqlType

INTEGER_AS_DECIMAL = types.Decimal(10, 0)
BIGINT_AS_DECIMAL = types.Decimal(19, 0)

_DIGITS_MAX = 20_000
"""More than any number that a text or an exponent can make: see java_text.parse_decimal."""

_TRAPS: list[type[decimal.DecimalException]] = [
    decimal.InvalidOperation,
    decimal.DivisionByZero,
    decimal.Overflow,
]
EXACT = decimal.Context(prec=_DIGITS_MAX, traps=[*_TRAPS, decimal.Inexact])
"""Raises ArithmeticError where a result would have to be rounded."""
_ROUNDING = decimal.Context(prec=_DIGITS_MAX, rounding=decimal.ROUND_HALF_UP, traps=_TRAPS)


@lru_cache(maxsize=1024)
def exact_context(precision: int) -> decimal.Context:
    """A context that raises ArithmeticError for results with more digits than `precision`."""
    return decimal.Context(prec=precision, traps=[*_TRAPS, decimal.Inexact])


@lru_cache(maxsize=1024)
def _rounded_context(precision: int) -> decimal.Context:
    return decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_UP, traps=_TRAPS)


@lru_cache(maxsize=1024)
def unit(scale: int) -> Decimal:
    """The smallest number with that many digits after the point: the second operand of quantize."""
    return Decimal(1).scaleb(-scale)


def decimal_type(precision: int, scale: int) -> types.Decimal:
    """The type; raises AnalysisError for an invalid precision or scale."""
    shown = f"DECIMAL({precision},{scale})"
    if precision < 1:
        raise AnalysisError(f"DECIMAL precision must be >= 1: {shown}")
    if scale < 0:
        raise AnalysisError(f"DECIMAL scale must be >= 0: {shown}")
    if precision < scale:
        raise AnalysisError(f"DECIMAL precision must be >= scale: {shown}")
    return types.Decimal(precision, scale)


def fits(narrow: types.Decimal, wide: types.Decimal) -> bool:
    """Return whether every value of one type is a value of the other."""
    room = wide.precision - wide.scale
    return narrow.scale <= wide.scale and narrow.precision - narrow.scale <= room


def as_decimal_type(sql_type: SqlType) -> types.Decimal:
    """The DECIMAL that holds every value of an exact number's type; raises AnalysisError."""
    match sql_type.base:
        case BaseType.INTEGER:
            return INTEGER_AS_DECIMAL
        case BaseType.BIGINT:
            return BIGINT_AS_DECIMAL
    if isinstance(sql_type, types.Decimal):
        return sql_type
    raise AnalysisError(f"Cannot convert {sql_type.base.value} to DECIMAL.")


def type_of_value(value: Decimal) -> types.Decimal:
    """The type of a literal: of `1.20` it is DECIMAL(3, 2), of `0.05` DECIMAL(3, 2)."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    if -1 < value < 1:
        return types.Decimal(scale + 1, scale)
    return types.Decimal(len(digits) + max(exponent, 0), scale)


def widen(left: SqlType, right: SqlType) -> types.Decimal:
    """The narrowest DECIMAL that holds values of both; raises AnalysisError for other types."""
    one, other = as_decimal_type(left), as_decimal_type(right)
    scale = max(one.scale, other.scale)
    return types.Decimal(
        max(one.precision - one.scale, other.precision - other.scale) + scale, scale
    )


def sum_type(left: types.Decimal, right: types.Decimal) -> types.Decimal:
    """The type of left + right and left - right."""
    wide = widen(left, right)
    return types.Decimal(wide.precision + 1, wide.scale)


def product_type(left: types.Decimal, right: types.Decimal) -> types.Decimal:
    """The type of left * right."""
    return decimal_type(left.precision + right.precision + 1, left.scale + right.scale)


def quotient_type(left: types.Decimal, right: types.Decimal) -> types.Decimal:
    """The type of left / right."""
    scale = max(6, left.scale + right.precision + 1)
    return decimal_type(left.precision - left.scale + right.scale + scale, scale)


def remainder_type(left: types.Decimal, right: types.Decimal) -> types.Decimal:
    """The type of left % right."""
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    return decimal_type(whole + scale, scale)


def cast_decimal(value: Decimal, target: types.Decimal) -> Decimal:
    """The value with the scale of the type, rounded half up; raises EvaluationError if it does not
    fit. The check comes before the rounding, as in ksqlDB."""
    _check_range(value, target)
    return value.quantize(unit(target.scale), context=_ROUNDING)


def cast_whole(value: int, target: types.Decimal) -> Decimal:
    """A whole number as a DECIMAL; raises EvaluationError if it does not fit."""
    number = Decimal(value)
    _check_range(number, target)
    return number.quantize(unit(target.scale), context=EXACT)


def cast_double(value: float, target: types.Decimal) -> Decimal:
    """A DOUBLE as a DECIMAL: its exact value is rounded to the type's precision first."""
    try:
        number = _rounded_context(target.precision).create_decimal(Decimal(value))
        _check_range(number, target)
        return number.quantize(unit(target.scale), context=_ROUNDING)
    except decimal.InvalidOperation as error:
        raise EvaluationError("Infinite or NaN") from error


def _check_range(value: Decimal, target: types.Decimal) -> None:
    if not value.is_finite() or (value and value.adjusted() >= target.precision - target.scale):
        raise overflow(value, target)


def overflow(value: Decimal, target: types.Decimal) -> EvaluationError:
    """The error of a value with more digits before the point than the type has."""
    return EvaluationError(
        f"Numeric field overflow: A field with precision {target.precision} and scale "
        f"{target.scale} must round to an absolute value less than "
        f"10^{target.precision - target.scale}. Got {plain_text(value)}"
    )

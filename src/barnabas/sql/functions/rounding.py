"""Functions that round numbers: ABS, SIGN, CEIL, FLOOR, ROUND, TRUNC.

Numbers halfway between two others are rounded up, to the positive side: 1.5 to 2, -1.5 to -1. A
DECIMAL keeps its scale where ksqlDB lets it keep it: `ROUND(x, 1)` of a DECIMAL(4, 2) is one.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_UP
from functools import partial

from barnabas.java.numbers import INT_MIN, LONG_MAX, LONG_MIN
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.functions.catalog import scalar
from barnabas.sql.types import Decimal, SqlType

MATHEMATICAL = "MATHEMATICAL"
_scalar = partial(scalar, category=MATHEMATICAL, null_is_null=True)

_EXACT = decimal.Context(prec=2500, Emax=999_999, Emin=-999_999)
"""Enough digits for any DECIMAL and for the exact digits of any DOUBLE."""


def same_decimal(types: Sequence[SqlType]) -> SqlType:
    """The result has the type of the first argument."""
    return types[0]


def without_scale(types: Sequence[SqlType]) -> SqlType:
    """The result has the digits before the point only."""
    first = types[0]
    assert isinstance(first, Decimal)
    if first.precision == first.scale:
        raise AnalysisError("DECIMAL precision must be >= 1: DECIMAL(0,0)")
    return Decimal(first.precision - first.scale, 0)


def _quantized(value: decimal.Decimal, places: int, rounding: str) -> decimal.Decimal:
    """The value with that many digits after the point; there is no negative zero."""
    result = value.quantize(decimal.Decimal((0, (1,), -places)), rounding, _EXACT)
    return result or result.copy_abs()


def _rescaled(value: decimal.Decimal, like: decimal.Decimal) -> decimal.Decimal:
    """The value with the scale of another one; raises EvaluationError if digits would be lost."""
    result = value.quantize(like, context=_EXACT)
    if result != value:
        raise EvaluationError("Rounding necessary")
    return result


def _half_up(value: decimal.Decimal, places: int) -> decimal.Decimal:
    return _quantized(value, places, ROUND_HALF_UP if value > 0 else ROUND_HALF_DOWN)


def _down(value: decimal.Decimal, places: int) -> decimal.Decimal:
    return _quantized(value, places, ROUND_DOWN)


def _exact(value: float) -> decimal.Decimal:
    """The number in the text of a DOUBLE."""
    if not math.isfinite(value):
        raise EvaluationError(f"cannot be rounded: {value}")
    return decimal.Decimal(repr(value))


def _as_bigint(value: float) -> int:
    """The whole number, or the bound of BIGINT that it exceeds; 0 for NaN. Java's casts do so."""
    if math.isnan(value):
        return 0
    return LONG_MIN if value <= LONG_MIN else LONG_MAX if value >= LONG_MAX else int(value)


@_scalar(
    "Abs",
    "(val INTEGER) -> INTEGER",
    description="The number without its sign.",
)
def abs_integer(value: int) -> int:
    return value if value == INT_MIN else abs(value)


@_scalar("Abs", "(val BIGINT) -> BIGINT")
def abs_bigint(value: int) -> int:
    return value if value == LONG_MIN else abs(value)


@_scalar("Abs", "(val DOUBLE) -> DOUBLE")
def abs_double(value: float) -> float:
    return abs(value)


@_scalar("Abs", "(val DECIMAL) -> DECIMAL", returns=same_decimal)
def abs_decimal(value: decimal.Decimal) -> decimal.Decimal:
    return value.copy_abs()


@_scalar(
    "sign",
    "(value INTEGER) -> INTEGER",
    "(value BIGINT) -> INTEGER",
    "(value DOUBLE) -> INTEGER",
    description="The sign of a number: 1, 0 or -1.",
    parameters={"value": "the number"},
)
def sign(value: float) -> int:
    return (value > 0) - (value < 0)


@scalar(
    "Floor",
    "(val INTEGER) -> INTEGER",
    "(val BIGINT) -> BIGINT",
    description="The greatest whole number that is not above the number.",
    category=MATHEMATICAL,
)
@scalar(
    "Ceil",
    "(val INTEGER) -> INTEGER",
    "(val BIGINT) -> BIGINT",
    description="The least whole number that is not below the number.",
    category=MATHEMATICAL,
)
def whole_already(value: int | None) -> int | None:
    return value


@_scalar("Floor", "(val DOUBLE) -> DOUBLE")
def floor_double(value: float) -> float:
    return math.copysign(math.floor(value), value) if math.isfinite(value) else value


@_scalar("Ceil", "(val DOUBLE) -> DOUBLE")
def ceil_double(value: float) -> float:
    return math.copysign(math.ceil(value), value) if math.isfinite(value) else value


@_scalar("Floor", "(val DECIMAL) -> DECIMAL", returns=same_decimal)
def floor_decimal(value: decimal.Decimal) -> decimal.Decimal:
    return _rescaled(_quantized(value, 0, ROUND_FLOOR), value)


@_scalar("Ceil", "(val DECIMAL) -> DECIMAL", returns=same_decimal)
def ceil_decimal(value: decimal.Decimal) -> decimal.Decimal:
    return _rescaled(_quantized(value, 0, ROUND_CEILING), value)


@scalar(
    "Round",
    "(val BIGINT) -> BIGINT",
    "(val INTEGER) -> BIGINT",
    description="The number rounded to so many decimal places (before the point, if negative); "
    "to a whole number by default. Halves are rounded towards positive infinity.",
    category=MATHEMATICAL,
)
def round_whole(value: int | None) -> int:
    if value is None:
        raise EvaluationError("ROUND of NULL")
    return value


@_scalar("Round", "(val DOUBLE) -> BIGINT")
def round_double(value: float) -> int:
    if abs(value) < 2**52:  # above, every DOUBLE is whole
        floor = math.floor(value)
        return floor + (value - floor >= 0.5)
    return _as_bigint(value)


@_scalar("Round", "(val DOUBLE, decimalPlaces INTEGER) -> DOUBLE")
def round_double_to(value: float, places: int) -> float:
    return float(_half_up(_exact(value), places))


@_scalar("Round", "(val DECIMAL) -> DECIMAL", returns=without_scale)
def round_decimal(value: decimal.Decimal) -> decimal.Decimal:
    return _half_up(value, 0)


@_scalar(
    "Round",
    "(val DECIMAL, decimalPlaces INTEGER) -> DECIMAL",
    returns=same_decimal,
)
def round_decimal_to(value: decimal.Decimal, places: int) -> decimal.Decimal:
    return _rescaled(_half_up(value, places), value)


@scalar(
    "trunc",
    "(val BIGINT) -> BIGINT",
    "(val INTEGER) -> BIGINT",
    description="The number truncated to so many decimal places (before the point, if negative); "
    "to a whole number by default.",
    category=MATHEMATICAL,
)
def trunc_whole(value: int | None) -> int | None:
    return value


@_scalar("trunc", "(val DOUBLE) -> BIGINT")
def trunc_double(value: float) -> int:
    return _as_bigint(value)


@_scalar("trunc", "(val DOUBLE, decimalPlaces INTEGER) -> DOUBLE")
def trunc_double_to(value: float, places: int) -> float:
    return float(_down(_exact(value), places))


@_scalar("trunc", "(val DECIMAL) -> DECIMAL", returns=without_scale)
def trunc_decimal(value: decimal.Decimal) -> decimal.Decimal:
    return _down(value, 0)


@_scalar(
    "trunc",
    "(val DECIMAL, decimalPlaces INTEGER) -> DECIMAL",
    returns=same_decimal,
)
def trunc_decimal_to(value: decimal.Decimal, places: int) -> decimal.Decimal:
    return _rescaled(_down(value, places), value)

"""Functions of DOUBLE: roots, powers, logarithms, trigonometry, and the distance on the earth.

They work as Java's `Math`: where Python raises an error, the result is NaN or an infinity. Each but
the last takes INTEGER, BIGINT and DOUBLE.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

MATHEMATICAL = "MATHEMATICAL"
_scalar = partial(scalar, category=MATHEMATICAL, null_is_null=True)
NAN = math.nan
INFINITY = math.inf

_TYPES = ("INTEGER", "BIGINT", "DOUBLE")


def _declare(
    name: str, description: str, parameter: str, meaning: str, function: Callable[[float], float]
) -> None:
    """Declare a function of one number."""

    @_scalar(
        name,
        *(f"({parameter} {sql_type}) -> DOUBLE" for sql_type in _TYPES),
        description=description,
        parameters={parameter: meaning},
    )
    def apply(value: float) -> float:
        return function(float(value))


def _or_nan(function: Callable[[float], float]) -> Callable[[float], float]:
    """The function, NaN where it is not defined."""

    def apply(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return NAN

    return apply


def exp(value: float) -> float:
    """e to the power of the value; infinite beyond the greatest DOUBLE."""
    try:
        return math.exp(value)
    except OverflowError:
        return INFINITY


def log(value: float) -> float:
    """The natural logarithm: NaN of negative numbers, negative infinity of 0."""
    if value > 0:
        return math.log(value)
    return -INFINITY if value == 0 else NAN


def cot(value: float) -> float:
    """The cotangent; infinite at 0, with its sign."""
    tangent = _or_nan(math.tan)(value)
    return 1 / tangent if tangent else math.copysign(INFINITY, tangent)


def cosh(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:
        return INFINITY


def sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(INFINITY, value)


def cbrt(value: float) -> float:
    """The cube root: the DOUBLE whose cube is nearest."""
    return math.cbrt(value)


_ANGLE = "the angle in radians"
_declare("exp", "e to the power of a number.", "exponent", "the exponent", exp)
_declare("ln", "The natural logarithm.", "value", "the number", log)
_declare("sqrt", "The square root.", "value", "the number", _or_nan(math.sqrt))
_declare("cbrt", "The cube root.", "value", "the number", cbrt)
_declare("sin", "The sine.", "value", _ANGLE, _or_nan(math.sin))
_declare("cos", "The cosine.", "value", _ANGLE, _or_nan(math.cos))
_declare("tan", "The tangent.", "value", _ANGLE, _or_nan(math.tan))
_declare("cot", "The cotangent.", "value", _ANGLE, cot)
_declare("asin", "The arc sine, in radians.", "value", "the sine", _or_nan(math.asin))
_declare("acos", "The arc cosine, in radians.", "value", "the cosine", _or_nan(math.acos))
_declare("atan", "The arc tangent, in radians.", "value", "the tangent", math.atan)
_declare("sinh", "The hyperbolic sine.", "value", _ANGLE, sinh)
_declare("cosh", "The hyperbolic cosine.", "value", _ANGLE, cosh)
_declare("tanh", "The hyperbolic tangent.", "value", _ANGLE, math.tanh)
_declare("degrees", "The angle in degrees.", "value", _ANGLE, math.degrees)
_declare("radians", "The angle in radians.", "value", "the angle in degrees", math.radians)


@_scalar(
    "atan2",
    *(f"(y {sql_type}, x {sql_type}) -> DOUBLE" for sql_type in _TYPES),
    description="The angle of the point (x, y), in radians.",
    parameters={"y": "the ordinate", "x": "the abscissa"},
)
def atan2(y: float, x: float) -> float:
    return math.atan2(y, x)


@_scalar(
    "power",
    *(f"(base {sql_type}, exponent {sql_type}) -> DOUBLE" for sql_type in _TYPES),
    description="A number raised to a power.",
    parameters={"base": "the number", "exponent": "the power"},
)
def power(base: float, exponent: float) -> float:
    base, exponent = float(base), float(exponent)
    if exponent == 0:
        return 1.0
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return NAN  # where C's pow, and Python, say 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return _negative_if_odd(INFINITY, base, exponent)
    except ValueError:  # 0 to a negative power, or a root of a negative number
        return _negative_if_odd(INFINITY, base, exponent) if base == 0 else NAN


def _negative_if_odd(value: float, base: float, exponent: float) -> float:
    return -value if math.copysign(1, base) < 0 and exponent % 2 == 1 else value


@_scalar(
    "log",
    *(f"(value {sql_type}) -> DOUBLE" for sql_type in _TYPES),
    description="The natural logarithm, or the logarithm to a base.",
    variation="The natural logarithm.",
    parameters={"value": "the number"},
)
def natural_log(value: float) -> float:
    return log(float(value))


@_scalar(
    "log",
    *(f"(base {sql_type}, value {sql_type}) -> DOUBLE" for sql_type in _TYPES),
    variation="The logarithm to a base; NaN if the base is 1 or not positive.",
    parameters={"base": "the base", "value": "the number"},
)
def log_to_base(base: float, value: float) -> float:
    if base <= 0 or base == 1:
        return NAN
    dividend, divisor = log(float(value)), log(float(base))
    return dividend / divisor


@scalar("pi", "() -> DOUBLE", description="The number pi.", category=MATHEMATICAL)
def pi() -> float:
    return math.pi


make_random: Callable[[], float] = random.random
"""Makes the numbers of RANDOM; tests put a known one here."""


@scalar(
    "random",
    "() -> DOUBLE",
    description="A random number, at least 0 and less than 1.",
    category=MATHEMATICAL,
    is_volatile=True,
)
def random_number() -> float:
    return make_random()


# -- GEO_DISTANCE: between two points on the earth, along a great circle


_EARTH_RADIUS_KM = 6371.0
_EARTH_RADIUS_MILES = 3959.0
_RADII = {
    **dict.fromkeys(("mi", "mile", "miles"), _EARTH_RADIUS_MILES),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), _EARTH_RADIUS_KM),
}


@scalar(
    "geo_distance",
    "(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE) -> DOUBLE",
    "(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE, units STRING) -> DOUBLE",
    description="The distance between two points on the earth along a great circle (haversine "
    "formula). Points are latitude and longitude in decimal degrees.",
    parameters={
        "lat1": "the latitude of the first point",
        "lon1": "the longitude of the first point",
        "lat2": "the latitude of the second point",
        "lon2": "the longitude of the second point",
        "units": "of the result: MILES or KM; KM if it is left out",
    },
)
def geo_distance(
    lat1: float | None,
    lon1: float | None,
    lat2: float | None,
    lon2: float | None,
    units: str | None = "KM",
) -> float:
    if lat1 is None or lon1 is None or lat2 is None or lon2 is None:
        raise EvaluationError("GEO_DISTANCE needs coordinates that are not NULL.")
    _check(lat1, lon1, lat2, lon2)
    a = _haversine(math.radians(lat2 - lat1)) + _haversine(math.radians(lon2 - lon1)) * math.cos(
        math.radians(lat1)
    ) * math.cos(math.radians(lat2))
    return 2 * math.asin(math.sqrt(a)) * _radius(units)


def _haversine(angle: float) -> float:
    return math.sin(angle / 2) ** 2


def _check(lat1: float, lon1: float, lat2: float, lon2: float) -> None:
    if max(abs(lat1), abs(lat2)) > 90:
        raise EvaluationError(
            "valid latitude values for GeoDistance function are in the range of -90 to 90 "
            "decimal degrees"
        )
    if max(abs(lon1), abs(lon2)) > 180:
        raise EvaluationError(
            "valid longitude values for GeoDistance function are in the range of -180 to +180 "
            "decimal degrees"
        )


def _radius(units: str | None) -> float:
    name = (units or "").strip().lower()
    if not name:
        return _EARTH_RADIUS_KM
    if name not in _RADII:
        raise EvaluationError(
            "GeoDistance function units parameter must be one of mi, mile, miles, km, kilometer, "
            "kilometers, kilometre or kilometres. Values are case-insensitive."
        )
    return _RADII[name]

"""STDDEV_SAMP, STDDEV_SAMPLE and CORRELATION, in one pass over the records.

STDDEV_SAMP gives the variance (the square of the deviation), as ksqlDB's does and documents;
STDDEV_SAMPLE gives the deviation. Source: the updating formulas of Youngs and Cramer (1971).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from barnabas.java.numbers import wrap_bigint
from barnabas.sql.functions.aggregates.base import struct_of
from barnabas.sql.functions.catalog import aggregate
from barnabas.sql.types import BIGINT, DOUBLE, BaseType, SqlType, Value

_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE")


@aggregate(
    "STDDEV_SAMP",
    *(f"(value {kind}) -> DOUBLE" for kind in _NUMBERS),
    description="The sample variance of a column: the square of what STDDEV_SAMPLE gives.",
)
class Variance:
    """Keeps sum, count and M2, the sum of squared distances from the mean."""

    result_type = DOUBLE

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value] = ()) -> None:
        self._is_double = types[0].base is BaseType.DOUBLE
        self.state_type = struct_of(
            SUM=DOUBLE if self._is_double else BIGINT, COUNT=BIGINT, M2=DOUBLE
        )

    def initial(self) -> Value:
        return self._state(0.0 if self._is_double else 0, 0, 0.0)

    def add(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        total, count, m2 = state.values()
        if count:
            delta = float(value * (count + 1) - (total + value))
            m2 += delta * delta / (count * (count + 1))
        return self._state(total + value, count + 1, m2)

    def remove(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        total, count, m2 = state.values()
        if count > 1:
            delta = float(value * (count + 1) - (total + value))
            m2 -= delta * delta / (count * (count - 1))
        return self._state(total - value, count - 1, m2)

    def merge(self, left: Value, right: Value) -> Value:
        total, count, m2 = left.values()
        other_total, other_count, other_m2 = right.values()
        m2 += other_m2
        if count and other_count:
            delta = total / count - other_total / other_count
            m2 += count * other_count * delta * delta / (count + other_count)
        return self._state(total + other_total, count + other_count, m2)

    def result(self, state: Value) -> Value:
        count = state["COUNT"]
        return state["M2"] / (count - 1) if count > 1 else 0.0

    def _state(self, total: Value, count: int, m2: float) -> Value:
        return {
            "SUM": total if self._is_double else wrap_bigint(total),
            "COUNT": count,
            "M2": m2,
        }


@aggregate(
    "STDDEV_SAMPLE",
    *(f"(value {kind}) -> DOUBLE" for kind in _NUMBERS),
    description="The sample standard deviation of a column; NULLs do not count.",
)
class Deviation(Variance):
    """The square root of the variance."""

    def result(self, state: Value) -> Value:
        return _square_root(super().result(state))


@aggregate(
    "correlation",
    *(f"(x {kind}, y {kind}) -> DOUBLE" for kind in _NUMBERS),
    description="Pearson's correlation of two columns; rows with a NULL do not count. NaN for "
    "fewer than two rows, or where all values of a column are equal.",
)
class Correlation:
    """Keeps the sums of x, y, their squares and products."""

    result_type = DOUBLE
    state_type = struct_of(
        X_SUM=DOUBLE,
        Y_SUM=DOUBLE,
        X_SQUARED_SUM=DOUBLE,
        Y_SQUARED_SUM=DOUBLE,
        XY_SUM=DOUBLE,
        COUNT=BIGINT,
    )
    _NAMES = tuple(field.name for field in state_type.fields)

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value] = ()) -> None:
        pass

    def initial(self) -> Value:
        return dict(zip(self._NAMES, (0.0, 0.0, 0.0, 0.0, 0.0, 0), strict=True))

    def add(self, state: Value, x: Value, y: Value) -> Value:
        return self._plus(state, x, y, 1)

    def remove(self, state: Value, x: Value, y: Value) -> Value:
        return self._plus(state, x, y, -1)

    def _plus(self, state: Value, x: Value, y: Value, sign: int) -> Value:
        if x is None or y is None:
            return state
        x, y = float(x), float(y)
        terms = (x, y, x * x, y * y, x * y, 1)
        sums = (before + sign * term for before, term in zip(state.values(), terms, strict=True))
        return dict(zip(self._NAMES, sums, strict=True))

    def merge(self, left: Value, right: Value) -> Value:
        return {name: left[name] + right[name] for name in self._NAMES}

    def result(self, state: Value) -> Value:
        x, y, xx, yy, xy, count = state.values()
        above = count * xy - x * y
        below = _square_root((count * xx - x * x) * (count * yy - y * y))
        if below == 0:
            return math.nan if above == 0 or math.isnan(above) else math.copysign(math.inf, above)
        return above / below


def _square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan

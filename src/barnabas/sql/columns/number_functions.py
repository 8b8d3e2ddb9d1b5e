"""Functions of numbers for whole columns, bit by bit as the row engine's: also for NaN and -0.0.

Roots are exact in any library. Other functions of DOUBLE differ in the last digit from one to the
other, so they have no column form here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from barnabas.java.numbers import INT_MIN
from barnabas.java.time.units import NANOS_OF_MS, NANOS_OF_UNIT
from barnabas.sql import types
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.text_functions import Form, Literals
from barnabas.sql.columns.vectors import Numbers, Vector, both_valid
from barnabas.sql.functions import rounding
from barnabas.sql.types import SqlType

_WHOLE_FROM: Final = 2.0**52
"""From here on every DOUBLE is whole."""


def _of_one(result: SqlType, function: Callable[[Numbers], Numbers]) -> Form:
    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        with np.errstate(all="ignore"):
            return Vector(result, function(vectors[0].data), vectors[0].valid)

    return form


def same(result: SqlType) -> Form:
    """The value as it is."""
    return lambda _, vectors: Vector(result, vectors[0].data, vectors[0].valid)


def same_or_doubt(frame: Frame, vectors: Sequence[Vector]) -> Vector:
    """ROUND of a whole number: NULL fails."""
    (vector,) = vectors
    if vector.valid is not None:
        frame.doubt |= ~vector.valid
    return Vector(types.BIGINT, vector.data, vector.valid)


absolute_integer: Final = _of_one(
    types.INTEGER, lambda data: np.where(data == INT_MIN, data, np.abs(data))
)
absolute_bigint: Final = _of_one(types.BIGINT, np.abs)
absolute_double: Final = _of_one(types.DOUBLE, np.abs)
sign: Final = _of_one(
    types.INTEGER, lambda data: (data > 0).astype(np.int64) - (data < 0).astype(np.int64)
)


def _finite(function: Callable[[Numbers], Numbers]) -> Form:
    """Numbers that are not finite stay as they are."""
    return _of_one(types.DOUBLE, lambda data: np.where(np.isfinite(data), function(data), data))


floor: Final = _finite(np.floor)
ceiling: Final = _finite(np.ceil)
root: Final = _of_one(types.DOUBLE, lambda data: np.where(data < 0, math.nan, np.sqrt(data)))


def _to_bigint(near: Callable[[Numbers], Numbers], of_one: Callable[[float], int]) -> Form:
    def function(data: Numbers) -> Numbers:
        small = np.abs(data) < _WHOLE_FROM
        made: Numbers = near(np.where(small, data, 0.0)).astype(np.int64)
        others = np.flatnonzero(~small)
        if len(others):
            made[others] = [of_one(value) for value in data[others].tolist()]
        return made

    return _of_one(types.BIGINT, function)


def _half_up(data: Numbers) -> Numbers:
    below = np.floor(data)
    found: Numbers = below + (data - below >= 0.5)
    return found


rounded: Final = _to_bigint(_half_up, rounding.round_double)
truncated: Final = _to_bigint(np.trunc, rounding.trunc_double)


def extreme(sql_type: SqlType, *, is_greatest: bool) -> Form:
    """GREATEST and LEAST of whole numbers; NULLs do not count."""
    choose: Any = np.maximum if is_greatest else np.minimum

    def form(frame: Frame, vectors: Sequence[Vector]) -> Vector:
        data, valid = vectors[0].data, ~vectors[0].nulls()
        for vector in vectors[1:]:
            there = ~vector.nulls()
            both = choose(data, vector.data)
            data = np.where(valid & there, both, np.where(there, vector.data, data))
            valid = valid | there
        return Vector(sql_type, data, None if valid.all() else valid)

    return form


# --- times -----------------------------------------------------------------------------------


def moved(literals: Literals, *, sign_: int) -> Form | None:
    """TIMESTAMPADD and TIMESTAMPSUB: so many of a unit later or earlier; a BIGINT that wraps."""
    unit = literals[0][1]
    if not isinstance(unit, str):
        return None
    nanos = NANOS_OF_UNIT[unit]
    if nanos % NANOS_OF_MS:
        return None
    millis = nanos // NANOS_OF_MS * sign_

    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        _, interval, stamp = vectors
        with np.errstate(all="ignore"):
            data = stamp.data + interval.data * millis
        return Vector(types.TIMESTAMP, data, both_valid(interval, stamp))

    return form

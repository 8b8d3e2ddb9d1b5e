"""Arithmetic and casts of numbers, for whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from barnabas.sql import types
from barnabas.sql.columns.compiling import Compiling, Kernel
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.functions import MAPPED, mapped
from barnabas.sql.columns.text_functions import joined_texts
from barnabas.sql.columns.vectors import Numbers, Vector, both_valid, truth_texts, whole_texts
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import ArithmeticOperator
from barnabas.sql.types import BaseType

PLAIN_NUMBERS: Final = (BaseType.INTEGER, BaseType.BIGINT, BaseType.DOUBLE)
_INT_BITS: Final = 1 << 32
_INT_HALF: Final = 1 << 31
_LONG_MIN: Final = -(1 << 63)


def wrap_integers(data: Numbers) -> Numbers:
    """Whole numbers cut to 32 bits, as Java's INTEGER wraps around."""
    if len(data) == 0 or (data.min() >= -_INT_HALF and data.max() < _INT_HALF):
        return data
    wrapped: Numbers = ((data + _INT_HALF) & (_INT_BITS - 1)) - _INT_HALF
    return wrapped


def arithmetic(compiler: Compiling, node: nodes.Arithmetic) -> Kernel | None:
    """Calculations with INTEGER, BIGINT and DOUBLE, and texts joined by `+`."""
    result = compiler.type_of(node)
    sides = (compiler.type_of(node.left), compiler.type_of(node.right))
    if result is None:
        return None
    if result == types.STRING:
        joined = compiler.kernel(node.left), compiler.kernel(node.right)
        return lambda frame: joined_texts(frame, [kernel(frame) for kernel in joined])
    if any(s is None or s.base not in PLAIN_NUMBERS for s in sides):
        return None
    left, right = compiler.kernel(node.left), compiler.kernel(node.right)
    operator = node.operator
    is_double = result.base is BaseType.DOUBLE
    calculate = _DOUBLES[operator] if is_double else _WHOLES[operator]
    wraps = result.base is BaseType.INTEGER

    def kernel(frame: Frame) -> Vector:
        one, other = left(frame), right(frame)
        valid = both_valid(one, other)
        if valid is not None:
            frame.doubt |= ~valid  # the row engine notes it
        first, second = one.data, other.data
        if is_double:
            first, second = first.astype(np.float64), second.astype(np.float64)
        elif operator in _DIVIDING:
            bad = second == 0
            if bad.any() or (second == -1).any():
                bad |= (second == -1) & (first == _LONG_MIN)
                frame.doubt |= bad
                second = np.where(bad, 1, second)
        with np.errstate(all="ignore"):
            data = calculate(first, second)
        if is_double:
            frame.doubt |= np.isnan(data)  # Python's is another one
        return Vector(result, wrap_integers(data) if wraps else data, valid)

    return kernel


def _quotients(left: Numbers, right: Numbers) -> Numbers:
    """Rounded towards zero."""
    found: Numbers = left // right
    found += ((left % right) != 0) & ((left < 0) != (right < 0))
    return found


_DIVIDING: Final = (ArithmeticOperator.DIVIDE, ArithmeticOperator.MODULUS)
_WHOLES: Final[dict[ArithmeticOperator, Callable[[Numbers, Numbers], Numbers]]] = {
    ArithmeticOperator.ADD: np.add,
    ArithmeticOperator.SUBTRACT: np.subtract,
    ArithmeticOperator.MULTIPLY: np.multiply,
    ArithmeticOperator.DIVIDE: _quotients,
    ArithmeticOperator.MODULUS: np.fmod,
}
"""In 64 bits, wrapping around."""
_DOUBLES: Final[dict[ArithmeticOperator, Callable[[Numbers, Numbers], Numbers]]] = {
    ArithmeticOperator.ADD: np.add,
    ArithmeticOperator.SUBTRACT: np.subtract,
    ArithmeticOperator.MULTIPLY: np.multiply,
    ArithmeticOperator.DIVIDE: np.divide,
    ArithmeticOperator.MODULUS: np.fmod,
}


def sign(compiler: Compiling, node: nodes.Sign) -> Kernel | None:
    """The signs `-` and `+` before a number."""
    sql_type = compiler.type_of(node)
    if sql_type is None or sql_type.base not in PLAIN_NUMBERS:
        return None
    operand = compiler.kernel(node.operand)

    def kernel(frame: Frame) -> Vector:
        vector = operand(frame)
        if vector.valid is not None:
            frame.doubt |= ~vector.valid
        if not node.is_minus:
            return vector
        data = -vector.data
        is_integer = sql_type.base is BaseType.INTEGER
        return Vector(sql_type, wrap_integers(data) if is_integer else data, vector.valid)

    return kernel


# --- casts -----------------------------------------------------------------------------------


def cast(compiler: Compiling, node: nodes.Cast) -> Kernel | None:
    """Casts between numbers, and to STRING; others once for each distinct value."""
    source, target = compiler.type_of(node.operand), node.type
    if source is None:
        return None
    operand = compiler.kernel(node.operand)
    convert = same if source == target else CASTS.get((source.base, target.base))
    if convert is None:
        each = cast_maker(source, target)
        if each is None or source.base not in MAPPED:
            return None
        return lambda frame: mapped(frame, operand(frame), target, each)

    def kernel(frame: Frame) -> Vector:
        vector = operand(frame)
        return Vector(target, convert(vector), vector.valid)

    return kernel


def same(vector: Vector) -> Any:
    """The values as they are."""
    return vector.data


CASTS: Final[dict[tuple[BaseType, BaseType], Callable[[Vector], Any]]] = {
    (BaseType.INTEGER, BaseType.BIGINT): same,
    (BaseType.BIGINT, BaseType.INTEGER): lambda vector: wrap_integers(vector.data),
    (BaseType.INTEGER, BaseType.DOUBLE): lambda vector: vector.data.astype(np.float64),
    (BaseType.BIGINT, BaseType.DOUBLE): lambda vector: vector.data.astype(np.float64),
    (BaseType.INTEGER, BaseType.STRING): whole_texts,
    (BaseType.BIGINT, BaseType.STRING): whole_texts,
    (BaseType.BOOLEAN, BaseType.STRING): truth_texts,
}

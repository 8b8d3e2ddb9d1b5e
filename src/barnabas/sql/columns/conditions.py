"""Comparisons, conditions and CASE, for whole columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.sql import types
from barnabas.sql.columns.arithmetic import PLAIN_NUMBERS
from barnabas.sql.columns.compiling import Compiling, Kernel
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.text_functions import not_ascii
from barnabas.sql.columns.vectors import (
    FLAT,
    WHOLE,
    Indexes,
    Mask,
    NotExactError,
    Vector,
    both_valid,
    constant,
    mask_of,
    of_values,
    text_vector,
)
from barnabas.sql.errors import FAILURES
from barnabas.sql.expressions.coercion import LITERALS
from barnabas.sql.expressions.comparisons import EQUALITIES, comparison
from barnabas.sql.expressions.typing import between_as_comparisons, simple_case_as_searched
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import ComparisonOperator, Expression, LogicalOperator
from barnabas.sql.types import BaseType, SqlType


class _Comparing(NamedTuple):
    numbers: Callable[[Any, Any], Any]
    texts: Callable[[Any, Any], Any]


_COMPARING: Final = {
    ComparisonOperator.EQUAL: _Comparing(np.equal, pc.equal),
    ComparisonOperator.NOT_EQUAL: _Comparing(np.not_equal, pc.not_equal),
    ComparisonOperator.LESS_THAN: _Comparing(np.less, pc.less),
    ComparisonOperator.LESS_THAN_OR_EQUAL: _Comparing(np.less_equal, pc.less_equal),
    ComparisonOperator.GREATER_THAN: _Comparing(np.greater, pc.greater),
    ComparisonOperator.GREATER_THAN_OR_EQUAL: _Comparing(np.greater_equal, pc.greater_equal),
    ComparisonOperator.IS_DISTINCT_FROM: _Comparing(np.not_equal, pc.not_equal),
    ComparisonOperator.IS_NOT_DISTINCT_FROM: _Comparing(np.equal, pc.equal),
}
_DIFFERING: Final = (ComparisonOperator.NOT_EQUAL, ComparisonOperator.IS_DISTINCT_FROM)


def compared(compiler: Compiling, node: nodes.Comparison) -> Kernel | None:
    """Comparisons of numbers, texts, times and literals."""
    sides = _comparable(compiler, node)
    if sides is None:
        return None
    left, right, base = sides
    how = _COMPARING[node.operator]
    is_distinct = node.operator is ComparisonOperator.IS_DISTINCT_FROM
    tells_nulls = is_distinct or node.operator is ComparisonOperator.IS_NOT_DISTINCT_FROM

    def kernel(frame: Frame) -> Vector:
        one, other = left(frame), right(frame)
        if base is BaseType.STRING:
            data = mask_of(how.texts(one.data, other.data).fill_null(False))
            if node.operator not in EQUALITIES:
                frame.doubt |= not_ascii(one.data) | not_ascii(other.data)
        elif base is BaseType.DOUBLE and node.operator in _DIFFERING:
            data = (one.data < other.data) | (one.data > other.data)
        else:
            data = how.numbers(one.data, other.data)
        valid = both_valid(one, other)
        if valid is not None:
            if tells_nulls:
                differ = one.nulls() != other.nulls()
                data = np.where(valid, data, differ == is_distinct)
            else:
                data = data & valid
        return Vector(types.BOOLEAN, data)

    return kernel


def _comparable(
    compiler: Compiling, node: nodes.Comparison
) -> tuple[Kernel, Kernel, BaseType] | None:
    """Both sides, and the type as which they compare."""
    left_type, right_type = compiler.type_of(node.left), compiler.type_of(node.right)
    if left_type is None or right_type is None:
        return None
    bases = (left_type.base, right_type.base)
    left, right = compiler.kernel(node.left), compiler.kernel(node.right)
    if all(base in PLAIN_NUMBERS for base in bases):
        is_double = BaseType.DOUBLE in bases
        return left, right, BaseType.DOUBLE if is_double else BaseType.BIGINT
    if bases[0] is bases[1]:
        if bases[0] is BaseType.BOOLEAN and node.operator not in EQUALITIES:
            return None
        if bases[0] in (*WHOLE, BaseType.BOOLEAN, BaseType.STRING):
            return left, right, bases[0]
        return None
    converted = comparison(node.operator, left_type, right_type)
    if _is_literal(node.right, left_type, converted.convert_left):
        right_kernel = _converted(node.right, converted.convert_right, left_type)
        return right_kernel and (left, right_kernel, left_type.base)
    if _is_literal(node.left, right_type, converted.convert_right):
        left_kernel = _converted(node.left, converted.convert_left, right_type)
        return left_kernel and (left_kernel, right, right_type.base)
    return None


def _is_literal(side: Any, other: SqlType, convert_other: Any) -> bool:
    """Return whether a side is a literal that is converted once, to the type of the other one."""
    return isinstance(side, LITERALS) and convert_other is None and other.base in WHOLE


def _converted(
    literal: Any, convert: Callable[[Any], Any] | None, sql_type: SqlType
) -> Kernel | None:
    if convert is None:
        return None
    try:
        made = convert(literal.value)
        constant(sql_type, made, 0)
    except (*FAILURES, NotExactError):
        return None
    return lambda frame: constant(sql_type, made, len(frame))


def between(compiler: Compiling, node: nodes.Between) -> Kernel | None:
    """BETWEEN: two comparisons."""
    first, second = between_as_comparisons(node, node.operand)
    lower, upper = compared(compiler, first), compared(compiler, second)
    if lower is None or upper is None:
        return None
    return _both(lower, upper, is_and=True)


# --- conditions ------------------------------------------------------------------------------


def _both(left: Kernel, right: Kernel, *, is_and: bool) -> Kernel:
    """The right one counts, and may be doubted, only where the left one does not decide."""

    def kernel(frame: Frame) -> Vector:
        one = left(frame)
        undecided = one.data if is_and else ~one.data
        other = within(frame, undecided, right)
        data = one.data & other.data if is_and else one.data | other.data
        return Vector(types.BOOLEAN, data)

    return kernel


def within(frame: Frame, where: Mask, kernel: Kernel) -> Vector:
    """Return what a kernel gives; what it doubts outside of `where` does not matter."""
    before = frame.doubt
    frame.doubt = np.zeros(len(frame), np.bool_)
    try:
        vector = kernel(frame)
        before = before | (frame.doubt & where)
    finally:
        frame.doubt = before
    return vector


def logical(compiler: Compiling, node: nodes.Logical) -> Kernel:
    """AND and OR."""
    left, right = compiler.condition(node.left), compiler.condition(node.right)
    return _both(left, right, is_and=node.operator is LogicalOperator.AND)


def negated(compiler: Compiling, node: nodes.Not) -> Kernel:
    """NOT."""
    operand = compiler.condition(node.operand)
    return lambda frame: Vector(types.BOOLEAN, ~operand(frame).data)


def is_null(compiler: Compiling, node: nodes.IsNull) -> Kernel:
    """IS NULL."""
    operand = compiler.kernel(node.operand)
    return lambda frame: Vector(types.BOOLEAN, operand(frame).nulls())


def is_not_null(compiler: Compiling, node: nodes.IsNotNull) -> Kernel:
    """IS NOT NULL."""
    operand = compiler.kernel(node.operand)
    return lambda frame: Vector(types.BOOLEAN, ~operand(frame).nulls())


def in_list(compiler: Compiling, node: nodes.InList) -> Kernel | None:
    """IN with literals."""
    sql_type = compiler.type_of(node.operand)
    if sql_type is None or sql_type.base not in (BaseType.STRING, *WHOLE):
        return None
    for item in node.items:
        if not isinstance(item, LITERALS) or not _is_alike(compiler.type_of(item), sql_type):
            return None
    operand = compiler.kernel(node.operand)
    values = [item.value for item in node.items if isinstance(item, LITERALS)]
    try:
        of_values(sql_type, values)
    except NotExactError:
        return None

    def kernel(frame: Frame) -> Vector:
        vector = operand(frame)
        if vector.is_text:
            data = mask_of(pc.is_in(vector.data, pa.array(values, pa.string())))
        else:
            data = np.isin(vector.data, np.array(values, np.int64))
        return Vector(types.BOOLEAN, data if vector.valid is None else data & vector.valid)

    return kernel


def _is_alike(one: SqlType | None, other: SqlType) -> bool:
    """Return whether values of both types are equal as they stand."""
    wholes = (types.INTEGER, types.BIGINT)
    return one == other or (one in wholes and other in wholes)


def searched_case(compiler: Compiling, node: nodes.SearchedCase) -> Kernel | None:
    """CASE WHEN: each condition and result counts only for the records that come to it."""
    sql_type = compiler.type_of(node)
    results = [when.result for when in node.whens]
    default = node.default or nodes.NullLiteral()
    if sql_type is None or sql_type.base not in FLAT:
        return None
    if any(compiler.type_of(result) not in (sql_type, None) for result in (*results, default)):
        return None
    conditions = [compiler.condition(when.condition) for when in node.whens]
    choices = [_chosen(compiler, result, sql_type) for result in (*results, default)]

    def kernel(frame: Frame) -> Vector:
        size = len(frame)
        left = np.ones(size, np.bool_)
        place = np.full(size, len(conditions), np.int64)
        vectors = []
        for number, condition in enumerate(conditions):
            holds = within(frame, left.copy(), condition).data & left
            place[holds] = number
            left &= ~holds
        for number, choice in enumerate(choices):
            vectors.append(within(frame, place == number, choice))
        return _merged(sql_type, place, vectors)

    return kernel


def _chosen(compiler: Compiling, expression: Expression, sql_type: SqlType) -> Kernel:
    if isinstance(expression, nodes.NullLiteral):
        return lambda frame: constant(sql_type, None, len(frame))
    return compiler.kernel(expression)


def _merged(sql_type: SqlType, place: Indexes, vectors: Sequence[Vector]) -> Vector:
    """Of each record the value of the vector whose number is its place."""
    if sql_type.base is BaseType.STRING:
        made = pc.choose(pa.array(place), *(vector.data for vector in vectors))
        return text_vector(sql_type, made)
    data = np.choose(place, [vector.data for vector in vectors]) if len(place) else vectors[0].data
    valid = np.ones(len(place), np.bool_)
    for number, vector in enumerate(vectors):
        if vector.valid is not None:
            valid &= (place != number) | vector.valid
    return Vector(sql_type, data, None if valid.all() else valid)


def simple_case(compiler: Compiling, node: nodes.SimpleCase) -> Kernel | None:
    """CASE of a value: the same with comparisons."""
    return searched_case(compiler, simple_case_as_searched(node, node.operand))

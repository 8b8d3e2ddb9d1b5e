"""Comparisons: which types can be compared, and how.

With NULL on either side every comparison is false, but for IS [NOT] DISTINCT FROM. Texts compare
by UTF-16 code units and bytes as signed, as in Java; a text beside a date or time is read as one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from barnabas.java.time.units import DAY_MS
from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.ordering import order_key
from barnabas.sql.syntax.expressions import Comparison as ComparisonNode
from barnabas.sql.syntax.expressions import ComparisonOperator as Operator
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.time_text import parse_date, parse_time, parse_timestamp
from barnabas.sql.types import BaseType, SqlType

Compare = Callable[[Any, Any], bool]
Convert = Callable[[Any], Any]

EQUALITIES = (
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.IS_DISTINCT_FROM,
    Operator.IS_NOT_DISTINCT_FROM,
)

_DATES = (BaseType.DATE, BaseType.TIMESTAMP)


def can_compare(how: Operator, left: SqlType | None, right: SqlType | None) -> bool:
    """Return whether values of the types can be compared so; raises AnalysisError for NULL."""
    if left is None or right is None:
        shown = ["NULL" if side is None else side.base.value for side in (left, right)]
        raise AnalysisError(
            f"Comparison with NULL not supported: {shown[0]} {how.value} {shown[1]}\n"
            "Use 'IS NULL' or 'IS NOT NULL' instead."
        )
    other = right.base
    if left.base.is_number:
        return other.is_number
    match left.base:
        case BaseType.STRING:
            return other is BaseType.STRING or other.is_time
        case BaseType.TIME:
            return other in (BaseType.TIME, BaseType.STRING)
        case BaseType.DATE | BaseType.TIMESTAMP:
            return other in _DATES or other is BaseType.STRING
        case BaseType.BYTES:
            return other is BaseType.BYTES
    return other is left.base and how in EQUALITIES


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two values that are not NULL compare: each is converted first, unless there is no need
    (None); then `compare` decides."""

    convert_left: Convert | None
    convert_right: Convert | None
    compare: Compare


def comparison(how: Operator, left: SqlType, right: SqlType) -> Comparison:
    """Return how values compare, for types for which `can_compare` holds."""
    convert_left, convert_right = conversions(left, right)
    bases = (left.base, right.base)
    compare = _COMPARE[how]
    if BaseType.DOUBLE in bases and BaseType.DECIMAL not in bases:
        compare = _DOUBLE_COMPARE.get(how, compare)
    if how not in EQUALITIES and bases in _KEYED:
        convert_left = convert_right = order_key(left)
    return Comparison(convert_left, convert_right, compare)


_KEYED = ((BaseType.STRING, BaseType.STRING), (BaseType.BYTES, BaseType.BYTES))
"""Types whose order is another than Python's."""


def conversions(left: SqlType, right: SqlType) -> tuple[Convert | None, Convert | None]:
    """Return what makes values of both types comparable; None for a side that stays as it is."""
    bases = (left.base, right.base)
    if BaseType.DECIMAL in bases:
        return _to_decimal(left.base), _to_decimal(right.base)
    if BaseType.DOUBLE in bases and BaseType.BIGINT in bases:
        return (float, None) if left.base is BaseType.BIGINT else (None, float)
    if BaseType.TIME in bases:
        parse = parse_time
    elif BaseType.TIMESTAMP in bases:
        return _to_timestamp(left.base), _to_timestamp(right.base)
    elif BaseType.DATE in bases:
        parse = parse_date
    else:
        return None, None
    return (
        parse if left.base is BaseType.STRING else None,
        parse if right.base is BaseType.STRING else None,
    )


def _to_decimal(base: BaseType) -> Convert | None:
    match base:
        case BaseType.DECIMAL:
            return None
        case BaseType.DOUBLE:
            return _decimal_of_double
    return Decimal


def _decimal_of_double(value: float) -> Decimal:
    """The decimal that the double prints as."""
    number = Decimal(repr(value))
    if not number.is_finite():
        raise ValueError(f"{value} is not a DECIMAL")
    return number


def _to_timestamp(base: BaseType) -> Convert | None:
    match base:
        case BaseType.DATE:
            return lambda days: days * DAY_MS
        case BaseType.STRING:
            return parse_timestamp
    return None


_COMPARE: dict[Operator, Compare] = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.LESS_THAN: operator.lt,
    Operator.LESS_THAN_OR_EQUAL: operator.le,
    Operator.GREATER_THAN: operator.gt,
    Operator.GREATER_THAN_OR_EQUAL: operator.ge,
    Operator.IS_DISTINCT_FROM: operator.ne,
    Operator.IS_NOT_DISTINCT_FROM: operator.eq,
}


def _double_differs(left: float, right: float) -> bool:
    """Not so of NaN: it is neither equal to anything nor different."""
    return left < right or left > right


_DOUBLE_COMPARE: dict[Operator, Compare] = {
    Operator.NOT_EQUAL: _double_differs,
    Operator.IS_DISTINCT_FROM: _double_differs,
}


def refusal(node: ComparisonNode, left: SqlType | None, right: SqlType | None) -> AnalysisError:
    """The error for types that cannot be compared."""
    left_text, right_text = message_text(node.left), message_text(node.right)
    return AnalysisError(
        f"Cannot compare {left_text} ({left}) to {right_text} ({right}) with {node.operator.name}."
    )

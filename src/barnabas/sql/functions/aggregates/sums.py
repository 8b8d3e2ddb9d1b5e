"""SUM, SUM_LIST and AVG.

As in ksqlDB, sums of INTEGER and BIGINT wrap around, and a sum of DECIMAL that needs more digits
than its type has is an error. One thing differs: AVG of INTEGER adds up in 64 bits. ksqlDB's wraps
at 32 bits and then gives an average outside of its values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Context
from decimal import Decimal as Number

from barnabas.java.numbers import wrap_bigint, wrap_integer
from barnabas.sql.decimals import overflow
from barnabas.sql.functions.aggregates.base import Fold, struct_of
from barnabas.sql.functions.catalog import aggregate
from barnabas.sql.types import BIGINT, DOUBLE, INTEGER, Array, BaseType, Decimal, SqlType, Value

_EXACT = Context(prec=100)


@aggregate(
    "SUM",
    "(value INTEGER) -> INTEGER",
    "(value BIGINT) -> BIGINT",
    "(value DOUBLE) -> DOUBLE",
    "(value DECIMAL) -> DECIMAL",
    description="Adds up the values of a column; NULLs do not count.",
)
def sum_of(types: Sequence[SqlType], constants: Sequence[Value] = ()) -> Fold:
    kind = types[0]
    if isinstance(kind, Decimal):
        return _decimal_sum(kind)
    return _number_sum(kind)


@aggregate(
    "sum_list",
    "(list ARRAY<INTEGER>) -> INTEGER",
    "(list ARRAY<BIGINT>) -> BIGINT",
    "(list ARRAY<DOUBLE>) -> DOUBLE",
    description="Adds up all the items of the arrays in a column; NULLs do not count.",
)
def sum_of_lists(types: Sequence[SqlType], constants: Sequence[Value] = ()) -> Fold:
    assert isinstance(types[0], Array)
    item = types[0].item

    def total(items: list[Value]) -> Value:
        return sum((item for item in items if item is not None), start=zero)

    zero = 0.0 if item.base is BaseType.DOUBLE else 0
    return _number_sum(item, measure=total)


def _number_sum(kind: SqlType, measure: Callable[[Value], Value] | None = None) -> Fold:
    if kind.base is BaseType.DOUBLE:
        return Fold(DOUBLE, 0.0, operator.add, operator.sub, measure)
    wrap = wrap_integer if kind.base is BaseType.INTEGER else wrap_bigint
    return Fold(
        INTEGER if kind.base is BaseType.INTEGER else BIGINT,
        0,
        lambda left, right: wrap(left + right),
        lambda left, right: wrap(left - right),
        measure,
    )


def _decimal_sum(kind: Decimal) -> Fold:
    limit = Number(10) ** (kind.precision - kind.scale)

    def checked(value: Number) -> Number:
        if abs(value) >= limit:
            raise overflow(value, kind)
        return value

    return Fold(
        kind,
        Number(0).scaleb(-kind.scale),
        lambda left, right: checked(_EXACT.add(left, right)),
        lambda left, right: checked(_EXACT.subtract(left, right)),
    )


@aggregate(
    "avg",
    "(value INTEGER) -> DOUBLE",
    "(value BIGINT) -> DOUBLE",
    "(value DOUBLE) -> DOUBLE",
    description="The mean of the values of a column; NULLs do not count. 0 if there are no values.",
)
class Average:
    """Keeps the sum and the count."""

    result_type = DOUBLE

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value] = ()) -> None:
        is_double = types[0].base is BaseType.DOUBLE
        self.state_type = struct_of(SUM=DOUBLE if is_double else BIGINT, COUNT=BIGINT)
        self._zero = 0.0 if is_double else 0
        self._wrap: Callable[[Value], Value] = float if is_double else wrap_bigint

    def initial(self) -> Value:
        return {"SUM": self._zero, "COUNT": 0}

    def add(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        return {"SUM": self._wrap(state["SUM"] + value), "COUNT": state["COUNT"] + 1}

    def remove(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        return {"SUM": self._wrap(state["SUM"] - value), "COUNT": state["COUNT"] - 1}

    def merge(self, left: Value, right: Value) -> Value:
        return {
            "SUM": self._wrap(left["SUM"] + right["SUM"]),
            "COUNT": left["COUNT"] + right["COUNT"],
        }

    def result(self, state: Value) -> Value:
        count = state["COUNT"]
        return float(state["SUM"]) / count if count else 0.0

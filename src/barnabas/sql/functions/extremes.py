"""GREATEST and LEAST: the highest and the lowest of some values of one type; NULLs don't count."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce

from barnabas.sql import types
from barnabas.sql.functions.catalog import scalar
from barnabas.sql.functions.ordering import order_key
from barnabas.sql.types import SqlType, Value

MATHEMATICAL = "MATHEMATICAL"

_EXACT = decimal.Context(prec=100)


_ORDERED = (
    types.INTEGER,
    types.BIGINT,
    types.DOUBLE,
    types.STRING,
    types.BYTES,
    types.DATE,
    types.TIME,
    types.TIMESTAMP,
)

_DIGITS = {"INTEGER": 10, "BIGINT": 19}


def widest_decimal(arguments: Sequence[SqlType | None]) -> SqlType:
    """The DECIMAL with room for the digits of all arguments."""
    return reduce(_wider, [_as_decimal(a) for a in arguments if a is not None])


def _as_decimal(sql_type: SqlType) -> types.Decimal:
    if isinstance(sql_type, types.Decimal):
        return sql_type
    return types.Decimal(_DIGITS[sql_type.base.value], 0)


def _wider(left: types.Decimal, right: types.Decimal) -> types.Decimal:
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    return types.Decimal(whole + scale, scale)


@lru_cache(maxsize=256)
def _unit(arguments: tuple[SqlType | None, ...]) -> decimal.Decimal:
    """The last digit of the result, for `quantize`."""
    widest = widest_decimal(arguments)
    assert isinstance(widest, types.Decimal)
    return decimal.Decimal((0, (1,), -widest.scale))


def _declare(name: str, description: str, choose: Callable[..., Value]) -> None:
    for sql_type in _ORDERED:
        _declare_for(name, description, choose, sql_type)

    @scalar(
        name,
        "(val DECIMAL, vals DECIMAL...) -> DECIMAL",
        returns=widest_decimal,
        takes_types=True,
    )
    def extreme(
        *values: decimal.Decimal | None, types: Sequence[SqlType | None]
    ) -> decimal.Decimal | None:
        best = choose(_present(values), default=None)
        return None if best is None else best.quantize(_unit(tuple(types)), context=_EXACT)


def _declare_for(
    name: str,
    description: str,
    choose: Callable[..., Value],
    sql_type: SqlType,
) -> None:
    key = order_key(sql_type)

    @scalar(
        name,
        f"(val {sql_type}, vals {sql_type}...) -> {sql_type}",
        description=description,
        category=MATHEMATICAL,
    )
    def extreme(*values: Value) -> Value:
        return choose(_present(values), key=key, default=None)


def _present(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if value is not None]


_declare("greatest", "The highest of the values; NULLs don't count.", max)
_declare("least", "The lowest of the values; NULLs don't count.", min)

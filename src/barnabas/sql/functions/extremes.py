"""GREATEST and LEAST: the highest and the lowest of some values of one type; NULLs don't count."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce

from barnabas.sql import types
from barnabas.sql.decimals import as_decimal_type, unit, widen
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


def widest_decimal(arguments: Sequence[SqlType | None]) -> types.Decimal:
    """The DECIMAL with room for the digits of all arguments."""
    return reduce(widen, [as_decimal_type(a) for a in arguments if a is not None])


@lru_cache(maxsize=256)
def _unit(arguments: tuple[SqlType | None, ...]) -> decimal.Decimal:
    """The last digit of the result, for `quantize`."""
    return unit(widest_decimal(arguments).scale)


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

"""Table functions: EXPLODE and CUBE_EXPLODE give several rows for one record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.functions.catalog import table_function
from barnabas.sql.types import Array, SqlType, Value

CUBE_COLUMNS_MAX = 20
"""2^20 rows for one record are more than anyone wants."""


def _item_type(types: Sequence[SqlType]) -> SqlType:
    if not isinstance(types[0], Array):
        raise AnalysisError("explode should be provided with an ARRAY")
    return types[0].item


@table_function(
    "explode",
    "(list ARRAY<T>) -> T",
    description="A row for each item of an array.",
)
@table_function("explode", "(input ARRAY<DECIMAL>) -> DECIMAL", returns=_item_type)
def explode(items: list[Value] | None) -> list[Value]:
    return items or []


@table_function(
    "cube_explode",
    "(columns ARRAY<T>) -> ARRAY<T>",
    description="A row for each combination of the items of an array: each of them or NULL.",
)
def cube_explode(columns: list[Value] | None) -> Iterator[list[Value]]:
    if columns is None:
        return
    count = len(columns)
    if count > CUBE_COLUMNS_MAX:
        raise EvaluationError(
            f"cube_explode: too many columns ({count}); max is {CUBE_COLUMNS_MAX}"
        )
    bits = [1 << (count - 1 - index) for index in range(count)]
    # An item that is NULL has no two ways: combinations with its bit would repeat others.
    nulls = sum(bit for bit, column in zip(bits, columns, strict=True) if column is None)
    for combination in range(1 << count):
        if not combination & nulls:
            yield [
                column if combination & bit else None
                for bit, column in zip(bits, columns, strict=True)
            ]

"""Vectorised functions: they take and give Arrow arrays, a value for each record of a batch.

    @udf("(price DOUBLE, rate DOUBLE) -> DOUBLE", vectorized=True)
    def with_tax(price, rate):
        return pyarrow.compute.multiply(price, pyarrow.compute.add(1.0, rate))

NULL is always null in the arrays. The result is as long as they are. Callers with single records
make arrays of length 1; `batch` is for those that have more at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from barnabas.sql import types as sql
from barnabas.sql.errors import EvaluationError
from barnabas.sql.types import Array, BaseType, Map, SqlType, Struct, Value
from barnabas.sql.udf.boundary import Boundary, guarded
from barnabas.sql.udf.values import maybe


class Vectorized:
    """The implementation of a vectorised function."""

    def __init__(self, name: str, function: Callable[..., Any], boundary: Boundary) -> None:
        self._function = function
        self._boundary = boundary
        self._guarded = guarded(name, self._batch, has_decimals=False)

    def __call__(self, *values: Value, types: Sequence[SqlType | None]) -> Value:
        return self.batch([[value] for value in values], types, 1)[0]

    def batch(
        self, columns: Sequence[Sequence[Value]], types: Sequence[SqlType | None], count: int
    ) -> list[Value]:
        """The result for each of `count` records; raises EvaluationError, then none has one."""
        made: list[Value] = self._guarded(columns, types, count)
        return made

    def _batch(
        self, columns: Sequence[Sequence[Value]], types: Sequence[SqlType | None], count: int
    ) -> list[Value]:
        import pyarrow as pa  # functions of other kinds do without it

        arrays = [
            pa.nulls(count) if sql_type is None else arrow_array(column, sql_type)
            for column, sql_type in zip(columns, types, strict=True)
        ]
        result = self._function(*arrays)
        if not isinstance(result, pa.Array | pa.ChunkedArray):
            raise EvaluationError(f"gave a {type(result).__name__}, which is not an Arrow array")
        if len(result) != count:
            raise EvaluationError(f"gave {len(result)} values for {count} records")
        convert = self._boundary.conversions(len(types), types).result
        return [None if value is None else convert(value) for value in result.to_pylist()]


def arrow_array(values: Sequence[Value], sql_type: SqlType) -> Any:
    """The values as an Arrow array."""
    import pyarrow as pa

    pairs = _pairs(sql_type)
    if pairs is not None:
        values = [None if value is None else pairs(value) for value in values]
    return pa.array(values, arrow_type(sql_type))


def arrow_type(sql_type: SqlType) -> Any:
    """The Arrow type that arrays of a type have."""
    import pyarrow as pa

    match sql_type:
        case sql.Decimal(precision, scale):
            make = pa.decimal128 if precision <= 38 else pa.decimal256
            return make(precision, scale)
        case Array(item):
            return pa.list_(arrow_type(item))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([(field.name, arrow_type(field.type)) for field in fields])
    return {
        BaseType.BOOLEAN: pa.bool_(),
        BaseType.INTEGER: pa.int32(),
        BaseType.BIGINT: pa.int64(),
        BaseType.DOUBLE: pa.float64(),
        BaseType.STRING: pa.string(),
        BaseType.BYTES: pa.binary(),
        BaseType.DATE: pa.date32(),
        BaseType.TIME: pa.time32("ms"),
        BaseType.TIMESTAMP: pa.timestamp("ms", "UTC"),
    }[sql_type.base]


def _pairs(sql_type: SqlType) -> Callable[[Any], Any] | None:
    """Arrow takes maps as lists of pairs: what makes them, or None for types without maps."""
    match sql_type:
        case Array(item):
            convert = _pairs(item)
            return None if convert is None else lambda items: [maybe(i, convert) for i in items]
        case Map(_, value):
            convert = _pairs(value)
            return lambda entries: [(k, maybe(v, convert)) for k, v in entries.items()]
        case Struct(fields):
            pairs = {field.name: _pairs(field.type) for field in fields}
            if any(pairs.values()):
                return lambda struct: {n: maybe(v, pairs[n]) for n, v in struct.items()}
    return None

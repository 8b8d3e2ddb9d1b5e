"""Rows made by a Python function: `Stream.map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.pipeline.streams.code import send_whole
from barnabas.pipeline.streams.schemas import SchemaLike, struct_of, to_row
from barnabas.pipeline.streams.steps import record_columns, value_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def mapped(
    frame: DataFrame, function: Callable[[dict[str, Any]], Any], schema: SchemaLike
) -> DataFrame:
    """Return what a function makes of each row, with the row's record columns."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import ArrayType

    made = struct_of(schema)
    names = made.fieldNames()
    send_whole(function, schema)

    def call(row: Any) -> list[Any]:
        result = function(row.asDict(recursive=True))
        if result is None:
            return []
        rows = result if isinstance(result, list) else [result]
        return [[to_row(one).get(name) for name in names] for one in rows]

    # A function of a column leaves the record columns alone: they keep their watermark.
    columns = f.struct(*(f.col(f"`{name}`") for name in value_columns(frame.columns)))
    function_of_row = f.udf(call, ArrayType(made)).asNondeterministic()
    exploded = frame.select(
        f.explode(function_of_row(columns)).alias("_made"), *record_columns(frame.columns)
    )
    return exploded.select("_made.*", *record_columns(frame.columns))

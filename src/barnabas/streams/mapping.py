"""Rows made by a Python function: `Stream.map`. `RowFunction` runs in the workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from barnabas.streams.code import send_whole
from barnabas.streams.ddl import columns_of
from barnabas.streams.expressions import struct_of_columns
from barnabas.streams.names import RECORD_COLUMNS, record_columns, value_columns
from barnabas.streams.schemas import SchemaLike, ddl_of, struct_of, to_row
from barnabas.streams.steps import Building, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from barnabas.streams.dead_letters import Collector


class Mapped(Step):
    """The rows that a function returns for each row, with the row's record columns."""

    def __init__(
        self, parent: Step, function: Callable[[dict[str, Any]], Any], schema: SchemaLike
    ) -> None:
        self.parents = (parent,)
        self._function = function
        self._schema = schema
        self._made = columns_of(ddl_of(schema))

    def columns(self) -> tuple[str, ...] | None:
        return None if self._made is None else (*self._made, *RECORD_COLUMNS)

    def frame(self, building: Building) -> DataFrame:
        from pyspark.sql import functions as f
        from pyspark.sql.types import ArrayType, StructType

        frame = self.parents[0].frame(building)
        made = struct_of(self._schema)
        send_whole(self._function, self._schema)
        kept = record_columns(frame.columns)
        # A function of columns leaves the record columns alone: they keep their watermark.
        row = struct_of_columns(value_columns(frame.columns))
        given = frame.select(row.alias("row")).schema[0].dataType
        assert isinstance(given, StructType)
        failed = building.failed_rows
        call = RowFunction(
            self._function, given, made, None if failed is None else failed.collector()
        )
        # Spark 4.1 reads the type hints of a UDF unless told about Arrow, and a callable object's
        # it cannot read.
        made_by = f.udf(call, ArrayType(made), useArrow=False).asNondeterministic()
        made_rows = made_by(row, f.struct(*kept))
        exploded = frame.select(f.explode(made_rows).alias("_made"), *kept)
        return exploded.select("_made.*", *kept)


class RowFunction:
    """Calls a user's function. A row for which it fails is collected, if there is a collector."""

    def __init__(
        self,
        function: Callable[[dict[str, Any]], Any],
        given: StructType,
        made: StructType,
        collector: Collector | None,
    ) -> None:
        self._function = function
        self._given = given
        self._made = made
        self._collector = collector
        self._verify: Callable[[Any], None] | None = None

    def __call__(self, given: Any, record: Any) -> list[Any]:
        row = as_python(given, self._given)
        try:
            return self._rows(self._function(dict(row)))
        except Exception as error:
            if self._collector is None:
                raise
            self._collector.add(row, record.asDict(recursive=True), self._function, error)
            return []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_verify": None}

    def _rows(self, result: Any) -> list[Any]:
        from pyspark.sql.types import _make_type_verifier

        if result is None:
            return []
        if self._verify is None:
            # Spark itself makes null of what does not fit.
            self._verify = _make_type_verifier(self._made)
        rows = [
            as_spark(one, self._made) for one in (result if isinstance(result, list) else [result])
        ]
        for row in rows:
            self._verify(row)
        return rows


def as_python(value: Any, kind: DataType) -> Any:
    """Return a value of Spark's as Python has it: rows are dicts, timestamps in UTC."""
    from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

    if value is None:
        return None
    if isinstance(kind, StructType):
        return {one.name: as_python(value[one.name], one.dataType) for one in kind.fields}
    if isinstance(kind, ArrayType):
        return [as_python(one, kind.elementType) for one in value]
    if isinstance(kind, MapType):
        return {key: as_python(one, kind.valueType) for key, one in value.items()}
    if isinstance(kind, TimestampType):
        # PySpark's have no zone, and mean the machine's.
        return value.astimezone(UTC)
    return value


def as_spark(value: Any, kind: DataType) -> Any:
    """Return a value of Python's as Spark wants it: an int is a DOUBLE too, times are in UTC."""
    from pyspark.sql.types import (
        ArrayType,
        DecimalType,
        DoubleType,
        FloatType,
        MapType,
        StructType,
        TimestampType,
    )

    if value is None or isinstance(value, bool):
        return value
    if isinstance(kind, StructType):
        row = to_row(value)
        return tuple(as_spark(row.get(one.name), one.dataType) for one in kind.fields)
    if isinstance(kind, ArrayType) and isinstance(value, list | tuple):
        return [as_spark(one, kind.elementType) for one in value]
    if isinstance(kind, MapType) and isinstance(value, dict):
        return {key: as_spark(one, kind.valueType) for key, one in value.items()}
    if isinstance(kind, DoubleType | FloatType) and isinstance(value, int | float):
        return float(value)
    if isinstance(kind, DecimalType) and isinstance(value, int):
        return Decimal(value)
    if isinstance(kind, TimestampType) and isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value

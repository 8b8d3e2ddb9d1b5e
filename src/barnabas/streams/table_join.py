"""A stream joined with a table: each row with what the table has at that time.

The table lives in Spark's state. Its changes and the stream's rows come through one operator, in
buckets of join keys, so a change is there for the next row without a restart, and a restart finds
the table where it was.

    stream ──▶ (key, time, row) ─┐                         row's own columns
                                 ├─▶ bucket of keys ─▶ row + ────────────────▶
    table ───▶ (key, time, row) ─┘      state: key → row   the table's columns

Which of two in one micro-batch comes first, the timestamps of their records say, as they would over
several: a change before a row of the same time. Records that were in the table's topic when the
pipeline first started come before all rows. The changes of one key keep the order of their offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from barnabas.streams.avro_format import nullable, packed, packed_schema, unpacked
from barnabas.streams.errors import PipelineError
from barnabas.streams.expressions import struct_of_columns
from barnabas.streams.names import (
    DELETED,
    KEY,
    TIMESTAMP,
    WRITTEN,
    check_columns,
    check_word,
    value_columns,
)
from barnabas.streams.sources import Source
from barnabas.streams.steps import Building, Environment, OfFrame, ReadTopic, Step

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BUCKETS: Final = 64
"""So many groups of keys: fewer than keys, for Spark calls Python once for each group."""
_FOR_EVER: Final = "2200-01-01"
"""The event time of the table's changes: none is ever late."""
_BEFORE_ALL: Final = -(2**62)
_AFTER_ALL: Final = 2**62
"""The order of rows without a time."""


class TableJoined(Step):
    """Rows of a stream with the columns of a table."""

    has_state = True

    def __init__(
        self,
        parent: Step,
        table: Source,
        change: OfFrame,
        columns: Sequence[str] | None,
        *,
        on: str,
        how: Literal["inner", "left"],
    ) -> None:
        """`change` makes the table's rows of what `table` reads; `columns` are those known then."""
        self.parents = (parent, table)
        self._table = table
        self._change = change
        self._columns = columns
        self._on = on
        self._how = how
        check_word("how", how, ("inner", "left"))

    def columns(self) -> tuple[str, ...] | None:
        before = self.parents[0].columns()
        if before is None or self._columns is None:
            return None
        return (*before, *value_columns([*self._columns]))

    def check(self) -> None:
        super().check()
        before = self.parents[0].columns()
        check_columns("join", [self._on], before)
        if before is not None and self._columns is not None:
            self._check_names(before, self._columns)

    def frame(self, building: Building) -> DataFrame:
        from pyspark.sql import functions as f

        from barnabas.streams.table_state import TableState

        rows = self.parents[0].frame(building)
        table = self._change(self._table.frame(building))
        table_columns = value_columns(table.columns)
        row_schema, table_schema = _schema(rows, rows.columns), _schema(table, table_columns)
        self._check(rows, table)
        ours = rows.select(
            f.col(self._on).cast("string").alias("key"),
            f.col(TIMESTAMP).alias("time"),
            order_of(rows).alias("order"),
            _offset(rows).alias("offset"),
            f.lit(False).alias("is_change"),
            packed(struct_of_columns(rows.columns), row_schema).alias("row"),
        )
        ends = building.environment.first_ends(self._table.topic)
        changes = table.select(
            f.col(KEY).cast("string").alias("key"),
            f.lit(_FOR_EVER).cast("timestamp").alias("time"),
            f.when(_was_there(ends), f.lit(_BEFORE_ALL))
            .otherwise(f.unix_micros(WRITTEN))
            .alias("order"),
            f.col("_offset").alias("offset"),
            f.lit(True).alias("is_change"),
            f.when(~f.col(DELETED), packed(struct_of_columns(table_columns), table_schema)).alias(
                "row"
            ),
        )
        bucket = f.pmod(f.hash("key"), f.lit(_BUCKETS)).alias("bucket")
        both = ours.unionByName(changes).select(bucket, "*")
        joined = both.groupBy("bucket").transformWithStateInPandas(
            TableState(is_left=self._how == "left"),
            "time TIMESTAMP, row BINARY, found BINARY",
            "Append",
            "EventTime" if building.is_timed else "None",
            eventTimeColumnName="time" if building.is_timed else "",
        )
        unpacked_rows = joined.select(
            "time",
            unpacked(f.col("row"), row_schema).alias("row"),
            unpacked(f.col("found"), table_schema).alias("found"),
        )
        own = [f"row.`{name}`" for name in rows.columns if name != TIMESTAMP]
        theirs = [f"found.`{name}`" for name in self._added(table.columns)]
        return unpacked_rows.select(*own, *theirs, f.col("time").alias(TIMESTAMP))

    def _added(self, table: Sequence[str]) -> list[str]:
        return [name for name in value_columns([*table]) if name != self._on]

    def _check(self, rows: DataFrame, table: DataFrame) -> None:
        if self._on not in rows.columns:
            raise PipelineError(f"the stream has no column {self._on} to join {self._table.topic}")
        self._check_names(rows.columns, table.columns)

    def _check_names(self, rows: Sequence[str], table: Sequence[str]) -> None:
        both = sorted(set(value_columns([*rows])) & set(self._added(table)))
        if both:
            raise PipelineError(
                f"the stream and the table {self._table.topic} both have {', '.join(both)}: "
                "name the table's otherwise with .select(new='old')"
            )


def snapshot(table: Source, environment: Environment) -> DataFrame:
    """Return a table as it is now, as a DataFrame that is not a stream."""
    from pyspark.sql import functions as f

    frame = table.frame(Building(_Batch(environment)))
    last = frame.groupBy(KEY).agg(
        f.max_by(f.struct(*(f"`{name}`" for name in frame.columns if name != KEY)), "_offset")
        .alias("last")
    )  # fmt: skip
    return last.select("last.*", KEY).where(f"NOT {DELETED}").drop(DELETED)


class _Batch:
    """An environment whose topics are read to their ends, once."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    def records(self, source: ReadTopic) -> DataFrame:
        return self._environment.records_now(source)


def _schema(frame: DataFrame, names: list[str]) -> str:
    kind = frame.select(struct_of_columns(names).alias("row")).schema[0].dataType
    return packed_schema(nullable(kind))


def order_of(rows: DataFrame) -> Column:
    """Return by what a stream's rows are ordered among the table's changes."""
    from pyspark.sql import functions as f

    time = f.unix_micros(WRITTEN if WRITTEN in rows.columns else TIMESTAMP)
    # pandas would make floats of integers with nulls, and sort nothing that is none.
    return f.coalesce(time, f.lit(_AFTER_ALL))


def _offset(rows: DataFrame) -> Column:
    from pyspark.sql import functions as f

    return f.col("_offset") if "_offset" in rows.columns else f.lit(0).cast("long")


def _was_there(ends: dict[int, int]) -> Column:
    """Return whether a change lay in the table's topic when the pipeline was started first."""
    from pyspark.sql import functions as f

    is_written = f.lit(False)
    for partition, end in ends.items():
        is_written = is_written | ((f.col("_partition") == partition) & (f.col("_offset") < end))
    return is_written

"""A Processor in Spark: one operator with state, in Python workers.

Rows, groups and state are packed (avro_format.py): Python sees them with their own types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.streams.avro_format import nullable, packed, packed_schema, unpacked
from barnabas.streams.code import send_whole
from barnabas.streams.ddl import columns_of
from barnabas.streams.expressions import ColumnLike, named, struct_of_columns, to_column
from barnabas.streams.names import (
    KEY,
    RECORD_COLUMNS,
    TIMESTAMP,
    check_columns,
    record_columns,
    value_columns,
)
from barnabas.streams.processor import Processor
from barnabas.streams.schemas import ddl_of, maker_of, struct_of
from barnabas.streams.steps import Building, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Processed(Step):
    """The result of a processor for groups of rows."""

    has_state = True

    def __init__(
        self,
        parent: Step,
        columns: Sequence[ColumnLike],
        named: Mapping[str, ColumnLike],
        processor: Processor[Any, Any, Any],
    ) -> None:
        self.parents = (parent,)
        self._columns = columns
        self._named = named
        self._processor = processor
        self._made = columns_of(ddl_of(processor.output))

    def columns(self) -> tuple[str, ...] | None:
        return None if self._made is None else (*self._made, *RECORD_COLUMNS)

    def check(self) -> None:
        super().check()
        uses = named([*self._columns, *self._named.values()])
        check_columns("group_by", uses, self.parents[0].columns())

    def frame(self, building: Building) -> DataFrame:
        from pyspark.sql import functions as f

        from barnabas.streams.processor_state import Makers, ProcessorState, Schemas

        processor = self._processor
        is_event_time = processor.timers == "event"
        rows = self.parents[0].frame(building.timed() if is_event_time else building)
        keys = [to_column(rows, column) for column in self._columns]
        keys += [to_column(rows, column).alias(name) for name, column in self._named.items()]
        group_names = rows.select(*keys).columns
        group = f.struct(*keys) if keys else f.struct(f.lit(1).alias("all"))
        row = struct_of_columns(value_columns(rows.columns))
        types = rows.select(group.alias("group"), row.alias("row")).schema
        schemas = Schemas(
            group=packed_schema(types["group"].dataType),  # type: ignore[arg-type]  # structs
            row=packed_schema(types["row"].dataType),  # type: ignore[arg-type]  # structs
            state=packed_schema(nullable(struct_of(processor.state))),
            output=packed_schema(nullable(struct_of(processor.output))),
        )
        makers = Makers(maker_of(processor.record), maker_of(processor.state))
        send_whole(processor, processor.record, processor.state, processor.output)
        order = f.col("_offset") if "_offset" in record_columns(rows.columns) else f.lit(0)
        given = rows.select(
            packed(group, schemas.group).alias("group"),
            f.col(TIMESTAMP).alias("time"),
            order.cast("long").alias("offset"),
            packed(row, schemas.row).alias("row"),
        )
        made = given.groupBy("group").transformWithStateInPandas(
            ProcessorState(processor, schemas, makers, group_names),
            "group BINARY, time TIMESTAMP, made BINARY",
            "Append",
            "EventTime" if is_event_time else "ProcessingTime",
            eventTimeColumnName="time" if building.is_timed else "",
        )
        unpacked_rows = made.select(
            unpacked(f.col("made"), schemas.output).alias("made"),
            unpacked(f.col("group"), schemas.group).alias("group"),
            f.col("time").alias(TIMESTAMP),
        )
        key = f.col("group")
        if len(group_names) < 2:
            key = key[group_names[0]] if group_names else f.lit(None).cast("string")
        return unpacked_rows.select("made.*", key.alias(KEY), TIMESTAMP)

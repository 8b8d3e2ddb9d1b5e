"""Spark's view of the JSON in `demo.topics`."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType


def _struct(**fields: StringType | LongType | ArrayType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


STATION_SCHEMA: Final = _struct(
    station_id=StringType(), name=StringType(), city=StringType(), power_w=LongType()
)

STATION_STATUS_SCHEMA: Final = _struct(
    event_id=StringType(),
    station_id=StringType(),
    sequence=LongType(),
    event_time_ms=LongType(),
    state=StringType(),
)

CHARGING_SCHEMA: Final = _struct(
    event_id=StringType(),
    station_id=StringType(),
    charge_id=StringType(),
    event_time_ms=LongType(),
    kind=StringType(),
    energy_wh=LongType(),
    fault_code=StringType(),
)

ACTIVITY_SCHEMA: Final = _struct(
    event_id=StringType(),
    user_id=StringType(),
    session_id=StringType(),
    sequence=LongType(),
    event_time_ms=LongType(),
    kind=StringType(),
    item_id=StringType(),
    query=StringType(),
    items=ArrayType(StringType()),
    amount_cents=LongType(),
)

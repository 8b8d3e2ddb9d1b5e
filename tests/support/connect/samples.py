"""A struct with a field of each kind, which converters of any format carry."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from barnabas.schemas.data import builder as b
from barnabas.schemas.data.schema import Schema, Struct

INNER = b.struct_of({"a": b.STRING}, name="geo.Inner")
TYPES: dict[str, Schema] = {
    "small": b.INT8,
    "n": b.INT32,
    "f": b.FLOAT32,
    "d": b.FLOAT64,
    "s": b.OPTIONAL_STRING,
    "b": b.BYTES,
    "ok": b.BOOLEAN,
    "list": b.array_of(b.INT64),
    "pairs": b.map_of(b.INT32, b.STRING),
    "amount": b.decimal(2),
    "day": b.DATE_SCHEMA,
    "at": b.TIME_SCHEMA,
    "ts": b.optional(b.TIMESTAMP_SCHEMA),
    "inner": b.optional(INNER),
}
VALUES: dict[str, Any] = {
    "small": -1,
    "n": 8,
    "f": 0.5,
    "d": 1e10,
    "b": b"\0\xff",
    "ok": True,
    "list": [1, 2],
    "pairs": {5: "x"},
    "amount": Decimal("-12.30"),
    "day": date(2020, 2, 29),
    "at": time(0, 0, 1),
    "ts": datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC),
    "inner": Struct(b.optional(INNER), ["i"]),
}

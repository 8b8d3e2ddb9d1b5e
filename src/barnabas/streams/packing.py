"""Rows as bytes, on their way through Python or to rest in state.

Spark hands Python rows as pandas frames, in which integers with nulls become floats and nested
rows lose their types. Packed in Avro they keep them, and what Python only passes on is not touched.
"""

from __future__ import annotations

import io
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from barnabas.streams.avro_format import avro_schema_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType


def packed_schema(row: StructType) -> str:
    """Return the Avro schema that rows of a type are packed with."""
    return json.dumps(avro_schema_of(row, "Row"))


def packed(row: Column, schema: str) -> Column:
    """Return a struct as bytes; null stays null."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import to_avro

    return f.when(row.isNotNull(), to_avro(row, schema))


def unpacked(data: Column, schema: str) -> Column:
    """Return bytes as the struct that they were."""
    from pyspark.sql.avro.functions import from_avro

    return from_avro(data, schema, {"mode": "FAILFAST"})


def pack(schema: str, row: dict[str, Any]) -> bytes:
    """Return a row of Python's as bytes."""
    from fastavro import schemaless_writer

    out = io.BytesIO()
    schemaless_writer(out, _parsed(schema), row)
    return out.getvalue()


def unpack(schema: str, data: bytes) -> dict[str, Any]:
    """Return bytes as a row of Python's: timestamps are datetimes in UTC, decimals Decimals."""
    from fastavro import schemaless_reader

    row = schemaless_reader(io.BytesIO(data), _parsed(schema), None)
    assert isinstance(row, dict)
    return row


@cache
def _parsed(schema: str) -> Any:
    from fastavro import parse_schema

    return parse_schema(json.loads(schema))

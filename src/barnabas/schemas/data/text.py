"""Values as Java's `toString` prints them, which users see in topics of StringConverter.

Dates print as java.util.Date does in UTC. Entries of maps keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from barnabas.java.numbers import double_text, float_text
from barnabas.schemas.data.schema import Schema, Struct, Type


def java_text(value: Any, schema: Schema | None = None) -> str:
    """The text of a value; the schema tells floats of 32 bits from those of 64."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        is_short = schema is not None and schema.type is Type.FLOAT32
        return float_text(value) if is_short else double_text(value)
    if isinstance(value, (int, Decimal)):
        return str(value)
    if isinstance(value, Struct):
        return _struct_text(value)
    if isinstance(value, Mapping):
        keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
        entries = (f"{java_text(k, keys)}={java_text(v, values)}" for k, v in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, (list, tuple)):
        items = schema.value_schema if schema else None
        return f"[{', '.join(java_text(item, items) for item in value)}]"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"
    return _moment_text(value)


def _struct_text(struct: Struct) -> str:
    pairs = zip(struct.schema.fields, struct.values, strict=True)
    texts = (f"{f.name}={java_text(value, f.schema)}" for f, value in pairs if value is not None)
    return f"Struct{{{','.join(texts)}}}"


def _moment_text(value: Any) -> str:
    if isinstance(value, time):
        value = datetime.combine(date(1970, 1, 1), value, UTC)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        return str(value)
    value = value.astimezone(UTC)
    # By hand: the names of days and months are English in every locale.
    day, month = _DAYS[value.weekday()], _MONTHS[value.month - 1]
    return f"{day} {month} {value.day:02} {value:%H:%M:%S} UTC {value.year:04}"


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

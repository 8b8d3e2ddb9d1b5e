"""Values in Protobuf messages from and to those that Connect's schemas have."""

from __future__ import annotations

from decimal import Decimal as Number
from typing import Any

from barnabas.java.numbers import LONG_MAX, scaled, to_byte_array, unscaled
from barnabas.java.time.calendar import date_of, days_of
from barnabas.java.time.units import NANOS_OF_MS
from barnabas.schemas.converters.protobuf_writing import (
    ALWAYS,
    ENTRIES,
    ENUM,
    KIND,
    UNION,
    WRAPPER,
    is_union,
)
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from barnabas.sql.formats.connect_data import Convert

_UNSIGNED = ("uint64", "fixed64")
"""Numbers that may need more than the 63 bits of BIGINT."""


def from_message(schema: Schema) -> Convert | None:
    """The hook for reading: what a message's field holds to what Connect's schema says."""
    logical = _FROM_MESSAGES.get(schema.name or "")
    if logical:
        return logical
    if WRAPPER in schema.parameters:
        return lambda message: message.value
    if ENUM in schema.parameters:
        return _enum(schema)
    if schema.parameters.get(KIND) in _UNSIGNED:
        return lambda number: number if number <= LONG_MAX else number - 2**64
    if schema.type is Type.MAP:
        return _entries if ENTRIES in schema.parameters else None
    if schema.type is Type.STRUCT and not is_union(schema):
        return _fields(schema)
    return None


def _enum(schema: Schema) -> Convert:
    names: dict[int, str] = {}
    for name, number in schema.parameters.items():
        if name.startswith(f"{ENUM}."):
            # Of several names of a number the first counts.
            names.setdefault(int(number), name.removeprefix(f"{ENUM}."))
    return lambda number: names.get(number, f"UNKNOWN_ENUM_VALUE_{schema.name}_{number}")


def _entries(entries: Any) -> list[tuple[Any, Any]]:
    return [(entry.key, entry.value) for entry in entries]


def _fields(schema: Schema) -> Convert:
    always = [field.name for field in schema.fields if ALWAYS in field.schema.parameters]
    unions = [
        (
            field.name,
            (field.schema.name or "").removeprefix(UNION),
            [branch.name for branch in field.schema.fields],
        )
        for field in schema.fields
        if is_union(field.schema)
    ]
    others = {*always, *(name for name, _, _ in unions)}
    optional = [field.name for field in schema.fields if field.name not in others]

    def convert(message: Any) -> dict[str, Any]:
        result = {name: getattr(message, name) for name in always}
        for name in optional:
            result[name] = getattr(message, name) if message.HasField(name) else None
        for name, oneof, branches in unions:
            chosen = message.WhichOneof(oneof)
            result[name] = None
            if chosen is not None:
                union: dict[str, Any] = dict.fromkeys(branches)
                union[chosen] = getattr(message, chosen)
                result[name] = union
        return result

    return convert


def to_message(schema: Schema) -> Convert | None:
    """The hook for writing: what Connect's schema says to what makes a message."""
    logical = _TO_MESSAGES.get(schema.name or "")
    if logical:
        return logical
    if WRAPPER in schema.parameters:
        return lambda value: {"value": value}
    if ENTRIES in schema.parameters:
        return _to_entries
    if schema.type is Type.STRUCT:
        return _to_fields(schema)
    return None


def _to_entries(pairs: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in pairs]


def _to_fields(schema: Schema) -> Convert | None:
    unions = [field.name for field in schema.fields if is_union(field.schema)]
    if not unions:
        return None

    def convert(values: Any) -> dict[str, Any]:
        result = {name: value for name, value in values.items() if name not in unions}
        for name in unions:
            chosen = [(n, v) for n, v in (values[name] or {}).items() if v is not None]
            result.update(chosen[:1])
        return result

    return convert


def _from_decimal(message: Any) -> Number:
    return scaled(int.from_bytes(message.value, "big", signed=True), message.scale)


def _to_decimal(value: Number) -> dict[str, Any]:
    number = unscaled(value)
    exponent = value.as_tuple().exponent
    return {
        "value": to_byte_array(number),
        "precision": len(str(abs(number))),
        "scale": -exponent if isinstance(exponent, int) else 0,
    }


def _from_date(message: Any) -> int:
    return days_of(message.year, message.month, message.day)


def _to_date(days: int) -> dict[str, int]:
    year, month, day = date_of(days)
    return {"year": year, "month": month, "day": day}


def _from_time(message: Any) -> int:
    seconds = (message.hours * 60 + message.minutes) * 60 + message.seconds
    return int(seconds * 1000 + message.nanos // NANOS_OF_MS)


def _to_time(time_ms: int) -> dict[str, int]:
    seconds, ms = divmod(time_ms, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return {"hours": hours, "minutes": minute, "seconds": second, "nanos": ms * NANOS_OF_MS}


def _from_timestamp(message: Any) -> int:
    return int(message.seconds * 1000 + message.nanos // NANOS_OF_MS)


def _to_timestamp(time_ms: int) -> dict[str, int]:
    seconds, ms = divmod(time_ms, 1000)
    return {"seconds": seconds, "nanos": ms * NANOS_OF_MS}


_FROM_MESSAGES: dict[str, Convert] = {
    DECIMAL: _from_decimal,
    DATE: _from_date,
    TIME: _from_time,
    TIMESTAMP: _from_timestamp,
}
_TO_MESSAGES: dict[str, Convert] = {
    DECIMAL: _to_decimal,
    DATE: _to_date,
    TIME: _to_time,
    TIMESTAMP: _to_timestamp,
}

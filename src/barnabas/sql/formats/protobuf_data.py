"""Values in Protobuf messages from and to those that Connect's schemas have."""

from __future__ import annotations

from decimal import Decimal as Number
from typing import Any

from barnabas.java.numbers import LONG_MAX, scaled, unscaled
from barnabas.java.time.calendar import date_of, days_of
from barnabas.java.time.units import NANOS_OF_MS
from barnabas.schemas.data.schema import DATE, DECIMAL, TIME, TIMESTAMP
from barnabas.sql.formats.connect_data import Convert
from barnabas.sql.formats.connect_schema import ENTRIES, UNION, ConnectSchema
from barnabas.sql.formats.protobuf_schema import (
    ALWAYS,
    ENUM,
    UNSIGNED,
    WRAPPER,
)


def from_message(schema: ConnectSchema) -> Convert | None:
    """The hook for reading: what a message's field holds to what Connect's schema says."""
    logical = _FROM_MESSAGES.get(schema.name or "")
    if logical:
        return logical
    if schema.kind == WRAPPER:
        return lambda message: message.value
    if schema.kind == ENUM:
        # Of several names of a number the first counts.
        names = {int(number): name for name, number in reversed(schema.parameters)}
        return lambda number: names.get(number, f"UNKNOWN_ENUM_VALUE_{schema.name}_{number}")
    if schema.kind == UNSIGNED:
        return lambda number: number if number <= LONG_MAX else number - 2**64
    if schema.type == "map":
        return _entries if schema.kind == ENTRIES else None
    if schema.type == "struct" and schema.kind != UNION:
        return _fields(schema)
    return None


def _entries(entries: Any) -> list[tuple[Any, Any]]:
    return [(entry.key, entry.value) for entry in entries]


def _fields(schema: ConnectSchema) -> Convert:
    always = [field.name for field in schema.fields if field.presence == ALWAYS]
    optional = [field.name for field in schema.fields if not field.presence]
    unions = [
        (field.name, field.presence, [branch.name for branch in field.schema.fields])
        for field in schema.fields
        if field.presence not in (ALWAYS, "")
    ]

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


def to_message(schema: ConnectSchema) -> Convert | None:
    """The hook for writing: what Connect's schema says to what makes a message."""
    logical = _TO_MESSAGES.get(schema.name or "")
    if logical:
        return logical
    if schema.kind == WRAPPER:
        return lambda value: {"value": value}
    if schema.type == "map" and schema.kind == ENTRIES:
        return _to_entries
    if schema.type == "struct":
        return _to_fields(schema)
    return None


def _to_entries(pairs: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in pairs]


def _to_fields(schema: ConnectSchema) -> Convert | None:
    unions = [field.name for field in schema.fields if field.presence not in (ALWAYS, "")]
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
    length = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    exponent = value.as_tuple().exponent
    return {
        "value": number.to_bytes(length, "big", signed=True),
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

"""Casts: how values of one type become values of another, for CAST and where types are widened.

Casts of numbers to narrower ones keep the low bits, as Java's do; those of a DOUBLE to a whole
number stop at its greatest value. A text that is not a value of the type raises EvaluationError.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any

from barnabas.java.numbers import (
    INT_MAX,
    INT_MIN,
    JAVA_SPACE,
    LONG_MAX,
    LONG_MIN,
    double_text,
    low_bits,
    plain_text,
    wrap_integer,
)
from barnabas.java.time.calendar import date_text, iso_timestamp_text, time_text
from barnabas.java.time.units import DAY_MS
from barnabas.sql import types
from barnabas.sql.decimals import cast_decimal, cast_double, cast_whole
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.java_text import (
    boolean_text,
    parse_bigint,
    parse_boolean,
    parse_decimal,
    parse_double,
    parse_integer,
    text_maker,
)
from barnabas.sql.time_text import parse_date, parse_time, parse_timestamp
from barnabas.sql.types import Array, BaseType, Map, SqlType, Struct, Value

Cast = Callable[[Any], Any]
"""From a value to the same value of another type; None stays None."""


def cast_maker(source: SqlType | None, target: SqlType) -> Cast | None:
    """Return what casts values of `source` (None: NULL alone) to `target`; None if nothing changes.

    Raises AnalysisError if there is no such cast.
    """
    if source is None or source == target:
        return None
    cast = _not_null_cast(source, target)
    return lambda value: None if value is None else cast(value)


def _not_null_cast(source: SqlType, target: SqlType) -> Cast:
    match source, target:
        case Array(), Array():
            return _array_cast(source, target)
        case Map(), Map():
            return _map_cast(source, target)
        case Struct(), Struct():
            return _struct_cast(source, target)
        case (Array() | Map() | Struct(), types.STRING):
            return text_maker(source)
        case (_, types.Decimal()):
            cast = _decimal_cast(source, target)
        case _:
            cast = _CASTS.get((source.base, target.base))
    if cast is None:
        raise _unsupported(source, target)
    return cast


def _unsupported(source: SqlType, target: SqlType) -> AnalysisError:
    return AnalysisError(f"Cast of {source} to {target} is not supported")


def _array_cast(source: Array, target: Array) -> Cast:
    item = _part_cast(source, target, source.item, target.item)
    return lambda value: [item(part) for part in value]


def _map_cast(source: Map, target: Map) -> Cast:
    key = _part_cast(source, target, source.key, target.key)
    entry = _part_cast(source, target, source.value, target.value)
    return lambda value: {key(k): entry(v) for k, v in value.items()}


def _struct_cast(source: Struct, target: Struct) -> Cast:
    """Fields with the same name are cast; those that the source does not have are NULL."""
    casts: list[tuple[str, Cast]] = []
    for field in target.fields:
        own = source.field(field.name)
        casts.append(
            (field.name, _part_cast(source, target, own.type, field.type) if own else _nothing)
        )
    return lambda value: {name: cast(value.get(name)) for name, cast in casts}


def _part_cast(
    source: SqlType, target: SqlType, part: SqlType | None, part_target: SqlType
) -> Cast:
    try:
        return cast_maker(part, part_target) or same
    except AnalysisError as error:
        raise _unsupported(source, target) from error


def same(value: Value) -> Value:
    """The value as it is."""
    return value


def _nothing(value: Value) -> Value:
    return None


def _decimal_cast(source: SqlType, target: types.Decimal) -> Cast | None:
    match source.base:
        case BaseType.INTEGER | BaseType.BIGINT:
            return lambda value: cast_whole(value, target)
        case BaseType.DOUBLE:
            return lambda value: cast_double(value, target)
        case BaseType.DECIMAL:
            return lambda value: cast_decimal(value, target)
        case BaseType.STRING:
            return lambda value: cast_decimal(parse_decimal(value.strip(JAVA_SPACE)), target)
    return None


def _whole_of_double(lowest: int, highest: int) -> Cast:
    def cast(value: float) -> int:
        if math.isnan(value):
            return 0
        if value <= lowest:
            return lowest
        return highest if value >= highest else int(value)

    return cast


def _from_text(parse: Callable[[str], Value]) -> Cast:
    return lambda value: parse(value.strip(JAVA_SPACE))


def _boolean(text: str) -> bool:
    """Any text but `true` and `yes` is false."""
    return parse_boolean(text) is True


def decode_base64(text: str) -> bytes:
    """The bytes; raises EvaluationError."""
    try:
        return base64.b64decode(
            text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True
        )
    except (binascii.Error, ValueError) as error:
        raise EvaluationError(f"not Base64: {text}") from error


PARSERS: dict[BaseType, Callable[[str], Value]] = {
    BaseType.INTEGER: parse_integer,
    BaseType.BIGINT: parse_bigint,
    BaseType.DOUBLE: parse_double,
    BaseType.TIMESTAMP: parse_timestamp,
    BaseType.TIME: parse_time,
    BaseType.DATE: parse_date,
    BaseType.BYTES: decode_base64,
}
"""What reads the texts of simple types; BOOLEAN and DECIMAL have rules of their own."""
_CASTS: dict[tuple[BaseType, BaseType], Cast] = {
    (BaseType.BOOLEAN, BaseType.STRING): boolean_text,
    (BaseType.INTEGER, BaseType.BIGINT): same,
    (BaseType.INTEGER, BaseType.DOUBLE): float,
    (BaseType.INTEGER, BaseType.STRING): str,
    (BaseType.BIGINT, BaseType.INTEGER): wrap_integer,
    (BaseType.BIGINT, BaseType.DOUBLE): float,
    (BaseType.BIGINT, BaseType.STRING): str,
    (BaseType.DECIMAL, BaseType.INTEGER): lambda value: low_bits(value, 32),
    (BaseType.DECIMAL, BaseType.BIGINT): lambda value: low_bits(value, 64),
    (BaseType.DECIMAL, BaseType.DOUBLE): float,
    (BaseType.DECIMAL, BaseType.STRING): plain_text,
    (BaseType.DOUBLE, BaseType.INTEGER): _whole_of_double(INT_MIN, INT_MAX),
    (BaseType.DOUBLE, BaseType.BIGINT): _whole_of_double(LONG_MIN, LONG_MAX),
    (BaseType.DOUBLE, BaseType.STRING): double_text,
    (BaseType.STRING, BaseType.BOOLEAN): _from_text(_boolean),
    **{(BaseType.STRING, base): _from_text(parse) for base, parse in PARSERS.items()},
    (BaseType.TIMESTAMP, BaseType.STRING): iso_timestamp_text,
    (BaseType.TIMESTAMP, BaseType.TIME): lambda value: value % DAY_MS,
    (BaseType.TIMESTAMP, BaseType.DATE): lambda value: value // DAY_MS,
    (BaseType.DATE, BaseType.TIMESTAMP): lambda value: value * DAY_MS,
    (BaseType.DATE, BaseType.STRING): date_text,
    (BaseType.TIME, BaseType.STRING): time_text,
}
"""Casts between simple types, of values that are not NULL; those to DECIMAL depend on its size."""

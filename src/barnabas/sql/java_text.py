"""Text of values as Java prints them, and numbers as Java reads them.

ksqlDB's casts to STRING show values by Java's own `toString`; users and cases compare that text.
Entries of a MAP have the order of Java's HashMap (see `java_maps`).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

from barnabas.java import numbers as java_numbers
from barnabas.java.hash import hash_order
from barnabas.java.numbers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, double_text, parse_whole
from barnabas.java.time.calendar import date_text, seconds_text, timestamp_text
from barnabas.sql.errors import EvaluationError
from barnabas.sql.types import Array, BaseType, Map, SqlType, Struct, Value

N = TypeVar("N", int, float, Decimal)


def boolean_text(value: bool) -> str:
    """`true` or `false`."""
    return "true" if value else "false"


def decimal_text(value: Decimal) -> str:
    """As BigDecimal.toString: with an exponent for very small numbers."""
    return str(value)


def bytes_text(value: bytes) -> str:
    """As a ByteBuffer prints itself: without its content."""
    return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"


def text_maker(sql_type: SqlType) -> Callable[[Value], str]:
    """What makes the text of values of that type, as they stand within arrays, maps and structs;
    NULL is `null`."""
    inner = _inner_text(sql_type)
    return lambda value: "null" if value is None else inner(value)


def _inner_text(sql_type: SqlType) -> Callable[[Any], str]:
    match sql_type:
        case Array(item):
            item_text = text_maker(item)
            return lambda value: f"[{', '.join(map(item_text, value))}]"
        case Map(key, value_type):
            key_text, entry_text = text_maker(key), text_maker(value_type)
            return lambda value: (
                "{"
                + ", ".join(f"{key_text(k)}={entry_text(v)}" for k, v in hash_order(value))
                + "}"
            )
        case Struct(fields):
            makers = [(field.name, _inner_text(field.type)) for field in fields]
            return lambda value: (
                "Struct{"
                + ",".join(
                    f"{name}={make(value[name])}"
                    for name, make in makers
                    if value.get(name) is not None
                )
                + "}"
            )
    return _SIMPLE[sql_type.base]


_SIMPLE: dict[BaseType, Callable[[Any], str]] = {
    BaseType.BOOLEAN: boolean_text,
    BaseType.INTEGER: str,
    BaseType.BIGINT: str,
    BaseType.DOUBLE: double_text,
    BaseType.DECIMAL: decimal_text,
    BaseType.STRING: str,
    BaseType.BYTES: bytes_text,
    BaseType.DATE: date_text,
    BaseType.TIME: seconds_text,
    BaseType.TIMESTAMP: timestamp_text,
}


def parse_integer(text: str) -> int:
    """As Integer.parseInt; raises EvaluationError."""
    return _read(text, lambda: parse_whole(text, INT_MIN, INT_MAX))


def parse_bigint(text: str) -> int:
    """As Long.parseLong; raises EvaluationError."""
    return _read(text, lambda: parse_whole(text, LONG_MIN, LONG_MAX))


def parse_double(text: str) -> float:
    """As Double.parseDouble, but neither infinite nor NaN; raises EvaluationError."""
    value = _read(text, lambda: java_numbers.parse_double(text))
    if not math.isfinite(value):
        raise EvaluationError(f"Invalid double value: {text}")
    return value


def parse_decimal(text: str) -> Decimal:
    """As new BigDecimal(text); raises EvaluationError."""
    return _read(text, lambda: java_numbers.parse_decimal(text))


def _read(text: str, parse: Callable[[], N]) -> N:
    try:
        return parse()
    except ValueError as error:
        raise EvaluationError(f'For input string: "{text}": {error}') from error


def parse_boolean(text: str) -> bool | None:
    """The boolean that the text begins, in any case: `true` or `yes`, `false` or `no`, or any
    beginning of those; None for other text."""
    lower = text.lower()
    if lower:
        if "true".startswith(lower) or "yes".startswith(lower):
            return True
        if "false".startswith(lower) or "no".startswith(lower):
            return False
    return None


# -- bytes in text: base64 with padding, as Java's libraries take and write it


_SPACE = re.compile(r"[\x00-\x20]+")


def encode_bytes(value: bytes) -> str:
    """The bytes in base64."""
    return base64.b64encode(value).decode()


def decode_bytes(text: str, *, spaces: bool = False) -> bytes:
    """The bytes of the text. `spaces`: those between digits are skipped. Raises ValueError."""
    try:
        return base64.b64decode(_SPACE.sub("", text) if spaces else text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64") from None

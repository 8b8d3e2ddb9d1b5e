"""The order of values within a type, as ksqlDB (Java) has it.

It differs from Python's for three types:
    STRING  by UTF-16 code units: characters beyond U+FFFF come before U+E000 to U+FFFF
    BYTES   each byte counts from -128 to 127: 0x80 comes before 0x00
    DOUBLE  -0.0 before 0.0, and NaN last, equal to itself
"""

from __future__ import annotations

import math
from collections.abc import Callable

from barnabas.sql.types import BaseType, SqlType, Value

Key = Callable[[Value], Value]
"""From a value to what Python orders as ksqlDB orders the value."""

_SIGNED = bytes(byte ^ 0x80 for byte in range(256))


def order_key(kind: SqlType) -> Key | None:
    """What to give as `key` to sorted, min and max; None where Python's own order is right."""
    return _KEYS.get(kind.base)


def key_of(value: Value) -> Value:
    """The key of one value whose type is known only from the value itself."""
    if isinstance(value, str):
        return _text_key(value)
    if isinstance(value, float):
        return _double_key(value)
    if isinstance(value, (bytes, bytearray)):
        return _bytes_key(bytes(value))
    return value


def _text_key(value: str) -> str:
    if value.isascii() or max(value) <= "\uffff":
        return value
    units = memoryview(value.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(map(chr, units))


def _bytes_key(value: bytes) -> bytes:
    return value.translate(_SIGNED)


def _double_key(value: float) -> tuple[bool, float, float]:
    if math.isnan(value):
        return (True, 0.0, 0.0)
    return (False, value, math.copysign(1.0, value))


_KEYS: dict[BaseType, Key] = {
    BaseType.STRING: _text_key,
    BaseType.BYTES: _bytes_key,
    BaseType.DOUBLE: _double_key,
}

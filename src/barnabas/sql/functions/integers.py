"""Integers of a fixed width, which wrap around where Java's do."""

from __future__ import annotations

_INTEGER_HALF, _BIGINT_HALF = 1 << 31, 1 << 63


def wrap_integer(value: int) -> int:
    """The value as an INTEGER: its lowest 32 bits."""
    if -_INTEGER_HALF <= value < _INTEGER_HALF:
        return value
    return ((value + _INTEGER_HALF) & 0xFFFF_FFFF) - _INTEGER_HALF


def wrap_bigint(value: int) -> int:
    """The value as a BIGINT: its lowest 64 bits."""
    if -_BIGINT_HALF <= value < _BIGINT_HALF:
        return value
    return ((value + _BIGINT_HALF) & 0xFFFF_FFFF_FFFF_FFFF) - _BIGINT_HALF

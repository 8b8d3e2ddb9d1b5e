"""Parameters of a schema that describe a column's type in the database (pure).

Source: Debezium's documentation, `column.propagate.source.type`; how its JDBC driver counts lengths
and scales, which Debezium reports.
"""

from __future__ import annotations

from typing import Final

_PREFIX: Final = "__debezium.source.column."
_UNLIMITED: Final = 2_147_483_647
_LENGTHS: Final = {
    "int2": 5,
    "int4": 10,
    "oid": 10,
    "int8": 19,
    "float4": 8,
    "float8": 17,
    "char": 1,
    "bool": 1,
    "date": 13,
    "interval": 49,
}
_SCALES: Final = {"float4": 8, "float8": 17}
_TIMES: Final = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
"""Number of characters of a time without its fraction of a second."""
_HEADER: Final = 4
"""Sizes of numeric, varchar and char are reported with so much more."""


def source_parameters(
    column: str, type_name: str, base: str, modifier: int
) -> tuple[tuple[str, str], ...]:
    """Return the parameters; `modifier` is PostgreSQL's atttypmod, -1 for none.

    `base` is what a domain is made of; any other type itself.
    """
    base = base.removeprefix("_")  # of an array
    told = {
        "type": type_name.upper(),
        "length": str(_length(base, modifier)),
        "scale": str(_scale(base, modifier)),
        "name": column,
    }
    if base == "numeric" and modifier < 0:
        del told["scale"]  # any
    if told["length"] == "-1":
        del told["length"]
    return tuple((f"{_PREFIX}{name}", text) for name, text in told.items())


def _length(name: str, modifier: int) -> int:
    if name in _LENGTHS:
        return _LENGTHS[name]
    if name in _TIMES:
        digits = 6 if modifier < 0 else 2 if modifier == 1 else modifier
        return _TIMES[name] + (digits + 1 if digits else 0)
    if name == "numeric":
        return 0 if modifier < 0 else (modifier - _HEADER) >> 16
    if name in ("bpchar", "varchar") and modifier >= 0:
        return modifier - _HEADER
    if name == "bit" or (name == "varbit" and modifier >= 0):
        return modifier
    return _UNLIMITED


def _scale(name: str, modifier: int) -> int:
    if name in _SCALES:
        return _SCALES[name]
    if name in _TIMES:
        return 6 if modifier < 0 else modifier
    if name == "interval":
        return 6 if modifier < 0 else modifier & 0xFFFF
    if name == "numeric":
        return 0 if modifier < 0 else (modifier - _HEADER) & 0xFFFF
    return 0

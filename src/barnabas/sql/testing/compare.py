"""Whether a record that came out is the one that a case expects, by ksqlDB's own leniency."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

_CLOSE = 0.000_001


def equal(actual: Any, expected: Any) -> bool:
    """Compare a value of our types (see `sql.types`) with JSON of a case.

    Names of fields may be written in lower case; doubles may differ by a millionth; decimals have
    the same digits, also where they are written as text; bytes are base64.
    """
    if expected is None or actual is None:
        return actual is None and expected is None
    if isinstance(expected, dict):
        return _equal_fields(actual, expected)
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(equal(a, e) for a, e in zip(actual, expected, strict=True))
        )
    if isinstance(expected, bool) or isinstance(actual, bool):
        return actual is expected
    if isinstance(expected, str):
        return _equal_text(actual, expected)
    return _equal_number(actual, expected)


def _equal_fields(actual: Any, expected: dict[str, Any]) -> bool:
    if not isinstance(actual, dict) or len(actual) != len(expected):
        return False
    for name, value in expected.items():
        found = actual.get(name)
        if found is None:
            found = actual.get(name.upper())
        if not equal(found, value):
            return False
    return True


def _equal_text(actual: Any, expected: str) -> bool:
    if isinstance(actual, Decimal):
        return str(actual) == expected or str(Decimal(expected)) == str(actual)
    if isinstance(actual, bytes):
        return base64.b64encode(actual).decode() == expected
    if isinstance(actual, float):
        return str(actual) == expected.rstrip("0") or str(actual) == expected
    return bool(actual == expected)


def _equal_number(actual: Any, expected: Any) -> bool:
    if isinstance(actual, float):
        return abs(actual - float(expected)) < _CLOSE or actual == float(expected)
    if isinstance(actual, Decimal):
        if isinstance(expected, int):
            return actual.as_tuple().exponent == 0 and actual == expected
        return str(actual) == str(expected) or actual.compare_total(Decimal(expected)) == 0
    if isinstance(actual, int):
        return actual == int(expected)
    return False

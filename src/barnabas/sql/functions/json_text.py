"""JSON as ksqlDB's functions read and write it (they use Jackson).

What follows the first value of a text is ignored; a text of white space has no value (MISSING).
Numbers with a point keep all their digits, as Decimal.
"""

from __future__ import annotations

import decimal
import json
import math
import re
from typing import Any, Final, NoReturn, TypeAlias

from barnabas.java.numbers import double_text
from barnabas.java.strings import from_units
from barnabas.sql.errors import EvaluationError

Json: TypeAlias = Any
"""None, bool, int, Decimal, float (written only), str, list or dict."""

MISSING: Final[Any] = object()
"""The result of parsing a text without a value."""

_SCALE_MAX = 9_999
"""A number is written out if its exponent is no greater, and not less than minus this (Jackson)."""


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"not a number: {name}")


def _decimal(text: str) -> decimal.Decimal:
    """The number; zero has no sign."""
    number = decimal.Decimal(text)
    return number or number.copy_abs()


_DECODER = json.JSONDecoder(parse_float=_decimal, parse_constant=_refuse)
_BLANK = re.compile(r"[ \t\n\r]*")
_AFTER_NUMBER = re.compile(r"[ \t\n\r]|\Z")
_AFTER_WORD = re.compile(r"[^\w\ufeff]|\Z")


def parse(text: str) -> Json:
    """The first value of the text, or MISSING; raises EvaluationError if it is not JSON."""
    start = skip_blank(text, 0)
    if start == len(text):
        return MISSING
    try:
        value, end = parse_at(text, start)
    except ValueError:
        raise EvaluationError(f"Invalid JSON format:{text}") from None
    if not _ends_well(text, start, end):
        raise EvaluationError(f"Invalid JSON format:{text}")
    return value


def parse_at(text: str, start: int) -> tuple[Json, int]:
    """The value that begins there, and where it ends; raises ValueError if none does."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ArithmeticError, RecursionError) as error:
        raise ValueError(str(error)) from None


def skip_blank(text: str, start: int) -> int:
    """Return where the white space that begins there ends."""
    match = _BLANK.match(text, start)
    assert match is not None
    return match.end()


def _ends_well(text: str, start: int, end: int) -> bool:
    """Return whether what follows a number or a word (`true`) can follow it."""
    if text[start] in '"[{':
        return True
    after = _AFTER_WORD if text[start].isalpha() else _AFTER_NUMBER
    return after.match(text, end) is not None


def write(value: Json, *, is_plain: bool) -> str:
    """The value as text without white space; `is_plain`: no exponents in Decimals.

    Raises EvaluationError if it is nested too deeply.
    """
    try:
        return _written(value, is_plain)
    except RecursionError:
        raise EvaluationError("JSON that is nested too deeply") from None


def _written(value: Json, is_plain: bool) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return _quoted(value)
        case decimal.Decimal():
            return _decimal_text(value, is_plain)
        case float():
            text = double_text(value)
            return text if math.isfinite(value) else f'"{text}"'
        case list():
            return f"[{','.join([_written(item, is_plain) for item in value])}]"
    members = [f"{_quoted(name)}:{_written(member, is_plain)}" for name, member in value.items()]
    return f"{{{','.join(members)}}}"


_TO_ESCAPE = re.compile('["\\\\\x00-\x1f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f"}
_ESCAPES["\r"] = "\\r"


def _quoted(text: str) -> str:
    escaped = _TO_ESCAPE.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", text)
    return f'"{from_units(escaped)}"'


def _decimal_text(value: decimal.Decimal, is_plain: bool) -> str:
    if not is_plain:
        return str(value)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _SCALE_MAX:
        raise EvaluationError(f"a number with too many digits: {value}")
    return f"{value:f}"

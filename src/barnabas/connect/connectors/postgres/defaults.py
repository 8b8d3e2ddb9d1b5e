"""What a column's DEFAULT means in a schema: constants alone, since the rest is not known ahead."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from barnabas.connect.connectors.postgres.types import PARSE_ERRORS, ColumnType

_QUOTED: Final = re.compile(
    r"^'((?:[^']|'')*)'(?:::[^()]+(?:\(\d+(?:,\s*\d+)?\))?[\w \[\]]*)?$", re.DOTALL
)
_NUMBER: Final = re.compile(r"^\(?(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\)?(?:::[\w \"(),]+)?$")
_NULL: Final = re.compile(r"^NULL(?:::.*)?$")
_WORDS: Final = {"true": "t", "false": "f"}


def default_of(expression: str | None, kind: ColumnType, *, is_optional: bool) -> Any:
    """Return a default that the schema can have, None where it has none.

    An expression that only the server can evaluate stands as zero in a column that is never null,
    as Debezium has it.
    """
    if expression is None:
        return None
    text = _constant(expression)
    if text is not None:
        try:
            value = kind.parse(text)
            return value.quantize(kind.zero) if isinstance(value, Decimal) else value
        except PARSE_ERRORS:
            pass
    return None if is_optional or _NULL.match(expression) else kind.zero


def _constant(expression: str) -> str | None:
    if match := _QUOTED.match(expression):
        return match[1].replace("''", "'")
    if match := _NUMBER.match(expression):
        return match[1]
    return _WORDS.get(expression)

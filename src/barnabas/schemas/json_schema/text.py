"""JSON text to values and back, for schemas.

Numbers keep all their digits: integers are `int`, all others `Decimal`. Written texts equal those
that Confluent's registry stores: members in their order, no layout, numbers as Java's BigDecimal
prints them, characters unescaped.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

from barnabas.schemas.schema import SchemaFault

TEXT_LENGTH_MAX = 10_000_000
NESTING_MAX = 100  # of arrays and objects; all that walks a document recurses no deeper
NUMBER_LENGTH_MAX = 1_000  # Jackson's limit
EXPONENT_MAX = 100_000  # Jackson's limit of a scale

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE_BELOW_SPACE = re.compile(r"\\u00[01][0-9a-f]")


class _DuplicateMemberError(Exception):
    pass


def decode(text: str, *, allow_duplicates: bool = False) -> Any:
    """Read a JSON text. Raises SchemaFault, which names line and column where it can."""
    if len(text) > TEXT_LENGTH_MAX:
        raise SchemaFault(
            f"the schema has {len(text)} characters, more than the {TEXT_LENGTH_MAX} allowed"
        )
    _check_nesting(text)
    try:
        return (_last_wins if allow_duplicates else _no_duplicates)(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise SchemaFault(f"the schema is not JSON: {error.msg} at {place}") from None
    except _DuplicateMemberError as error:
        raise SchemaFault(f"an object of the schema has the member {error} twice") from None
    except RecursionError:
        raise SchemaFault("the schema is nested too deeply") from None


def encode(value: Any) -> str:
    """Write a value as the registry keeps it."""
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts)


def sort_members(value: Any) -> Any:
    """The same value with the members of each object in order of their names (by UTF-16 units)."""
    if isinstance(value, dict):
        return {name: sort_members(value[name]) for name in sorted(value, key=_utf16)}
    if isinstance(value, list):
        return [sort_members(item) for item in value]
    return value


def value_key(value: Any) -> Any:
    """Return a hashable key that is equal for equal JSON values. Numbers are equal by value."""
    if isinstance(value, bool) or value is None:
        return (value,)
    if isinstance(value, list):
        return ("array", *map(value_key, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, value_key(item)) for name, item in value.items()))
    return value


def is_number(value: object) -> bool:
    """Return whether the value is a JSON number (Python takes booleans for integers)."""
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Return whether the value is a number without a fraction, like 1, 1.0 and 1e3."""
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool)


def _check_nesting(text: str) -> None:
    if text.count("[") + text.count("{") <= NESTING_MAX:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        bracket = match[0]
        if bracket in "[{":
            depth += 1
            if depth > NESTING_MAX:
                line = text.count("\n", 0, match.start()) + 1
                raise SchemaFault(
                    f"the schema is nested more than {NESTING_MAX} deep at line {line}"
                    f" column {match.start() - text.rfind(chr(10), 0, match.start())}"
                )
        elif bracket in "]}":
            depth -= 1


def _number(text: str) -> Decimal:
    _check_length(text)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _too_large(text) from None
    if not number.is_finite() or abs(int(number.as_tuple().exponent)) > EXPONENT_MAX:
        raise _too_large(text)
    return number


def _integer(text: str) -> int:
    _check_length(text)
    return int(text)


def _check_length(text: str) -> None:
    if len(text) > NUMBER_LENGTH_MAX:
        raise _too_large(text)


def _too_large(text: str) -> SchemaFault:
    return SchemaFault(f"a number of the schema is too long or too large: {text[:40]}")


def _constant(name: str) -> None:
    raise SchemaFault(f"the schema is not JSON: {name} is not a number")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _DuplicateMemberError(repr(name))
            seen.add(name)
    return members


def _decoder(pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None) -> Callable[[str], Any]:
    read = json.JSONDecoder(
        object_pairs_hook=pairs_hook,
        parse_float=_number,
        parse_int=_integer,
        parse_constant=_constant,
    ).decode

    def checked(text: str) -> Any:
        value = read(text)
        if "\\u" in text or not text.isascii():
            _check_characters(value)
        return value

    return checked


_no_duplicates = _decoder(_members)
_last_wins = _decoder(None)


def _check_characters(value: Any) -> None:
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise SchemaFault(f"half of a surrogate pair is not a character: {value[:40]!a}")
    elif isinstance(value, list):
        for item in value:
            _check_characters(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_characters(name)
            _check_characters(item)


def _write(value: Any, put: Callable[[str], None]) -> None:
    if isinstance(value, str):
        put(_quoted(value))
    elif isinstance(value, dict):
        separator = "{"
        for name, item in value.items():
            put(separator + _quoted(name) + ":")
            _write(item, put)
            separator = ","
        put("}" if value else "{}")
    elif isinstance(value, list):
        separator = "["
        for item in value:
            put(separator)
            _write(item, put)
            separator = ","
        put("]" if value else "[]")
    else:
        put(_scalar(value))


def _scalar(value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, Decimal) and value.is_zero():
        return str(abs(value))  # Java knows no negative zero of this kind
    return str(value)


def _quoted(text: str) -> str:
    quoted = encode_basestring(text)
    if "\\u00" in quoted:
        quoted = _ESCAPE_BELOW_SPACE.sub(lambda match: "\\u" + match[0][2:].upper(), quoted)
    return quoted


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")

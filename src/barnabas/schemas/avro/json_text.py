"""JSON as Jackson reads and writes it, for the texts of schemas.

Read: comments before the end are layout, of a key that comes twice the last value stands at the
first one's place, NaN and Infinity are not numbers. Written: as `Schema.toString()` of Java writes,
so that a text is, byte for byte, the one that is in a `_schemas` topic already.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from barnabas.schemas.schema import SchemaFault

TEXT_CHARS_MAX = 8 * 1024 * 1024
# Jackson stops at 1000. A level costs two frames of Python's stack, which has room for a thousand.
NESTING_MAX = 300

_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_STRINGS_AND_COMMENTS = re.compile(r'"(?:[^"\\]|\\.)*+"|/\*.*?\*/|//[^\n]*', re.DOTALL)
_NEEDS_NO_ESCAPE = re.compile(r'[^"\\\x00-\x1f]*+').fullmatch
_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)}
_ESCAPES |= {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


class FaultAtPlace(SchemaFault):
    """A fault that learns, on its way up, the path to its place."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self._tokens: list[str | int] = []

    def within(self, *tokens: str | int) -> "FaultAtPlace":
        """Put the tokens before the path."""
        self._tokens.extend(reversed(tokens))
        return self

    def __str__(self) -> str:
        if not self._tokens:
            return self.message
        path = "".join(f"/{token}" for token in reversed(self._tokens))
        return f"{path}: {self.message}"


def read(text: str) -> Any:
    """Parse a text. Raises SchemaFault that says line and column."""
    if len(text) > TEXT_CHARS_MAX:
        raise SchemaFault(f"the text has {len(text)} characters, more than {TEXT_CHARS_MAX}")
    _check_nesting(text)
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        if "/" in text:
            return _read_commented(text)
        raise _syntax_fault(error) from None
    except RecursionError:
        raise SchemaFault("the text nests too deep") from None
    except SchemaFault:
        raise
    except ValueError:
        # Python's limit of the digits of an integer.
        raise SchemaFault("a number in the text has too many digits") from None


def _read_commented(text: str) -> Any:
    def blank(match: re.Match[str]) -> str:
        token = match.group()
        return token if token[0] == '"' else re.sub(r"[^\n]", " ", token)

    plain = _STRINGS_AND_COMMENTS.sub(blank, text)
    start = len(plain) - len(plain.lstrip(" \t\r\n"))
    try:
        value, end = json.JSONDecoder(parse_constant=_no_number).raw_decode(plain, start)
        if text[end:].strip(" \t\r\n"):
            raise json.JSONDecodeError("Extra data", text, end)
    except json.JSONDecodeError as error:
        raise _syntax_fault(error) from None
    except ValueError as error:
        raise SchemaFault(str(error)) from None
    return value


def _check_nesting(text: str) -> None:
    if text.count("[") + text.count("{") <= NESTING_MAX:
        return
    depth = 0
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
            if depth > NESTING_MAX:
                line, column = _line_and_column(text, match.start())
                raise SchemaFault(
                    f"line {line}, column {column}: the text nests deeper than {NESTING_MAX}"
                )
        elif token in "]}":
            depth -= 1


def _syntax_fault(error: json.JSONDecodeError) -> SchemaFault:
    problem = error.msg[:1].lower() + error.msg[1:]
    return SchemaFault(f"no JSON: line {error.lineno}, column {error.colno}: {problem}")


def _no_number(word: str) -> NoReturn:
    raise SchemaFault(f"no JSON: {word} is not a number of JSON")


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def write(value: Any) -> str:
    """Write a JSON value without layout."""
    if type(value) is str:
        return quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if type(value) is int:
        return str(value)
    if type(value) is float:
        return double_text(value)
    if type(value) is list:
        return "[" + ",".join([write(item) for item in value]) + "]"
    return "{" + ",".join([f"{quote(key)}:{write(item)}" for key, item in value.items()]) + "}"


def quote(text: str) -> str:
    """Write a string: of control characters only, hexadecimal digits are capitals."""
    if _NEEDS_NO_ESCAPE(text):
        return f'"{text}"'
    return f'"{text.translate(_ESCAPES)}"'


def double_text(value: float) -> str:
    """Write a number as Java's `Double.toString` does (since 19: the shortest that reads back).

    Values that JSON has no number for become strings, as Jackson writes them.
    """
    if value != value:
        return '"NaN"'
    if value in (float("inf"), float("-inf")):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" not in text:
            return text
    digits = abs(value)
    # Two digits at least, the nearest two: 4.9E-324, where Python says 5e-324.
    text = f"{digits:.1e}"
    if float(text) != digits:
        text = next(text for text in _ever_longer(digits) if float(text) == digits)
    mantissa, _, exponent = text.partition("e")
    return f"{'-' if value < 0 else ''}{mantissa}E{int(exponent)}"


def _ever_longer(value: float) -> Iterator[str]:
    return (f"{value:.{places}e}" for places in range(2, 17))


def equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same to Jackson: 1, 1.0 and true are three values."""
    if type(one) is not type(other):
        return False
    if type(one) is list:
        return len(one) == len(other) and all(map(equal, one, other))
    if type(one) is dict:
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return bool(one == other)

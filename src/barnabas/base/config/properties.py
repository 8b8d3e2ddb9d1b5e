"""Java's .properties format, read as java.util.Properties reads it.

Natural lines end at \\n, \\r or \\r\\n; a line ending in an odd number of backslashes goes on in
the next, whose leading blanks are dropped. `#` and `!` begin comments. The key ends at the first
unescaped `=`, `:` or blank. `\\t \\n \\r \\f` and `\\uXXXX` are escapes; before any other character
a backslash is dropped. Of two lines with one key the later wins.
"""

import re
from collections.abc import Iterable

from barnabas.base.errors import ConfigError

BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NEEDS_ESCAPE = {
    "\\": "\\\\",
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values in order of first appearance.

    Raises ValueError at a malformed \\uXXXX, as Java does.
    """
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end, value_start = _split_positions(line)
        values[_unescape(line[:key_end])] = _unescape(line[value_start:])
    return values


def format_properties(values: dict[str, str]) -> str:
    """Lines that `parse_properties` and Java read back as `values`."""
    return "".join(f"{_escape(key, key=True)}={_escape(value)}\n" for key, value in values.items())


def from_flags(pairs: Iterable[str]) -> dict[str, str]:
    """Keys of `key=value` texts. Raises ConfigError where there is no `=`."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(pair, "write a setting as key=value")
        settings[key.strip()] = value.strip()
    return settings


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: str | None = None
    for natural in _LINE_END.split(text):
        stripped = natural.lstrip(BLANKS)
        if pending is None and (not stripped or stripped[0] in "#!"):
            continue
        line = (pending or "") + stripped
        trailing = len(natural) - len(natural.rstrip("\\"))
        if trailing % 2:
            pending = line[:-1]
        else:
            lines.append(line)
            pending = None
    if pending is not None:
        lines.append(pending)
    return lines


def _split_positions(line: str) -> tuple[int, int]:
    """The end of the key and the start of the value."""
    position = 0
    while position < len(line) and line[position] not in "=:" + BLANKS:
        position += 2 if line[position] == "\\" else 1
    key_end = min(position, len(line))
    position = key_end
    while position < len(line) and line[position] in BLANKS:
        position += 1
    if position < len(line) and line[position] in "=:":
        position += 1
        while position < len(line) and line[position] in BLANKS:
            position += 1
    return key_end, position


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    units: list[str] = []
    position = 0
    while position < len(text):
        if text[position] != "\\":
            units.append(text[position])
            position += 1
            continue
        escaped = text[position + 1 : position + 2]
        position += 2
        if escaped == "u":
            units.append(_unicode_unit(text[position : position + 4]))
            position += 4
        else:
            units.append(_ESCAPES.get(escaped, escaped))
    return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode_unit(digits: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
        raise ValueError(f"malformed \\uXXXX escape: \\u{digits}")
    return chr(int(digits, 16))


def _escape(text: str, *, key: bool = False) -> str:
    out = "".join(_NEEDS_ESCAPE.get(character, character) for character in text)
    if key:
        return out.replace(" ", "\\ ")
    return "\\" + out if out.startswith(" ") else out

"""Strings as Java counts and decodes them.

Java counts UTF-16 units: two for each character above U+FFFF. Positions and lengths in ksqlDB's
functions are such units. `to_units` returns a string in which each character is one unit, so that
Python's slices apply; `from_units` turns it back into text. Most texts are their own units, and
cost one comparison.
"""

from __future__ import annotations

import re

_ABOVE = re.compile("[\U00010000-\U0010ffff]")
_SURROGATES = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")


def to_units(text: str) -> str:
    """The text with each character above U+FFFF as its two surrogates."""
    if text.isascii() or not _ABOVE.search(text):
        return text
    return _ABOVE.sub(lambda match: _pair(ord(match[0]) - 0x10000), text)


def _pair(above: int) -> str:
    return chr(0xD800 + (above >> 10)) + chr(0xDC00 + (above & 0x3FF))


def from_units(units: str) -> str:
    """The text of the units. Half a pair is `?`, as Java writes it in UTF-8."""
    if units.isascii() or not _SURROGATES.search(units):
        return units
    return _SURROGATES.sub(_joined, units)


def _joined(match: re.Match[str]) -> str:
    if match[1] is None:
        return "?"
    return chr(0x10000 + ((ord(match[1]) - 0xD800) << 10) + ord(match[2]) - 0xDC00)


def unit_count(text: str) -> int:
    """Return the number of UTF-16 units in the text."""
    return len(to_units(text))


_SURROGATE = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half a pair of UTF-16, which UTF-8 may not hold."""


def decode_utf8(value: bytes) -> str:
    """Decode as Java does: with U+FFFD for bytes that are not UTF-8, and one for half a pair.

    Python has two or three for half a pair.
    """
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", value).decode("utf-8", "replace")

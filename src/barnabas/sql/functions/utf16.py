"""Text as Java counts it: in units of UTF-16, two for each character above U+FFFF.

Positions and lengths in ksqlDB's functions are such units. `to_units` gives a string in which each
character is one unit, for use with Python's own slices; `from_units` makes it text again. Nearly
all texts are their own units, and cost one comparison.
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


def length(text: str) -> int:
    """How many units the text has."""
    return len(to_units(text))

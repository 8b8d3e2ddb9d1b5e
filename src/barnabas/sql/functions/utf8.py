"""UTF-8 as Java reads it."""

from __future__ import annotations

import re

_SURROGATE = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half a pair of UTF-16, which UTF-8 may not hold."""


def decode(value: bytes) -> str:
    """The text, with U+FFFD for bytes that are none: one for half a pair, where Python has two or
    three."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", value).decode("utf-8", "replace")

"""Values in PostgreSQL's text output that are made of other values: arrays, hstore, money.

Source: PostgreSQL's documentation, "Array Input and Output Syntax", "hstore", "Monetary Types".
"""

from __future__ import annotations

import re
from typing import Final

Items = list["str | Items | None"]

_HSTORE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:NULL|"((?:[^"\\]|\\.)*)")(?:, )?', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BOUNDS: Final = re.compile(r"(?:\[-?\d+:-?\d+\])+=")


def array(text: str, delimiter: str = ",") -> Items:
    """Return the items of an array; arrays inside it are lists."""
    if bounds := _BOUNDS.match(text):
        text = text[bounds.end() :]
    if '"' not in text and "{" not in text[1:] and "\\" not in text:
        inner = text[1:-1]
        if not inner:
            return []
        return [None if item == "NULL" else item for item in inner.split(delimiter)]
    return _array(text, 0, delimiter)[0]


def _array(text: str, at: int, delimiter: str) -> tuple[Items, int]:
    """The array that begins at `at` with a brace, and where it ends."""
    items: Items = []
    at += 1
    while text[at] != "}":
        if text[at] == "{":
            inner, at = _array(text, at, delimiter)
            items.append(inner)
        elif text[at] == '"':
            quoted, at = _quoted(text, at)
            items.append(quoted)
        else:
            end = at
            while text[end] not in (delimiter, "}"):
                end += 2 if text[end] == "\\" else 1
            item = text[at:end]
            items.append(None if item == "NULL" else _ESCAPED.sub(r"\1", item))
            at = end
        if text[at] == delimiter:
            at += 1
    return items, at + 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    end = at + 1
    while text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    return _ESCAPED.sub(r"\1", text[at + 1 : end]), end + 1


def hstore(text: str) -> dict[str, str | None]:
    """Return the pairs of an hstore."""
    return {
        _ESCAPED.sub(r"\1", match[1]): None if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        for match in _HSTORE.finditer(text)
    }


def money(text: str) -> str:
    """Return an amount as digits, with a point and perhaps a minus."""
    sign = "-" if "-" in text or "(" in text else ""
    return sign + re.sub(r"[^0-9.]", "", text)

"""One line of delimited values, as Apache Commons CSV 1.4 reads and writes its default format.

A value that begins with `"` runs to the next single `"`; within it `""` is one. Values are quoted
in writing where that version thinks reading might go wrong: also a first value that begins with
anything but a letter or digit, and any that begins with a sign up to `#` or ends with a space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE_ENDS = "\r\n"
_FIRST_PLAIN = re.compile(r"[0-9A-Za-z]")
_LAST_STARTING_QUOTED = "#"
_SPACE = " "


class CsvError(ValueError):
    """The text is no delimited values."""


def split_line(text: str, delimiter: str) -> list[str]:
    """The values of the first line that is not empty; the rest is read, but not given.

    Returns [] without one. Raises CsvError for quotes that do not end well.
    """
    if '"' not in text and "\n" not in text and "\r" not in text:
        return text.split(delimiter) if text else []
    first: list[str] = []
    place = 0
    while place < len(text):
        if text[place] in _LINE_ENDS:
            place += 1
            continue
        values, place = _line(text, place, delimiter)
        first = first or values
    return first


def _line(text: str, place: int, delimiter: str) -> tuple[list[str], int]:
    values = []
    while True:
        value, place = _value(text, place, delimiter)
        values.append(value)
        if place >= len(text):
            return values, place
        ended = text[place]
        place += 1
        if ended != delimiter:
            if ended == "\r" and text[place : place + 1] == "\n":
                place += 1
            return values, place


def _value(text: str, place: int, delimiter: str) -> tuple[str, int]:
    """A value and the place of what ends it: a delimiter, a line's end, or the text's."""
    if text[place : place + 1] == '"' and delimiter != '"':
        return _quoted(text, place + 1, delimiter)
    end = place
    while end < len(text) and text[end] != delimiter and text[end] not in _LINE_ENDS:
        end += 1
    return text[place:end], end


def _quoted(text: str, place: int, delimiter: str) -> tuple[str, int]:
    parts = []
    while True:
        end = text.find('"', place)
        if end < 0:
            raise CsvError("the text ends within quotes")
        parts.append(text[place:end])
        place = end + 1
        if text[place : place + 1] != '"':
            break
        parts.append('"')
        place += 1
    while place < len(text) and text[place] != delimiter and text[place] not in _LINE_ENDS:
        if not text[place].isspace():
            raise CsvError("a character between quotes and delimiter")
        place += 1
    return "".join(parts), place


def join_line(values: Sequence[str | None], delimiter: str) -> str:
    """The values as one line without its end; None is nothing at all."""
    return delimiter.join(
        [
            "" if value is None else quoted_if_needed(value, delimiter, first=not position)
            for position, value in enumerate(values)
        ]
    )


def quoted_if_needed(value: str, delimiter: str, *, first: bool) -> str:
    """The value, in quotes where it might be read as something else."""
    if not value:
        return '""' if first else ""
    start = value[0]
    needed = (
        (first and not _FIRST_PLAIN.match(start))
        or start <= _LAST_STARTING_QUOTED
        or delimiter in value
        or '"' in value
        or "\n" in value
        or "\r" in value
        or value[-1] <= _SPACE
    )
    return '"' + value.replace('"', '""') + '"' if needed else value

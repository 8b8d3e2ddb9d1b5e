"""Parses dates as SimpleDateFormat does, for PARSE_DATE.

It differs from `pattern`: months and days may be out of range and roll over, text after the date is
ignored, `MMM` accepts full names too, and missing parts are those of 1970-01-01. One difference
from Java: the Gregorian calendar applies to all times, while Java uses the Julian one before
October 1582.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from barnabas.java.time.calendar import days_of
from barnabas.java.time.fields import TEXTS
from barnabas.java.time.units import DAY_MS
from barnabas.java.time.zones import ZONE_OF_ABBREVIATION, zone_of

_NUMBERS = frozenset("yYMLdDHkKhmsSFuwW")
_TEXTS = {"E": "DayOfWeek", "G": "Era", "a": "AmPmOfDay", "M": "MonthOfYear", "L": "MonthOfYear"}
_ZONES = frozenset("zZX")
_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|[^A-Za-z']+")
_OFFSET = re.compile(r"(?:GMT)?([+-])(\d\d?):?(\d\d)?|Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z]+(?:/[A-Za-z_]+)*")


@dataclass(frozen=True, slots=True)
class _Part:
    """A letter and the number of its repetitions, or a literal."""

    letter: str
    count: int
    literal: str = ""

    @property
    def is_number(self) -> bool:
        return self.letter in _NUMBERS and not (self.letter in "ML" and self.count > 2)


def parse_fast_date(text: str, pattern: str) -> int:
    """Milliseconds since the epoch; raises ValueError where the text or the pattern is wrong."""
    parts = _parts(pattern)
    fields: dict[str, int] = {}
    position = 0
    for index, part in enumerate(parts):
        follower = parts[index + 1] if index + 1 < len(parts) else None
        width = part.count if follower is not None and follower.is_number else 0
        end = _read(part, text, position, width, fields)
        if end < 0:
            raise ValueError(f'Unparseable date: "{text}"')
        position = end
    return _millis(fields)


@lru_cache(maxsize=1000)
def _parts(pattern: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    position = 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None:
            raise ValueError(f"Unterminated quote in pattern: {pattern}")
        position = match.end()
        letter = match[1]
        if letter is None:
            literal = match[0] if match[2] is None else match[2].replace("''", "'") or "'"
            parts.append(_Part("", 0, literal))
        elif letter in _NUMBERS or letter in _TEXTS or letter in _ZONES:
            parts.append(_Part(letter, len(match[0])))
        else:
            raise ValueError(f"Illegal pattern component: {match[0]}")
    return tuple(parts)


def _read(part: _Part, text: str, position: int, width: int, fields: dict[str, int]) -> int:
    """The end of the part in the text, -1 if it is not there."""
    if not part.letter:
        end = position + len(part.literal)
        return end if text[position:end] == part.literal else -1
    if part.letter in _ZONES:
        return _read_zone(text, position, fields)
    if part.is_number:
        return _read_number(part, text, position, width, fields)
    name = _TEXTS[part.letter]
    for style in ("full", "short"):
        for value, word in TEXTS.get((name, style), {}).items():
            if text[position : position + len(word)].casefold() == word.casefold():
                fields[part.letter] = value
                return position + len(word)
    return -1


def _read_number(part: _Part, text: str, position: int, width: int, fields: dict[str, int]) -> int:
    if not width:
        while text[position : position + 1].isspace():
            position += 1
    end = position
    limit = position + width if width else len(text)
    while end < min(limit, len(text)) and "0" <= text[end] <= "9":
        end += 1
    if end == position:
        return -1
    value = int(text[position:end])
    if part.letter in "yY" and part.count <= 2 and value < 100:
        value += 2000 if value < TWO_DIGIT_CENTURY_END else 1900
    fields[part.letter] = value
    return end


TWO_DIGIT_CENTURY_END = 46
"""Two digits below this are of the 21st century. Java moves the border with the clock, 20 years
ahead of today; ours stands, so that a text means the same every day."""


def _read_zone(text: str, position: int, fields: dict[str, int]) -> int:
    if match := _OFFSET.match(text, position):
        sign, hour, minute = match.groups()
        seconds = int(hour or 0) * 3600 + int(minute or 0) * 60
        fields["zone"] = -seconds if sign == "-" else seconds
        return match.end()
    if match := _NAME.match(text, position):
        zone = zone_of(ZONE_OF_ABBREVIATION.get(match[0].upper(), match[0]))
        fields["zone"] = zone.offset_at(0)
        return match.end()
    return -1


def _millis(fields: dict[str, int]) -> int:
    year = fields.get("y", fields.get("Y", 1970))
    if fields.get("G") == 0:
        year = 1 - year
    years, month = divmod(fields.get("M", fields.get("L", 1)) - 1, 12)
    days = days_of(year + years, month + 1, 1) + fields.get("d", 1) - 1
    if "D" in fields and "d" not in fields:
        days = days_of(year, 1, 1) + fields["D"] - 1
    hour = fields.get("H", fields.get("k", 0) % 24)
    if "a" in fields or "h" in fields or "K" in fields:
        hour += fields.get("a", 0) * 12 + fields.get("h", fields.get("K", 0)) % 12
    seconds = hour * 3600 + fields.get("m", 0) * 60 + fields.get("s", 0) - fields.get("zone", 0)
    return days * DAY_MS + seconds * 1000 + fields.get("S", 0)

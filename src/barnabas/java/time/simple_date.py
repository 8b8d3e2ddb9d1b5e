"""Dates as Java's SimpleDateFormat writes and leniently reads them, in English and UTC.

Unlike DateTimeFormatter (`pattern.py`), it has other letters, accepts numbers of any width, and
carries values out of range over into the next larger field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from barnabas.java.time import calendar
from barnabas.java.time.calendar import day_of_week
from barnabas.java.time.units import DAY_MS
from barnabas.java.time.zones import zone_of

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LETTERS: Final = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_NUMBERS: Final = frozenset("yYwWDdFuHkKhmsS")
_PART: Final = re.compile(r"''|'((?:[^']|'')*)'|([a-zA-Z])\2*|[^a-zA-Z']+|'")
_GREGORIAN_FROM: Final = -141_427
_JULIAN_EPOCH: Final = -719_530
"""The Julian first of January of the year 0."""
_OFFSET: Final = re.compile(r"(?:GMT)?([+-])(\d{1,2}):?(\d{2})?")
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z/_]*")


class SimpleDateFormat:
    """One pattern. Raises ValueError with Java's message for an invalid one."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._parts = _parts(pattern)
        now = datetime.now(UTC)
        self._century_start = now.year - 80

    def format(self, ms: int) -> str:
        """The text of a moment."""
        days, rest = divmod(ms, DAY_MS)
        return "".join(
            text if not letter else _WRITERS[letter](len(text), days, rest)
            for letter, text in self._parts
        )

    def parse(self, text: str) -> int:
        """The moment, in ms after 1970; what follows it does not matter. Raises ValueError."""
        fields: dict[str, int] = {}
        at = 0
        for place, (letter, part) in enumerate(self._parts):
            if not letter:
                at = _read_literal(text, at, part)
                continue
            following = self._parts[place + 1 : place + 2]
            is_abutting = bool(following) and following[0][0] in _NUMBERS | {"M"}
            width = len(part) if is_abutting else None
            at = self._read(letter, part, text, at, width, fields)
        return _moment(fields)

    def _read(
        self,
        letter: str,
        part: str,
        text: str,
        at: int,
        width: int | None,
        fields: dict[str, int],
    ) -> int:
        if letter in "ML" and len(part) >= 3:
            return _read_name(text, at, _MONTHS, fields, "M", 1)
        if letter == "E":
            return _read_name(text, at, _DAYS, fields, "E", 1)
        if letter == "a":
            return _read_name(text, at, ("AM", "PM"), fields, "a", 0)
        if letter == "G":
            return _read_name(text, at, ("BC", "AD"), fields, "G", 0)
        if letter in "zZX":
            return _read_zone(text, at, fields)
        start = at
        while start < len(text) and text[start] in " \t":
            start += 1
        end = start + (start < len(text) and text[start] == "-")
        limit = len(text) if width is None else min(len(text), start + width)
        while end < limit and text[end].isdigit():
            end += 1
        digits = text[start:end]
        if not digits.lstrip("-") or (width is not None and end < start + width):
            raise ValueError(text)
        value = int(digits)
        if letter in "yY" and len(part) <= 2 and len(digits) == 2 and digits.isdigit():
            value += self._century_start // 100 * 100
            value += 100 if value < self._century_start else 0
        fields["M" if letter == "L" else letter] = value
        return end


def _parts(pattern: str) -> list[tuple[str, str]]:
    """Letters with their run, and literals under no letter."""
    parts: list[tuple[str, str]] = []
    for match in _PART.finditer(pattern):
        run, letter = match[0], match[2]
        if letter:
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            if letter == "X" and len(run) > 3:
                raise ValueError("invalid ISO 8601 format: length=" + str(len(run)))
            parts.append((letter, run))
        elif run == "''":
            parts.append(("", "'"))
        elif run == "'":
            raise ValueError("Unterminated quote")
        elif match[1] is not None:
            parts.append(("", match[1].replace("''", "'")))
        else:
            parts.append(("", run))
    return parts


def _read_literal(text: str, at: int, literal: str) -> int:
    if text.startswith(literal, at):
        return at + len(literal)
    raise ValueError(text)


def _read_name(
    text: str, at: int, names: Sequence[str], fields: dict[str, int], letter: str, first: int
) -> int:
    lower = text[at:].lower()
    for number, name in enumerate(names, first):
        for form in (name, name[:3]):
            if lower.startswith(form.lower()):
                fields[letter] = number
                return at + len(form)
    raise ValueError(text)


def _read_zone(text: str, at: int, fields: dict[str, int]) -> int:
    if text[at : at + 1] == "Z":
        fields["offset"] = 0
        return at + 1
    match = _OFFSET.match(text, at)
    if match:
        seconds = int(match[2]) * 3600 + int(match[3] or 0) * 60
        fields["offset"] = -seconds if match[1] == "-" else seconds
        return match.end()
    match = _ZONE.match(text, at)
    if match is None:
        raise ValueError(text)
    zone = zone_of(match[0])  # raises ValueError
    fields["offset"] = zone.offset_at(_moment({**fields, "offset": 0}) // 1000)
    return match.end()


def _moment(fields: dict[str, int]) -> int:
    """Java's lenient calendar: what is not given is that of 1970-01-01."""
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    month = fields.get("M", 1)
    if "D" in fields and "d" not in fields and "M" not in fields:
        days = days_of(year, 1, 1) + fields["D"] - 1
    elif ("w" in fields or "Y" in fields) and "d" not in fields and "M" not in fields:
        days = _first_week(fields.get("Y", year)) + (fields.get("w", 1) - 1) * 7
        days += fields.get("E", fields["u"] % 7 + 1 if "u" in fields else 1) - 1
    else:
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        days = days_of(year, month, 1) + fields.get("d", 1) - 1
    hour = fields.get("H", fields.get("k"))
    if hour is None:
        half = fields.get("K", fields["h"] % 12 if fields.get("h") == 12 else fields.get("h", 0))
        hour = half + 12 * fields.get("a", 0)
    elif "k" in fields and "H" not in fields and hour == 24:
        hour = 0
    seconds = (hour * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0) - fields.get("offset", 0)
    return days * DAY_MS + seconds * 1000 + fields.get("S", 0)


def _first_week(year: int) -> int:
    """The Sunday of the week that has the year's first day."""
    first = days_of(year, 1, 1)
    return first - day_of_week(first) % 7


def _week_year(days: int) -> int:
    year = date_of(days)[0]
    return year + 1 if days >= _first_week(year + 1) else year


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970; Julian before 1582-10-15, as Java's GregorianCalendar counts."""
    days = calendar.days_of(year, month, day)
    if days >= _GREGORIAN_FROM:
        return days
    before = year - 1 if month <= 2 else year
    return days + before // 100 - before // 400 - 2


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day."""
    if days >= _GREGORIAN_FROM:
        return calendar.date_of(days)
    # In the Julian calendar four years always have the same length.
    years, rest = divmod(days - _JULIAN_EPOCH, 1461)
    year = years * 4
    for length in (366, 365, 365):
        if rest < length:
            break
        rest -= length
        year += 1
    month = 1
    while rest >= _julian_length(year, month):
        rest -= _julian_length(year, month)
        month += 1
    return year, month, rest + 1


def _julian_length(year: int, month: int) -> int:
    return 29 if month == 2 and year % 4 == 0 else _LENGTHS[month - 1]


_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def day_of_year(days: int) -> int:
    """1 for the first of January."""
    return days - days_of(date_of(days)[0], 1, 1) + 1


def _year(year: int, count: int) -> str:
    shown = year if year > 0 else 1 - year
    return f"{shown % 100:02}" if count == 2 else f"{shown:0{count}}"


def _month(count: int, days: int) -> str:
    month = date_of(days)[1]
    if count >= 3:
        name = _MONTHS[month - 1]
        return name if count >= 4 else name[:3]
    return f"{month:0{count}}"


def _day(count: int, days: int) -> str:
    name = _DAYS[day_of_week(days) % 7]
    return name if count >= 4 else name[:3]


def _week_of_month(days: int) -> int:
    year, month, day = date_of(days)
    first = day_of_week(days_of(year, month, 1)) % 7
    return (day + first - 1) // 7 + 1


_Write = Callable[[int, int, int], str]


def _number(value: Callable[[int, int], int]) -> _Write:
    return lambda count, days, ms: f"{value(days, ms):0{count}}"


_WRITERS: Final[dict[str, _Write]] = {
    "G": lambda _, days, ms: "AD" if date_of(days)[0] > 0 else "BC",
    "y": lambda count, days, ms: _year(date_of(days)[0], count),
    "Y": lambda count, days, ms: _year(_week_year(days), count),
    "M": lambda count, days, ms: _month(count, days),
    "L": lambda count, days, ms: _month(count, days),
    "w": _number(lambda days, ms: (days - _first_week(_week_year(days))) // 7 + 1),
    "W": _number(lambda days, ms: _week_of_month(days)),
    "D": _number(lambda days, ms: day_of_year(days)),
    "d": _number(lambda days, ms: date_of(days)[2]),
    "F": _number(lambda days, ms: (date_of(days)[2] - 1) // 7 + 1),
    "E": lambda count, days, ms: _day(count, days),
    "u": _number(lambda days, ms: day_of_week(days)),
    "a": lambda _, days, ms: "PM" if ms >= DAY_MS // 2 else "AM",
    "H": _number(lambda days, ms: ms // 3_600_000),
    "k": _number(lambda days, ms: ms // 3_600_000 or 24),
    "K": _number(lambda days, ms: ms // 3_600_000 % 12),
    "h": _number(lambda days, ms: ms // 3_600_000 % 12 or 12),
    "m": _number(lambda days, ms: ms // 60_000 % 60),
    "s": _number(lambda days, ms: ms // 1000 % 60),
    "S": _number(lambda days, ms: ms % 1000),
    "z": lambda count, days, ms: "Coordinated Universal Time" if count >= 4 else "UTC",
    "Z": lambda _, days, ms: "+0000",
    "X": lambda _, days, ms: "Z",
}

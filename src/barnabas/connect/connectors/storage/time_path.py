"""Directories of moments: patterns as Joda-Time's `DateTimeFormat` has them.

    TimePath("'year'=YYYY/'month'=MM/'day'=dd", zone_of("Europe/Paris")).text(1_700_000_000_000)

A letter's count says how much of it is shown. Names of months and days are English ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from barnabas.schemas.data.errors import ConfigError

_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)")
_PIECES: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FULL_NAME: Final = 4
_SHORT_NAME: Final = 3
_YEAR_OF_CENTURY: Final = 2

Part = Callable[[datetime], str]


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its long name or as `+hh:mm`. Raises ConfigError."""
    name = name.strip()
    match = _OFFSET.fullmatch(name)
    if match:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(offset if match[1] == "+" else -offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"The datetime zone id '{name}' is not recognised") from error


def moment(ms: int, zone: tzinfo) -> datetime:
    """Return the moment so many milliseconds after 1970, as clocks of a zone show it."""
    return (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone)


def to_ms(when: datetime) -> int:
    """Return milliseconds since 1970."""
    return (when - _EPOCH) // timedelta(milliseconds=1)


class TimePath:
    """One pattern in one zone. Raises ConfigError for a pattern that cannot be read."""

    def __init__(self, pattern: str, zone: tzinfo) -> None:
        self.zone = zone
        self._parts = _parts(pattern)

    def text(self, ms: int) -> str:
        """Return what the pattern says of a moment, in milliseconds since 1970."""
        when = moment(ms, self.zone)
        return "".join([part(when) for part in self._parts])


def truncated(ms: int, duration_ms: int, zone: tzinfo) -> int:
    """Return the start of the span of `duration_ms` that a moment is in, by the zone's clocks."""
    offset = moment(ms, zone).utcoffset() or timedelta()
    local = ms + offset // timedelta(milliseconds=1)
    # Towards zero, as Java divides.
    start = abs(local) // duration_ms * duration_ms * (1 if local >= 0 else -1)
    wall = (_EPOCH + timedelta(milliseconds=start)).replace(tzinfo=zone)
    return to_ms(wall)


def next_by_day(now_ms: int, period_ms: int, zone: tzinfo) -> int:
    """Return the end of the period that `now_ms` is in; periods start again at midnight."""
    today = moment(now_ms, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    start = to_ms(today)
    following = (today.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
    return min(start + ((now_ms - start) // period_ms + 1) * period_ms, to_ms(following))


def _parts(pattern: str) -> list[Part]:
    parts: list[Part] = []
    at = 0
    while at < len(pattern):
        match = _PIECES.match(pattern, at)
        if match is None:
            raise ConfigError(f"Illegal pattern: a quote is not closed in {pattern}")
        at = match.end()
        piece = match[0]
        if match[2]:
            parts.append(_letter(piece[0], len(piece)))
        else:
            parts.append(_literal("'" if piece == "''" else (match[1] or piece).replace("''", "'")))
    return parts


def _literal(text: str) -> Part:
    return lambda when: text


def _letter(letter: str, count: int) -> Part:
    if letter in "yYx":
        year: Callable[[datetime], int] = (
            (lambda when: when.isocalendar().year) if letter == "x" else (lambda when: when.year)
        )
        if count == _YEAR_OF_CENTURY:
            return lambda when: f"{year(when) % 100:02d}"
        return lambda when: f"{year(when):0{count}d}"
    if letter == "M" and count >= _SHORT_NAME:
        return lambda when: when.strftime("%B" if count >= _FULL_NAME else "%b")
    if letter == "E":
        return lambda when: when.strftime("%A" if count >= _FULL_NAME else "%a")
    if letter == "a":
        return lambda when: "AM" if when.hour < 12 else "PM"  # noon
    if letter == "z":
        return lambda when: when.tzname() or ""
    if letter == "Z":
        return lambda when: _zone_text(when, count)
    if letter == "S":
        return lambda when: f"{when.microsecond:06d}"[:count].ljust(count, "0")
    number = _NUMBERS.get(letter)
    if number is None:
        raise ConfigError(f"Illegal pattern component: {letter * count}")
    return lambda when: f"{number(when):0{count}d}"


def _zone_text(when: datetime, count: int) -> str:
    if count > _YEAR_OF_CENTURY:
        return str(when.tzinfo)
    text = when.strftime("%z")
    return text if count == 1 else f"{text[:3]}:{text[3:5]}"


_NUMBERS: Final[dict[str, Callable[[datetime], int]]] = {
    "M": lambda when: when.month,
    "d": lambda when: when.day,
    "D": lambda when: when.timetuple().tm_yday,
    "e": lambda when: when.isoweekday(),
    "w": lambda when: when.isocalendar().week,
    "H": lambda when: when.hour,
    "k": lambda when: when.hour or 24,
    "K": lambda when: when.hour % 12,
    "h": lambda when: when.hour % 12 or 12,
    "m": lambda when: when.minute,
    "s": lambda when: when.second,
}

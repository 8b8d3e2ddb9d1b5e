"""Dates, times and timestamps as texts by a pattern: what functions and TIMESTAMP_FORMAT use.

Each raises ValueError that says what is wrong with the pattern, the zone or the text. The default
zone is UTC: ksqlDB uses its host's zone in some functions, ours give the same on every host.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from barnabas.java.time.calendar import days_of, month_length
from barnabas.java.time.elements import Element, Literal, Number, Sign
from barnabas.java.time.fast_date import parse_fast_date
from barnabas.java.time.fields import Moment
from barnabas.java.time.pattern import pattern_of
from barnabas.java.time.resolve import resolve
from barnabas.java.time.units import DAY_MS, NANOS_OF_MS
from barnabas.java.time.zone_elements import OFFSET, Offset
from barnabas.java.time.zones import zone_of

DEFAULT_ZONE = "UTC"
_DATE = ("YearOfEra", "MonthOfYear", "DayOfMonth")
_TIME = ("HourOfDay", "MinuteOfHour", "SecondOfMinute", "NanoOfSecond")


def date_to_text(days: int, pattern: str) -> str:
    """The text of a DATE."""
    return pattern_of(pattern).write(Moment(days=days))


def time_to_text(millis: int, pattern: str) -> str:
    """The text of a TIME."""
    return pattern_of(pattern).write(Moment(nanos=millis * NANOS_OF_MS))


def timestamp_to_text(millis: int, pattern: str, zone_id: str = DEFAULT_ZONE) -> str:
    """The text of a TIMESTAMP as clocks of the zone show it."""
    zone = zone_of(zone_id)
    second = millis // 1000
    days, milli = divmod(millis + zone.offset_at(second) * 1000, DAY_MS)
    return pattern_of(pattern).write(Moment(days, milli * NANOS_OF_MS, zone, second))


def text_to_date(text: str, pattern: str) -> int:
    """The DATE of a text, read by java.time's rules: the text tells it whole."""
    resolved = resolve(pattern_of(pattern).read(text, ignore_case=True))
    if resolved.days is None:
        raise ValueError(f"Text '{text}' could not be parsed: Unable to obtain LocalDate")
    return resolved.days


def text_to_date_leniently(text: str, pattern: str) -> int:
    """The DATE of a text, read by SimpleDateFormat's rules."""
    days, rest = divmod(parse_fast_date(text, pattern), DAY_MS)
    if rest:
        raise ValueError("Date format contains time field.")
    return days


def text_to_time(text: str, pattern: str) -> int:
    """The TIME of a text."""
    resolved = resolve(pattern_of(pattern).read(text, ignore_case=True))
    if resolved.has_date_field:
        raise ValueError("Time format contains date field.")
    if resolved.nanos is None:
        raise ValueError(f"Text '{text}' could not be parsed: Unable to obtain LocalTime")
    return resolved.nanos // NANOS_OF_MS


def text_to_timestamp(text: str, pattern: str, zone_id: str = DEFAULT_ZONE) -> int:
    """The TIMESTAMP of a text: in the zone, unless the text names one."""
    zone = zone_of(zone_id)
    reader = quick_reader(pattern)
    timestamp = None if reader is None else reader.read(text)
    if timestamp is None:
        return resolve(pattern_of(pattern).read(text, ignore_case=True)).millis(zone)
    local, offset = timestamp
    return local - (zone.offset_of_local(local // 1000) if offset is None else offset) * 1000


# A fast parser for timestamps with common patterns: numbers, literals and an offset.
#
# It is several times faster than `pattern` and `resolve`, and leaves all other texts to them: those
# that do not fit, with fields out of range, or with years of five digits.


class QuickReader:
    """Reads texts by one expression; groups of the expression are the fields in `names`."""

    def __init__(self, expression: str, names: Sequence[str], nano_width: int) -> None:
        self._match = re.compile(expression, re.ASCII | re.IGNORECASE).fullmatch
        self._places = [names.index(name) + 1 if name in names else 0 for name in (*_DATE, *_TIME)]
        self._offset = names.index(OFFSET) + 1 if OFFSET in names else 0
        self._nano_width = nano_width

    def read(self, text: str) -> tuple[int, int | None] | None:
        """Local milliseconds since 1970-01-01T00:00 and the offset in seconds, if the text has one.

        None for texts that are not plain."""
        match = self._match(text)
        if match is None:
            return None
        year, month, day, hour, minute, second, nano = (
            int(match[place]) if place else 0 for place in self._places
        )
        if not (year and 0 < month < 13 and hour < 24 and minute < 60 and second < 60):
            return None
        if not 0 < day <= month_length(year, month):
            return None
        milli = nano * 1000 // 10**self._nano_width
        of_day = ((hour * 60 + minute) * 60 + second) * 1000 + milli
        offset = _offset_seconds(match[self._offset]) if self._offset else None
        return days_of(year, month, day) * DAY_MS + of_day, offset


@lru_cache(maxsize=1000)
def quick_reader(pattern: str) -> QuickReader | None:
    """The reader of a plain pattern, None for others; raises ValueError if it is not a pattern."""
    elements = pattern_of(pattern).elements
    names: list[str] = []
    parts: list[str] = []
    for index, element in enumerate(elements):
        part = _part(element, elements[index + 1 : index + 2])
        if part is None:
            return None
        parts.append(part)
        if isinstance(element, Number):
            names.append(element.name)
        elif isinstance(element, Offset):
            names.append(OFFSET)
    if len(set(names)) != len(names) or not set(_DATE) <= set(names):
        return None
    times = [name in names for name in _TIME]
    if times != sorted(times, reverse=True):
        return None
    fractions = [e.width_min for e in elements if isinstance(e, Number) and e.is_fraction]
    return QuickReader("".join(parts), names, *(fractions or [0]))


def _part(element: Element, following: Sequence[Element]) -> str | None:
    """The expression of one element; None if it is not plain."""
    match element:
        case Literal(text):
            return re.escape(text)
        case Offset(form, "Z"):
            return _OFFSETS[form]
        case Number(name) if name in (*_DATE, *_TIME) and element.base is None:
            if element.is_fixed or (element.width_min == 4 and element.sign is Sign.EXCEEDS_PAD):
                return rf"(\d{{{element.width_min}}})"
            is_alone = not following or isinstance(following[0], Literal)
            if element.width_min == 1 and name not in ("YearOfEra", "NanoOfSecond") and is_alone:
                return r"(\d{1,2})"
    return None


_OFFSETS = {
    "+HHmm": r"(Z|[+-](?:0\d|1[0-7])(?:[0-5]\d)?)",
    "+HHMM": r"(Z|[+-](?:0\d|1[0-7])[0-5]\d)",
    "+HH:MM": r"(Z|[+-](?:0\d|1[0-7]):[0-5]\d)",
    "+HHMMss": r"(Z|[+-](?:0\d|1[0-7])[0-5]\d)",
    "+HH:MM:ss": r"(Z|[+-](?:0\d|1[0-7]):[0-5]\d)",
}
"""Offsets below 18 hours, without seconds."""


def _offset_seconds(text: str) -> int:
    if text in ("Z", "z"):
        return 0
    minutes = int(text[1:3]) * 60 + int(text[-2:] if len(text) > 3 else 0)
    return -60 * minutes if text[0] == "-" else 60 * minutes

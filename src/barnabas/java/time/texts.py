"""Dates, times and timestamps as texts by a pattern: what functions and TIMESTAMP_FORMAT use.

Each raises ValueError that says what is wrong with the pattern, the zone or the text. The default
zone is UTC: ksqlDB uses its host's zone in some functions, ours give the same on every host.
"""

from __future__ import annotations

from barnabas.java.time.fast_date import parse_fast_date
from barnabas.java.time.fields import Moment
from barnabas.java.time.pattern import pattern_of
from barnabas.java.time.quick import quick_reader
from barnabas.java.time.resolve import resolve
from barnabas.java.time.units import DAY_MS, NANOS_OF_MS
from barnabas.java.time.zones import zone_of

DEFAULT_ZONE = "UTC"


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

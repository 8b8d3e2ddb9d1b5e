"""Text of dates and times as casts have it: ISO 8601 in UTC, and what ksqlDB lets one leave out.

DATE        `2020-05-26`, `2020-05`, `2020`
TIME        `23:59:58.123`, `23:59:58`, `23:59`
TIMESTAMP   `2020-05-26T23:59:58.123+0200`, or any beginning of it; also with `Z`
"""

from __future__ import annotations

import re

from barnabas.java.time.calendar import days_of, month_length
from barnabas.java.time.pattern import pattern_of
from barnabas.java.time.resolve import resolve
from barnabas.java.time.units import DAY_MS
from barnabas.java.time.zones import UTC_ZONE, zone_of
from barnabas.sql.errors import EvaluationError

_DATE_HELP = (
    "\nRequired format is: \"yyyy-MM-dd\", for example '2020-05-26'. "
    "Partials are also supported, for example '2020-05'"
)
_TIME_HELP = (
    "\nRequired format is: \"HH:mm:ss.SSS\", for example: '01:34:20.123' or '01:34:20'. "
    "Partials are also supported, for example '01:34'"
)
_TIMESTAMP_HELP = (
    "\nRequired format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", with an optional numeric 4-digit "
    "timezone, for example: '2020-05-26T23:59:58.000' or with tz: '2020-05-26T23:59:58.000+0200'. "
    "A trailing 'Z' instead of tz indicates the zero UTC offset. "
    'Partials are also supported, for example "2020-05-26"'
)

_DATE = re.compile(r"(\d{4}|\+\d{5,9}|-\d{4,9})-(\d\d)-(\d\d)\Z", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?\Z", re.ASCII)
_COMMON_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d\d\d)Z?\Z", re.ASCII
)
_TIMESTAMP_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSS"
_TIME_ZEROS = "00:00:00.000"


def parse_date(text: str) -> int:
    """Days since the epoch; raises EvaluationError."""
    match = _DATE.match(_complete_date(text))
    if match is not None:
        year, month, day = map(int, match.groups())
        if 1 <= month <= 12 and 1 <= day <= month_length(year, month):
            return days_of(year, month, day)
    raise EvaluationError(
        f"Failed to parse date '{text}': Text '{text}' could not be parsed{_DATE_HELP}"
    )


def parse_time(text: str) -> int:
    """Milliseconds of the day; raises EvaluationError."""
    match = _TIME.match(text)
    if match is None:
        raise EvaluationError(f"Failed to parse time '{text}': no time{_TIME_HELP}")
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise EvaluationError(f"Failed to parse time '{text}': out of range{_TIME_HELP}")
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((match[4] or "").ljust(3, "0")[:3])


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch; raises EvaluationError."""
    match = _COMMON_TIMESTAMP.match(text)
    if match is not None:
        year, month, day, hours, minutes, seconds, milliseconds = map(int, match.groups())
        in_range = hours < 24 and minutes < 60 and seconds < 60 and year > 0 < month < 13
        if in_range and 0 < day <= month_length(year, month):
            of_day = ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
            return days_of(year, month, day) * DAY_MS + of_day
    return _parse_any_timestamp(text)


def _parse_any_timestamp(text: str) -> int:
    day, has_time, time = text.partition("T")
    sign = "+" if "+" in time else "-"
    clock, has_zone, zone = time.partition(sign)
    clock = clock if has_zone else clock.removesuffix("Z")
    whole = f"{day if has_time else _complete_date(text)}T{clock}{_TIME_ZEROS[len(clock) :]}"
    try:
        default = zone_of(sign + zone) if has_zone else UTC_ZONE
        return resolve(pattern_of(_TIMESTAMP_PATTERN).read(whole, ignore_case=True)).millis(default)
    except ValueError as error:
        message = f"Failed to parse timestamp '{text}': {error}{_TIMESTAMP_HELP}"
        raise EvaluationError(message) from error


def _complete_date(text: str) -> str:
    """The text with the first month, and the first day, where it has none."""
    parts = len(text.rstrip("-").split("-"))
    return text + {1: "-01-01", 2: "-01"}.get(parts, "")

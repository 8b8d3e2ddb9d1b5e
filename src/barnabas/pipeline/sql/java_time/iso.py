"""ISO texts of DATE, TIME and TIMESTAMP: what CAST writes and reads, and literals in statements.

DATE       2020-05-26; 2020-05 and 2020 are read too
TIME       01:34:20 or 01:34 (milliseconds are not written); 01:34:20.123 is read too
TIMESTAMP  2020-05-26T23:59:58.000; any beginning of it is read, and an offset (+0200, Z)
"""

from __future__ import annotations

import re

from barnabas.pipeline.sql.errors import EvaluationError
from barnabas.pipeline.sql.java_time.calendar import (
    MILLIS_OF_DAY,
    date_of,
    days_of,
    month_length,
)
from barnabas.pipeline.sql.java_time.pattern import pattern_of
from barnabas.pipeline.sql.java_time.resolve import resolve
from barnabas.pipeline.sql.java_time.zones import UTC_ZONE, zone_of

_TIMESTAMP_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSS"
_TIME_ZEROS = "00:00:00.000"

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


def format_date(days: int) -> str:
    """The text of a DATE."""
    year, month, day = date_of(days)
    if 0 <= year <= 9999:
        return f"{year:04}-{month:02}-{day:02}"
    return f"{'-' if year < 0 else '+'}{abs(year):04}-{month:02}-{day:02}"


def format_time(millis: int) -> str:
    """The text of a TIME: without seconds where they are 0, and without milliseconds."""
    minutes, second = divmod(millis // 1000, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}" if second else f"{hour:02}:{minute:02}"


def format_timestamp(millis: int) -> str:
    """The text of a TIMESTAMP, in UTC."""
    days, milli = divmod(millis, MILLIS_OF_DAY)
    year, month, day = date_of(days)
    if not 0 < year <= 9999:
        # Java writes the year of the era here, and a plus before more than four digits.
        year = year if year > 0 else 1 - year
        sign = "+" if year > 9999 else ""
    else:
        sign = ""
    seconds, milli = divmod(milli, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}"


_DATE = re.compile(r"(\d{4}|[+-]\d{4,9})-(\d\d)-(\d\d)\Z", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?\Z", re.ASCII)


def parse_date(text: str) -> int:
    """The DATE that a text tells; raises EvaluationError if it tells none."""
    match = _DATE.match(_whole_date(text))
    if match is not None:
        year, month, day = map(int, match.groups())
        if 1 <= month <= 12 and 1 <= day <= month_length(year, month):
            return days_of(year, month, day)
    raise EvaluationError(
        f"Failed to parse date '{text}': Text '{text}' could not be parsed{_DATE_HELP}"
    )


def parse_time(text: str) -> int:
    """The TIME that a text tells; raises EvaluationError if it tells none."""
    match = _TIME.match(text)
    if match is not None:
        hour, minute, second = (int(part or 0) for part in match.groups()[:3])
        if hour < 24 and minute < 60 and second < 60:
            milli = int((match[4] or "").ljust(3, "0")[:3])
            return (hour * 3600 + minute * 60 + second) * 1000 + milli
    raise EvaluationError(
        f"Failed to parse time '{text}': Text '{text}' could not be parsed{_TIME_HELP}"
    )


def parse_timestamp(text: str) -> int:
    """The TIMESTAMP that a text tells, in UTC if it names no offset; raises EvaluationError."""
    date, separator, rest = text.partition("T")
    zone = UTC_ZONE
    if separator:
        sign = "+" if "+" in rest else "-"
        at = rest.find(sign) if sign in rest else len(rest)
        time = _whole_time(rest[:at].removesuffix("Z"))
        zone_text = rest[at:]
    else:
        date, time, zone_text = _whole_date(text), _TIME_ZEROS, ""
    try:
        if zone_text.strip():
            zone = zone_of(zone_text)
        reading = pattern_of(_TIMESTAMP_PATTERN).read(f"{date}T{time}", ignore_case=True)
        return resolve(reading).millis(zone)
    except ValueError as error:
        raise EvaluationError(
            f"Failed to parse timestamp '{text}': {error}{_TIMESTAMP_HELP}"
        ) from None


def _whole_date(text: str) -> str:
    """The date with the missing months and days."""
    parts = text.split("-")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return text + {1: "-01-01", 2: "-01"}.get(len(parts), "")


def _whole_time(text: str) -> str:
    """The time with the missing digits as zeros."""
    return text + _TIME_ZEROS[len(text) :]

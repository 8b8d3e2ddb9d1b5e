"""Text of dates and times as casts have it: ISO 8601 in UTC, and what ksqlDB lets one leave out.

DATE        `2020-05-26`, `2020-05`, `2020`
TIME        `23:59:58.123`, `23:59:58`, `23:59`
TIMESTAMP   `2020-05-26T23:59:58.123+0200`, or any beginning of it; also with `Z`
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from barnabas.pipeline.sql.errors import EvaluationError

DAY_MS = 86_400_000
EPOCH_DAY = date(1970, 1, 1).toordinal()

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

_DATE = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)\Z", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{0,9}))?)?\Z", re.ASCII)
_FULL_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)\.(\d\d\d)\Z", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d?)(?::?(\d\d)(?::?(\d\d))?)?\Z", re.ASCII)
_TIME_ZEROS = "00:00:00.000"


def date_text(days: int) -> str:
    """`yyyy-MM-dd`; years beyond 9999 have a plus sign, those before year 0 a minus sign."""
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def time_text(milliseconds: int) -> str:
    """`HH:mm:ss`, without seconds if they are none; parts of seconds are left out."""
    return seconds_text(milliseconds).removesuffix(":00")


def seconds_text(milliseconds: int) -> str:
    """`HH:mm:ss`."""
    seconds = milliseconds // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def iso_timestamp_text(timestamp_ms: int) -> str:
    """`yyyy-MM-ddTHH:mm:ss.SSS`."""
    days, of_day = divmod(timestamp_ms, DAY_MS)
    return f"{date_text(days)}T{seconds_text(of_day)}.{of_day % 1000:03}"


def timestamp_text(timestamp_ms: int) -> str:
    """`yyyy-MM-dd HH:mm:ss.S`, as java.sql.Timestamp prints itself."""
    days, of_day = divmod(timestamp_ms, DAY_MS)
    fraction = f"{of_day % 1000:03}".rstrip("0") or "0"
    return f"{date_text(days)} {seconds_text(of_day)}.{fraction}"


def parse_date(text: str) -> int:
    """Days since the epoch; raises EvaluationError."""
    try:
        return _days(_complete_date(text), strict=True)
    except ValueError as error:
        message = f"Failed to parse date '{text}': {error}{_DATE_HELP}"
        raise EvaluationError(message) from error


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
    try:
        day, has_time, time = text.partition("T")
        if not has_time:
            return _days(_complete_date(text), strict=False) * DAY_MS
        at = next((time.index(sign) for sign in "+-" if sign in time), len(time))
        clock, zone = time[:at].removesuffix("Z"), time[at:]
        local_ms = _days(day, strict=False) * DAY_MS + _clock_ms(clock + _TIME_ZEROS[len(clock) :])
        return local_ms - _offset_ms(zone.strip(), local_ms)
    except ValueError as error:
        message = f"Failed to parse timestamp '{text}': {error}{_TIMESTAMP_HELP}"
        raise EvaluationError(message) from error


def _complete_date(text: str) -> str:
    """The text with the first month, and the first day, where it has none."""
    parts = len(text.rstrip("-").split("-"))
    return text + {1: "-01-01", 2: "-01"}.get(parts, "")


def _days(text: str, *, strict: bool) -> int:
    match = _DATE.match(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed")
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        raise ValueError(f"Text '{text}' could not be parsed: out of range")
    last = days_in_month(year, month)
    if day > last and strict:
        raise ValueError(f"Text '{text}' could not be parsed: Invalid date")
    return days_from_civil(year, month, min(day, last))


def _clock_ms(text: str) -> int:
    match = _FULL_TIME.match(text)
    if match is None:
        raise ValueError(f"'{text}' could not be parsed")
    hours, minutes, seconds, milliseconds = map(int, match.groups())
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"'{text}' could not be parsed: out of range")
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


def _offset_ms(zone: str, local_ms: int) -> int:
    """What to take from a local time; the zone is an offset, or a name."""
    if not zone:
        return 0
    match = _OFFSET.match(zone)
    if match:
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        if hours > 18 or minutes > 59 or seconds > 59:
            raise ValueError(f"Failed to parse timezone '{zone}'")
        offset_ms = ((hours * 60 + minutes) * 60 + seconds) * 1000
        return -offset_ms if match[1] == "-" else offset_ms
    try:
        local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=local_ms)
        offset = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (OverflowError, OSError, ValueError) as error:
        raise ValueError(f"Failed to parse timezone '{zone}'") from error
    assert offset is not None
    return offset // timedelta(milliseconds=1)


def days_in_month(year: int, month: int) -> int:
    """The number of days, in the Gregorian calendar without end in both directions."""
    if month == 2:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if is_leap else 28
    return 30 if month in (4, 6, 9, 11) else 31


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; any year."""
    if 1 <= year <= 9999:
        return date(year, month, day).toordinal() - EPOCH_DAY
    cycles = year // 400 - 5
    return date(year - cycles * 400, month, day).toordinal() - EPOCH_DAY + cycles * _CYCLE_DAYS


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of the days since 1970-01-01; any year."""
    cycles, of_cycle = divmod(days, _CYCLE_DAYS)
    civil = date.fromordinal(of_cycle + EPOCH_DAY)
    return civil.year + cycles * 400, civil.month, civil.day


_CYCLE_DAYS = 146_097
"""Days of 400 years, after which the calendar repeats."""

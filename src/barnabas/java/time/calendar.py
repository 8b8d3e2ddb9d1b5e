"""The proleptic Gregorian calendar for any year, as days since 1970-01-01."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from barnabas.java.time.units import DAY_MS

_ORDINAL_OF_EPOCH = date(1970, 1, 1).toordinal()
_FIRST, _LAST = (end.toordinal() - _ORDINAL_OF_EPOCH for end in (date.min, date.max))
_DAYS_OF_400_YEARS = 146_097


def is_leap(year: int) -> bool:
    """Return whether February has 29 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    """The days of a month."""
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; the date must exist."""
    cycles, year_of_cycle = divmod(year, 400)
    # Python knows the years 1 to 9999: the calendar repeats itself every 400 years.
    ordinal = date(year_of_cycle + 400, month, day).toordinal()
    return ordinal - _ORDINAL_OF_EPOCH + (cycles - 1) * _DAYS_OF_400_YEARS


@lru_cache(maxsize=4096)
def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of so many days since 1970-01-01."""
    cycles = 0
    if not _FIRST <= days <= _LAST:
        cycles = (days - _FIRST) // _DAYS_OF_400_YEARS
        days -= cycles * _DAYS_OF_400_YEARS
    day = date.fromordinal(days + _ORDINAL_OF_EPOCH)
    return day.year + 400 * cycles, day.month, day.day


def day_of_year(days: int) -> int:
    """1 for 1 January."""
    return days - days_of(date_of(days)[0], 1, 1) + 1


def day_of_week(days: int) -> int:
    """1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def date_text(days: int) -> str:
    """`yyyy-MM-dd`; years beyond 9999 have a plus sign, those before year 0 a minus sign."""
    year, month, day = date_of(days)
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

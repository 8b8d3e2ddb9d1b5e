"""Values in PostgreSQL's text output: arrays, hstore, money, dates, times and intervals.

DateStyle is ISO, IntervalStyle postgres, the time zone UTC. Years before Christ and beyond 9999 are
PostgreSQL's alone, so Python's types cannot hold them; the calendar is Gregorian throughout, as
PostgreSQL's.

Source: PostgreSQL's documentation, "Array Input and Output Syntax", "hstore", "Monetary Types".
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

Items = list["str | Items | None"]

_HSTORE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:NULL|"((?:[^"\\]|\\.)*)")(?:, )?', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BOUNDS: Final = re.compile(r"(?:\[-?\d+:-?\d+\])+=")
US_PER_SECOND: Final = 1_000_000
US_PER_DAY: Final = 86_400 * US_PER_SECOND
INFINITY_US: Final = 9223372036825200000
"""What Debezium says for timestamps that are infinite: those of PostgreSQL's JDBC driver."""
MINUS_INFINITY_US: Final = -9223372036832400000
INFINITY_DAYS: Final = 2**31 - 1
MINUS_INFINITY_DAYS: Final = -(2**31)

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_INTERVAL_PART: Final = re.compile(r"([+-]?\d+) (year|mon|day)s?")
_INTERVAL_TIME: Final = re.compile(r"([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?$")
_US_PER_MONTH: Final = int(30.4375 * US_PER_DAY)
_OFFSET: Final = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?$")


def array(text: str, delimiter: str = ",") -> Items:
    """Return the items of an array; arrays inside it are lists."""
    if bounds := _BOUNDS.match(text):
        text = text[bounds.end() :]
    if '"' not in text and "{" not in text[1:] and "\\" not in text:
        inner = text[1:-1]
        if not inner:
            return []
        return [None if item == "NULL" else item for item in inner.split(delimiter)]
    return _array(text, 0, delimiter)[0]


def _array(text: str, at: int, delimiter: str) -> tuple[Items, int]:
    """The array that begins at `at` with a brace, and where it ends."""
    items: Items = []
    at += 1
    while text[at] != "}":
        if text[at] == "{":
            inner, at = _array(text, at, delimiter)
            items.append(inner)
        elif text[at] == '"':
            quoted, at = _quoted(text, at)
            items.append(quoted)
        else:
            end = at
            while text[end] not in (delimiter, "}"):
                end += 2 if text[end] == "\\" else 1
            item = text[at:end]
            items.append(None if item == "NULL" else _ESCAPED.sub(r"\1", item))
            at = end
        if text[at] == delimiter:
            at += 1
    return items, at + 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    end = at + 1
    while text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    return _ESCAPED.sub(r"\1", text[at + 1 : end]), end + 1


def hstore(text: str) -> dict[str, str | None]:
    """Return the pairs of an hstore."""
    return {
        _ESCAPED.sub(r"\1", match[1]): None if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        for match in _HSTORE.finditer(text)
    }


def money(text: str) -> str:
    """Return an amount as digits, with a point and perhaps a minus."""
    sign = "-" if "-" in text or "(" in text else ""
    return sign + re.sub(r"[^0-9.]", "", text)


def days(text: str) -> int:
    """Return the days since 1970 of a date."""
    if len(text) == 10:
        return date.fromisoformat(text).toordinal() - _EPOCH_DAY
    if text == "infinity":
        return INFINITY_DAYS
    if text == "-infinity":
        return MINUS_INFINITY_DAYS
    is_before_christ = text.endswith(" BC")
    year, month, day = text.removesuffix(" BC").split("-")
    return _days(1 - int(year) if is_before_christ else int(year), int(month), int(day))


def _days(year: int, month: int, day: int) -> int:
    """By Howard Hinnant's days_from_civil."""
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146097 + day_of_era - 719468


def time_us(text: str) -> int:
    """Return the microseconds since midnight of a time; 24:00 is one."""
    fraction = text[9:]
    return (
        int(text[0:2]) * 3600 + int(text[3:5]) * 60 + int(text[6:8])
    ) * US_PER_SECOND + _fraction_us(fraction)


def _fraction_us(digits: str) -> int:
    return int(digits.ljust(6, "0")[:6]) if digits else 0


def timestamp_us(text: str) -> int:
    """Return the microseconds since 1970 of a timestamp; one with a time zone is in UTC."""
    try:
        return _us_since_1970(datetime.fromisoformat(text))
    except ValueError:
        pass
    if text == "infinity":
        return INFINITY_US
    if text == "-infinity":
        return MINUS_INFINITY_US
    era = " BC" if text.endswith(" BC") else ""
    day, _, clock = text.removesuffix(" BC").partition(" ")
    clock = clock.partition("+")[0]
    return days(day + era) * US_PER_DAY + time_us(clock)


def _us_since_1970(moment: datetime) -> int:
    return (moment.toordinal() - _EPOCH_DAY) * US_PER_DAY + (
        (moment.hour * 3600 + moment.minute * 60 + moment.second) * US_PER_SECOND
        + moment.microsecond
    )


def datetime_of(us: int) -> datetime:
    """Return the moment, in UTC; beyond what Python can hold, its first or last."""
    try:
        seconds, rest = divmod(us, US_PER_SECOND)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC) if us > 0 else datetime.min.replace(tzinfo=UTC)


def zoned_timestamp(text: str, digits: int) -> str:
    """Return a timestamp with time zone as Debezium writes it, in UTC."""
    if text.endswith("infinity"):
        return text
    is_before_christ = text.endswith(" BC")
    day, _, clock = text.removesuffix(" BC").partition(" ")
    clock = clock.partition("+")[0]
    if is_before_christ:
        year, rest = day.split("-", 1)
        day = f"-{int(year) - 1:04d}-{rest}" if int(year) > 1 else f"0000-{rest}"
    elif len(day) > 10:
        day = f"+{day}"
    if digits:
        whole, _, fraction = clock.partition(".")
        clock = f"{whole}.{fraction.ljust(digits, '0')}"
    return f"{day}T{clock}Z"


def zoned_time(text: str) -> str:
    """Return a time with time zone in UTC, as Debezium writes it."""
    match = _OFFSET.search(text)
    assert match is not None, text
    offset_s = int(match[2]) * 3600 + int(match[3] or 0) * 60 + int(match[4] or 0)
    us = time_us(text[: match.start()])
    us -= (offset_s if match[1] == "+" else -offset_s) * US_PER_SECOND
    seconds, rest = divmod(us % US_PER_DAY, US_PER_SECOND)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}Z"


def interval(text: str) -> tuple[int, int, int]:
    """Return the months, days and microseconds of an interval."""
    months = day_count = 0
    for amount, unit in _INTERVAL_PART.findall(text):
        if unit == "year":
            months += 12 * int(amount)
        elif unit == "mon":
            months += int(amount)
        else:
            day_count += int(amount)
    us = 0
    if match := _INTERVAL_TIME.search(text):
        seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4])
        us = seconds * US_PER_SECOND + _fraction_us(match[5] or "")
        us = -us if match[1] == "-" else us
    return months, day_count, us


def interval_us(text: str) -> int:
    """Return an interval's microseconds; a month has 30.4375 days."""
    months, day_count, us = interval(text)
    return months * _US_PER_MONTH + day_count * US_PER_DAY + us


def interval_iso(text: str) -> str:
    """Return an interval as Debezium writes it: P1Y2M3DT4H5M6.789S."""
    months, day_count, us = interval(text)
    years, months = int(months / 12), months - 12 * int(months / 12)
    sign, rest = ("-", -us) if us < 0 else ("", us)
    seconds, fraction = divmod(rest, US_PER_SECOND)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    point = f".{fraction:06d}".rstrip("0") if fraction else ""
    return (
        f"P{years}Y{months}M{day_count}D"
        f"T{_signed(sign, hours)}H{_signed(sign, minutes)}M"
        f"{sign if seconds % 60 or point else ''}{seconds % 60}{point}S"
    )


def _signed(sign: str, number: int) -> str:
    return f"{sign}{number}" if number else "0"

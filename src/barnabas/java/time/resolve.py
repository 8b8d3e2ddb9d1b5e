"""Resolves the fields read from a text to a date, a time of day or a timestamp.

As java.time does it by default ("smart"): the fields of a date that together make one become it,
31 of a shorter month becomes the month's last day, and what does not agree is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.java.time.calendar import day_of_week, days_of, is_leap, month_length
from barnabas.java.time.elements import Reading
from barnabas.java.time.fields import OF_DATE, OF_TIME, check_range, first_week_day
from barnabas.java.time.units import NANOS_OF_DAY, NANOS_OF_MS, NANOS_OF_SECOND
from barnabas.java.time.zone_elements import OFFSET
from barnabas.java.time.zones import Zone, fixed

_NOT_LOOKED_AT = ("WeekOfMonth", "QuarterOfYear", "AlignedDayOfWeekInMonth")
_OF_WEEKS = ("WeekBasedYear", "WeekOfWeekBasedYear")


@dataclass(slots=True)
class Resolved:
    """The meaning of a text: a date and a time if it has them whole, else fields in `rest`."""

    days: int | None
    nanos: int | None
    rest: dict[str, int]
    zone: Zone | None

    @property
    def has_date_field(self) -> bool:
        """True if the text tells anything about a date."""
        return self.days is not None or any(name in OF_DATE for name in self.rest)

    def millis(self, default_zone: Zone) -> int:
        """Milliseconds since the epoch; missing parts are those of 1970-01-01T00:00."""
        days = self._default_date() if self.days is None else self.days
        nanos = self._default_time() if self.nanos is None else self.nanos
        local_second = days * 86_400 + nanos // NANOS_OF_SECOND
        offset = (self.zone or default_zone).offset_of_local(local_second)
        return (local_second - offset) * 1000 + nanos % NANOS_OF_SECOND // NANOS_OF_MS

    def _default_date(self) -> int:
        rest = self.rest
        year, month, day = 1970, rest.get("MonthOfYear", 1), rest.get("DayOfMonth", 1)
        year = rest.get("Year", year)
        if "DayOfMonth" in rest and day > month_length(year, month):
            raise ValueError(f"Invalid date: day {day} of month {month}")
        days = days_of(year, month, 1) + day - 1
        if "DayOfWeek" in rest and "DayOfMonth" not in rest:
            days += rest["DayOfWeek"] - day_of_week(days)
        if "DayOfYear" in rest:
            if rest["DayOfYear"] == 366 and not is_leap(year):
                raise ValueError("Leap day cannot be parsed without supplying the year field")
            days = days_of(year, 1, 1) + rest["DayOfYear"] - 1
        return days

    def _default_time(self) -> int:
        hour = self.rest.get("HourOfDay")
        if hour is None:
            hour = self.rest.get("AmPmOfDay", 0) * 12 + self.rest.get("HourOfAmPm", 0)
        seconds = hour * 3600 + self.rest.get("MinuteOfHour", 0) * 60
        seconds += self.rest.get("SecondOfMinute", 0)
        return seconds * NANOS_OF_SECOND + self.rest.get("NanoOfSecond", 0)


def resolve(reading: Reading) -> Resolved:
    """Resolve the fields; raises ValueError if they contradict each other or are out of range."""
    fields = {name: value for name, value in reading.fields.items() if name not in _NOT_LOOKED_AT}
    offset = fields.pop(OFFSET, None)
    zone = reading.zone if offset is None else fixed(offset)
    days = _date(fields)
    nanos, excess_days = _time(fields)
    _check_agreement(fields, days, nanos)
    if days is not None:
        days += excess_days
    return Resolved(days, nanos, fields, zone)


def _date(fields: dict[str, int]) -> int | None:
    """The date, its fields taken out of `fields`; None if they do not tell one."""
    if "YearOfEra" in fields:
        year = check_range("YearOfEra", fields.pop("YearOfEra"))
        era = fields.pop("Era", None)
        year = 1 - year if era == 0 else year
        if fields.setdefault("Year", year) != year:
            raise ValueError(f"Conflict found: Year {fields['Year']} differs from Year {year}")
    for name in ("Year", "MonthOfYear", "DayOfMonth", "DayOfYear", "DayOfWeek"):
        if name in fields:
            check_range(name, fields[name])
    if (weekday := fields.pop("LocalizedDayOfWeek", None)) is not None:
        _agree(fields, "DayOfWeek", (check_range("LocalizedDayOfWeek", weekday) + 5) % 7 + 1)
    year_of_week, week = (fields.pop(name, None) for name in _OF_WEEKS)
    if week is not None and year_of_week is not None and "DayOfWeek" in fields:
        check_range("WeekOfWeekBasedYear", week)
        return first_week_day(year_of_week) + 7 * (week - 1) + fields.pop("DayOfWeek") % 7
    if "Year" not in fields:
        return None
    year = fields["Year"]
    if "MonthOfYear" in fields and "DayOfMonth" in fields:
        del fields["Year"]
        month, day = fields.pop("MonthOfYear"), fields.pop("DayOfMonth")
        return days_of(year, month, min(day, month_length(year, month)))
    if "DayOfYear" in fields:
        del fields["Year"]
        day = fields.pop("DayOfYear")
        if day == 366 and not is_leap(year):
            raise ValueError(f"Invalid date 'DayOfYear 366' as '{year}' is not a leap year")
        return days_of(year, 1, 1) + day - 1
    return None


def _time(fields: dict[str, int]) -> tuple[int | None, int]:
    """The time in nanoseconds of the day and the days it goes beyond, its fields taken out."""
    _merge_hours(fields)
    for name, unit in (("NanoOfDay", 1), ("MilliOfDay", 1_000_000)):
        if name in fields:
            nanos = check_range(name, fields.pop(name)) * unit
            for part in ("HourOfDay", "MinuteOfHour", "SecondOfMinute", "NanoOfSecond"):
                value = OF_TIME[part](nanos)
                if fields.setdefault(part, value) != value:
                    raise ValueError(f"Conflict found: {name} and {part} differ")
    names = ("HourOfDay", "MinuteOfHour", "SecondOfMinute", "NanoOfSecond")
    hour, minute, second, nano = (fields.get(name) for name in names)
    if hour == 24 and not (minute or second or nano):
        for name in names:
            fields.pop(name, None)
        return 0, 1
    for name in names:
        if name in fields:
            check_range(name, fields[name])
    skips = (minute is None and (second is not None or nano is not None)) or (
        second is None and nano is not None
    )
    if hour is None or skips:
        return None, 0
    for name in names:
        fields.pop(name, None)
    seconds = hour * 3600 + (minute or 0) * 60 + (second or 0)
    return (seconds * NANOS_OF_SECOND + (nano or 0)) % NANOS_OF_DAY, 0


def _merge_hours(fields: dict[str, int]) -> None:
    """Make HourOfDay of the other ways to tell the hour, as far as they tell it."""
    for clock, hour, top in (
        ("ClockHourOfDay", "HourOfDay", 24),
        ("ClockHourOfAmPm", "HourOfAmPm", 12),
    ):
        if clock in fields:
            value = fields.pop(clock)
            if value:
                check_range(clock, value)
            _agree(fields, hour, value % top)
    for name in ("AmPmOfDay", "HourOfAmPm"):
        if name in fields:
            check_range(name, fields[name])
    if "AmPmOfDay" in fields and "HourOfAmPm" in fields:
        value = fields.pop("AmPmOfDay") * 12 + fields.pop("HourOfAmPm")
        _agree(fields, "HourOfDay", value)


def _agree(fields: dict[str, int], name: str, value: int) -> None:
    if fields.setdefault(name, value) != value:
        raise ValueError(f"Conflict found: {name} {fields[name]} differs from {name} {value}")


def _check_agreement(fields: dict[str, int], days: int | None, nanos: int | None) -> None:
    """Hold what is left beside a whole date or time against it, and take it out."""
    for name in list(fields):
        actual = None
        if days is not None and name in OF_DATE:
            actual = OF_DATE[name](days)
        elif nanos is not None and name in OF_TIME:
            actual = OF_TIME[name](nanos)
        if actual is None:
            continue
        if actual != fields.pop(name):
            raise ValueError(f"Conflict found: {name} differs from {name} {actual}")

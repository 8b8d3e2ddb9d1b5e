"""Fields of dates and times by Java's names, and what each is for a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.java.time.calendar import date_of, day_of_week, day_of_year, days_of
from barnabas.java.time.units import DAY_MS, NANOS_OF_DAY, NANOS_OF_MS, NANOS_OF_SECOND
from barnabas.java.time.zones import Zone


@dataclass(slots=True)
class Moment:
    """The value to format: a date, a time, or both in a zone. None stands for a missing part."""

    days: int | None = None
    nanos: int | None = None
    """Of the day, local."""
    zone: Zone | None = None
    second: int = 0
    """Since the epoch, if there is a zone."""

    @property
    def offset(self) -> int:
        """Seconds east of UTC."""
        if self.zone is None:
            raise ValueError("Unable to extract ZoneId from temporal")
        return self.zone.offset_at(self.second)


def get_field(moment: Moment, name: str) -> int:
    """The value of a field; raises ValueError where the moment has no such part."""
    if (of_date := OF_DATE.get(name)) is not None:
        if moment.days is None:
            raise ValueError(f"Unsupported field: {name}")
        return of_date(moment.days)
    if moment.nanos is None:
        raise ValueError(f"Unsupported field: {name}")
    return OF_TIME[name](moment.nanos)


def _year(days: int) -> int:
    return date_of(days)[0]


def _year_of_era(days: int) -> int:
    year = _year(days)
    return year if year > 0 else 1 - year


def first_week_day(year: int) -> int:
    """The Sunday that begins the first week of a year, in days since 1970-01-01."""
    first = days_of(year, 1, 1)
    return first - day_of_week(first) % 7


def _week_and_year(days: int) -> tuple[int, int]:
    """The week of the year and its year where weeks begin on Sunday and that of 1 January is the
    first (as in the United States, whose locale ksqlDB formats with)."""
    sunday = days - day_of_week(days) % 7
    year = _year(sunday + 6)
    return (sunday - first_week_day(year)) // 7 + 1, year


def _week_of_month(days: int) -> int:
    first = days - date_of(days)[2] + 1
    return (days - (first - day_of_week(first) % 7)) // 7 + 1


OF_DATE: dict[str, Callable[[int], int]] = {
    "Era": lambda days: int(_year(days) > 0),
    "Year": _year,
    "YearOfEra": _year_of_era,
    "WeekBasedYear": lambda days: _week_and_year(days)[1],
    "QuarterOfYear": lambda days: (date_of(days)[1] + 2) // 3,
    "MonthOfYear": lambda days: date_of(days)[1],
    "WeekOfWeekBasedYear": lambda days: _week_and_year(days)[0],
    "WeekOfMonth": _week_of_month,
    "AlignedDayOfWeekInMonth": lambda days: (date_of(days)[2] - 1) % 7 + 1,
    "DayOfYear": day_of_year,
    "DayOfMonth": lambda days: date_of(days)[2],
    "DayOfWeek": day_of_week,
    "LocalizedDayOfWeek": lambda days: day_of_week(days) % 7 + 1,
}
"""From days since 1970-01-01."""


def _hour(nanos: int) -> int:
    return nanos // (3600 * NANOS_OF_SECOND)


OF_TIME: dict[str, Callable[[int], int]] = {
    "AmPmOfDay": lambda nanos: _hour(nanos) // 12,
    "HourOfDay": _hour,
    "ClockHourOfDay": lambda nanos: _hour(nanos) or 24,
    "HourOfAmPm": lambda nanos: _hour(nanos) % 12,
    "ClockHourOfAmPm": lambda nanos: _hour(nanos) % 12 or 12,
    "MinuteOfHour": lambda nanos: nanos // (60 * NANOS_OF_SECOND) % 60,
    "SecondOfMinute": lambda nanos: nanos // NANOS_OF_SECOND % 60,
    "NanoOfSecond": lambda nanos: nanos % NANOS_OF_SECOND,
    "MilliOfDay": lambda nanos: nanos // NANOS_OF_MS,
    "NanoOfDay": lambda nanos: nanos,
}
"""From nanoseconds of the day."""

RANGES: dict[str, tuple[int, int]] = {
    "Era": (0, 1),
    "YearOfEra": (1, 999_999_999),
    "MonthOfYear": (1, 12),
    "DayOfYear": (1, 366),
    "DayOfMonth": (1, 31),
    "DayOfWeek": (1, 7),
    "AlignedDayOfWeekInMonth": (1, 7),
    "LocalizedDayOfWeek": (1, 7),
    "WeekOfWeekBasedYear": (1, 53),
    "AmPmOfDay": (0, 1),
    "HourOfDay": (0, 23),
    "ClockHourOfDay": (1, 24),
    "HourOfAmPm": (0, 11),
    "ClockHourOfAmPm": (1, 12),
    "MinuteOfHour": (0, 59),
    "SecondOfMinute": (0, 59),
    "NanoOfSecond": (0, NANOS_OF_SECOND - 1),
    "MilliOfDay": (0, DAY_MS - 1),
    "NanoOfDay": (0, NANOS_OF_DAY - 1),
}


def check_range(name: str, value: int) -> int:
    """The value; raises ValueError if the field cannot have it."""
    low, high = RANGES.get(name, (-999_999_999, 999_999_999))
    if not low <= value <= high:
        raise ValueError(f"Invalid value for {name} (valid values {low} - {high}): {value}")
    return value


MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _texts(first: int, *names: str) -> dict[int, str]:
    return dict(enumerate(names, start=first))


TEXTS: dict[tuple[str, str], dict[int, str]] = {
    ("MonthOfYear", "full"): _texts(1, *MONTHS),
    ("MonthOfYear", "short"): _texts(1, *(name[:3] for name in MONTHS)),
    ("MonthOfYear", "narrow"): _texts(1, *(name[0] for name in MONTHS)),
    ("DayOfWeek", "full"): _texts(1, *DAYS),
    ("DayOfWeek", "short"): _texts(1, *(name[:3] for name in DAYS)),
    ("DayOfWeek", "narrow"): _texts(1, *(name[0] for name in DAYS)),
    ("AmPmOfDay", "short"): _texts(0, "AM", "PM"),
    ("Era", "short"): _texts(0, "BC", "AD"),
    ("Era", "full"): _texts(0, "Before Christ", "Anno Domini"),
    ("Era", "narrow"): _texts(0, "B", "A"),
    ("QuarterOfYear", "short"): _texts(1, "Q1", "Q2", "Q3", "Q4"),
    ("QuarterOfYear", "full"): _texts(
        1, "1st quarter", "2nd quarter", "3rd quarter", "4th quarter"
    ),
    ("QuarterOfYear", "narrow"): _texts(1, "1", "2", "3", "4"),
}
"""English texts, by field and style."""

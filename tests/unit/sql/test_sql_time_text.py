"""ISO texts of dates, times and timestamps, and the calendar under them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.java.time import calendar
from barnabas.java.time import units as time_units
from barnabas.sql import time_text
from barnabas.sql.errors import EvaluationError
from support.effort import examples

MAY_2018 = 1526075913000


@pytest.mark.parametrize(
    ("text", "days"),
    [("2018-05-11", 17662), ("2018-05", 17652), ("2018", 17532), ("+10000-01-01", 2932897)],
)
def test_dates(text: str, days: int) -> None:
    assert time_text.parse_date(text) == days
    assert calendar.date_text(days).startswith(text)


@pytest.mark.parametrize(
    ("text", "millis", "written"),
    [
        ("00:00", 0, "00:00"),
        ("00:00:05", 5_000, "00:00:05"),
        ("00:00:00.010", 10, "00:00"),
        ("23:59:59.999999999", 86_399_999, "23:59:59"),
        ("01:34:20.", 5_660_000, "01:34:20"),
    ],
)
def test_times(text: str, millis: int, written: str) -> None:
    assert time_text.parse_time(text) == millis
    assert calendar.time_text(millis) == written


TIMESTAMPS: list[tuple[str, int]] = [
    ("2018-05-11T21:58:33.000", MAY_2018),
    ("2018-05-11T21:58:33", MAY_2018),
    ("2018-05-11T21:58:33Z", MAY_2018),
    ("2018-05-11T21:58:33.000+0100", MAY_2018 - 3_600_000),
    ("2018-05-11T21:58:33-0100", MAY_2018 + 3_600_000),
    ("2018-05-11T21:58:33+01:00", MAY_2018 - 3_600_000),
    ("2018-05-11T21", 1526072400000),
    ("2018-05-11T21:58", 1526075880000),
    ("2018-05-11T", 1525996800000),
    ("2018-05-11TZ", 1525996800000),
    ("2018-05-11", 1525996800000),
    ("2018-05", 1525132800000),
    ("2018", 1514764800000),
]


@pytest.mark.parametrize("case", TIMESTAMPS, ids=lambda case: case[0])
def test_timestamps_read(case: tuple[str, int]) -> None:
    assert time_text.parse_timestamp(case[0]) == case[1]


@pytest.mark.parametrize(
    ("millis", "text"),
    [
        (MAY_2018, "2018-05-11T21:58:33.000"),
        (-1, "1969-12-31T23:59:59.999"),
        (253402300800000, "+10000-01-01T00:00:00.000"),
    ],
)
def test_timestamps_written(millis: int, text: str) -> None:
    assert calendar.iso_timestamp_text(millis) == text


@pytest.mark.parametrize("text", ["woof", "2017-1-1", "2017-02-30", "2017-13-01", "", "2017-"])
def test_dates_refused(text: str) -> None:
    with pytest.raises(EvaluationError, match='Required format is: "yyyy-MM-dd"'):
        time_text.parse_date(text)


@pytest.mark.parametrize("text", ["woof", "24:00", "1:00", "00:60", "00:00:60", "", "00:00Z"])
def test_times_refused(text: str) -> None:
    with pytest.raises(EvaluationError, match=r'Required format is: "HH:mm:ss\.SSS"'):
        time_text.parse_time(text)


@pytest.mark.parametrize("text", ["woof", "2017-1-1", "2017-01-01T00:00:00.000+foo", "2017-01T00"])
def test_timestamps_refused(text: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        time_text.parse_timestamp(text)
    assert str(raised.value).startswith(f"Failed to parse timestamp '{text}': ")
    assert "Required format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", " in str(raised.value)


@settings(max_examples=examples(15))
@given(st.dates())
def test_the_calendar_is_pythons_where_python_has_one(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert calendar.days_of(day.year, day.month, day.day) == days
    assert calendar.date_of(days) == (day.year, day.month, day.day)
    assert calendar.day_of_week(days) == day.isoweekday()
    assert calendar.day_of_year(days) == day.timetuple().tm_yday
    assert calendar.is_leap(day.year) == ((date(day.year, 3, 1) - timedelta(1)).day == 29)


@settings(max_examples=examples(15))
@given(st.integers(-(10**8), 10**8))
def test_the_calendar_goes_on_in_all_years(days: int) -> None:
    year, month, day = calendar.date_of(days)
    assert calendar.days_of(year, month, day) == days
    assert 1 <= day <= calendar.month_length(year, month)


@settings(max_examples=examples(15))
@given(st.integers(-(10**13), 10**14))
def test_timestamps_come_back_from_their_texts(millis: int) -> None:
    if calendar.date_of(millis // time_units.DAY_MS)[0] > 0:
        assert time_text.parse_timestamp(calendar.iso_timestamp_text(millis)) == millis

"""Functions of dates, times and timestamps."""

from __future__ import annotations

import time
from typing import Any

import pytest

from barnabas.java.time import units as time_units
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.built_in import functions
from support.sql_typed_calls import call

MAY_2018 = 1526075913000
DAY = 86_400_000

CALLS: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("FORMAT_DATE", "DATE, STRING", (17662, "dd/MM/yyyy"), "11/05/2018"),
    ("FORMAT_DATE", "DATE, STRING", (-1, "dd-MM-yyyy'Eve'"), "31-12-1969Eve"),
    ("DATETOSTRING", "INTEGER, STRING", (18993, "dd-MMM-yyyy"), "01-Jan-2022"),
    ("FORMAT_TIME", "TIME, STRING", (1234567, "HHmmss'A'"), "002034A"),
    ("FORMAT_TIMESTAMP", "TIMESTAMP, STRING", (MAY_2018, "yyyy-MM-dd HH:mm"), "2018-05-11 21:58"),
    (
        "FORMAT_TIMESTAMP",
        "TIMESTAMP, STRING, STRING",
        (MAY_2018, "HH:mm zzz", "America/Los_Angeles"),
        "14:58 PDT",
    ),
    ("TIMESTAMPTOSTRING", "BIGINT, STRING", (MAY_2018, "HH:mm X"), "21:58 Z"),
    (
        "TIMESTAMPTOSTRING",
        "BIGINT, STRING, STRING",
        (MAY_2018, "HH zzz", "Europe/London"),
        "22 BST",
    ),
    ("PARSE_DATE", "STRING, STRING", ("JAN-2022", "MMM-yyyy"), 18993),
    ("STRINGTODATE", "STRING, STRING", ("01-Jan-2022", "dd-MMM-yyyy"), 18993),
    ("PARSE_TIME", "STRING, STRING", ("01:00:00 Pm", "hh:mm:ss a"), 46_800_000),
    (
        "PARSE_TIMESTAMP",
        "STRING, STRING",
        ("2018-05-11T21:58:33", "yyyy-MM-dd'T'HH:mm:ss"),
        MAY_2018,
    ),
    (
        "PARSE_TIMESTAMP",
        "STRING, STRING, STRING",
        ("2018-05-11 14:58:33", "yyyy-MM-dd HH:mm:ss", "America/Los_Angeles"),
        MAY_2018,
    ),
    (
        "STRINGTOTIMESTAMP",
        "STRING, STRING",
        ("2018-05-11T21:58:33z", "yyyy-MM-dd'T'HH:mm:ssX"),
        MAY_2018,
    ),
    ("DATEADD", "INTEGER, DATE", ("DAYS", 10, 10), 20),
    ("DATEADD", "INTEGER, DATE", ("DAYS", -5, 2), -3),
    ("DATEADD", "INTEGER, DATE", ("HOURS", 23, 1), 1),
    ("DATEADD", "INTEGER, DATE", ("HOURS", 1, -1), 0),
    ("DATESUB", "INTEGER, DATE", ("DAYS", 5, 5), 0),
    ("TIMEADD", "INTEGER, TIME", ("MILLISECONDS", 10, 86_399_995), 5),
    ("TIMEADD", "INTEGER, TIME", ("DAYS", 3, 7), 7),
    ("TIMESUB", "INTEGER, TIME", ("MILLISECONDS", 5, 2), 86_399_997),
    ("TIMESTAMPADD", "INTEGER, TIMESTAMP", ("MINUTES", 2, 5), 120_005),
    ("TIMESTAMPSUB", "INTEGER, TIMESTAMP", ("DAYS", 1, 5), 5 - DAY),
    ("CONVERT_TZ", "TIMESTAMP, STRING, STRING", (100, "+0200", "+0500"), 10_800_100),
    (
        "CONVERT_TZ",
        "TIMESTAMP, STRING, STRING",
        (1589234313000, "America/Los_Angeles", "America/New_York"),
        1589245113000,
    ),
    ("FROM_DAYS", "INTEGER", (-50,), -50),
    ("FROM_UNIXTIME", "BIGINT", (MAY_2018,), MAY_2018),
    ("UNIX_DATE", "DATE", (10,), 10),
    ("UNIX_TIMESTAMP", "TIMESTAMP", (-5,), -5),
]


@pytest.mark.parametrize("case", CALLS, ids=lambda case: f"{case[0]} {case[2]}")
def test_calls(case: tuple[str, str, tuple[Any, ...], Any]) -> None:
    name, types, arguments, expected = case
    assert call(name, types, *arguments) == expected


@pytest.mark.parametrize("case", CALLS, ids=lambda case: f"{case[0]} {case[2]}")
def test_null_in_null_out(case: tuple[str, str, tuple[Any, ...], Any]) -> None:
    name, types, arguments, _ = case
    for index, argument in enumerate(arguments):
        if argument not in time_units.NANOS_OF_UNIT:
            nulled = [*arguments[:index], None, *arguments[index + 1 :]]
            assert call(name, types, *nulled) is None


FAILURES: list[tuple[str, str, tuple[Any, ...], str]] = [
    (
        "PARSE_DATE",
        "STRING, STRING",
        ("x", "yyyy"),
        "Failed to parse date 'x' with formatter 'yyyy'",
    ),
    ("STRINGTODATE", "STRING, STRING", ("x", "yyyy"), "Failed to parse date 'x' with formatter"),
    ("PARSE_TIME", "STRING, STRING", ("x", "HH"), "Failed to parse time 'x' with formatter 'HH'"),
    (
        "PARSE_TIMESTAMP",
        "STRING, STRING",
        ("x", "HH"),
        "Failed to parse timestamp 'x' at timezone 'UTC' with formatter 'HH': Text 'x' could",
    ),
    ("FORMAT_DATE", "DATE, STRING", (0, "HH"), "Failed to format date 0 with formatter 'HH'"),
    ("FORMAT_TIME", "TIME, STRING", (0, "dd"), "Failed to format time 0 with formatter 'dd'"),
    (
        "FORMAT_TIMESTAMP",
        "TIMESTAMP, STRING, STRING",
        (0, "HH", "PST"),
        "Failed to format timestamp 0 at timeZone 'PST' with formatter 'HH': Unknown time-zone ID",
    ),
    ("CONVERT_TZ", "TIMESTAMP, STRING, STRING", (0, "UTC", "PST"), "Invalid time zone: Unknown"),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: f"{case[0]} {case[2]}")
def test_failures_fail_the_expression(case: tuple[str, str, tuple[Any, ...], str]) -> None:
    name, types, arguments, message = case
    with pytest.raises(EvaluationError) as raised:
        call(name, types, *arguments)
    assert str(raised.value).startswith(message)


def test_now_is_now() -> None:
    before = time.time_ns() // 1_000_000
    now = call("UNIX_TIMESTAMP", "")
    today = call("UNIX_DATE", "")
    after = time.time_ns() // 1_000_000
    assert before <= now <= after
    assert before // DAY <= today <= after // DAY
    assert functions()["UNIX_TIMESTAMP"].is_volatile

"""Dates and times as texts by patterns. The expected values are those of Java 17, but that it reads
full names of months in its English locale only, and ours everywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.java.time import texts
from barnabas.java.time.pattern import pattern_of
from barnabas.java.time.resolve import resolve
from barnabas.java.time.texts import quick_reader
from barnabas.java.time.zones import zone_of
from support.effort import examples

MAY_2018 = 1526075913000
AUGUST_2018 = 1535000000123

WRITTEN: list[tuple[int, str, str, str]] = [
    (MAY_2018, "yyyy-MM-dd'T'HH:mm:ssX", "UTC", "2018-05-11T21:58:33Z"),
    (MAY_2018, "yyyy-MM-dd HH:mm:ss zzz", "America/Los_Angeles", "2018-05-11 14:58:33 PDT"),
    (MAY_2018, "HH:mm:ss zzz", "Europe/London", "22:58:33 BST"),
    (MAY_2018, "zzzz", "America/New_York", "Eastern Daylight Time"),
    (MAY_2018, "z", "America/Sao_Paulo", "BRT"),
    (MAY_2018, "z VV O OOOO", "+02:00", "+02:00 +02:00 GMT+2 GMT+02:00"),
    (MAY_2018, "X XX XXX x xx xxx", "-0330", "-0330 -0330 -03:30 -0330 -0330 -03:30"),
    (MAY_2018, "X XX XXX x xx xxx", "UTC", "Z Z Z +00 +0000 +00:00"),
    (MAY_2018, "Z ZZZZ ZZZZZ", "UTC", "+0000 GMT Z"),
    (MAY_2018, "Z ZZZZ ZZZZZ", "Asia/Kolkata", "+0530 GMT+05:30 +05:30"),
    (AUGUST_2018, "S SS SSS SSSSSS", "UTC", "1 12 123 123000"),
    (AUGUST_2018, "n N A", "UTC", "123000000 17600123000000 17600123"),
    (AUGUST_2018, "h:mm a K k H", "UTC", "4:53 AM 4 4 4"),
    (0, "h K k kk H", "UTC", "12 0 24 24 0"),
    (AUGUST_2018, "EEE EEEE EEEEE e c", "UTC", "Thu Thursday T 5 5"),
    (AUGUST_2018, "M MM MMM MMMM MMMMM L LLL", "UTC", "8 08 Aug August A 8 Aug"),
    (AUGUST_2018, "y yy yyy yyyy yyyyy u", "UTC", "2018 18 2018 2018 02018 2018"),
    (AUGUST_2018, "D DDD Q QQ QQQ QQQQ", "UTC", "235 235 3 03 Q3 3rd quarter"),
    (AUGUST_2018, "YYYY-'W'ww-e", "UTC", "2018-W34-5"),
    (AUGUST_2018, "G GGGG GGGGG", "UTC", "AD Anno Domini A"),
    (-62135596800001, "yyyy G u", "UTC", "0001 BC 0"),
    (253402300800000, "yyyy-MM-dd", "UTC", "+10000-01-01"),
    (MAY_2018, "''yyyy'' 'o''clock'", "UTC", "'2018' o'clock"),
    (MAY_2018, "ppppd|ppH", "UTC", "  11|21"),
]


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: f"{case[1]} {case[2]}")
def test_timestamps_written(case: tuple[int, str, str, str]) -> None:
    millis, pattern, zone, expected = case
    assert texts.timestamp_to_text(millis, pattern, zone) == expected


READ: list[tuple[str, str, str, int]] = [
    ("2018-05-11T21:58:33Z", "yyyy-MM-dd'T'HH:mm:ssX", "UTC", MAY_2018),
    ("2018-05-11t21:58:33z", "yyyy-MM-dd'T'HH:mm:ssX", "Asia/Tokyo", MAY_2018),
    ("2019-08-27T13:31:09.2+0000", "yyyy-MM-dd'T'HH:mm:ss.SX", "UTC", 1566912669200),
    ("2018-05-11T21:58:33 PST", "yyyy-MM-dd'T'HH:mm:ss zzz", "UTC", 1526101113000),
    ("2018-05-11 21:58:33", "yyyy-MM-dd HH:mm:ss", "UTC", MAY_2018),
    ("2018-05-11 14:58:33", "yyyy-MM-dd HH:mm:ss", "America/Los_Angeles", MAY_2018),
    ("2018-05-11 22:58:33 Europe/London", "yyyy-MM-dd HH:mm:ss VV", "UTC", MAY_2018),
    ("2018-05-11 23:58:33 GMT+2", "yyyy-MM-dd HH:mm:ss O", "UTC", MAY_2018),
    ("20180511215833", "yyyyMMddHHmmss", "UTC", MAY_2018),
    ("20180511215833123", "yyyyMMddHHmmssSSS", "UTC", MAY_2018 + 123),
    ("11 may 2018 09:58:33 pm", "d MMM yyyy hh:mm:ss a", "UTC", MAY_2018),
    ("11 August 2018", "d MMMM yyyy", "UTC", 1533945600000),
    ("18-5-11", "yy-M-d", "UTC", 1525996800000),
    ("2018-05", "yyyy-MM", "UTC", 1525132800000),
    ("2018", "yyyy", "UTC", 1514764800000),
    ("12", "MM", "UTC", 28857600000),
    ("31", "dd", "UTC", 2592000000),
    ("01", "HH", "UTC", 3600000),
    ("01", "mm", "UTC", 60000),
    ("05:30", "hh:mm", "UTC", 19800000),
    ("2018-02-31", "yyyy-MM-dd", "UTC", 1519776000000),
    ("2018 131", "yyyy D", "UTC", 1525996800000),
    ("2016 366", "yyyy D", "UTC", 1483142400000),
    ("Fri 2018-05-11", "EEE yyyy-MM-dd", "UTC", 1525996800000),
    ("2018-05-11 24:00:00.0", "yyyy-MM-dd HH:mm:ss.S", "UTC", 1526083200000),
    ("+12018-05-11", "yyyy-MM-dd", "UTC", 317095516800000),
    ("-2018-05-11", "uuuu-MM-dd", "UTC", -125837884800000),
    ("0100 BC", "yyyy G", "UTC", -65291356800000),
    ("2018-05-11 21", "yyyy-MM-dd HH[:mm[:ss]]", "UTC", 1526072400000),
    ("2018-05-11 21:58", "yyyy-MM-dd HH[:mm[:ss]]", "UTC", 1526075880000),
    ("17600123", "A", "UTC", 17600123),
    ("2018-03-11 02:30", "yyyy-MM-dd HH:mm", "America/New_York", 1520753400000),
    ("2018-11-04 01:30", "yyyy-MM-dd HH:mm", "America/New_York", 1541309400000),
    ("2018-W34-5", "YYYY-'W'ww-e", "UTC", 1534982400000),
]


@pytest.mark.parametrize("case", READ, ids=lambda case: f"{case[0]} {case[1]}")
def test_timestamps_read(case: tuple[str, str, str, int]) -> None:
    text, pattern, zone, expected = case
    assert texts.text_to_timestamp(text, pattern, zone) == expected


REFUSED: list[tuple[str, str, str]] = [
    ("invalid", "yyyy-MM-dd", "Text 'invalid' could not be parsed at index 0"),
    ("", "yyyy-MM-dd", "Text '' could not be parsed at index 0"),
    ("2018-13-01", "yyyy-MM-dd", "Invalid value for MonthOfYear (valid values 1 - 12): 13"),
    ("2018-1-01", "yyyy-MM-dd", "could not be parsed at index 5"),
    ("2018-01-01x", "yyyy-MM-dd", "unparsed text found at index 10"),
    ("12018-01-01", "yyyy-MM-dd", "could not be parsed at index 0"),
    ("+2018-01-01", "yyyy-MM-dd", "could not be parsed at index 0"),
    ("0000", "yyyy", "Invalid value for YearOfEra (valid values 1 - 999999999): 0"),
    ("-2018", "yyyy", "Invalid value for YearOfEra (valid values 1 - 999999999): -2018"),
    ("Thu 2018-05-11", "EEE yyyy-MM-dd", "Conflict found: DayOfWeek"),
    ("2018 366", "yyyy D", "'2018' is not a leap year"),
    ("366", "D", "Leap day cannot be parsed without supplying the year field"),
    ("25:00", "HH:mm", "Invalid value for HourOfDay (valid values 0 - 23): 25"),
    ("24:01", "HH:mm", "Invalid value for HourOfDay (valid values 0 - 23): 24"),
    ("13:00 AM", "HH:mm a", "Conflict found: AmPmOfDay"),
    ("13:00 PM", "hh:mm a", "Invalid value for ClockHourOfAmPm (valid values 1 - 12): 13"),
    ("05-06", "dd-dd", "could not be parsed at index 3"),
    ("10:00 Nowhere/Place", "HH:mm VV", "could not be parsed at index 6"),
    ("1", "invalid", "Unknown pattern letter: i"),
    ("1", "HHH", "Too many pattern letters: H"),
    ("1", "yyyy 'x", "Pattern ends with an incomplete string literal"),
    ("1", "yyyy]", "Pattern invalid as it contains ] without previous ["),
    ("1", "yyyy#", "Pattern includes reserved character: '#'"),
    ("1", "V", "Pattern letter count must be 2: V"),
    ("1", "OO", "Pattern letter count must be 1 or 4: O"),
    ("1", "p", "Pad letter 'p' must be followed by valid pad pattern: p"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {case[1]}")
def test_texts_and_patterns_that_are_refused(case: tuple[str, str, str]) -> None:
    text, pattern, message = case
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        texts.text_to_timestamp(text, pattern)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("PST", "Unknown time-zone ID: PST"),
        ("", "Invalid ID for region-based ZoneId, invalid format: "),
        ("../etc/passwd", "Invalid ID for region-based ZoneId, invalid format"),
        ("right/UTC", "Unknown time-zone ID: right/UTC"),
        ("+25:00", "Zone offset not in valid range: +25:00"),
        ("+1:00", "Invalid ID for ZoneOffset, invalid format: +1:00"),
    ],
)
def test_zones_that_are_refused(zone: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        texts.timestamp_to_text(0, "HH", zone)
    assert message in str(raised.value)


DATES: list[tuple[str, str, int]] = [
    ("2018-05-11Lit", "yyyy-MM-dd'Lit'", 17662),
    ("11/05/2019", "dd/MM/yyyy", 18027),
    ("01-Jan-2022", "dd-MMM-yyyy", 18993),
    ("01-01-1970", "dd-MM-yyyy", 0),
    ("20190511", "yyyyMMdd", 18027),
]


@pytest.mark.parametrize("case", DATES, ids=lambda case: case[0])
def test_dates_read(case: tuple[str, str, int]) -> None:
    text, pattern, days = case
    assert texts.text_to_date(text, pattern) == days
    assert texts.text_to_date_leniently(text, pattern) == days
    assert texts.date_to_text(days, pattern).casefold() == text.casefold()


LENIENT: list[tuple[str, str, int]] = [
    ("01-JAN-2022", "dd-MMM-yyyy", 18993),
    ("01-january-2022", "dd-MMM-yyyy", 18993),
    ("JAN-2022", "MMM-yyyy", 18993),
    ("2022", "yyyy", 18993),
    ("2022-13-32", "yyyy-MM-dd", 19389),
    ("2022-1-1", "yyyy-MM-dd", 18993),
    ("2022-01-01 and more", "yyyy-MM-dd", 18993),
    ("20220101", "yyyyMMdd", 18993),
    ("22-01-01", "yy-MM-dd", 18993),
    ("99-01-01", "yy-MM-dd", 10592),
    ("2022-01-01 00:00", "yyyy-MM-dd HH:mm", 18993),
    ("2022-01-01 +0000", "yyyy-MM-dd Z", 18993),
    ("2022 32", "yyyy D", 19024),
]


@pytest.mark.parametrize("case", LENIENT, ids=lambda case: case[0])
def test_dates_read_as_simple_date_format_does(case: tuple[str, str, int]) -> None:
    text, pattern, days = case
    assert texts.text_to_date_leniently(text, pattern) == days


@pytest.mark.parametrize(
    ("text", "pattern", "message"),
    [
        ("2021-12-01 05:40:34", "yyyy-MM-dd HH:mm:ss", "Date format contains time field."),
        ("2021-12-01 +0100", "yyyy-MM-dd Z", "Date format contains time field."),
        ("invalid", "yyyy-MM-dd", 'Unparseable date: "invalid"'),
        ("2021-12-01", "invalid", "Illegal pattern component"),
        ("2021-12-01", "yyyy'", "Unterminated quote"),
        ("2021 Nowhere", "yyyy z", "Unknown time-zone ID: Nowhere"),
    ],
)
def test_dates_that_simple_date_format_refuses(text: str, pattern: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        texts.text_to_date_leniently(text, pattern)
    assert message in str(raised.value)


def test_a_date_must_be_whole() -> None:
    with pytest.raises(ValueError, match="Unable to obtain LocalDate"):
        texts.text_to_date("2018-05", "yyyy-MM")


TIMES: list[tuple[str, str, int]] = [
    ("00:01:05Lit", "HH:mm:ss'Lit'", 65_000),
    ("11/05/19", "HH/mm/ss", 39_919_000),
    ("01:00:00 Pm", "hh:mm:ss a", 46_800_000),
    ("000105", "HHmmss", 65_000),
    ("12:01:05 aM", "hh:mm:ss a", 65_000),
    ("24:01", "kk:mm", 60_000),
    ("24:00", "HH:mm", 0),
]


@pytest.mark.parametrize("case", TIMES, ids=lambda case: case[0])
def test_times_read(case: tuple[str, str, int]) -> None:
    text, pattern, millis = case
    assert texts.text_to_time(text, pattern) == millis


def test_times_without_a_time_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Time format contains date field\."):
        texts.text_to_time("2020 000105", "yyyy HHmmss")
    with pytest.raises(ValueError, match="Unable to obtain LocalTime"):
        texts.text_to_time("30", "mm")


def test_a_moment_without_the_field_is_refused() -> None:
    for write, pattern in ((texts.date_to_text, "HH"), (texts.time_to_text, "dd")):
        with pytest.raises(ValueError, match="Unsupported field"):
            write(1, pattern)
    with pytest.raises(ValueError, match="Unable to extract ZoneId"):
        texts.date_to_text(1, "z")
    assert texts.date_to_text(1, "dd[ HH]") == "02"


_PLAIN = st.sampled_from(
    [
        "yyyy-MM-dd'T'HH:mm:ss.SSSX",
        "yyyy-MM-dd HH:mm:ss XXX",
        "yyyyMMddHHmmssSSS",
        "d/M/yyyy H:m",
        "yyyy-MM-dd",
        "HH:mm dd.MM.yyyy",
    ]
)


@settings(max_examples=examples(15))
@given(st.integers(-(10**14), 3 * 10**14), _PLAIN, st.data())
def test_the_short_way_reads_as_the_long(millis: int, pattern: str, data: st.DataObject) -> None:
    text = texts.timestamp_to_text(millis, pattern, "+03:30")
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(text) - 1))
        change = data.draw(st.sampled_from("0123456789-+: Tz"))
        text = text[:place] + change + text[place + 1 :]
    found = _outcome(lambda: texts.text_to_timestamp(text, pattern, "Europe/London"))
    zone = zone_of("Europe/London")
    reading = pattern_of(pattern)
    assert found == _outcome(lambda: resolve(reading.read(text, ignore_case=True)).millis(zone))


def _outcome(read: Callable[[], int]) -> int | str:
    try:
        return read()
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    ("pattern", "is_plain"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", True),
        ("yyyy-MM-dd", True),
        ("d/M/yyyy", True),
        ("dMyyyy", False),
        ("yy-MM-dd", False),
        ("yyyy-MM", False),
        ("yyyy-MM-dd mm", False),
        ("yyyy-MM-dd hh:mm a", False),
        ("yyyy-MM-dd dd", False),
        ("yyyy-MM-dd[ HH]", False),
        ("dd MMM yyyy", False),
    ],
)
def test_which_patterns_have_a_short_way(pattern: str, is_plain: bool) -> None:
    assert (quick_reader(pattern) is not None) == is_plain

"""Functions of DATE, TIME and TIMESTAMP.

Patterns are those of java.time.format.DateTimeFormatter, in PARSE_DATE those of SimpleDateFormat.
The default time zone is UTC, also in STRINGTOTIMESTAMP and TIMESTAMPTOSTRING.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial, wraps
from typing import cast

from barnabas.java.numbers import wrap_bigint, wrap_integer
from barnabas.java.time import texts
from barnabas.java.time.units import DAY_MS, NANOS_OF_DAY, NANOS_OF_MS, NANOS_OF_UNIT
from barnabas.java.time.zones import zone_of
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import F, scalar
from barnabas.sql.types import Value

_scalar = partial(scalar, category="DATE / TIME", null_is_null=True)


def _failing(message: str) -> Callable[[F], F]:
    """Let what the function raises fail the expression, with its arguments in the message."""

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*arguments: Value) -> Value:
            try:
                return function(*arguments)
            except (ValueError, OverflowError) as error:
                raise EvaluationError(
                    f"{message.format(*arguments, texts.DEFAULT_ZONE)}: {error}"
                ) from None

        return cast(F, call)

    return decorate


@_scalar(
    "format_date",
    "(date DATE, formatPattern STRING) -> STRING",
    description="The text of a date by a pattern, as yyyy-MM-dd.",
)
@_failing("Failed to format date {} with formatter '{}'")
def format_date(date: int, pattern: str) -> str:
    return texts.date_to_text(date, pattern)


@_scalar(
    "datetostring",
    "(epochDays INTEGER, formatPattern STRING) -> STRING",
    description="The text of a date, given as days since 1970-01-01, by a pattern.",
)
def date_to_string(days: int, pattern: str) -> str:
    return format_date(days, pattern)


@_scalar(
    "format_time",
    "(time TIME, formatPattern STRING) -> STRING",
    description="The text of a time by a pattern, as HH:mm:ss.",
)
@_failing("Failed to format time {} with formatter '{}'")
def format_time(value: int, pattern: str) -> str:
    return texts.time_to_text(value, pattern)


@_scalar(
    "timestamptostring",
    "(epochMilli BIGINT, formatPattern STRING) -> STRING",
    "(epochMilli BIGINT, formatPattern STRING, timeZone STRING) -> STRING",
    description="The text of a timestamp, given as milliseconds since 1970-01-01, by a pattern; in "
    "UTC or the time zone named.",
)
@_scalar(
    "format_timestamp",
    "(timestamp TIMESTAMP, formatPattern STRING) -> STRING",
    "(timestamp TIMESTAMP, formatPattern STRING, timeZone STRING) -> STRING",
    description="The text of a timestamp by a pattern, in UTC or the time zone named.",
)
@_failing("Failed to format timestamp {0} at timeZone '{2}' with formatter '{1}'")
def format_timestamp(timestamp: int, pattern: str, zone: str = texts.DEFAULT_ZONE) -> str:
    return texts.timestamp_to_text(timestamp, pattern, zone)


@_scalar(
    "parse_date",
    "(formattedDate STRING, formatPattern STRING) -> DATE",
    description="Parses a text into a date, by a pattern of SimpleDateFormat.",
)
@_failing("Failed to parse date '{}' with formatter '{}'")
def parse_date(text: str, pattern: str) -> int:
    return texts.text_to_date_leniently(text, pattern)


@_scalar(
    "stringtodate",
    "(formattedDate STRING, formatPattern STRING) -> INTEGER",
    description="Parses a text into a date, by a pattern, and returns its days since 1970-01-01.",
)
@_failing("Failed to parse date '{}' with formatter '{}'")
def string_to_date(text: str, pattern: str) -> int:
    return texts.text_to_date(text, pattern)


@_scalar(
    "parse_time",
    "(formattedTime STRING, formatPattern STRING) -> TIME",
    description="Parses a text into a time, by a pattern.",
)
@_failing("Failed to parse time '{}' with formatter '{}'")
def parse_time(text: str, pattern: str) -> int:
    return texts.text_to_time(text, pattern)


@_scalar(
    "stringtotimestamp",
    "(formattedTimestamp STRING, formatPattern STRING) -> BIGINT",
    "(formattedTimestamp STRING, formatPattern STRING, timeZone STRING) -> BIGINT",
    description="Parses a text into a timestamp, by a pattern, and returns its milliseconds since "
    "1970-01-01; in UTC or the time zone named, unless the text names one.",
)
@_scalar(
    "parse_timestamp",
    "(formattedTimestamp STRING, formatPattern STRING) -> TIMESTAMP",
    "(formattedTimestamp STRING, formatPattern STRING, timeZone STRING) -> TIMESTAMP",
    description="Parses a text into a timestamp, by a pattern; in UTC or the time zone named, "
    "unless the text names one.",
)
@_failing("Failed to parse timestamp '{0}' at timezone '{2}' with formatter '{1}'")
def parse_timestamp(text: str, pattern: str, zone: str = texts.DEFAULT_ZONE) -> int:
    return texts.text_to_timestamp(text, pattern, zone)


@_scalar(
    "dateadd",
    "(unit INTERVAL, interval INTEGER, date DATE) -> DATE",
    description="A date so many units later.",
)
def date_add(unit: str, interval: int, date: int) -> int:
    return _truncated(date * DAY_MS + _millis(unit, interval), DAY_MS)


@_scalar(
    "datesub",
    "(unit INTERVAL, interval INTEGER, date DATE) -> DATE",
    description="A date so many units earlier.",
)
def date_sub(unit: str, interval: int, date: int) -> int:
    return date_add(unit, -interval, date)


@_scalar(
    "timeadd",
    "(unit INTERVAL, interval INTEGER, time TIME) -> TIME",
    description="A time so many units later; it wraps around at midnight.",
)
def time_add(unit: str, interval: int, value: int) -> int:
    nanos = value * NANOS_OF_MS + interval * NANOS_OF_UNIT[unit]
    return nanos % NANOS_OF_DAY // NANOS_OF_MS


@_scalar(
    "timesub",
    "(unit INTERVAL, interval INTEGER, time TIME) -> TIME",
    description="A time so many units earlier; it wraps around at midnight.",
)
def time_sub(unit: str, interval: int, value: int) -> int:
    return time_add(unit, -interval, value)


@_scalar(
    "timestampadd",
    "(unit INTERVAL, interval INTEGER, timestamp TIMESTAMP) -> TIMESTAMP",
    description="A timestamp so many units later.",
)
def timestamp_add(unit: str, interval: int, timestamp: int) -> int:
    return wrap_bigint(timestamp + _millis(unit, interval))


@_scalar(
    "timestampsub",
    "(unit INTERVAL, interval INTEGER, timestamp TIMESTAMP) -> TIMESTAMP",
    description="A timestamp so many units earlier.",
)
def timestamp_sub(unit: str, interval: int, timestamp: int) -> int:
    return wrap_bigint(timestamp - _millis(unit, interval))


@_scalar(
    "convert_tz",
    "(timestamp TIMESTAMP, fromTimeZone STRING, toTimeZone STRING) -> TIMESTAMP",
    description="A timestamp moved by how far the second time zone is ahead of the first.",
)
def convert_tz(timestamp: int, from_zone: str, to_zone: str) -> int:
    try:
        first, second = zone_of(from_zone), zone_of(to_zone)
    except ValueError as error:
        raise EvaluationError(f"Invalid time zone: {error}") from None
    at = timestamp // 1000
    return timestamp + (second.offset_at(at) - first.offset_at(at)) * 1000


@_scalar(
    "from_days",
    "(days INTEGER) -> DATE",
    description="The date so many days after 1970-01-01.",
)
def from_days(days: int) -> int:
    return days


@_scalar(
    "from_unixtime",
    "(epochMilli BIGINT) -> TIMESTAMP",
    description="The timestamp so many milliseconds after 1970-01-01T00:00 UTC.",
)
def from_unixtime(millis: int) -> int:
    return millis


@_scalar(
    "unix_date",
    "(date DATE) -> INTEGER",
    description="Days from 1970-01-01 to a date, or to today.",
)
def unix_date(date: int) -> int:
    return wrap_integer(date)


@_scalar("unix_date", "() -> INTEGER", is_volatile=True)
def unix_date_today() -> int:
    return unix_timestamp_now() // DAY_MS


@_scalar(
    "unix_timestamp",
    "(timestamp TIMESTAMP) -> BIGINT",
    description="Milliseconds from 1970-01-01T00:00 UTC to a timestamp, or to now.",
)
def unix_timestamp(timestamp: int) -> int:
    return timestamp


@_scalar("unix_timestamp", "() -> BIGINT", is_volatile=True)
def unix_timestamp_now() -> int:
    return time.time_ns() // NANOS_OF_MS


def _millis(unit: str, interval: int) -> int:
    """The interval in whole milliseconds; what is left over of shorter units is cut off."""
    return _truncated(interval * NANOS_OF_UNIT[unit], NANOS_OF_MS)


def _truncated(value: int, divisor: int) -> int:
    """The quotient, cut towards 0."""
    return value // divisor if value >= 0 else -(-value // divisor)

"""The logical types: what their values are made of, and back.

Source: Decimal, Date, Time and Timestamp of org.apache.kafka.connect.data (Kafka 4.3).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

from barnabas.java.numbers import to_byte_array
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import SCALE, Schema

DAY_MS: Final = 86_400_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_MS: Final = timedelta(milliseconds=1)
_DIGITS_MAX: Final = 4000
"""Python refuses to print longer ones, as that takes time which grows with their square."""
_BITS_MAX: Final = _DIGITS_MAX * 10 // 3


def decimal_scale(schema: Schema) -> int:
    """The digits after the point. Raises DataError where the schema does not say."""
    text = schema.parameters.get(SCALE)
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError("Invalid scale parameter found in Decimal schema: ") from None


def decimal_to_bytes(schema: Schema, value: Decimal) -> bytes:
    """The digits as a big-endian two's complement. Raises DataError for another scale."""
    return to_byte_array(unscaled(schema, value))


def unscaled(schema: Schema, value: Decimal) -> int:
    """All digits of the number without the point. Raises DataError for another scale."""
    expected = decimal_scale(schema)
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or -exponent != expected:
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {expected}, value has scale {scale_of(value)}."
        )
    if len(digits) > _DIGITS_MAX:
        raise DataError(f"The decimal has more than {_DIGITS_MAX} digits")
    whole = int("".join(map(str, digits)))
    return -whole if sign else whole


def bytes_to_decimal(schema: Schema, data: bytes) -> Decimal:
    """The number that the digits stand for. Raises DataError."""
    if not data:
        raise DataError("Zero length BigInteger")
    return scaled(int.from_bytes(data, "big", signed=True), decimal_scale(schema))


def scaled(digits: int, scale: int) -> Decimal:
    """The number with these digits, `scale` of them after the point. Raises DataError."""
    if digits.bit_length() > _BITS_MAX:
        raise DataError(f"The decimal has more than {_DIGITS_MAX} digits")
    return Decimal(f"{digits}E{-scale}")


def scale_of(value: Decimal) -> int:
    """The digits after the point, as BigDecimal's scale."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise DataError(f"{value} is not a decimal number")
    return -exponent


def date_to_days(value: date) -> int:
    """Days since 1970-01-01."""
    return value.toordinal() - _EPOCH_DAY


def days_to_date(days: int) -> date:
    """The date so many days after 1970-01-01. Raises DataError outside of years 1 to 9999."""
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise DataError(f"{days} days after 1970-01-01 is outside of the years 1 to 9999") from None


def time_to_ms(value: time) -> int:
    """Milliseconds since midnight."""
    return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000


def ms_to_time(ms: int) -> time:
    """The time of day so many milliseconds after midnight. Raises DataError outside of a day."""
    if not 0 <= ms < DAY_MS:
        raise DataError(
            "Time values must use number of milliseconds greater than 0 and less than 86400000"
        )
    seconds, rest = divmod(ms, 1000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1000)


def timestamp_to_ms(value: datetime) -> int:
    """Milliseconds since 1970 in UTC; a datetime without a zone is taken as UTC."""
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - EPOCH) // _MS


def ms_to_timestamp(ms: int) -> datetime:
    """The moment so many milliseconds after 1970. Raises DataError outside of years 1 to 9999."""
    try:
        return EPOCH + timedelta(0, 0, 0, ms)  # by its name it takes twice as long
    except OverflowError:
        raise DataError(f"{ms} ms after 1970 is outside of the years 1 to 9999") from None

"""Numbers as Java reads, converts and prints them; ksqlDB's formats and coercions rest on it."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal, InvalidOperation

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
JAVA_SPACE = "".join(map(chr, range(33)))
"""The characters that Java's String.trim removes from both ends: all up to the space."""

_WHOLE = re.compile(r"[+-]?\d+\Z")
_DOUBLE = re.compile(r"([+-]?)(?:(NaN|Infinity)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)\Z")
_HEX_DOUBLE = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?\Z"
)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")
_EXPONENT_MAX = 2**31 - 1
_BITS_OF_LONG = 64
_FLOAT = struct.Struct(">f")
_FLOAT_MAX = 3.4028234663852886e38


def parse_whole(text: str, low: int, high: int) -> int:
    """`Integer.parseInt` and `Long.parseLong`: digits with a sign, in range. Raises ValueError."""
    if not _WHOLE.match(text):
        raise ValueError("not a whole number")
    number = int(text)
    if not low <= number <= high:
        raise ValueError("out of range")
    return number


def parse_double(text: str) -> float:
    """`Double.parseDouble`: also NaN, Infinity, hexadecimal, a suffix d or f. Raises ValueError."""
    stripped = text.strip(JAVA_SPACE)
    match = _DOUBLE.match(stripped)
    if match:
        sign, name, digits = match.groups()
        return float(sign + (name or digits))
    match = _HEX_DOUBLE.match(stripped)
    if match:
        try:
            return float.fromhex(match.group(1))
        except OverflowError:
            return float("-inf" if stripped.startswith("-") else "inf")
    raise ValueError("not a number")


def parse_decimal(text: str) -> Decimal:
    """`new BigDecimal(text)`: no spaces, no NaN. Raises ValueError."""
    if not _DECIMAL.match(text):
        raise ValueError("not a decimal number")
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError("the exponent is out of range") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _EXPONENT_MAX:
        raise ValueError("the exponent is out of range")
    return number


def low_bits(number: float | Decimal, bits: int) -> int:
    """The number without its fraction, in `bits` bits with sign: Java's conversion of big numbers.

    A huge exponent costs nothing: 10^e for e >= 64 has no bits in the lower 64.
    """
    if isinstance(number, Decimal):
        exponent = number.as_tuple().exponent
        if not isinstance(exponent, int) or exponent >= _BITS_OF_LONG or number.adjusted() < 0:
            return 0
    whole = int(number) & ((1 << bits) - 1)
    return whole - (1 << bits) if whole >> (bits - 1) else whole


def short_float(number: float) -> float:
    """`(float) number`: the nearest number of 32 bits, or infinity beyond them."""
    try:
        short: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    return short


def fit_decimal(number: Decimal, precision: int, scale: int) -> Decimal:
    """The number with `scale` digits after the point, unless that loses digits.

    Raises ValueError for a number that is too large or has more digits after the point.
    """
    digits = precision - scale
    if number and number.adjusted() >= digits:
        raise ValueError(
            f"Numeric field overflow: A field with precision {precision} and scale {scale} "
            f"must round to an absolute value less than 10^{digits}. Got {plain_text(number)}"
        )
    sign, figures, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError("not a number")
    if exponent == -scale:
        return number if number or not sign else number.copy_abs()
    missing = scale + exponent
    if missing >= 0:
        kept = figures + (0,) * missing if number else (0,)
        return Decimal((sign if number else 0, kept, -scale))
    if any(figures[missing:]):
        raise ValueError(
            f"Cannot fit decimal '{plain_text(number)}' into DECIMAL({precision}, {scale}) "
            f"without rounding. (Requires {max(len(figures), 1)},{-exponent})"
        )
    kept = figures[:missing] or (0,)
    return Decimal((sign if number else 0, kept, -scale))


def unscaled(number: Decimal) -> int:
    """All digits of a number without the point, as BigDecimal's unscaled value."""
    return int(format(number, "f").replace(".", ""))


def scaled(digits: int, scale: int) -> Decimal:
    """The number with these digits, `scale` of them after the point."""
    return Decimal(f"{digits}E{-scale}")


def to_byte_array(number: int) -> bytes:
    """`BigInteger.toByteArray`: as few bytes as hold the sign too."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def plain_text(number: Decimal) -> str:
    """`BigDecimal.toPlainString`; for absurd exponents the short form, so that it stays bounded."""
    return format(number, "f") if abs(number.adjusted()) < 10_000 else str(number)


def double_text(number: float) -> str:
    """`Double.toString`, in the fewest digits that read back the same; of two, as there are always,
    in the nearest: the smallest double is 4.9E-324, not 5.0E-324."""
    text = repr(number)
    if 1e-3 <= number < 1e7 or -1e7 < number <= -1e-3:
        return text
    if number == 0.0:
        return text
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    two_digits = f"{number:.1e}"
    sign, digits, exponent = Decimal(two_digits if float(two_digits) == number else text).as_tuple()
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{power}"


def float_text(number: float) -> str:
    """`Float.toString` of a number of 32 bits: the shortest digits that read back as its bits."""
    if number != number or number in (0.0, float("inf"), float("-inf")):
        return double_text(number)
    wanted = _FLOAT.pack(number)
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        # A rounded text can be beyond what 32 bits hold.
        if abs(float(text)) <= _FLOAT_MAX and _FLOAT.pack(float(text)) == wanted:
            return double_text(float(text))
    return double_text(number)


_INTEGER_HALF, _BIGINT_HALF = 1 << 31, 1 << 63


def wrap_integer(value: int) -> int:
    """Return the value's lowest 32 bits as an INTEGER: it wraps around as Java's does."""
    if -_INTEGER_HALF <= value < _INTEGER_HALF:
        return value
    return ((value + _INTEGER_HALF) & 0xFFFF_FFFF) - _INTEGER_HALF


def wrap_bigint(value: int) -> int:
    """Return the value's lowest 64 bits as a BIGINT."""
    if -_BIGINT_HALF <= value < _BIGINT_HALF:
        return value
    return ((value + _BIGINT_HALF) & 0xFFFF_FFFF_FFFF_FFFF) - _BIGINT_HALF

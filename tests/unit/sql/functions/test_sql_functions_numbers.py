"""Functions of numbers: cases of ksqlDB's own tests, and edges."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql import types
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.functions import math as sql_math
from support.sql_calls import call, result_type

NAN = math.nan
INF = math.inf
INTEGER_MIN, BIGINT_MIN = -(2**31), -(2**63)
BIG = Decimal("12345678987654321.2345678987654321")

EXACT: list[tuple[str, tuple[Any, ...], Any]] = [
    ("EXP", (-1,), 0.36787944117144233),
    ("EXP", (-3.0,), 0.049787068367863944),
    ("EXP", (0,), 1.0),
    ("EXP", (1,), 2.718281828459045),
    ("EXP", (1000,), INF),
    ("EXP", (-1000,), 0.0),
    ("LN", (-1,), NAN),
    ("LN", (0.0,), -INF),
    ("LN", (2,), 0.6931471805599453),
    ("LN", (3.0,), 1.0986122886681098),
    ("LN", (INF,), INF),
    ("LN", (NAN,), NAN),
    ("LOG", (13,), 2.5649493574615367),
    ("LOG", (0,), -INF),
    ("LOG", (-13,), NAN),
    ("LOG", (15, 13), 0.9471572411831843),
    ("LOG", (15, 1), 0.0),
    ("LOG", (15.0, 0.0), -INF),
    ("LOG", (15, -13), NAN),
    ("LOG", (-15, 13), NAN),
    ("LOG", (0, 13), NAN),
    ("LOG", (1, 13), NAN),
    ("LOG", (None, 13), None),
    ("LOG", (13, None), None),
    ("SQRT", (-1,), NAN),
    ("SQRT", (2,), 1.4142135623730951),
    ("SQRT", (3.0,), 1.7320508075688772),
    ("CBRT", (-8,), -2.0),
    ("CBRT", (-1.0,), -1.0),
    ("CBRT", (0,), 0.0),
    ("ACOS", (2,), NAN),
    ("ACOS", (-1.1,), NAN),
    ("ASIN", (6,), NAN),
    ("SIN", (INF,), NAN),
    ("COS", (INF,), NAN),
    ("TAN", (INF,), NAN),
    ("COT", (0,), INF),
    ("COT", (-0.0,), -INF),
    ("COT", (INF,), NAN),
    ("COSH", (1000,), INF),
    ("SINH", (1000,), INF),
    ("SINH", (-1000,), -INF),
    ("TANH", (1000,), 1.0),
    ("ATAN2", (0, 0), 0.0),
    ("ATAN2", (None, 1), None),
    ("ATAN2", (0.45, None), None),
    ("POWER", (15, -1), 0.06666666666666667),
    ("POWER", (15, 0), 1.0),
    ("POWER", (0.0, 0.0), 1.0),
    ("POWER", (NAN, 0), 1.0),
    ("POWER", (15, 13), 1946195068359375.0),
    ("POWER", (-15, 2), 225.0),
    ("POWER", (0, 2), 0.0),
    ("POWER", (0, -1), INF),
    ("POWER", (-0.0, -1), -INF),
    ("POWER", (-0.0, -2), INF),
    ("POWER", (10, 400), INF),
    ("POWER", (-10, 401), -INF),
    ("POWER", (-10, 400), INF),
    ("POWER", (-8, 0.5), NAN),
    ("POWER", (1, INF), NAN),
    ("POWER", (1, NAN), NAN),
    ("POWER", (-1, -INF), NAN),
    ("POWER", (2, INF), INF),
    ("POWER", (None, 13), None),
    ("PI", (), 3.141592653589793),
    ("SIGN", (-2,), -1),
    ("SIGN", (0.0,), 0),
    ("SIGN", (3.0,), 1),
    ("SIGN", (NAN,), 0),
    ("ABS", (-1,), 1),
    ("ABS", (INTEGER_MIN,), INTEGER_MIN),
    ("ABS", (BIGINT_MIN,), BIGINT_MIN),
    ("ABS", (-3.1,), 3.1),
    ("ABS", (Decimal("-3.2"),), Decimal("3.2")),
    ("FLOOR", (1,), 1),
    ("FLOOR", (-1.1,), -2.0),
    ("FLOOR", (1.7,), 1.0),
    ("FLOOR", (1e300,), 1e300),
    ("FLOOR", (INF,), INF),
    ("FLOOR", (Decimal("-1.5"),), Decimal("-2.0")),
    ("FLOOR", (Decimal("1.7"),), Decimal("1.0")),
    ("CEIL", (-1.7,), -1.0),
    ("CEIL", (-0.5,), -0.0),
    ("CEIL", (1.1,), 2.0),
    ("CEIL", (Decimal("1.1"),), Decimal("2.0")),
    ("CEIL", (Decimal("-0.5"),), Decimal("0.0")),
    ("ROUND", (1.7,), 2),
    ("ROUND", (1.5,), 2),
    ("ROUND", (-1.5,), -1),
    ("ROUND", (-1.7,), -2),
    ("ROUND", (0.49999999999999994,), 0),
    ("ROUND", (4503599627370497.0,), 4503599627370497),
    ("ROUND", (NAN,), 0),
    ("ROUND", (1e30,), 2**63 - 1),
    ("ROUND", (-INF,), BIGINT_MIN),
    ("ROUND", (3,), 3),
    ("ROUND", (1.234567, 2), 1.23),
    ("ROUND", (1.234567, 10), 1.234567),
    ("ROUND", (-1.5, 0), -1.0),
    ("ROUND", (-1.1, -1), 0.0),
    ("ROUND", (12345.678, -1), 12350.0),
    ("ROUND", (-12345.678, -2), -12300.0),
    ("ROUND", (-12345.678, 1), -12345.7),
    ("ROUND", (1.5, None), None),
    ("ROUND", (BIG,), Decimal(12345678987654321)),
    ("ROUND", (BIG, 0), Decimal("12345678987654321.0000000000000000")),
    ("ROUND", (BIG, 10), Decimal("12345678987654321.2345678988000000")),
    ("ROUND", (BIG, -2), Decimal("12345678987654300.0000000000000000")),
    ("ROUND", (Decimal("-0.4"),), Decimal(0)),
    ("ROUND", (Decimal("-1.5"),), Decimal(-1)),
    ("TRUNC", (1.7,), 1),
    ("TRUNC", (-1.7,), -1),
    ("TRUNC", (NAN,), 0),
    ("TRUNC", (1e30,), 2**63 - 1),
    ("TRUNC", (2147483648,), 2147483648),
    ("TRUNC", (12345.678, 1), 12345.6),
    ("TRUNC", (-12345.678, -2), -12300.0),
    ("TRUNC", (-1.7, -1), 0.0),
    ("TRUNC", (Decimal("-12345.6780000"), 2), Decimal("-12345.6700000")),
    ("TRUNC", (Decimal("12345.6780000"), 10), Decimal("12345.6780000")),
    ("TRUNC", (Decimal("1.7"),), Decimal(1)),
    ("GREATEST", (2147483647, INTEGER_MIN, None, None, 5), 2147483647),
    ("GREATEST", (50000.555, -99999.555, None), 50000.555),
    ("GREATEST", (1.0, NAN, INF), NAN),
    ("GREATEST", (-0.0, 0.0), 0.0),
    ("GREATEST", ("apple", "banana", "aardvark", None, "hello"), "hello"),
    ("GREATEST", ("\uffff", "\U00010000"), "\uffff"),
    ("GREATEST", (b"apple", b"zebra", None), b"zebra"),
    ("GREATEST", (b"\x80", b"\x7f"), b"\x7f"),
    ("GREATEST", (Decimal("1234567.89"), Decimal("0.123456")), Decimal("1234567.890000")),
    ("GREATEST", (Decimal("123456.789"), None), Decimal("123456.789")),
    ("GREATEST", (-1, 1000000000000, Decimal("99999.9"), None, 1.0), 1000000000000.0),
    ("LEAST", (2147483647, INTEGER_MIN, None, 5), INTEGER_MIN),
    ("LEAST", (0.0, -0.0), -0.0),
    ("LEAST", ("!", "Zebra", "aardvark", None), "!"),
    ("LEAST", (b"\x80", b"\x7f"), b"\x80"),
    ("LEAST", (Decimal("1234567.89"), Decimal("0.123456")), Decimal("0.123456")),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), EXACT)
def test_value(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    # repr tells -0.0 from 0.0, 1 from 1.0, and knows NaN
    assert repr(call(name, *arguments)) == repr(expected)


NEAR: list[tuple[str, tuple[Any, ...], float]] = [
    ("ACOS", (-1,), 3.1415926535898),
    ("ACOS", (0.43,), 1.1263035498591),
    ("ASIN", (-0.43,), -0.4444927769358),
    ("ATAN", (6,), 1.4056476493803),
    ("ATAN2", (-2, -3), -2.5535900500422),
    ("ATAN2", (1.1, -0.24), 1.7856117271966),
    ("ATAN2", (0, -3), 3.1415926535898),
    ("COS", (-9.1,), -0.9477216021311),
    ("SIN", (7,), 0.6569865987188),
    ("TAN", (-9.1,), 0.3367005264329),
    ("COT", (0.43,), 2.1804495406685),
    ("COSH", (9.1,), 4477.646407574158),
    ("SINH", (-6,), -201.7131573702792),
    ("TANH", (0.43,), 0.4053213086895),
    ("DEGREES", (-1.2345,), -70.7316398089),
    ("RADIANS", (114,), 1.9896753472735),
    ("CBRT", (3,), 1.4422495703074083),
    ("GEO_DISTANCE", (37.4439, -122.1663, 51.5257, -0.1122), 8634.659796579544),
    ("GEO_DISTANCE", (37.4439, -122.1663, 51.5257, -0.1122, " km "), 8634.659796579544),
    ("GEO_DISTANCE", (37.4439, -122.1663, 51.5257, -0.1122, "MI"), 5365.659729188262),
    ("GEO_DISTANCE", (37.4439, -122.1663, 51.5257, -0.1122, None), 8634.659796579544),
    ("GEO_DISTANCE", (51.5257, -0.1122, -33.9323, 18.4197), 9673.40421197142),
    ("GEO_DISTANCE", (39.18660374, -76.73262144, 39.18660374, -76.73222145), 0.03447366811448324),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), NEAR)
def test_value_but_for_the_last_digits(
    name: str, arguments: tuple[Any, ...], expected: float
) -> None:
    assert call(name, *arguments) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ROUND", (NAN, 1), "cannot be rounded"),
        ("GEO_DISTANCE", (91.0, 0.0, 0.0, 0.0), "range of -90 to 90"),
        ("GEO_DISTANCE", (0.0, 0.0, 0.0, -181.0), "range of -180 to [+]180"),
        ("GEO_DISTANCE", (0.0, 0.0, 0.0, 0.0, "furlongs"), "units parameter must be one of mi,"),
        ("GEO_DISTANCE", (None, 0.0, 0.0, 0.0), "not NULL"),
    ],
)
def test_no_value(name: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        call(name, *arguments)


@pytest.mark.parametrize("name", ["EXP", "LN", "ACOS", "COT", "SIGN", "CEIL", "ROUND", "TRUNC"])
def test_null(name: str) -> None:
    assert call(name, None, types=[types.DOUBLE]) is None


def test_round_of_null_that_is_whole_fails() -> None:
    with pytest.raises(EvaluationError):
        call("ROUND", None, types=[types.INTEGER])
    assert call("TRUNC", None, types=[types.INTEGER]) is None


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("ABS", [types.Decimal(2, 1)], "DECIMAL(2, 1)"),
        ("FLOOR", [types.Decimal(2, 1)], "DECIMAL(2, 1)"),
        ("ROUND", [types.Decimal(33, 16)], "DECIMAL(17, 0)"),
        ("ROUND", [types.Decimal(33, 16), types.INTEGER], "DECIMAL(33, 16)"),
        ("TRUNC", [types.Decimal(12, 7)], "DECIMAL(5, 0)"),
        ("GREATEST", [types.Decimal(9, 2), types.Decimal(7, 6)], "DECIMAL(13, 6)"),
        ("LEAST", [types.Decimal(9, 2), types.Decimal(1, 0)], "DECIMAL(9, 2)"),
    ],
)
def test_type(name: str, arguments: list[types.SqlType], expected: str) -> None:
    assert str(result_type(name, *arguments)) == expected


def test_decimal_without_whole_digits_is_not_rounded() -> None:
    with pytest.raises(AnalysisError):
        result_type("ROUND", types.Decimal(2, 2))


def test_dates_are_compared() -> None:
    assert call("GREATEST", 19071, 18824, None, types=[types.DATE] * 3) == 19071
    assert call("LEAST", 5, -3, types=[types.TIMESTAMP] * 2) == -3


def test_random(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 <= call("RANDOM") < 1
    monkeypatch.setattr(sql_math, "make_random", lambda: 0.25)
    assert call("RANDOM") == 0.25

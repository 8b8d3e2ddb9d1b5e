"""Casts between types: values as Java has them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.syntax.expressions import Cast
from barnabas.sql.syntax.parser import parse_expression
from barnabas.sql.types import SqlType

FAILS = object()


def sql_type(text: str) -> SqlType:
    node = parse_expression(f"CAST(NULL AS {text})")
    assert isinstance(node, Cast)
    return node.type


CASES: list[tuple[str, str, Any, Any]] = [
    ("BOOLEAN", "STRING", True, "true"),
    ("INT", "BIGINT", 5, 5),
    ("INT", "DOUBLE", 5, 5.0),
    ("INT", "STRING", -5, "-5"),
    ("INT", "DECIMAL(2, 1)", 1, Decimal("1.0")),
    ("INT", "DECIMAL(2, 1)", 10, FAILS),
    ("INT", "DECIMAL(2, 1)", -10, FAILS),
    ("BIGINT", "INT", 2147483648, -2147483648),
    ("BIGINT", "STRING", 2147483648, "2147483648"),
    ("DOUBLE", "INT", 1.9, 1),
    ("DOUBLE", "INT", -1.9, -1),
    ("DOUBLE", "INT", 1e12, 2147483647),
    ("DOUBLE", "INT", math.nan, 0),
    ("DOUBLE", "BIGINT", -1e30, -(2**63)),
    ("DOUBLE", "STRING", 1.0, "1.0"),
    ("DOUBLE", "STRING", 1e7, "1.0E7"),
    ("DOUBLE", "STRING", 9999999.0, "9999999.0"),
    ("DOUBLE", "STRING", 0.001, "0.001"),
    ("DOUBLE", "STRING", 0.00012, "1.2E-4"),
    ("DOUBLE", "STRING", -123456789.125, "-1.23456789125E8"),
    ("DOUBLE", "STRING", 5e-324, "4.9E-324"),
    ("DOUBLE", "STRING", -0.0, "-0.0"),
    ("DOUBLE", "STRING", math.inf, "Infinity"),
    ("DOUBLE", "DECIMAL(2, 1)", 0.99, Decimal("1.0")),
    ("DOUBLE", "DECIMAL(2, 1)", 0.01, Decimal("0.0")),
    ("DOUBLE", "DECIMAL(2, 1)", math.nan, FAILS),
    ("DECIMAL(4, 2)", "INT", Decimal("10.99"), 10),
    ("DECIMAL(12, 0)", "INT", Decimal(4294967297), 1),
    ("DECIMAL(4, 2)", "DOUBLE", Decimal("0.01"), 0.01),
    ("DECIMAL(4, 2)", "STRING", Decimal("0.00"), "0.00"),
    ("DECIMAL(9, 8)", "STRING", Decimal("0.00000001"), "0.00000001"),
    ("DECIMAL(4, 2)", "DECIMAL(5, 3)", Decimal("10.12"), Decimal("10.120")),
    ("DECIMAL(4, 2)", "DECIMAL(3, 1)", Decimal("10.15"), Decimal("10.2")),
    ("DECIMAL(4, 2)", "DECIMAL(2, 1)", Decimal("10.00"), FAILS),
    ("STRING", "BOOLEAN", " YES ", True),
    ("STRING", "BOOLEAN", "t", True),
    ("STRING", "BOOLEAN", "maybe", False),
    ("STRING", "INT", " +12 ", 12),
    ("STRING", "INT", "2147483648", FAILS),
    ("STRING", "INT", "1.0", FAILS),
    ("STRING", "INT", "1_000", FAILS),
    ("STRING", "BIGINT", "-9223372036854775808", -(2**63)),
    ("STRING", "DOUBLE", "1.5e3", 1500.0),
    ("STRING", "DOUBLE", "1d", 1.0),
    ("STRING", "DOUBLE", "NaN", FAILS),
    ("STRING", "DOUBLE", "Infinity", FAILS),
    ("STRING", "DOUBLE", "woof", FAILS),
    ("STRING", "DECIMAL(2, 1)", "0.99", Decimal("1.0")),
    ("STRING", "DECIMAL(2, 1)", "1e1", FAILS),
    ("STRING", "BYTES", "IQ==", b"!"),
    ("STRING", "BYTES", "?", FAILS),
    ("STRING", "DATE", "2020-02", 18293),
    ("STRING", "DATE", "2021-02-30", FAILS),
    ("STRING", "DATE", "woof", FAILS),
    ("STRING", "TIME", "01:02", 3_720_000),
    ("STRING", "TIME", "01:02:03.1239", 3_723_123),
    ("STRING", "TIME", "24:00", FAILS),
    ("STRING", "TIMESTAMP", "1970", 0),
    ("STRING", "TIMESTAMP", "1970-01-02", 86_400_000),
    ("STRING", "TIMESTAMP", "1970-01-01T01", 3_600_000),
    ("STRING", "TIMESTAMP", "2022-04-28T21:44:47.943", 1651182287943),
    ("STRING", "TIMESTAMP", "2022-04-28T21:44:47.943Z", 1651182287943),
    ("STRING", "TIMESTAMP", "1970-01-01T02:00:00.000+0200", 0),
    ("STRING", "TIMESTAMP", "1970-01-01T00:00-01:00", 3_600_000),
    ("STRING", "TIMESTAMP", "woof", FAILS),
    ("TIMESTAMP", "STRING", 1651182287943, "2022-04-28T21:44:47.943"),
    ("TIMESTAMP", "STRING", -1, "1969-12-31T23:59:59.999"),
    ("TIMESTAMP", "DATE", 864_033_000, 10),
    ("TIMESTAMP", "TIME", 864_033_000, 33_000),
    ("DATE", "TIMESTAMP", 10, 864_000_000),
    ("DATE", "STRING", 18293, "2020-02-01"),
    ("DATE", "STRING", 2932897, "+10000-01-01"),
    ("TIME", "STRING", 3_720_000, "01:02"),
    ("TIME", "STRING", 3_723_999, "01:02:03"),
    ("ARRAY<BIGINT>", "ARRAY<INT>", [1, None, 2147483648], [1, None, -2147483648]),
    ("ARRAY<ARRAY<INT>>", "ARRAY<ARRAY<STRING>>", [[1], None], [["1"], None]),
    ("ARRAY<STRING>", "STRING", ["a", None, "b"], "[a, null, b]"),
    ("MAP<STRING, BIGINT>", "MAP<STRING, INT>", {"a": 1}, {"a": 1}),
    ("MAP<STRING, DOUBLE>", "STRING", {"this": 1.0, "x": None}, "{this=1.0, x=null}"),
    ("STRUCT<a INT, b INT>", "STRUCT<a STRING, c INT>", {"A": 1, "B": 2}, {"A": "1", "C": None}),
    ("STRUCT<a INT, `b` INT, c INT>", "STRING", {"A": 1, "b": 3, "C": None}, "Struct{A=1,b=3}"),
    ("ARRAY<TIMESTAMP>", "STRING", [0, 1500], "[1970-01-01 00:00:00.0, 1970-01-01 00:00:01.5]"),
    ("ARRAY<TIME>", "STRING", [3_720_000], "[01:02:00]"),
    ("ARRAY<DATE>", "STRING", [0], "[1970-01-01]"),
    ("ARRAY<DECIMAL(9, 8)>", "STRING", [Decimal("0.00000001")], "[1E-8]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    CASES,
    ids=[f"{value!r} {source} to {target}" for source, target, value, _ in CASES],
)
def test_casts(source: str, target: str, value: Any, expected: Any) -> None:
    cast = cast_maker(sql_type(source), sql_type(target))
    assert cast is not None
    assert cast(None) is None
    if expected is FAILS:
        with pytest.raises(EvaluationError):
            cast(value)
    else:
        assert repr(cast(value)) == repr(expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("BOOLEAN", "INT"),
        ("INT", "BOOLEAN"),
        ("BYTES", "STRING"),
        ("BIGINT", "TIMESTAMP"),
        ("TIME", "TIMESTAMP"),
        ("STRING", "ARRAY<INTEGER>"),
        ("ARRAY<BOOLEAN>", "ARRAY<INTEGER>"),
        ("MAP<STRING, BOOLEAN>", "MAP<STRING, INTEGER>"),
        ("STRUCT<A BOOLEAN>", "STRUCT<A INTEGER>"),
    ],
)
def test_refuses_casts(source: str, target: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        cast_maker(sql_type(source), sql_type(target))
    assert str(caught.value) == f"Cast of {sql_type(source)} to {sql_type(target)} is not supported"


def test_the_same_type_needs_no_cast() -> None:
    assert cast_maker(sql_type("INT"), sql_type("INTEGER")) is None
    assert cast_maker(None, sql_type("INTEGER")) is None

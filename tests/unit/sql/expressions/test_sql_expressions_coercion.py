"""Common types of expressions, and what literals become among others."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql.errors import AnalysisError
from barnabas.sql.expressions.compile import compile_expression
from barnabas.sql.schema import Column
from barnabas.sql.syntax.parser import parse_expression
from barnabas.sql.types import BIGINT, BOOLEAN, DATE, INTEGER, STRING
from barnabas.sql.types import Decimal as DecimalType

COLUMNS = [
    Column("I", INTEGER),
    Column("L", BIGINT),
    Column("S", STRING),
    Column("B", BOOLEAN),
    Column("D", DATE),
    Column("E", DecimalType(4, 2)),
]
ROW = [1, 2, "3", True, 4, Decimal("5.00")]


@pytest.mark.parametrize(
    ("text", "sql_type", "value"),
    [
        ("ARRAY[I, L]", "ARRAY<BIGINT>", [1, 2]),
        ("ARRAY[I, E]", "ARRAY<DECIMAL(12, 2)>", [Decimal("1.00"), Decimal("5.00")]),
        ("ARRAY[I, 1e1]", "ARRAY<DOUBLE>", [1.0, 10.0]),
        ("ARRAY[I, '2']", "ARRAY<INTEGER>", [1, 2]),
        ("ARRAY[I, ' 3000000000 ']", "ARRAY<BIGINT>", [1, 3_000_000_000]),
        ("ARRAY[I, '1e1']", "ARRAY<DECIMAL(10, 0)>", [Decimal(1), Decimal(10)]),
        ("ARRAY[E, '1.125']", "ARRAY<DECIMAL(5, 3)>", [Decimal("5.000"), Decimal("1.125")]),
        ("ARRAY[1e0, '2']", "ARRAY<DOUBLE>", [1.0, 2.0]),
        ("ARRAY[S, 1.50, 1e1, true, 7]", "ARRAY<STRING>", ["3", "1.50", "10.0", "true", "7"]),
        ("ARRAY[B, 'no', 'T']", "ARRAY<BOOLEAN>", [True, False, True]),
        ("ARRAY[D, '1970-01-02']", "ARRAY<DATE>", [4, 1]),
        ("ARRAY[NULL, I]", "ARRAY<INTEGER>", [None, 1]),
        ("ARRAY[ARRAY[L], ARRAY['2']]", "ARRAY<ARRAY<BIGINT>>", [[2], [2]]),
        ("MAP(S := I, 1 := '4')", "MAP<STRING, INTEGER>", {"3": 1, "1": 4}),
        ("ARRAY[MAP(S := I), MAP('d' := L)]", "ARRAY<MAP<STRING, BIGINT>>", [{"3": 1}, {"d": 2}]),
        (
            "ARRAY[STRUCT(X := I), STRUCT(Y := S)]",
            "ARRAY<STRUCT<`Y` STRING, `X` INTEGER>>",
            [{"Y": None, "X": 1}, {"Y": "3", "X": None}],
        ),
    ],
)
def test_finds_a_common_type(text: str, sql_type: str, value: Any) -> None:
    compiled = compile_expression(parse_expression(text), COLUMNS, {})
    assert str(compiled.type) == sql_type
    assert repr(compiled.evaluate(ROW)) == repr(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ARRAY[I, S]", "operator does not exist: INTEGER = STRING (S)"),
        ("ARRAY[S, I]", "operator does not exist: STRING = INTEGER (I)"),
        ("ARRAY[I, true]", "operator does not exist: INTEGER = BOOLEAN (true)"),
        ("ARRAY[B, 'x']", 'invalid input syntax for type BOOLEAN: "x".'),
        ("ARRAY[E, 'x']", 'invalid input syntax for type DECIMAL: "x".'),
        ("ARRAY[D, 'x']", "'x' cannot stand for a DATE"),
        ("MAP(S := 1, 'k' := B)", "operator does not exist: INTEGER = BOOLEAN (B)"),
    ],
)
def test_finds_none(text: str, message: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        compile_expression(parse_expression(text), COLUMNS, {})
    assert message in str(caught.value)

"""Expressions in SQL, from their text to their values."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql.errors import FAILURES, AnalysisError
from barnabas.sql.expressions.compile import Compiled, compile_expression
from barnabas.sql.functions.catalog import Function, ScalarOverload
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import Expression, Sign
from barnabas.sql.syntax.parser import parse_expression
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Field,
    Map,
    Struct,
)
from barnabas.sql.types import Decimal as DecimalType

FAILS = object()

POINT = Struct((Field("X", INTEGER), Field("y", DOUBLE)))

VALUES: dict[str, tuple[Any, Any]] = {
    "I": (INTEGER, 7),
    "L": (BIGINT, 5_000_000_000),
    "D": (DOUBLE, 2.5),
    "E": (DecimalType(4, 2), Decimal("12.50")),
    "S": (STRING, "abc"),
    "B": (BOOLEAN, True),
    "Y": (BYTES, b"\x80"),
    "DAY": (DATE, 1),
    "T": (TIME, 3_600_000),
    "TS": (TIMESTAMP, 86_400_000),
    "A": (Array(INTEGER), [1, 2, 3]),
    "M": (Map(STRING, INTEGER), {"k": 1}),
    "P": (POINT, {"X": 1, "y": None}),
    "N": (INTEGER, None),
    "NS": (STRING, None),
    "NB": (BOOLEAN, None),
    "NP": (POINT, None),
}

FUNCTIONS = {
    "F": Function(
        "F",
        scalars=[ScalarOverload("(a BIGINT) -> BIGINT", lambda a: a + 1, null_is_null=True)],
    ),
    "FIRST": Function(
        "FIRST",
        scalars=[ScalarOverload("(a T, b T...) -> T", lambda *a: next(filter(None, a), None))],
    ),
    "BROKEN": Function(
        "BROKEN", scalars=[ScalarOverload("(a INTEGER) -> INTEGER", lambda a: 1 // 0)]
    ),
    "HALF": Function("HALF", scalars=[ScalarOverload("(a DOUBLE) -> DOUBLE", lambda a: a / 2)]),
    "EXACT": Function("EXACT", scalars=[ScalarOverload("(a DECIMAL) -> STRING", str)]),
    "ON_DAY": Function("ON_DAY", scalars=[ScalarOverload("(a DATE) -> INTEGER", lambda a: a)]),
    "KIND": Function(
        "KIND",
        scalars=[
            ScalarOverload("(a ANY) -> STRING", lambda a, *, types: str(types[0]), takes_types=True)
        ],
    ),
    "TRANSFORM": Function(
        "TRANSFORM",
        scalars=[
            ScalarOverload(
                "(a ARRAY<T>, f LAMBDA(T) -> U) -> ARRAY<U>", lambda a, f: [f(i) for i in a]
            )
        ],
    ),
    "REDUCE": Function(
        "REDUCE",
        scalars=[
            ScalarOverload(
                "(a ARRAY<T>, s S, f LAMBDA(S, T) -> S) -> S",
                lambda a, s, f: s if not a else f(s, a[0]),
            )
        ],
    ),
}


def compiled(text: str) -> Compiled:
    columns = [Column(name, sql_type) for name, (sql_type, _) in VALUES.items()]
    return compile_expression(parse_expression(text), columns, FUNCTIONS)


def evaluate(text: str) -> Any:
    return compiled(text).evaluate([value for _, value in VALUES.values()])


CASES: list[tuple[str, Any]] = [
    # calculation
    ("I + 1", 8),
    ("2147483647 + I", -2147483642),
    ("L * 4000000000", 1553255926290448384),
    ("-7 / 2", -3),
    ("-7 % 3", -1),
    ("7 % -3", 1),
    ("I / 0", FAILS),
    ("I % 0", FAILS),
    ("I + N", FAILS),
    ("-N", FAILS),
    ("D / 0", math.inf),
    ("-D / 0", -math.inf),
    ("D + E", 15.0),
    ("D * L", 12_500_000_000.0),
    ("-5.5e0 % 2", -1.5),
    ("E + E", Decimal("25.00")),
    ("E * E", Decimal("156.2500")),
    ("E + I", Decimal("19.50")),
    ("E / 2", Decimal("6.2500000000000")),
    ("E / 3", FAILS),
    ("E / 0.0", FAILS),
    ("E % 5", Decimal("2.50")),
    ("-E", Decimal("-12.50")),
    ("S + 'd'", "abcd"),
    ("S + NS", "abcnull"),
    # comparison
    ("I = 7", True),
    ("I <> 7", False),
    ("I < L", True),
    ("D >= 2.5", True),
    ("E = 12.5e0", True),
    ("N = N", False),
    ("N <> 1", False),
    ("N IS DISTINCT FROM 1", True),
    ("N IS DISTINCT FROM N", False),
    ("I IS NOT DISTINCT FROM 7", True),
    ("N IS NOT DISTINCT FROM N", True),
    ("N IS NULL", True),
    ("N IS NOT NULL", False),
    ("S < 'abd'", True),
    ("S = 'abc'", True),
    ("DAY = '1970-01-02'", True),
    ("DAY < TS", False),
    ("TS = '1970-01-02'", True),
    ("TS = DAY", True),
    ("T < '01:00:01'", True),
    ("T = 'no time'", FAILS),
    ("A = ARRAY[1, 2, 3]", True),
    ("M <> MAP('k' := 1)", False),
    ("Y = Y", True),
    ("I BETWEEN 7 AND 8", True),
    ("N BETWEEN 7 AND 8", False),
    ("I NOT BETWEEN 1 AND 6", True),
    ("I IN (1, '7')", True),
    ("I IN (1, 7.0)", True),
    ("L IN (I, N)", False),
    ("N IN (1, N)", False),
    ("S IN ('x', NULL)", False),
    ("A IN (ARRAY['1', 2, 3])", True),
    ("A IN (NULL)", False),
    ("S LIKE 'a%'", True),
    ("S LIKE '_b_'", True),
    ("S LIKE 'a!%' ESCAPE '!'", False),
    ("S LIKE 'A%'", False),
    ("NS LIKE '%'", FAILS),
    # logic
    ("B AND I = 7", True),
    ("B OR NB", True),
    ("NOT B", False),
    ("NB OR B", FAILS),
    ("B AND NB", FAILS),
    ("NOT NB", FAILS),
    # CASE
    ("CASE WHEN I = 7 THEN 'x' WHEN I / 0 = 1 THEN 'y' END", "x"),
    ("CASE WHEN I = 8 THEN 'x' END", None),
    ("CASE WHEN I = 8 THEN 'x' ELSE 'z' END", "z"),
    ("CASE I WHEN 6 THEN 'x' WHEN 7 THEN 'y' END", "y"),
    ("CASE WHEN NB THEN 1 END", FAILS),
    # arrays, maps, structs
    ("A[1]", 1),
    ("A[-1]", 3),
    ("A[0]", None),
    ("A[4]", None),
    ("M['k']", 1),
    ("M['x']", None),
    ("P->X", 1),
    ("P->`y`", None),
    ("NP->X", None),
    ("ARRAY[1, 2.5]", [Decimal("1.0"), Decimal("2.5")]),
    ("ARRAY[1, I / 0, NULL]", [1, None, None]),
    ("ARRAY['a', 1]", ["a", "1"]),
    ("MAP('a' := I, 'b' := L)", {"a": 7, "b": 5_000_000_000}),
    ("STRUCT(A := I, `b` := I / 0)", {"A": 7, "b": None}),
    # functions
    ("f(I)", 8),
    ("f(N)", None),
    ("F(I) + 1", 9),
    ("FIRST(N, I)", 7),
    ("FIRST(BROKEN(1), I)", 7),
    ("BROKEN(1) + 1", FAILS),
    ("HALF(I)", 3.5),
    ("EXACT(I)", "7"),
    ("EXACT(E)", "12.50"),
    ("ON_DAY('1970-01-03')", 2),
    ("KIND(E)", "DECIMAL(4, 2)"),
    ("TRANSFORM(A, x => x * 2)", [2, 4, 6]),
    ("TRANSFORM(A, x => x + L)", [5_000_000_001, 5_000_000_002, 5_000_000_003]),
    ("TRANSFORM(ARRAY[A, A], r => TRANSFORM(r, x => x + r[1] + I))", [[9, 10, 11]] * 2),
    ("REDUCE(A, 'n', (s, x) => s + CAST(x AS STRING))", "n1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_evaluates(text: str, expected: Any) -> None:
    if expected is FAILS:
        with pytest.raises(FAILURES):
            evaluate(text)
    else:
        value = evaluate(text)
        assert value == expected
        assert repr(value) == repr(expected)


@pytest.mark.parametrize(
    ("text", "sql_type"),
    [
        ("I + L", "BIGINT"),
        ("I + D", "DOUBLE"),
        ("E + D", "DOUBLE"),
        ("E + E", "DECIMAL(5, 2)"),
        ("E - I", "DECIMAL(13, 2)"),
        ("E * E", "DECIMAL(9, 4)"),
        ("E / E", "DECIMAL(11, 7)"),
        ("E % I", "DECIMAL(4, 2)"),
        ("0.005", "DECIMAL(4, 3)"),
        ("10.10", "DECIMAL(4, 2)"),
        ("S + S", "STRING"),
        ("NULL", "None"),
        ("ARRAY[1, L, NULL]", "ARRAY<BIGINT>"),
        ("ARRAY[1, '3.14', 2]", "ARRAY<DECIMAL(12, 2)>"),
        ("ARRAY[STRUCT(a := 1), STRUCT(a := L, b := S)]", "ARRAY<STRUCT<`A` BIGINT, `B` STRING>>"),
        ("MAP('a' := 1, S := 2)", "MAP<STRING, INTEGER>"),
        ("CASE WHEN B THEN NULL ELSE 1 END", "INTEGER"),
        ("A[1]", "INTEGER"),
        ("P->`y`", "DOUBLE"),
        ("TRANSFORM(A, x => x + 1.5)", "ARRAY<DECIMAL(12, 1)>"),
        ("CAST(NULL AS ARRAY<INT>)", "ARRAY<INTEGER>"),
    ],
)
def test_infers_types(text: str, sql_type: str) -> None:
    assert str(compiled(text).type) == sql_type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UNKNOWN", "Unknown column UNKNOWN."),
        ("NO_SUCH(1)", "Can't find any functions with the name 'NO_SUCH'"),
        (
            "true + 1.5",
            "expression: (true + 1.5). Unsupported arithmetic types. BOOLEAN DECIMAL",
        ),
        ("1 + NULL", "Arithmetic on types INTEGER and null are not supported."),
        ("I >= 'x'", "Cannot compare I (INTEGER) to 'x' (STRING) with GREATER_THAN_OR_EQUAL."),
        ("A < A", "Cannot compare A (ARRAY<INTEGER>) to A (ARRAY<INTEGER>) with LESS_THAN."),
        ("I BETWEEN 'a' AND 'b'", "Cannot compare I (INTEGER) to 'a' (STRING)"),
        ("NULL <> NULL", "Comparison with NULL not supported: NULL <> NULL"),
        ("CASE WHEN I THEN 1 END", "WHEN operand type should be boolean.\nType for 'I' is INTEGER"),
        (
            "CASE WHEN B THEN 1 WHEN B THEN 'a' END",
            "Type for all 'THEN' clauses should be the same",
        ),
        ("CASE WHEN B THEN 1 ELSE 'a' END", "THEN type: INTEGER.\nDEFAULT type: STRING."),
        ("CASE WHEN B THEN NULL END", "Invalid Case expression. All case branches have NULL type"),
        ("S[1]", "do not apply to STRING."),
        ("P['X']", "Use the dereference operator for STRUCTS: P->"),
        ("P->Z", "Could not find field 'Z' in 'P'."),
        ("I->Z", "Expected STRUCT type, got: INTEGER"),
        ("ARRAY[]", "Array constructor cannot be empty."),
        ("ARRAY[NULL]", "Cannot construct an array with all NULL elements"),
        ("ARRAY[1, 'not a number']", 'invalid input syntax for type INTEGER: "not a number"'),
        ("MAP()", "Map constructor cannot be empty."),
        ("MAP('a' := NULL)", "Cannot construct a map with all NULL values"),
        ("STRUCT(a := 1, a := S)", "Duplicate field names found in STRUCT"),
        (
            "B IN (10)",
            "operator does not exist: BOOLEAN = INTEGER (10)\nHint: You might need to add explicit",
        ),
        ("L IN ('10 - not a number')", "invalid input syntax for type BIGINT"),
        ("A IN (ARRAY[B])", "operator does not exist: ARRAY<INTEGER> = ARRAY<BOOLEAN> (ARRAY[B])"),
        ("P IN (ARRAY[10])", "= ARRAY<INTEGER> (ARRAY[10])"),
        ("CAST(S AS ARRAY<INTEGER>)", "Cast of STRING to ARRAY<INTEGER> is not supported"),
        ("HALF(S)", "Function 'HALF' does not accept parameters (STRING)."),
        ("I LIKE 'x'", "LIKE compares texts, but I is INTEGER."),
        ("S LIKE 1", "LIKE compares texts, but 1 is INTEGER."),
        ("A[1.5]", "An index of an array is a whole number, but 1.5 is DECIMAL(2, 1)."),
        ("M[A]", "A map is looked up by a simple key, but A is ARRAY<INTEGER>."),
        ("MAP(A := 1)", "A key of a map is a simple value, but A is ARRAY<INTEGER>."),
        ("I AND B", "Should evaluate to boolean but is I (INTEGER) instead."),
        ("REDUCE(A, 0, (s, x) => NS)", "other arguments call for S"),
        ("TRANSFORM(A, (x, y) => x)", "does not accept parameters (ARRAY<INTEGER>, LAMBDA)."),
    ],
)
def test_refuses(text: str, message: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        compiled(text)
    assert message in str(caught.value)


def test_refuses_what_is_nested_too_deeply() -> None:
    expression: Expression = parse_expression("1")
    for _ in range(2_000):
        expression = Sign(True, expression)
    with pytest.raises(AnalysisError, match="nested too deeply"):
        compile_expression(expression, [], {})


def test_tells_of_parts_that_fail() -> None:
    failed: list[str] = []
    columns = [Column("I", INTEGER)]
    expression = parse_expression("ARRAY[CAST('x' AS INT), I]")
    evaluate = compile_expression(
        expression, columns, {}, lambda what, error: failed.append(what)
    ).evaluate
    assert evaluate([1]) == [None, 1]
    assert failed == ["INTEGER"]


def test_strings_order_by_utf16_and_bytes_as_signed() -> None:
    columns = [Column("A", STRING), Column("B", STRING), Column("C", BYTES), Column("D", BYTES)]
    row = ["\U00010000", "\uffff", b"\x80", b"\x00"]
    for text in ("A < B", "C < D"):
        assert compile_expression(parse_expression(text), columns, {}).evaluate(row) is True


def test_nan_is_neither_equal_nor_different() -> None:
    columns = [Column("D", DOUBLE)]
    for text in ("D = D", "D <> D", "D < 1e0"):
        compare = compile_expression(parse_expression(text), columns, {}).evaluate
        assert compare([math.nan]) is False

"""Scalar functions of users: declared, called, refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import FunctionType
from typing import Any

import pytest

from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.udf import DeclarationError, functions_of, udf
from support.sql_udf import Run, type_of, value_of


def taking(*signatures: str, **options: Any) -> Callable[[Any], dict[str, Any]]:
    """The functions that a Python function is as F."""
    return lambda function: functions_of(udf(*signatures, name="F", **options)(function))


def same(value: Any) -> Any:
    return value


GIVEN = [
    ("BOOLEAN", "true", True),
    ("INT", "7", 7),
    ("BIGINT", "7", 7),
    ("DOUBLE", "1.5E0", 1.5),
    ("DECIMAL(4, 2)", "1.50", Decimal("1.50")),
    ("STRING", "'é'", "é"),
    ("BYTES", "TO_BYTES('ff', 'hex')", b"\xff"),
    ("DATE", "FROM_DAYS(1)", date(1970, 1, 2)),
    ("TIME", "PARSE_TIME('01:02:03', 'HH:mm:ss')", time(1, 2, 3)),
    ("TIMESTAMP", "FROM_UNIXTIME(-1)", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    ("ARRAY<DATE>", "ARRAY[FROM_DAYS(0), NULL]", [date(1970, 1, 1), None]),
    ("MAP<STRING, DATE>", "MAP('a' := FROM_DAYS(0))", {"a": date(1970, 1, 1)}),
    ("STRUCT<a DATE, `b` INT>", "STRUCT(a := FROM_DAYS(0), `b` := 1)", None),
    ("T", "FROM_DAYS(1)", date(1970, 1, 2)),
    ("ARRAY<T>", "ARRAY[FROM_DAYS(1)]", [date(1970, 1, 2)]),
]


@pytest.mark.parametrize(("kind", "text", "expected"), GIVEN)
def test_values_are_those_of_python_and_come_back_as_they_were(
    kind: str, text: str, expected: Any
) -> None:
    seen = []

    def keep(value: Any) -> Any:
        seen.append(value)
        return value

    own = taking(f"(value {kind}) -> {kind}")(keep)
    assert value_of(f"F({text})", own) == value_of(text, {})
    expected = {"A": date(1970, 1, 1), "b": 1} if expected is None else expected
    assert seen == [expected]
    assert type(seen[0]) is type(expected)


TAKEN = [
    ("BIGINT", 2**63 - 1, 2**63 - 1),
    ("DOUBLE", 3, 3.0),
    ("DECIMAL(4, 2)", Decimal("1.005"), Decimal("1.01")),
    ("DECIMAL(4, 2)", 12, Decimal("12.00")),
    ("BYTES", bytearray(b"a"), b"a"),
    ("TIME", time(0, 0, 1, 999), 1000),
    ("TIMESTAMP", datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
    ("TIMESTAMP", datetime(1970, 1, 1, 0, 0, 1), 1000),  # noqa: DTZ001  of UTC, as it says nothing
    ("ARRAY<INT>", (1, None), [1, None]),
    ("STRUCT<low INT, high INT>", {"low": 1}, {"LOW": 1, "HIGH": None}),
]


@pytest.mark.parametrize(("kind", "given", "expected"), TAKEN)
def test_results_become_values_of_their_type(kind: str, given: Any, expected: Any) -> None:
    got = value_of("F()", taking(f"() -> {kind}")(lambda: given))
    assert got == expected
    assert type(got) is type(expected)
    if isinstance(got, Decimal):
        assert str(got) == str(expected)


REFUSED = [
    ("INT", 2**31),
    ("BIGINT", 2**63),
    ("BIGINT", True),
    ("BIGINT", 1.0),
    ("BOOLEAN", 1),
    ("DOUBLE", "1"),
    ("DOUBLE", True),
    ("DOUBLE", 10**400),
    ("DECIMAL(4, 2)", 1.5),
    ("DECIMAL(4, 2)", Decimal(100)),
    ("DECIMAL(4, 2)", Decimal("99.999")),
    ("DECIMAL(4, 2)", Decimal("NaN")),
    ("STRING", b"a"),
    ("BYTES", "a"),
    ("DATE", datetime(1970, 1, 1, tzinfo=UTC)),
    ("TIME", 1),
    ("TIMESTAMP", date(1970, 1, 1)),
    ("ARRAY<INT>", "12"),
    ("ARRAY<INT>", [1, "2"]),
    ("MAP<STRING, INT>", {1: 1}),
    ("STRUCT<low INT>", {"other": 1}),
    ("STRUCT<low INT>", [1]),
]


@pytest.mark.parametrize(("kind", "given"), REFUSED)
def test_results_of_another_type_are_errors_with_the_functions_name(kind: str, given: Any) -> None:
    with pytest.raises(EvaluationError, match=r"\AF: "):
        value_of("F()", taking(f"() -> {kind}")(lambda: given))


def test_a_function_may_change_what_it_is_given() -> None:
    own = taking("(items ARRAY<INT>) -> INT")(lambda items: items.clear() or 1)
    run = Run(
        "CREATE STREAM s (k STRING KEY, a ARRAY<INT>) WITH (kafka_topic='s', value_format='JSON');"
        "CREATE STREAM o AS SELECT k, F(a) AS f, a FROM s;",
        own,
    )
    assert run("s", [("k", {"a": [1, 2]}, 0)]) == [{"F": 1, "A": [1, 2]}]


def boom(value: Any) -> Any:
    raise KeyError("boom")


def stop(value: Any) -> Any:
    raise SystemExit(3)


def no_value(value: Any) -> Any:
    raise EvaluationError("no such value")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (boom, "F: KeyError: 'boom'"),
        (stop, "F: SystemExit: 3"),
        (no_value, "F: no such value"),
        (lambda value: 1 // 0, "F: ZeroDivisionError: integer division or modulo by zero"),
    ],
)
def test_whatever_a_function_raises_is_an_evaluation_error(function: Any, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        value_of("F(1)", taking("(value BIGINT) -> BIGINT")(function))
    assert str(caught.value) == message


def test_a_failing_function_makes_its_column_null_and_is_in_the_log() -> None:
    run = Run(
        "CREATE STREAM s (k STRING KEY, a INT) WITH (kafka_topic='s', value_format='JSON');"
        "CREATE STREAM o AS SELECT k, F(a) AS f, a FROM s;",
        taking("(a INT) -> INT")(boom),
    )
    assert run("s", [("k", {"a": 1}, 0)]) == [{"F": None, "A": 1}]
    assert "F: KeyError: 'boom'" in run.log[0]


def test_dates_beyond_those_of_python_are_errors() -> None:
    with pytest.raises(EvaluationError, match="F: "):
        value_of("F(FROM_DAYS(20000000))", taking("(value DATE) -> DATE")(same))


# --- NULL ----------------------------------------------------------------------------------------


def plain(a: int, b: str) -> str:
    return f"{a}{b}"


def optional(a: int | None, b: str) -> str | None:
    return f"{a}{b}"


def several(a: int, *rest: int | None) -> str:
    return f"{a}{rest}"


@pytest.mark.parametrize(
    ("function", "options", "call", "expected"),
    [
        (plain, {}, "F(1, 'x')", "1x"),
        (plain, {}, "F(NULL, 'x')", None),
        (plain, {}, "F(1, NULL)", None),
        (plain, {"nulls": True}, "F(NULL, 'x')", "Nonex"),
        (optional, {}, "F(NULL, 'x')", "Nonex"),
        (optional, {}, "F(1, NULL)", None),
        (optional, {"nulls": False}, "F(NULL, 'x')", None),
        (several, {}, "F(1)", "1()"),
        (several, {}, "F(1, 2, NULL)", "1(2, None)"),
        (several, {}, "F(NULL, 2)", None),
    ],
)
def test_null(function: Any, options: Any, call: str, expected: Any) -> None:
    # A function is declared once; this one is declared in several ways.
    own = FunctionType(function.__code__, function.__globals__)
    own.__annotations__ = function.__annotations__
    assert value_of(call, taking(**options)(own)) == expected


# --- signatures ----------------------------------------------------------------------------------


def test_a_function_is_still_one_of_python() -> None:
    @udf("(price DECIMAL, rate DOUBLE) -> DECIMAL(12, 2)", description="With tax.", author="Ann")
    def with_tax(price: Decimal, rate: float) -> Decimal:
        return price * (1 + Decimal(str(rate)))

    assert with_tax(Decimal(2), 0.5) == 3
    own = functions_of(with_tax)
    assert list(own) == ["WITH_TAX"]
    assert value_of("with_tax(9.99, 0.19E0)", own) == Decimal("11.89")
    assert type_of("with_tax(9.99, 0.19E0)", own) == "DECIMAL(12, 2)"


def defaults(a: int, b: float = 2.0, c: str = "c") -> str:
    """Shows them.

    At length.
    """
    return f"{a} {b} {c}"


def test_parameters_with_defaults_can_be_left_out() -> None:
    own = functions_of(udf(defaults))
    function = own["DEFAULTS"]
    assert function.description == "Shows them."
    assert [overload.signature for overload in function.scalars] == [
        "(a BIGINT) -> STRING",
        "(a BIGINT, b DOUBLE) -> STRING",
        "(a BIGINT, b DOUBLE, c STRING) -> STRING",
    ]
    assert value_of("DEFAULTS(1)", own) == "1 2.0 c"
    assert value_of("DEFAULTS(1, 3, 'd')", own) == "1 3.0 d"


def all_types(
    a: bool, b: bytes, c: date, d: time, e: datetime, f: list[int | None], *g: dict[str, float]
) -> list[dict[str, str]]:
    return []


def test_annotations_tell_types() -> None:
    (overload,) = taking()(all_types)["F"].scalars
    assert overload.signature == (
        "(a BOOLEAN, b BYTES, c DATE, d TIME, e TIMESTAMP, f ARRAY<BIGINT>, "
        "g MAP<STRING, DOUBLE>...) -> ARRAY<MAP<STRING, STRING>>"
    )


def test_overloads_and_type_variables() -> None:
    def twice(value: Any) -> Any:
        return value * 2

    own = taking("(value BIGINT) -> BIGINT", "(value VARCHAR) -> VARCHAR")(twice)
    assert (value_of("F(2)", own), value_of("F('a')", own)) == (4, "aa")
    own = taking("(values ARRAY<T>) -> T")(lambda values: values[-1])
    assert type_of("F(ARRAY['a'])", own) == "STRING"
    assert value_of("F(ARRAY[1, 2])", own) == 2
    own = taking("(value T) -> T")(lambda value: str(value))
    with pytest.raises(EvaluationError, match="which is not of type INTEGER"):
        value_of("F(1)", own)


def test_result_type_that_is_calculated() -> None:
    own = taking("(value DECIMAL) -> DECIMAL", returns=lambda types: types[0])(lambda v: -v)
    assert value_of("F(1.50)", own) == Decimal("-1.50")
    assert type_of("F(1.50)", own) == "DECIMAL(3, 2)"
    own = taking("(value ANY) -> ANY", returns=lambda types: "ARRAY<STRING>")(lambda v: [str(v)])
    assert value_of("F(ARRAY[1])", own) == ["[1]"]
    own = taking("(value ANY) -> ANY", returns=lambda types: types[7])(same)
    with pytest.raises(AnalysisError, match="F has no result"):
        value_of("F(1)", own)


def test_decimals_are_calculated_with_all_their_digits() -> None:
    own = taking("(a DECIMAL, b DECIMAL) -> DECIMAL(38, 0)")(lambda a, b: a + b)
    big = "99999999999999999999999999999999"
    assert value_of(f"F({big}., 1.)", own) == Decimal("1" + "0" * 32)


def test_functions_of_other_modules_can_be_declared() -> None:
    own = taking("(value DOUBLE) -> DOUBLE")(math.cbrt)
    assert value_of("F(27)", own) == pytest.approx(3)


class Other:
    pass


BAD: list[tuple[str, tuple[str, ...], dict[str, Any], Any, str]] = [
    ("no signature", ("BIGINT",), {}, same, "cannot be read"),
    ("no type", ("(value WORD) -> INT",), {}, same, "unknown type: WORD"),
    ("no result", ("(value INT)",), {}, same, "does not tell the result"),
    ("open result", ("(value INT) -> DECIMAL",), {}, same, "leaves the result open"),
    ("open item", ("(value INT) -> ARRAY<ANY>",), {}, same, "leaves the result open"),
    ("free variable", ("(value INT) -> T",), {}, same, "tells what T is"),
    ("precision", ("(value INT) -> DECIMAL(2, 3)",), {}, same, "precision"),
    ("lambda", ("(value LAMBDA(T) -> T) -> INT",), {}, same, "no lambdas"),
    ("constant", ("(value INT!) -> INT",), {}, same, "only aggregates"),
    ("too many", ("(a INT, b INT) -> INT",), {}, same, r"gives 2 arguments, which same\(value"),
    ("variadic", ("(a INT...) -> INT",), {}, same, "gives 0 arguments"),
    ("name", ("() -> INT",), {"name": "a b"}, dict, "not a name for a function"),
    ("lambda's name", ("() -> INT",), {"name": ""}, lambda: 1, "not a name for a function"),
    ("reserved", ("() -> INT",), {"name": "select"}, dict, "reserved word"),
    ("parameter", ("() -> INT",), {"parameters": {"a": ""}}, dict, "no parameter a"),
    ("no annotations", (), {}, same, "the result has the annotation Any"),
    ("array", ("() -> INT",), {"vectorized": True}, dict, "vectorized function has a parameter"),
]


@pytest.mark.parametrize(
    ("signatures", "options", "function", "message"),
    [case[1:] for case in BAD],
    ids=[case[0] for case in BAD],
)
def test_what_cannot_be_declared(
    signatures: tuple[str, ...], options: dict[str, Any], function: Any, message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        udf(*signatures, **{"name": "F", **options})(function)


def decimal(value: Decimal) -> int:
    return 0


def unknown(value: Other) -> int:
    return 0


def keys(value: dict[int, int]) -> int:
    return 0


def silent(value: int, other) -> int:  # type: ignore[no-untyped-def]  # what is refused
    return 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (decimal, "precision and scale need a signature"),
        (unknown, "annotation Other, which tells no SQL type"),
        (keys, "tells no SQL type"),
        (silent, "parameter other has no annotation"),
        (lambda: 1, "annotation of its result"),
    ],
)
def test_annotations_that_tell_no_type(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        udf(name="F")(function)

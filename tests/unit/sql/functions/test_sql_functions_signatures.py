"""Signatures of functions: their text, and which overload a call gets."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.patterns import Wildcard, substitute
from barnabas.sql.functions.signature_text import parse_signature
from barnabas.sql.functions.signatures import Argument, LambdaShape, bind, choose
from barnabas.sql.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)


@dataclass(frozen=True)
class Overload:
    signature: str


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("() -> BIGINT", ""),
        ("(input STRING) -> STRING", "VARCHAR input"),
        ("(n INTEGER, items STRING...) -> STRING", "INT n, VARCHAR... items"),
        ("(STRING, T...)", "VARCHAR, T..."),
        ("(value T, k INTEGER!) -> ARRAY<T>", "T value, INT k"),
        ("(unit INTERVAL, d DATE) -> DATE", "INTERVAL UNIT unit, DATE d"),
        (
            "(m MAP<K, ARRAY<V>>, f LAMBDA(K, V) -> U) -> U",
            "MAP<K, ARRAY<V>> m, LAMBDA (K, V) => U f",
        ),
        ("(s STRUCT, t STRUCT<a INTEGER>)", "STRUCT<> s, STRUCT<`a` INTEGER> t"),
        ("(d DECIMAL, e DECIMAL(4, 2))", "DECIMAL d, DECIMAL e"),
    ],
)
def test_shows_parameters(text: str, parameters: str) -> None:
    shown = ", ".join(map(str, parse_signature(text).parameters))
    assert shown == parameters.replace("`", "")


@pytest.mark.parametrize("text", ["", "(a", "(a FISH) -> STRING", "(a T..., b T...)", "() -> T x"])
def test_refuses_what_is_no_signature(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_signature(text)


def test_marks_variadic_and_constant_parameters() -> None:
    signature = parse_signature("(a T, b STRING..., c INTEGER!)")
    assert signature.variadic_index == 1
    assert [p.is_constant for p in signature.parameters] == [False, False, True]
    assert [p.name for p in signature.expanded(5) or ()] == ["a", "b", "b", "b", "c"]
    assert [p.name for p in signature.expanded(2) or ()] == ["a", "c"]
    assert signature.expanded(1) is None


CHOICES: list[tuple[str, list[str], list[Argument], int]] = [
    ("exact before cast", ["(a BIGINT)", "(a INTEGER)"], [INTEGER], 1),
    ("a cast to a wider number", ["(a BIGINT)"], [INTEGER], 0),
    ("a cast of a text to a date", ["(a DATE)"], [STRING], 0),
    ("fixed before variadic", ["(a STRING...)", "(a STRING, b STRING)"], [STRING, STRING], 1),
    ("more parameters", ["(a STRING...)", "(a STRING, b STRING...)"], [STRING], 1),
    ("fewer variables", ["(a T)", "(a STRING)"], [STRING], 1),
    ("variable instead of a cast", ["(a T)", "(a BIGINT)"], [INTEGER], 0),
    ("without ANY...", ["(a ANY...)", "(a T...)"], [STRING], 1),
    ("later variadic", ["(a STRING..., b T)", "(a STRING, b T...)"], [STRING, STRING], 1),
    ("one type for a variable", ["(a T, b T)", "(a T, b U)"], [STRING, INTEGER], 1),
    ("NULL fits all", ["(a T, b T)"], [None, INTEGER], 0),
    (
        "lambda by its parameters",
        ["(a ARRAY<T>, f LAMBDA(T) -> U)", "(a ARRAY<T>, f LAMBDA(T, T) -> U)"],
        [Array(STRING), LambdaShape(2)],
        1,
    ),
    ("any decimal", ["(a DECIMAL)"], [Decimal(5, 2)], 0),
    ("any struct", ["(a STRUCT)"], [Struct((Field("A", STRING),))], 0),
    ("interval", ["(unit INTERVAL, d DATE)"], [None, DATE], 0),
]


@pytest.mark.parametrize(
    ("signatures", "arguments", "chosen"), [c[1:] for c in CHOICES], ids=[c[0] for c in CHOICES]
)
def test_chooses(signatures: list[str], arguments: list[Argument], chosen: int) -> None:
    overloads = [Overload(signature) for signature in signatures]
    assert choose("f", overloads, arguments).overload is overloads[chosen]


@pytest.mark.parametrize(
    ("signatures", "arguments", "message"),
    [
        (
            ["(list ARRAY<T>)", "(input ARRAY<DECIMAL>)"],
            [Map(STRING, INTEGER)],
            "Function 'f' does not accept parameters (MAP<STRING, INTEGER>).\nValid alternatives",
        ),
        (
            ["(l ARRAY<T>)", "(i ARRAY<DECIMAL>)"],
            [STRING],
            "\nf(ARRAY<DECIMAL> i)\nf(ARRAY<T> l)\n",
        ),
        (["(a T, b T)"], [STRING, INTEGER], "does not accept parameters (STRING, INTEGER)."),
        (["(a DOUBLE)"], [Struct((Field("a", STRING),))], "parameters (STRUCT<a STRING>)."),
        (["(a STRING)"], [], "Function 'f' does not accept parameters ()."),
        (["(a INTERVAL)"], [STRING], "does not accept parameters (STRING)."),
        (
            ["(a DECIMAL, b DECIMAL...)", "(a DOUBLE, b DOUBLE...)"],
            [INTEGER, BIGINT],
            "Function 'f' cannot be resolved due to ambiguous method parameters (INTEGER, BIGINT).",
        ),
        (["(a STRING)", "(a DOUBLE)"], [None], "ambiguous method parameters (null)."),
    ],
)
def test_refuses_calls(signatures: list[str], arguments: list[Argument], message: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        choose("f", [Overload(s) for s in signatures], arguments)
    assert message in str(caught.value)


def test_aggregates_get_no_casts() -> None:
    with pytest.raises(AnalysisError, match="does not accept"):
        choose("f", [Overload("(a BIGINT)")], [INTEGER], casts=False)


def test_binds_variables() -> None:
    bindings: dict[str, SqlType] = {}
    pattern = parse_signature("(m MAP<K, ARRAY<V>>)").parameters[0].pattern
    assert bind(pattern, Map(STRING, Array(DOUBLE)), bindings)
    assert bindings == {"K": STRING, "V": DOUBLE}
    assert not bind(pattern, Map(INTEGER, Array(DOUBLE)), bindings)
    assert not bind(pattern, STRING, {})
    assert substitute(pattern, bindings) == Map(STRING, Array(DOUBLE))
    with pytest.raises(AnalysisError, match="generic type: K"):
        substitute(pattern, {})
    with pytest.raises(AnalysisError, match="DECIMAL"):
        substitute(Wildcard.DECIMAL, {})

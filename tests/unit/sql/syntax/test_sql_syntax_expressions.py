"""Expressions: text in, canonical text out; and any tree survives printing and parsing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql import types
from barnabas.sql.errors import ParseError
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.parser import parse_expression
from barnabas.sql.syntax.printer import expression_text, message_text, type_text
from barnabas.sql.syntax.rewriting import walk
from barnabas.sql.syntax.type_parser import parse_type
from support.effort import examples

CANONICAL = {
    "a": "A",
    '"a"': "`a`",
    "`x``y`": "`x``y`",
    "t.a": "T.A",
    "1a": "1A",
    "a@b": "A@B",
    "`1`": "`1`",
    "`1E5`": "`1E5`",
    "a or b and not c": "(A OR (B AND (NOT C)))",
    "not a and b": "((NOT A) AND B)",
    "a = b and c <> d or e != f": "(((A = B) AND (C <> D)) OR (E <> F))",
    "1 + 2 * 3 - 4": "((1 + (2 * 3)) - 4)",
    "a - -1": "(A - -1)",
    "-a * b": "(-A * B)",
    "- -a": "- -A",
    "-(1)": "-(1)",
    "+a": "+A",
    "a || b + c || d": "CONCAT(CONCAT(A, (B + C)), D)",
    "1.50": "1.50",
    ".5": "0.5",
    "7.": "7.",
    "1e3": "1E3",
    "12345.678E-3": "1.2345678E1",
    "2147483648": "2147483648",
    "'it''s'": "'it''s'",
    "null": "null",
    "TRUE": "true",
    "a is null": "(A IS NULL)",
    "a is not null": "(A IS NOT NULL)",
    "a is distinct from b": "(A IS DISTINCT FROM B)",
    "a is not distinct from b": "(NOT (A IS DISTINCT FROM B))",
    "a between 1 and 2 and b": "((A BETWEEN 1 AND 2) AND B)",
    "a not between 1 and 2": "(NOT (A BETWEEN 1 AND 2))",
    "a in (1, 2)": "(A IN (1, 2))",
    "a like 'x%' escape '!'": "(A LIKE 'x%' ESCAPE '!')",
    "case a when 1 then 'x' else 'y' end": "(CASE A WHEN 1 THEN 'x' ELSE 'y' END)",
    "case when a then 1 end": "(CASE WHEN A THEN 1 END)",
    "cast(a as varchar(20))": "CAST(A AS STRING)",
    "cast(a as decimal(4,2))": "CAST(A AS DECIMAL(4, 2))",
    "cast(a as array<struct<x int, y int>>)": "CAST(A AS ARRAY<STRUCT<X INTEGER, Y INTEGER>>)",
    "cast(a as address)": "CAST(A AS ADDRESS)",
    "a[1]->b->c": "A[1]->B->C",
    "(a + b)[1]": "(A + B)[1]",
    "array[1, 2]": "ARRAY[1, 2]",
    "array": "ARRAY",
    "map('a' := 1)": "MAP('a':=1)",
    "struct(x := 1, `y` := 2)": "STRUCT(X:=1, `y`:=2)",
    "count(*)": "COUNT(*)",
    "f()": "F()",
    "timestampadd(days, 1, t)": "TIMESTAMPADD(DAYS, 1, T)",
    "sum(day)": "SUM(DAY)",
    "transform(a, x => x + y)": "TRANSFORM(A, (X) => (X + Y))",
    "reduce(a, 0, (s, x) => s + x)": "REDUCE(A, 0, (S, X) => (S + X))",
    "emit + changes": "(EMIT + CHANGES)",
    "a -- comment\n + /* another */ b": "(A + B)",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_canonical_text(text: str, canonical: str) -> None:
    parsed = parse_expression(text)

    assert expression_text(parsed) == canonical
    assert parse_expression(canonical) == parsed


def test_messages_show_names_without_quotes() -> None:
    assert message_text(parse_expression('f("a", t.`B`)')) == "F(a, T.B)"


def test_parameters_of_lambdas_are_variables_in_their_body_only() -> None:
    call = parse_expression("f(x, x => g(x, (y) => x + y + z), x)")

    variable, column = nodes.LambdaVariable, nodes.ColumnReference
    total = nodes.Arithmetic(
        nodes.ArithmeticOperator.ADD,
        nodes.Arithmetic(nodes.ArithmeticOperator.ADD, variable("X"), variable("Y")),
        column("Z"),
    )
    inner = nodes.FunctionCall("G", (variable("X"), nodes.Lambda(("Y",), total)))
    assert call == nodes.FunctionCall("F", (column("X"), nodes.Lambda(("X",), inner), column("X")))


WRONG = {
    "a = b = c": "line 1:7: Syntax Error\nSyntax error at or near '=' at line 1:7",
    "a in ()": "line 1:7: Syntax Error\nSyntax error at or near ')' at line 1:7",
    "(a": "line 1:3: Syntax Error\nSyntax error at or near '<EOF>' at line 1:3\nExpecting ')'",
    "cast(a as null)": "line 1:11: Syntax Error\nSyntax error at or near 'null' at line 1:11",
    "f(months, 1)": "line 1:3: Syntax Error\nSyntax error at or near 'months' at line 1:3",
    "a like 'x' escape 'ab'": "Line: 1, Col: 19: Expected single character escape but got: ab",
    "-9223372036854775809": "Invalid numeric literal: -9223372036854775809",
    "1e400": "Number overflows DOUBLE: 1e400",
    "date '2020-01-01'": "Unknown type: DATE",
    "cast(a as struct<x int, x int>)": "Duplicate field names found in STRUCT",
    "cast(a as decimal(1, 2))": "DECIMAL precision must be >= scale: DECIMAL(1,2)",
    "'open": "Syntax error at or near ''' at line 1:1",
    "(" * 5_000: "Statement is too large to parse",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=[text[:30] for text in WRONG])
def test_what_is_no_expression(text: str, message: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_expression(text)

    assert message in str(raised.value)


TYPES = {
    "int": "INTEGER",
    "varchar": "STRING",
    "decimal(10,2)": "DECIMAL(10, 2)",
    "map<string, array<bigint>>": "MAP<STRING, ARRAY<BIGINT>>",
    "int array array": "ARRAY<ARRAY<INTEGER>>",
    "struct<>": "STRUCT<>",
    'struct<a int, "b" struct<`select` bytes>>': "STRUCT<A INTEGER, `b` STRUCT<`SELECT` BYTES>>",
}


@pytest.mark.parametrize(("text", "canonical"), TYPES.items())
def test_types(text: str, canonical: str) -> None:
    text = text.replace("`select`", "`SELECT`")
    assert type_text(parse_type(text)) == canonical
    assert parse_type(canonical) == parse_type(text)


# --- any tree --------------------------------------------------------------------------------

NAMES = st.sampled_from(["A", "b", "SELECT", "EMIT", "1A", "1", "x y", "Q`Q", "KEY"])
SQL_TYPES = st.recursive(
    st.sampled_from([types.INTEGER, types.STRING, types.TIMESTAMP, types.Decimal(5, 2)]),
    lambda inner: (
        st.builds(types.Array, inner)
        | st.builds(types.Map, inner, inner)
        | st.builds(
            lambda names, of: types.Struct(tuple(types.Field(name, of) for name in names)),
            st.lists(NAMES, unique=True, max_size=3),
            inner,
        )
    ),
    max_leaves=4,
)
LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.just(nodes.NullLiteral()),
    st.builds(nodes.BooleanLiteral, st.booleans()),
    st.builds(nodes.IntegerLiteral, st.integers(-(2**31), 2**31 - 1)),
    st.builds(nodes.LongLiteral, st.integers(2**31, 2**63 - 1)),
    st.builds(nodes.DoubleLiteral, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(
        lambda digits, scale: nodes.DecimalLiteral(Decimal(digits).scaleb(-scale)),
        st.integers(-(10**20), 10**20),
        st.integers(0, 10),
    ),
    st.builds(nodes.StringLiteral, st.text(max_size=5)),
    st.builds(nodes.ColumnReference, NAMES, st.none() | NAMES),
)


def _compound(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    many = st.lists(inner, min_size=1, max_size=3).map(tuple)
    whens = st.lists(st.builds(nodes.When, inner, inner), min_size=1, max_size=2).map(tuple)
    compared = st.sampled_from(
        [o for o in nodes.ComparisonOperator if o.name != "IS_NOT_DISTINCT_FROM"]
    )
    return st.one_of(
        st.builds(nodes.Arithmetic, st.sampled_from(nodes.ArithmeticOperator), inner, inner),
        st.builds(nodes.Comparison, compared, inner, inner),
        st.builds(nodes.Logical, st.sampled_from(nodes.LogicalOperator), inner, inner),
        st.builds(nodes.Sign, st.booleans(), inner),
        st.builds(nodes.Not, inner),
        st.builds(nodes.IsNull, inner),
        st.builds(nodes.IsNotNull, inner),
        st.builds(nodes.Between, inner, inner, inner),
        st.builds(nodes.InList, inner, many),
        st.builds(nodes.Like, inner, inner, st.none() | st.sampled_from("'!x")),
        st.builds(nodes.SearchedCase, whens, st.none() | inner),
        st.builds(nodes.SimpleCase, inner, whens, st.none() | inner),
        st.builds(nodes.Cast, inner, SQL_TYPES),
        st.builds(nodes.Subscript, inner, inner),
        st.builds(nodes.Dereference, inner, NAMES),
        st.builds(nodes.ArrayConstructor, many),
        st.builds(lambda k, v: nodes.MapConstructor(((k, v),)), inner, inner),
        st.builds(lambda name, value: nodes.StructConstructor(((name, value),)), NAMES, inner),
        st.builds(nodes.FunctionCall, st.sampled_from(["F", "COUNT", "IF", "f"]), many),
    )


@given(st.recursive(LEAVES, _compound, max_leaves=8))
@settings(max_examples=examples(15))
def test_printed_trees_parse_to_themselves(tree: Expression) -> None:
    assert parse_expression(expression_text(tree)) == tree


def test_parts_of_a_case_are_its_expressions() -> None:
    case = parse_expression("CASE a WHEN 1 THEN b ELSE c END")
    assert list(map(expression_text, walk(case)))[1:] == ["A", "1", "B", "C"]

"""The functions for ksqlDB's executable cases, which replace its test jar."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.signatures import choose
from support.sql_test_functions import TEST_FUNCTIONS, all_functions
from support.sql_typed_calls import types_of


def test_the_product_does_not_have_them() -> None:
    assert set(all_functions()) == set(functions()) | set(TEST_FUNCTIONS)
    assert not set(functions()) & set(TEST_FUNCTIONS)


@pytest.mark.parametrize(
    ("types", "arguments", "expected"),
    [
        ("INTEGER, STRING", (1, "a"), "doStuffIntString"),
        ("BIGINT, STRING", (1, "a"), "doStuffLongString"),
        ("BIGINT, BIGINT, STRING", (1, 1, "a"), "doStuffLongLongString"),
        ("BIGINT, BIGINT, BIGINT", (1, 1, 1), "doStuffLongVarargs"),
        ("STRUCT<A STRING>", ({"A": "x"},), "x"),
        ("", (), {"A": "foo"}),
    ],
)
def test_udf(types: str, arguments: tuple[Any, ...], expected: Any) -> None:
    found = choose("test_udf", TEST_FUNCTIONS["TEST_UDF"].scalars, types_of(types))
    assert found.overload.implementation(*arguments) == expected


ROW = (1, 2, 3.0, True, "s", Decimal("1.5"), {"A": "x"})
ROW_TYPES = (
    "INTEGER",
    "BIGINT",
    "DOUBLE",
    "BOOLEAN",
    "STRING",
    "DECIMAL(2, 1)",
    "STRUCT<A STRING>",
)


@pytest.mark.parametrize(
    ("shape", "wrap"),
    [
        ("{}", lambda value: value),
        ("ARRAY<{}>", lambda value: [value, None]),
        ("MAP<STRING, {}>", lambda value: {"k": value}),
    ],
)
def test_udtf(shape: str, wrap: Any) -> None:
    types = types_of(", ".join(map(shape.format, ROW_TYPES)))
    found = choose("test_udtf", TEST_FUNCTIONS["TEST_UDTF"].tables, types)
    assert list(found.overload.implementation(*map(wrap, ROW))) == [
        "1", "2", "3.0", "true", "s", "1.5", "Struct{A=x}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "types", "constants", "arguments", "expected"),
    [
        ("TEST_UDAF", "INTEGER", (), (3,), 3),
        ("TEST_UDAF", "DOUBLE", (), (3.5,), 3.5),
        ("TEST_UDAF", "STRING, STRING", ("ab",), ("xyz",), 5),
        ("TEST_UDAF", "STRUCT<A INTEGER, B INTEGER>", (), ({"A": 1, "B": 2},), {"A": 1, "B": 2}),
        ("MULTI_ARG", "BIGINT, STRING, INTEGER, STRING, STRING", (5, "10", "3"), (6, None), 14),
        ("MULTI_ARG", "BIGINT, STRING, INTEGER", (5,), (6, "ab"), 13),
        ("VAR_ARG", "BIGINT, STRING, STRING", (), (6, "hello", None), 11),
        ("VAR_ARG", "BIGINT", (), (6,), 6),
        ("MID_VAR_ARG", "BIGINT, STRING, STRING, INTEGER, INTEGER", (7, 3), (6, "a", "b"), 18),
        ("MID_VAR_ARG", "BIGINT, INTEGER, INTEGER", (7, 3), (6,), 16),
        ("GENERIC_VAR_ARG", "STRING, INTEGER, DOUBLE, DOUBLE", (), ("a", 1, 2.0, 3.0), ["a"]),
        ("GENERIC_VAR_ARG", "STRING, INTEGER, DOUBLE", (), ("a", 1, None), []),
        ("OBJ_COL_ARG", "INTEGER, STRING, DOUBLE", (), (4, "a", 3.0), [4]),
    ],
)
def test_aggregates(
    name: str, types: str, constants: Any, arguments: tuple[Any, ...], expected: Any
) -> None:
    found = choose(name, TEST_FUNCTIONS[name].aggregates, types_of(types), casts=False)
    machine = found.overload.aggregator(types_of(types), constants)
    assert machine.result(machine.add(machine.initial(), *arguments)) == expected


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("MULTI_ARG", "BIGINT, STRING"),
        ("MULTI_ARG", "STRING, INTEGER, STRING, STRING, STRING"),
        ("VAR_ARG", "BIGINT, INTEGER"),
        ("MID_VAR_ARG", "BIGINT, STRING, STRING, INTEGER"),
        ("GENERIC_VAR_ARG", "DECIMAL(5, 1), INTEGER, DOUBLE, STRING, DOUBLE"),
    ],
)
def test_calls_that_do_not_fit(name: str, types: str) -> None:
    with pytest.raises(AnalysisError) as raised:
        choose(name, TEST_FUNCTIONS[name].aggregates, types_of(types), casts=False)
    assert f"Function '{name}' does not accept parameters ({types})." in str(raised.value)

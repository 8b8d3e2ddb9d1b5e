"""Functions of arrays and maps, those that take lambdas, and table functions."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.functions import built_in
from support.sql_typed_calls import call, rows, table_choice, types_of

built_in.functions()

INTS = "ARRAY<INTEGER>"
TEXTS = "ARRAY<STRING>"
LISTS = "ARRAY<ARRAY<INTEGER>>"
MAPS = "ARRAY<MAP<STRING, INTEGER>>"
ENTRIES = "MAP<STRING, INTEGER>"

CALLS: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("ARRAY_CONCAT", f"{INTS}, {INTS}", ([1, None], [1]), [1, None, 1]),
    ("ARRAY_CONCAT", f"{INTS}, {INTS}", (None, [1]), [1]),
    ("ARRAY_CONCAT", f"{INTS}, {INTS}", ([1], None), [1]),
    ("ARRAY_CONCAT", f"{INTS}, {INTS}", (None, None), None),
    ("ARRAY_CONTAINS", f"{INTS}, INTEGER", ([1, None], 1), True),
    ("ARRAY_CONTAINS", f"{INTS}, INTEGER", ([1, None], None), True),
    ("ARRAY_CONTAINS", f"{INTS}, INTEGER", ([1], 2), False),
    ("ARRAY_CONTAINS", f"{INTS}, INTEGER", (None, 2), False),
    ("ARRAY_CONTAINS", f"{LISTS}, {INTS}", ([[1], [2]], [2]), True),
    ("ARRAY_DISTINCT", INTS, ([1, None, 2, 1, None],), [1, None, 2]),
    ("ARRAY_DISTINCT", LISTS, ([[1], [2], [1]],), [[1], [2]]),
    ("ARRAY_DISTINCT", INTS, (None,), None),
    ("ARRAY_EXCEPT", f"{TEXTS}, {TEXTS}", (["a", "b", "a", None, "c"], ["c", None]), ["a", "b"]),
    ("ARRAY_EXCEPT", f"{LISTS}, {LISTS}", ([[1], [2]], [[1]]), [[2]]),
    ("ARRAY_EXCEPT", f"{TEXTS}, {TEXTS}", (["a"], None), None),
    ("ARRAY_INTERSECT", f"{INTS}, {INTS}", ([3, 1, None, 3], [None, 3]), [3, None]),
    ("ARRAY_INTERSECT", f"{INTS}, {INTS}", (None, [1]), None),
    ("ARRAY_UNION", f"{INTS}, {INTS}", ([3, 1, 3], [None, 1, 2]), [3, 1, None, 2]),
    ("ARRAY_UNION", f"{MAPS}, {MAPS}", ([{"a": 1}], [{"a": 1}, {"a": 2}]), [{"a": 1}, {"a": 2}]),
    ("ARRAY_JOIN", INTS, ([1, None, -2],), "1,null,-2"),
    ("ARRAY_JOIN", "ARRAY<BOOLEAN>, STRING", ([True, None, False], "_"), "true_null_false"),
    ("ARRAY_JOIN", "ARRAY<DOUBLE>, STRING", ([1.23, 0.0, 1e10], " "), "1.23 0.0 1.0E10"),
    ("ARRAY_JOIN", "ARRAY<DECIMAL(5, 2)>, STRING", ([Decimal("1.20")], None), "1.20"),
    ("ARRAY_JOIN", f"{TEXTS}, STRING", (["a", "", "b"], None), "ab"),
    ("ARRAY_JOIN", TEXTS, (None,), None),
    ("ARRAY_JOIN", LISTS, ([],), ""),
    ("ARRAY_LENGTH", LISTS, ([[], None],), 2),
    ("ARRAY_LENGTH", LISTS, (None,), None),
    ("ARRAY_MAX", INTS, ([1, None, 3, 2],), 3),
    ("ARRAY_MIN", INTS, ([2, None, 1],), 1),
    ("ARRAY_MIN", INTS, ([None],), None),
    ("ARRAY_MAX", INTS, ([],), None),
    ("ARRAY_MAX", TEXTS, (["\uffff", "\U0001f600"],), "\uffff"),
    ("ARRAY_MIN", "ARRAY<BOOLEAN>", ([True, False],), False),
    ("ARRAY_MAX", "ARRAY<BYTES>", ([b"\x80", b"\x7f"],), b"\x7f"),
    ("ARRAY_REMOVE", f"{INTS}, INTEGER", ([0, None, 1, 0], 0), [None, 1]),
    ("ARRAY_REMOVE", f"{INTS}, INTEGER", ([0, None, 1], None), [0, 1]),
    ("ARRAY_REMOVE", f"{INTS}, INTEGER", (None, 1), None),
    ("ARRAY_SORT", INTS, ([2, None, 1, 3],), [1, 2, 3, None]),
    ("ARRAY_SORT", f"{INTS}, STRING", ([2, None, 1, 3], "desc"), [3, 2, 1, None]),
    ("ARRAY_SORT", f"{INTS}, STRING", ([2, 1], "ASCENDING"), [1, 2]),
    ("ARRAY_SORT", f"{INTS}, STRING", ([2, 1], "sideways"), None),
    ("ARRAY_SORT", f"{INTS}, STRING", ([2, 1], None), None),
    ("SLICE", f"{TEXTS}, INTEGER, INTEGER", (["a", "b", "c", "d"], 2, 3), ["b", "c"]),
    ("SLICE", f"{TEXTS}, INTEGER, INTEGER", (["a", "b"], None, 1), ["a"]),
    ("SLICE", f"{TEXTS}, INTEGER, INTEGER", (["a", "b"], 2, None), ["b"]),
    ("SLICE", f"{TEXTS}, INTEGER, INTEGER", (["a", "b"], 3, 2), []),
    ("SLICE", f"{TEXTS}, INTEGER, INTEGER", (["a", "b"], 0, 1), None),
    ("SLICE", f"{TEXTS}, INTEGER, INTEGER", (["a", "b"], 1, 3), None),
    ("SLICE", f"{TEXTS}, INTEGER, INTEGER", (None, 1, 3), None),
    ("GENERATE_SERIES", "INTEGER, INTEGER", (-2, 1), [-2, -1, 0, 1]),
    ("GENERATE_SERIES", "INTEGER, INTEGER", (4, 3), [4, 3]),
    ("GENERATE_SERIES", "BIGINT, BIGINT", (4, 4), [4]),
    ("GENERATE_SERIES", "INTEGER, INTEGER, INTEGER", (0, 9, 4), [0, 4, 8]),
    ("GENERATE_SERIES", "BIGINT, BIGINT, INTEGER", (1, -2, -2), [1, -1]),
    ("AS_MAP", f"{TEXTS}, {INTS}", (["a", "b"], [1, 2]), {"a": 1, "b": 2}),
    ("AS_MAP", f"{TEXTS}, {INTS}", (["a", "b"], [1]), {"a": 1, "b": None}),
    ("AS_MAP", f"{TEXTS}, {INTS}", (["a"], [1, 2]), {"a": 1}),
    ("AS_MAP", f"{TEXTS}, {INTS}", (None, [1, 2]), None),
    ("MAP_KEYS", ENTRIES, ({"b": 1, "a": None},), ["a", "b"]),
    ("MAP_KEYS", ENTRIES, ({"b": 1, "e": 2, "a": None},), ["e", "a", "b"]),
    ("MAP_VALUES", ENTRIES, ({"b": 1, "a": None},), [None, 1]),
    ("MAP_KEYS", ENTRIES, (None,), None),
    ("MAP_UNION", f"{ENTRIES}, {ENTRIES}", ({"a": 1, "b": 2}, {"b": 3}), {"a": 1, "b": 3}),
    ("MAP_UNION", f"{ENTRIES}, {ENTRIES}", (None, {"b": 3}), {"b": 3}),
    ("MAP_UNION", f"{ENTRIES}, {ENTRIES}", (None, None), None),
    (
        "ENTRIES",
        f"{ENTRIES}, BOOLEAN",
        ({"b": 1, "e": 2, "a": 3}, False),
        [{"K": "e", "V": 2}, {"K": "a", "V": 3}, {"K": "b", "V": 1}],
    ),
    (
        "ENTRIES",
        f"{ENTRIES}, BOOLEAN",
        ({"b": 1, "a": 2}, True),
        [{"K": "a", "V": 2}, {"K": "b", "V": 1}],
    ),
    ("ENTRIES", f"{ENTRIES}, BOOLEAN", (None, True), None),
    ("FILTER", INTS, ([3, 6, 10], lambda x: x > 5), [6, 10]),
    ("FILTER", INTS, (None, lambda x: x > 5), None),
    ("FILTER", ENTRIES, ({"a": 1, "b": 9}, lambda k, v: v > 5), {"b": 9}),
    ("TRANSFORM", INTS, ([3, 6], lambda x: x + 5), [8, 11]),
    ("TRANSFORM", INTS, ([3, None], lambda x: x and -x), [-3, None]),
    ("TRANSFORM", ENTRIES, ({"a": 1}, lambda k, v: k + "!", lambda k, v: v + 1), {"a!": 2}),
    ("TRANSFORM", ENTRIES, (None, lambda k, v: k, lambda k, v: v), None),
    ("REDUCE", f"{INTS}, INTEGER", ([3, 6], 2, lambda s, x: s + x), 11),
    ("REDUCE", f"{INTS}, INTEGER", (None, 2, lambda s, x: s + x), 2),
    ("REDUCE", f"{INTS}, INTEGER", ([1], None, lambda s, x: s + x), None),
    ("REDUCE", f"{ENTRIES}, INTEGER", ({"a": 1, "b": 9}, 1, lambda s, k, v: s + v), 11),
    ("REDUCE", f"{ENTRIES}, INTEGER", (None, 1, lambda s, k, v: s + v), 1),
]


@pytest.mark.parametrize(
    "case", CALLS, ids=[f"{case[0]} {number}" for number, case in enumerate(CALLS)]
)
def test_calls(case: tuple[str, str, tuple[Any, ...], Any]) -> None:
    name, types, arguments, expected = case
    before = repr(arguments)
    assert call(name, types, *arguments) == expected
    assert repr(arguments) == before


FAILURES: list[tuple[str, str, tuple[Any, ...], str]] = [
    ("ARRAY_JOIN", LISTS, ([[1]],), "hit element of type ARRAY<INTEGER> which is currently not"),
    ("ARRAY_SORT", LISTS, ([[1], [2]],), "have no order"),
    ("ARRAY_MAX", MAPS, ([{"a": 1}],), "have no order"),
    ("GENERATE_SERIES", "INTEGER, INTEGER, INTEGER", (1, 2, 0), "step cannot be zero"),
    ("GENERATE_SERIES", "INTEGER, INTEGER, INTEGER", (1, 2, -1), "step has wrong sign"),
    ("GENERATE_SERIES", "INTEGER, INTEGER, INTEGER", (2, 1, 1), "step has wrong sign"),
    ("GENERATE_SERIES", "BIGINT, BIGINT", (0, 2**62), "makes at most 10000000 numbers"),
    ("FILTER", INTS, ([1], lambda x: None), "gives NULL"),
    ("FILTER", ENTRIES, ({"a": None}, lambda k, v: True), "no value for key a"),
    ("TRANSFORM", ENTRIES, ({"a": 1}, lambda k, v: k, lambda k, v: None), "no value for key a"),
    (
        "TRANSFORM",
        ENTRIES,
        ({"a": 1, "b": 2}, lambda k, v: "c", lambda k, v: v),
        "Duplicate key c",
    ),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: f"{case[0]} {case[3]}")
def test_failures_fail_the_expression(case: tuple[str, str, tuple[Any, ...], str]) -> None:
    name, types, arguments, message = case
    with pytest.raises(EvaluationError, match=message):
        call(name, types, *arguments)


ROWS: list[tuple[str, str, Any, list[Any]]] = [
    ("EXPLODE", INTS, [1, None, 1], [1, None, 1]),
    ("EXPLODE", INTS, None, []),
    ("EXPLODE", "ARRAY<DECIMAL(4, 1)>", [Decimal("1.0")], [Decimal("1.0")]),
    ("CUBE_EXPLODE", INTS, [1, 2], [[None, None], [None, 2], [1, None], [1, 2]]),
    ("CUBE_EXPLODE", INTS, [1, None], [[None, None], [1, None]]),
    ("CUBE_EXPLODE", INTS, [None, 2], [[None, None], [None, 2]]),
    ("CUBE_EXPLODE", INTS, [], [[]]),
    ("CUBE_EXPLODE", INTS, None, []),
]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: f"{case[0]} {case[2]}")
def test_rows_of_table_functions(case: tuple[str, str, Any, list[Any]]) -> None:
    name, types, argument, expected = case
    assert rows(name, types, argument) == expected


def test_a_cube_of_too_many_columns_is_refused() -> None:
    with pytest.raises(EvaluationError, match=r"too many columns \(21\); max is 20"):
        rows("CUBE_EXPLODE", INTS, [1] * 21)


def test_exploding_anything_but_an_array_is_refused() -> None:
    with pytest.raises(AnalysisError) as raised:
        table_choice("explode", ENTRIES, {})
    assert str(raised.value).startswith(
        "Function 'explode' does not accept parameters (MAP<STRING, INTEGER>).\n"
        "Valid alternatives are:\nexplode(ARRAY<DECIMAL> input)\nexplode(ARRAY<T> list)"
    )


def test_exploding_decimals_keeps_their_type() -> None:
    choice = table_choice("explode", "ARRAY<DECIMAL(4, 1)>", [])
    assert choice.overload.returns is not None
    assert str(choice.overload.returns(types_of("ARRAY<DECIMAL(4, 1)>"))) == "DECIMAL(4, 1)"

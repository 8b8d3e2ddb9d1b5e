"""Aggregates of users."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from barnabas.sql.errors import AnalysisError
from barnabas.sql.runtime.evaluation import QueryFailedError
from barnabas.sql.udf import DeclarationError, functions_of, udaf
from support.sql_udf import Run

SOURCES = """
    CREATE STREAM s (k STRING KEY, a BIGINT, b STRING) WITH (kafka_topic='s', value_format='JSON');
    CREATE TABLE t (k STRING PRIMARY KEY, a BIGINT, b STRING)
        WITH (kafka_topic='t', value_format='JSON');
"""


@udaf("(value BIGINT) -> DOUBLE STATE STRUCT<total BIGINT, count BIGINT>")
class Mean:
    """The mean."""

    def initial(self) -> dict[str, int]:
        return {"total": 0, "count": 0}

    def add(self, state: dict[str, int], value: int) -> dict[str, int]:
        state["total"] += value  # the state is this function's own
        state["count"] += 1
        return state

    def remove(self, state: dict[str, int], value: int) -> dict[str, int]:
        return {"total": state["total"] - value, "count": state["count"] - 1}

    def merge(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        return {name: left[name] + right[name] for name in left}

    def result(self, state: dict[str, int]) -> float | None:
        return state["total"] / state["count"] if state["count"] else None


@udaf("(value T, count INT!) -> ARRAY<T>", nulls=True)
class FirstOnes:
    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("at least one")
        self.count = count

    def initial(self) -> list[Any]:
        return []

    def add(self, state: list[Any], value: Any) -> list[Any]:
        return [*state, value][: self.count]

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return (left + right)[: self.count]

    def result(self, state: list[Any]) -> list[Any]:
        return state


@udaf("(day DATE) -> DATE", state="ARRAY<DATE>")
class Latest(FirstOnes):
    def __init__(self) -> None:
        super().__init__(100)

    def result(self, state: list[date]) -> Any:
        return max(state)


@udaf("(value BIGINT) -> BIGINT")
class Failing(FirstOnes):
    def __init__(self) -> None:
        super().__init__(1)

    def initial(self) -> Any:
        return 0

    def add(self, state: Any, value: Any) -> Any:
        return "many"

    def result(self, state: Any) -> Any:
        return state


OWN = functions_of(Mean, FirstOnes, Latest, Failing)

Rows = list[tuple[str, dict[str, Any] | None, int]]
ROWS: Rows = [("k", {"a": 1, "b": "x"}, 0), ("k", {"b": None}, 1), ("k", {"a": 4, "b": "y"}, 2)]

CASES: list[tuple[str, str, list[Any]]] = [
    ("MEAN(a)", "", [1.0, 1.0, 2.5]),
    ("FIRSTONES(b, 2)", "", [["x"], ["x", None], ["x", None]]),
    ("LATEST(FROM_DAYS(IFNULL(CAST(a AS INT), 2)))", "", [1, 2, 4]),
    # A separate session, and then one that merges all.
    ("MEAN(a)", "WINDOW SESSION (5 MILLISECONDS)", [1.0, None, 1.0, None, 2.5]),
]


@pytest.mark.parametrize(("call", "window", "expected"), CASES)
def test_groups_of_streams(call: str, window: str, expected: list[Any]) -> None:
    run = Run(f"{SOURCES} CREATE TABLE o AS SELECT k, {call} AS v FROM s {window} GROUP BY k;", OWN)
    assert [row and row["V"] for row in run("s", ROWS)] == expected


def test_groups_of_tables() -> None:
    run = Run(f"{SOURCES} CREATE TABLE o AS SELECT b, MEAN(a) AS v FROM t GROUP BY b;", OWN)
    rows: Rows = [("1", {"a": 1, "b": "x"}, 0), ("2", {"a": 3, "b": "x"}, 1), ("1", None, 2)]
    assert run("t", rows) == [{"V": 1.0}, {"V": 2.0}, {"V": 3.0}]


def test_one_without_remove_is_for_streams_only() -> None:
    with pytest.raises(AnalysisError, match="FIRSTONES cannot be applied to a table source"):
        Run(f"{SOURCES} CREATE TABLE o AS SELECT b, FIRSTONES(a, 1) AS v FROM t GROUP BY b;", OWN)


def test_constants_that_the_class_refuses() -> None:
    with pytest.raises(AnalysisError, match="FIRSTONES: ValueError: at least one"):
        Run(f"{SOURCES} CREATE TABLE o AS SELECT k, FIRSTONES(a, 0) AS v FROM s GROUP BY k;", OWN)


def test_a_failure_stops_the_query_and_has_the_functions_name() -> None:
    run = Run(f"{SOURCES} CREATE TABLE o AS SELECT k, FAILING(a) AS v FROM s GROUP BY k;", OWN)
    with pytest.raises(QueryFailedError, match="FAILING: gave 'many'"):
        run("s", ROWS)


class Whole:
    def initial(self) -> int:
        return 0

    def add(self, state: int, value: int) -> int:
        return state

    def merge(self, left: int, right: int) -> int:
        return left

    def result(self, state: int) -> int:
        return state


class Part:
    def initial(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("kind", "signatures", "options", "message"),
    [
        (Whole, (), {}, "needs a signature"),
        (Part, ("(value INT) -> INT",), {}, "Part has no method add"),
        (Whole, ("(value INT, b INT) -> INT",), {}, "add"),
        (Whole, ("(value INT, b INT!) -> INT",), {}, "gives 1 arguments"),
        (Whole, ("(b INT!, value INT) -> INT",), {}, "constants are the last parameters"),
        (Whole, ("(value INT) -> INT STATE INT",), {"state": "INT"}, "its state twice"),
        (Whole, ("(value INT) -> INT STATE WORD",), {}, "type of the state cannot be read"),
        (Whole, ("(value INT) -> INT STATE T",), {}, "tells what T is"),
        (Whole, ("(value INT) -> INT",), {"parameters": {"x": ""}}, "no parameter x"),
    ],
)
def test_what_cannot_be_declared(kind: Any, signatures: Any, options: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        udaf(*signatures, **options)(kind)

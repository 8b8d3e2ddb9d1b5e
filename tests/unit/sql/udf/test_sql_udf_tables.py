"""Table functions of users."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from barnabas.sql.udf import DeclarationError, functions_of, scalars, udtf
from support.sql_udf import Run

SOURCE = (
    "CREATE STREAM s (k STRING KEY, a STRING, n INT) WITH (kafka_topic='s', value_format='JSON');"
)


@udtf
def words(text: str) -> Iterator[str]:
    yield from text.split()


@udtf("(value T, times INT) -> T", nulls=True)
def repeated(value: Any, times: int | None) -> list[Any]:
    return [value] * (times or 0)


@udtf("(days INT) -> DATE")
def calendar(days: int) -> Iterator[date | None]:
    for day in range(days):
        yield date(1970, 1, 1) + timedelta(day)
    yield None


@udtf("(value INT) -> INT")
def failing(value: int) -> Iterator[int]:
    yield 1
    raise ValueError("half way")


@udtf("(value INT) -> INT")
def endless(value: int) -> Iterator[int]:
    while True:
        yield value


@udtf("(value INT) -> INT")
def nothing(value: int) -> None:
    return None


OWN = functions_of(words, repeated, calendar, failing, endless, nothing)

CASES: list[tuple[str, list[Any]]] = [
    ("WORDS(a)", ["x", "y"]),
    ("WORDS(CAST(NULL AS STRING))", []),
    ("REPEATED(a, n)", ["x y", "x y"]),
    ("REPEATED(FROM_DAYS(n), 1)", [2]),
    ("REPEATED(a, CAST(NULL AS INT))", []),
    ("CALENDAR(1)", [0, None]),
    ("NOTHING(n)", []),
]


@pytest.mark.parametrize(("call", "expected"), CASES)
def test_a_row_for_each_item(call: str, expected: list[Any]) -> None:
    run = Run(f"{SOURCE} CREATE STREAM o AS SELECT k, {call} AS v FROM s;", OWN)
    assert run("s", [("k", {"a": "x y", "n": 2}, 0)]) == [{"V": value} for value in expected]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("FAILING(n)", "FAILING: ValueError: half way"),
        ("ENDLESS(n)", "ENDLESS: gives more than 10 rows for one record"),
    ],
)
def test_a_failure_is_in_the_log_with_the_functions_name(
    call: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalars, "ROWS_MAX", 10)
    run = Run(f"{SOURCE} CREATE STREAM o AS SELECT k, {call} AS v FROM s;", OWN)
    run("s", [("k", {"a": "x y", "n": 2}, 0)])
    assert message in "\n".join(run.log)


def one(value: int) -> int:
    return 1


def test_an_annotated_one_gives_an_iterator_or_a_list() -> None:
    with pytest.raises(DeclarationError, match=r"annotated as Iterator\[…\] or list\[…\]"):
        udtf(one)

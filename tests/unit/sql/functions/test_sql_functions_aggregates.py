"""Aggregates: results after each record, records taken out, sessions merged, limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal as Number
from typing import Any

import pytest

from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.functions.aggregates import (  # noqa: F401
    collecting,
    counting,
    extremes,
    offsets,
    statistics,
    sums,
)
from barnabas.sql.functions.catalog import BUILT_IN, Aggregator
from barnabas.sql.functions.signatures import choose
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Decimal,
    SqlType,
)


def aggregator(name: str, types: Sequence[SqlType], *constants: Any, **properties: Any) -> Any:
    """The aggregate of that name for columns and constants of those types."""
    overload = choose(name, BUILT_IN[name].aggregates, types, casts=False).overload
    settings = {f"ksql.functions.{name.lower()}.{key}": value for key, value in properties.items()}
    return overload.aggregator(types, constants, settings)


def state_of(machine: Aggregator, values: Sequence[Any]) -> Any:
    state = machine.initial()
    for value in values:
        state = machine.add(state, *(value if isinstance(value, tuple) else (value,)))
    return state


def results(machine: Aggregator, values: Sequence[Any]) -> list[Any]:
    return [machine.result(state_of(machine, values[: count + 1])) for count in range(len(values))]


MONEY = Decimal(4, 1)

AFTER_EACH: list[tuple[str, str, Sequence[SqlType], tuple[Any, ...], list[Any], list[Any]]] = [
    ("count leaves out NULL", "COUNT", [STRING], (), ["a", None, "a"], [1, 1, 2]),
    ("sum", "SUM", [INTEGER], (), [1, None, 5, -2], [1, 1, 6, 4]),
    ("sum wraps", "SUM", [INTEGER], (), [2**31 - 1, 1], [2**31 - 1, -(2**31)]),
    ("sum of bigints wraps", "SUM", [BIGINT], (), [2**63 - 1, 1], [2**63 - 1, -(2**63)]),
    ("sum of doubles", "SUM", [DOUBLE], (), [None, 1.5, 2.25], [0.0, 1.5, 3.75]),
    (
        "sum of decimals",
        "SUM",
        [MONEY],
        (),
        [Number("10.5"), None, Number("-1.0")],
        [Number("10.5"), Number("10.5"), Number("9.5")],
    ),
    ("sum of lists", "SUM_LIST", [Array(BIGINT)], (), [[1, None, 3], None, []], [4, 4, 4]),
    ("mean", "AVG", [INTEGER], (), [None, 3, 4], [0.0, 3.0, 3.5]),
    ("mean beyond 32 bits", "AVG", [INTEGER], (), [2**31 - 1, 2**31 - 1], [2147483647.0] * 2),
    ("least", "MIN", [INTEGER], (), [None, 3, 1, 2], [None, 3, 1, 1]),
    ("greatest", "MAX", [STRING], (), ["b", None, "c", "a"], ["b", "b", "c", "c"]),
    ("bytes are signed", "MIN", [BYTES], (), [b"\x00", b"\x80"], [b"\x00", b"\x80"]),
    ("UTF-16 order", "MAX", [STRING], (), ["\uffff", "\U0001f600"], ["\uffff", "\uffff"]),
    ("least zero", "MIN", [DOUBLE], (), [0.0, -0.0], [0.0, -0.0]),
    ("dates", "MAX", [DATE], (), [5, 9, 7], [5, 9, 9]),
    (
        "top 2",
        "TOPK",
        [INTEGER, INTEGER],
        (2,),
        [1, 3, None, 2, 2, 3],
        [[1], [3, 1], [3, 1], [3, 2], [3, 2], [3, 3]],
    ),
    (
        "top with other columns: of equal ones the first stays",
        "TOPK",
        [INTEGER, STRING, BOOLEAN, INTEGER],
        (1,),
        [(1, "a", True), (1, "b", True), (2, None, False)],
        [
            [{"sort_col": 1, "col0": "a", "col1": True}],
            [{"sort_col": 1, "col0": "a", "col1": True}],
            [{"sort_col": 2, "col0": None, "col1": False}],
        ],
    ),
    (
        "top distinct",
        "TOPKDISTINCT",
        [STRING, INTEGER],
        (2,),
        ["a", "c", "c", None, "b"],
        [["a"], ["c", "a"], ["c", "a"], ["c", "a"], ["c", "b"]],
    ),
    (
        "list",
        "COLLECT_LIST",
        [STRING],
        (),
        ["a", None, "a"],
        [["a"], ["a", None], ["a", None, "a"]],
    ),
    (
        "set",
        "COLLECT_SET",
        [STRING],
        (),
        ["a", None, "a", None, "b"],
        [["a"], ["a", None], ["a", None], ["a", None], ["a", None, "b"]],
    ),
    (
        "histogram",
        "HISTOGRAM",
        [STRING],
        (),
        ["a", "b", None, "a"],
        [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1}],
    ),
    ("one value", "ATTR", [STRING], (), ["a", "a", None, "a"], ["a", "a", None, None]),
    ("first", "EARLIEST_BY_OFFSET", [STRING], (), [None, "a", "b", None], [None, "a", "a", "a"]),
    ("first, NULL too", "EARLIEST_BY_OFFSET", [STRING, BOOLEAN], (False,), [None, "a"], [None] * 2),
    (
        "first 2",
        "EARLIEST_BY_OFFSET",
        [STRING, INTEGER],
        (2,),
        [None, "a", "b", "c"],
        [[], ["a"], ["a", "b"], ["a", "b"]],
    ),
    (
        "first 2, NULL too",
        "EARLIEST_BY_OFFSET",
        [STRING, INTEGER, BOOLEAN],
        (2, False),
        [None, "a", "b"],
        [[None], [None, "a"], [None, "a"]],
    ),
    ("last", "LATEST_BY_OFFSET", [STRING], (), ["a", None, "b"], ["a", "a", "b"]),
    ("last, NULL too", "LATEST_BY_OFFSET", [STRING, BOOLEAN], (False,), ["a", None], ["a", None]),
    (
        "last 2",
        "LATEST_BY_OFFSET",
        [STRING, INTEGER],
        (2,),
        ["a", "b", None, "c"],
        [["a"], ["a", "b"], ["a", "b"], ["b", "c"]],
    ),
    ("variance", "STDDEV_SAMP", [INTEGER], (), [None, 1, 3, 8], [0.0, 0.0, 2.0, 13.0]),
    ("deviation", "STDDEV_SAMPLE", [DOUBLE], (), [1.0, 3.0], [0.0, math.sqrt(2)]),
    ("distinct", "COUNT_DISTINCT", [STRING], (), ["a", "b", None, "a"], [1, 2, 2, 2]),
]


@pytest.mark.parametrize("case", AFTER_EACH, ids=lambda case: case[0])
def test_the_result_after_each_record(case: tuple[Any, ...]) -> None:
    _, name, types, constants, values, expected = case
    assert results(aggregator(name, types, *constants), values) == expected


REMOVABLE: list[tuple[str, Sequence[SqlType], list[Any], list[Any]]] = [
    ("COUNT", [STRING], ["a", None], ["b", None]),
    ("SUM", [INTEGER], [1, None], [2**31 - 1, None, 5]),
    ("SUM", [DOUBLE], [1.5], [2.25, None]),
    ("SUM", [MONEY], [Number("1.5")], [Number("2.5"), None]),
    ("SUM_LIST", [Array(INTEGER)], [[1, 2]], [[3, None], None]),
    ("AVG", [BIGINT], [4, 5], [7, None]),
    ("COLLECT_LIST", [STRING], ["a", None], ["b", "b"]),
    ("HISTOGRAM", [STRING], ["a", "b"], ["a", "c", None]),
    ("ATTR", [STRING], ["a"], ["b", None, "a"]),
    ("STDDEV_SAMP", [INTEGER], [1, 3], [8, None]),
    ("STDDEV_SAMPLE", [INTEGER], [1, 3], [8, None]),
    ("CORRELATION", [DOUBLE, DOUBLE], [(1.0, 2.0), (2.0, 1.0)], [(3.0, 5.0), (None, 1.0)]),
]


@pytest.mark.parametrize("case", REMOVABLE, ids=lambda case: f"{case[0]} {case[1][0]}")
def test_records_taken_out_again_leave_no_trace(case: tuple[Any, ...]) -> None:
    name, types, kept, passing = case
    machine = aggregator(name, types)
    state = state_of(machine, [*kept, *passing])
    for value in passing:
        state = machine.remove(state, *(value if isinstance(value, tuple) else (value,)))
    assert machine.result(state) == pytest.approx(machine.result(state_of(machine, kept)))


ALL_TYPES: list[tuple[str, Sequence[SqlType], tuple[Any, ...], list[Any], list[Any]]] = [
    ("COUNT", [STRING], (), ["a"], [None, "b"]),
    ("SUM", [INTEGER], (), [1], [None, 2]),
    ("SUM", [MONEY], (), [Number("1.5")], [Number("2.5")]),
    ("AVG", [DOUBLE], (), [1.0], [2.0, 4.5]),
    ("MIN", [STRING], (), ["a"], [None, "b"]),
    ("MAX", [INTEGER], (), [], [4]),
    ("TOPK", [INTEGER, INTEGER], (3,), [5, 1], [4, 9]),
    ("TOPKDISTINCT", [INTEGER, INTEGER], (3,), [5, 1], [5, 9]),
    ("COLLECT_LIST", [INTEGER], (), [5, 1], [5, None]),
    ("COLLECT_SET", [INTEGER], (), [5, 1], [5, None]),
    ("HISTOGRAM", [STRING], (), ["a", "b"], ["b", "c"]),
    ("ATTR", [STRING], (), ["a"], ["a", "a"]),
    ("EARLIEST_BY_OFFSET", [INTEGER], (), [1], [2]),
    ("EARLIEST_BY_OFFSET", [INTEGER], (), [None], [2]),
    ("EARLIEST_BY_OFFSET", [INTEGER, INTEGER], (3,), [1, 2], [3, 4]),
    ("LATEST_BY_OFFSET", [INTEGER], (), [1], [2]),
    ("LATEST_BY_OFFSET", [INTEGER], (), [1], [None]),
    ("LATEST_BY_OFFSET", [INTEGER, INTEGER], (3,), [1, 2], [3, 4]),
    ("STDDEV_SAMP", [INTEGER], (), [1, 2], [3, 40]),
    ("STDDEV_SAMPLE", [INTEGER], (), [], [3, 40]),
    ("CORRELATION", [INTEGER, INTEGER], (), [(1, 2), (2, 5)], [(3, 4), (None, 1)]),
    ("COUNT_DISTINCT", [INTEGER], (), [1, 2], [2, 3, None]),
]


@pytest.mark.parametrize("case", ALL_TYPES, ids=lambda case: f"{case[0]} {case[2]}")
def test_two_sessions_merged_are_as_one(case: tuple[Any, ...]) -> None:
    name, types, constants, left, right = case
    machine = aggregator(name, types, *constants)
    merged = machine.merge(state_of(machine, left), state_of(machine, right))
    whole = machine.result(state_of(machine, [*left, *right]))
    assert machine.result(merged) == pytest.approx(whole)
    with_empty = machine.merge(machine.initial(), state_of(machine, left))
    assert machine.result(with_empty) == machine.result(state_of(machine, left))


@pytest.mark.parametrize("case", ALL_TYPES, ids=lambda case: f"{case[0]} {case[2]}")
def test_states_are_never_changed_in_place(case: tuple[Any, ...]) -> None:
    name, types, constants, left, right = case
    machine = aggregator(name, types, *constants)
    states = [machine.initial(), state_of(machine, left), state_of(machine, right)]
    before = repr(states)
    for value in [*left, *right]:
        arguments = value if isinstance(value, tuple) else (value,)
        for state in states:
            machine.add(state, *arguments)
            if hasattr(machine, "remove"):
                machine.remove(state, *arguments)
    machine.merge(states[1], states[2])
    machine.merge(states[2], states[1])
    assert repr(states) == before


def test_arrival_decides_between_merged_sessions() -> None:
    for name, expected in [("EARLIEST_BY_OFFSET", "first"), ("LATEST_BY_OFFSET", "second")]:
        machine = aggregator(name, [STRING])
        late_session = state_of(machine, ["first"])
        early_session = state_of(machine, ["second"])
        assert machine.result(machine.merge(early_session, late_session)) == expected


def test_a_later_process_numbers_above_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = aggregator("LATEST_BY_OFFSET", [STRING])
    monkeypatch.setattr(offsets, "ARRIVALS", offsets.Arrivals(5))
    earlier = state_of(machine, ["a", "b", "c"])
    monkeypatch.setattr(offsets, "ARRIVALS", offsets.Arrivals(100))
    later = state_of(machine, ["d"])
    assert (earlier["SEQ"], later["SEQ"]) == (7, 100)
    assert machine.result(machine.merge(later, earlier)) == "d"


@pytest.mark.parametrize("limit", [2, "2"])
def test_collections_stop_at_their_limit(limit: Any) -> None:
    for name in ("COLLECT_LIST", "COLLECT_SET"):
        machine = aggregator(name, [INTEGER], limit=limit)
        assert results(machine, [1, 2, 3])[-1] == [1, 2]
        one = state_of(machine, [1])
        assert machine.merge(one, state_of(machine, [2, 3])) == [1, 2]


def test_a_negative_limit_is_none() -> None:
    assert results(aggregator("COLLECT_LIST", [INTEGER], limit=-1), [1, 2])[-1] == [1, 2]


def test_a_histogram_keeps_to_its_thousand_values() -> None:
    machine = aggregator("HISTOGRAM", [STRING])
    state = {str(number): 1 for number in range(1000)}
    assert machine.add(state, "new") == state
    assert machine.add(state, "7")["7"] == 2
    assert machine.remove(state, "new") == state


def test_a_sum_of_decimals_overflows() -> None:
    machine = aggregator("SUM", [MONEY])
    state = state_of(machine, [Number("999.9")])
    with pytest.raises(EvaluationError, match="Numeric field overflow: A field with precision 4"):
        machine.add(state, Number("0.1"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("EARLIEST_BY_OFFSET", "earliestN must be 1 or greater"),
        ("LATEST_BY_OFFSET", "latestN must be 1 or greater"),
        ("TOPK", "k must be 1 or greater"),
        ("TOPKDISTINCT", "k must be 1 or greater"),
    ],
)
def test_a_count_of_none_is_refused(name: str, message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        aggregator(name, [INTEGER, INTEGER], 0)


CORRELATIONS: list[tuple[str, list[tuple[Any, Any]], float]] = [
    ("none", [], math.nan),
    ("one", [(1, 1)], math.nan),
    ("two rising", [(1, 1), (2, 5)], 1.0),
    ("two falling", [(1, 5), (2, 1)], -1.0),
    ("equal values", [(1, 5), (1, 7)], math.nan),
    ("NULLs do not count", [(1, 1), (None, 9), (9, None), (2, 5)], 1.0),
    ("four", [(1, 2), (2, 1), (3, 4), (4, 3)], 0.6),
]


@pytest.mark.parametrize("case", CORRELATIONS, ids=lambda case: case[0])
def test_correlation(case: tuple[str, list[tuple[Any, Any]], float]) -> None:
    _, values, expected = case
    machine = aggregator("CORRELATION", [INTEGER, INTEGER])
    found = machine.result(state_of(machine, values))
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("count", [512, 513, 3000, 40_000])
def test_distinct_values_are_counted_exactly_and_then_within_two_percent(count: int) -> None:
    machine = aggregator("COUNT_DISTINCT", [BIGINT])
    state = state_of(machine, [*range(count), 0, 1, 2])
    found = machine.result(state)
    assert found == count if count <= 512 else abs(found - count) <= 0.02 * count
    assert len(state) < 17_000


def test_merged_estimates_count_common_values_once() -> None:
    machine = aggregator("COUNT_DISTINCT", [BIGINT])
    many, few = state_of(machine, range(2000)), state_of(machine, range(1900, 2100))
    for merged in (machine.merge(many, few), machine.merge(few, many)):
        assert abs(machine.result(merged) - 2100) <= 42
    other = state_of(machine, range(1000, 3000))
    assert abs(machine.result(machine.merge(many, other)) - 3000) <= 60


def test_every_aggregate_says_what_it_does() -> None:
    for name in {case[0] for case in ALL_TYPES}:
        assert BUILT_IN[name].description
        assert BUILT_IN[name].category == "AGGREGATE"

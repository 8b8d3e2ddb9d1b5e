"""Aggregates against a computation over all values at once, in any cut into sessions."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.catalog import Aggregator
from barnabas.sql.functions.signatures import choose
from support.effort import examples
from support.sql_typed_calls import types_of

Values = list[Any]
Naive = Callable[[Values], Any]


def _known(values: Values) -> Values:
    return [value for value in values if value is not None]


def _first_of_each(values: Values) -> Values:
    return list(dict.fromkeys(values))


CASES: dict[str, tuple[str, str, tuple[Any, ...], Naive]] = {
    "COUNT": ("COUNT", "INTEGER", (), lambda values: len(_known(values))),
    "SUM": ("SUM", "BIGINT", (), lambda values: sum(_known(values))),
    "AVG": ("AVG", "INTEGER", (), lambda values: statistics.fmean(_known(values) or [0])),
    "MIN": ("MIN", "INTEGER", (), lambda values: min(_known(values), default=None)),
    "MAX": ("MAX", "INTEGER", (), lambda values: max(_known(values), default=None)),
    "TOPK": (
        "TOPK",
        "INTEGER, INTEGER",
        (3,),
        lambda values: sorted(_known(values), reverse=True)[:3],
    ),
    "TOPKDISTINCT": (
        "TOPKDISTINCT",
        "INTEGER, INTEGER",
        (3,),
        lambda values: sorted(set(_known(values)), reverse=True)[:3],
    ),
    "COLLECT_LIST": ("COLLECT_LIST", "INTEGER", (), list),
    "COLLECT_SET": ("COLLECT_SET", "INTEGER", (), _first_of_each),
    "HISTOGRAM": (
        "HISTOGRAM",
        "STRING",
        (),
        lambda values: dict(Counter(map(str, _known(values)))),
    ),
    "COUNT_DISTINCT": ("COUNT_DISTINCT", "INTEGER", (), lambda values: len(set(_known(values)))),
    "EARLIEST": (
        "EARLIEST_BY_OFFSET",
        "INTEGER",
        (),
        lambda values: next(iter(_known(values)), None),
    ),
    "EARLIEST 2": (
        "EARLIEST_BY_OFFSET",
        "INTEGER, INTEGER",
        (2,),
        lambda values: _known(values)[:2],
    ),
    "LATEST": ("LATEST_BY_OFFSET", "INTEGER", (), lambda values: (_known(values) or [None])[-1]),
    "LATEST 2": ("LATEST_BY_OFFSET", "INTEGER, INTEGER", (2,), lambda values: _known(values)[-2:]),
    "STDDEV_SAMP": (
        "STDDEV_SAMP",
        "INTEGER",
        (),
        lambda values: statistics.variance(_known(values)) if len(_known(values)) > 1 else 0.0,
    ),
}

_VALUES = st.lists(st.one_of(st.none(), st.integers(-20, 20)), max_size=12)


def _machine(name: str, types: str, constants: tuple[Any, ...]) -> Aggregator:
    choice = choose(name, functions()[name].aggregates, types_of(types), casts=False)
    return choice.overload.aggregator(types_of(types), constants)


def _state(machine: Aggregator, name: str, values: Values) -> Any:
    state = machine.initial()
    for value in values:
        state = machine.add(state, _argument(name, value))
    return state


def _argument(name: str, value: Any) -> Any:
    return str(value) if name == "HISTOGRAM" and value is not None else value


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@settings(max_examples=examples(15))
@given(values=_VALUES, cut=st.integers(0, 12))
def test_any_cut_into_sessions_gives_what_all_values_give(
    case: tuple[str, str, tuple[Any, ...], Naive], values: Values, cut: int
) -> None:
    name, types, constants, naive = case
    machine = _machine(name, types, constants)
    left = _state(machine, name, values[:cut])
    right = _state(machine, name, values[cut:])
    assert machine.result(machine.merge(left, right)) == pytest.approx(naive(values))


UNDONE = ("COUNT", "SUM", "AVG", "HISTOGRAM", "STDDEV_SAMP")


@pytest.mark.parametrize("case", [CASES[name] for name in UNDONE], ids=UNDONE)
@settings(max_examples=examples(15))
@given(values=_VALUES, gone=st.sets(st.integers(0, 11)))
def test_rows_that_left_a_table_do_not_count(
    case: tuple[str, str, tuple[Any, ...], Naive], values: Values, gone: set[int]
) -> None:
    name, types, constants, naive = case
    machine: Any = _machine(name, types, constants)
    state = _state(machine, name, values)
    for index in gone:
        if index < len(values):
            state = machine.remove(state, _argument(name, values[index]))
    left = [value for index, value in enumerate(values) if index not in gone]
    assert machine.result(state) == pytest.approx(naive(left), abs=1e-6)

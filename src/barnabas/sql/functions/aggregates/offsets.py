"""EARLIEST_BY_OFFSET and LATEST_BY_OFFSET: the first or last values by order of arrival.

When two sessions become one, a number kept with each value says which arrived first. The numbers
come from one counter in the process, which starts with the microseconds of the clock: so a process
goes on above the numbers that an earlier one left in stored state (ksqlDB's begins at 0 again).

Where ksqlDB keeps the earliest of two merged sessions for LATEST_BY_OFFSET(column, n), ours keeps
the latest, as both our documentation and theirs say.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.aggregates.base import struct_of
from barnabas.sql.functions.catalog import Aggregator, aggregate
from barnabas.sql.types import BIGINT, Array, SqlType, Value


class Arrivals:
    """Numbers values in the order in which they arrive."""

    def __init__(self, first: int) -> None:
        self._next = first

    def numbered(self, value: Value) -> dict[str, Value]:
        """The value with its number."""
        number = self._next
        self._next = number + 1
        return {"SEQ": number, "VAL": value}


ARRIVALS = Arrivals(time.time_ns() // 1000)

_ONE = ("(value T) -> T", "(value T, ignoreNulls BOOLEAN!) -> T")
_MANY = (
    "(value T, {n} INTEGER!) -> ARRAY<T>",
    "(value T, {n} INTEGER!, ignoreNulls BOOLEAN!) -> ARRAY<T>",
)


@aggregate(
    "EARLIEST_BY_OFFSET",
    *_ONE,
    *(signature.format(n="earliestN") for signature in _MANY),
    description="The value of a column that arrived first, or an array of the first n. NULLs do "
    "not count, unless ignoreNulls is false.",
)
def earliest(types: Sequence[SqlType], constants: Sequence[Value] = ()) -> Aggregator:
    n, ignore_nulls = _options(constants, "earliestN")
    if n is None:
        return Earliest(types[0], ignore_nulls)
    return EarliestSeveral(types[0], n, ignore_nulls)


@aggregate(
    "LATEST_BY_OFFSET",
    *_ONE,
    *(signature.format(n="latestN") for signature in _MANY),
    description="The value of a column that arrived last, or an array of the last n. NULLs do not "
    "count, unless ignoreNulls is false.",
)
def latest(types: Sequence[SqlType], constants: Sequence[Value] = ()) -> Aggregator:
    n, ignore_nulls = _options(constants, "latestN")
    if n is None:
        return Latest(types[0], ignore_nulls)
    return LatestSeveral(types[0], n, ignore_nulls)


def _options(constants: Sequence[Value], n_name: str) -> tuple[int | None, bool]:
    n: int | None = None
    ignore_nulls = True
    for constant in constants:
        if isinstance(constant, bool):
            ignore_nulls = constant
        else:
            n = constant
    if n is not None and n < 1:
        raise AnalysisError(f"{n_name} must be 1 or greater")
    return n, ignore_nulls


class _One:
    """State: the numbered value, NULL before there is one."""

    def __init__(self, kind: SqlType, ignore_nulls: bool) -> None:
        self.state_type = struct_of(SEQ=BIGINT, VAL=kind)
        self.result_type = kind
        self._ignore_nulls = ignore_nulls

    def initial(self) -> Value:
        return None

    def result(self, state: Value) -> Value:
        return None if state is None else state["VAL"]


class Earliest(_One):
    """The first value."""

    def add(self, state: Value, value: Value) -> Value:
        if state is not None or (value is None and self._ignore_nulls):
            return state
        return ARRIVALS.numbered(value)

    def merge(self, left: Value, right: Value) -> Value:
        if left is None or right is None:
            return right if left is None else left
        return left if left["SEQ"] < right["SEQ"] else right


class Latest(_One):
    """The last value."""

    def add(self, state: Value, value: Value) -> Value:
        if value is None and self._ignore_nulls:
            return state
        return ARRIVALS.numbered(value)

    def merge(self, left: Value, right: Value) -> Value:
        if left is None or right is None:
            return right if left is None else left
        return left if left["SEQ"] >= right["SEQ"] else right


class _Several:
    """State: an array of numbered values."""

    def __init__(self, kind: SqlType, n: int, ignore_nulls: bool) -> None:
        self.state_type = Array(struct_of(SEQ=BIGINT, VAL=kind))
        self.result_type = Array(kind)
        self._n, self._ignore_nulls = n, ignore_nulls

    def initial(self) -> Value:
        return []

    def result(self, state: Value) -> Value:
        return [entry["VAL"] for entry in state]


class EarliestSeveral(_Several):
    """The first n values."""

    def add(self, state: Value, value: Value) -> Value:
        if len(state) >= self._n or (value is None and self._ignore_nulls):
            return state
        return [*state, ARRIVALS.numbered(value)]

    def merge(self, left: Value, right: Value) -> Value:
        return sorted([*left, *right], key=lambda entry: entry["SEQ"])[: self._n]


class LatestSeveral(_Several):
    """The last n values."""

    def add(self, state: Value, value: Value) -> Value:
        if value is None and self._ignore_nulls:
            return state
        return [*state, ARRIVALS.numbered(value)][-self._n :]

    def merge(self, left: Value, right: Value) -> Value:
        return sorted([*left, *right], key=lambda entry: entry["SEQ"])[-self._n :]

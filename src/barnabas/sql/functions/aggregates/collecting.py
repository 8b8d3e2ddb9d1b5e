"""COLLECT_LIST, COLLECT_SET, HISTOGRAM and ATTR: aggregates that keep the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from barnabas.sql.functions.aggregates.base import Plain, struct_of
from barnabas.sql.functions.catalog import aggregate
from barnabas.sql.types import BIGINT, INTEGER, STRING, Array, Map, SqlType, Value

LIST_LIMIT = "ksql.functions.collect_list.limit"
SET_LIMIT = "ksql.functions.collect_set.limit"
UNLIMITED = 2**31 - 1

HISTOGRAM_ENTRIES_MAX = 1000


class _Collected(Plain):
    """An array of values, as long as a setting allows."""

    limit_setting: ClassVar[str]

    def __init__(
        self,
        types: Sequence[SqlType],
        constants: Sequence[Value] = (),
        properties: Mapping[str, Value] | None = None,
    ) -> None:
        super().__init__(Array(types[0]))
        self._limit = _limit(properties or {}, self.limit_setting)

    def initial(self) -> Value:
        return []


@aggregate(
    "collect_list",
    "(value T) -> ARRAY<T>",
    description="An array of all values of a column, NULLs too. The setting "
    "ksql.functions.collect_list.limit says how many at most; later ones are left out.",
    takes_properties=True,
)
class CollectList(_Collected):
    """Values in their order; of a table, the last equal one is taken out."""

    limit_setting = LIST_LIMIT

    def add(self, state: Value, value: Value) -> Value:
        return [*state, value] if len(state) < self._limit else state

    def merge(self, left: Value, right: Value) -> Value:
        return [*left, *right][: self._limit]

    def remove(self, state: Value, value: Value) -> Value:
        for index in range(len(state) - 1, -1, -1):
            if state[index] == value:
                return [*state[:index], *state[index + 1 :]]
        return state


@aggregate(
    "collect_set",
    "(value T) -> ARRAY<T>",
    description="An array of the distinct values of a column, NULL too. The setting "
    "ksql.functions.collect_set.limit says how many at most; later ones are left out.",
    takes_properties=True,
)
class CollectSet(_Collected):
    """Each value once, in the order of first appearance."""

    limit_setting = SET_LIMIT

    def add(self, state: Value, value: Value) -> Value:
        return [*state, value] if len(state) < self._limit and value not in state else state

    def merge(self, left: Value, right: Value) -> Value:
        for value in right:
            left = self.add(left, value)
        return left


def _limit(properties: Mapping[str, Value], name: str) -> int:
    limit = int(properties.get(name, UNLIMITED))
    return limit if limit >= 0 else UNLIMITED


@aggregate(
    "histogram",
    "(value STRING) -> MAP<STRING, BIGINT>",
    description="A map from each value of a column to how often it occurs; 1000 values at most, "
    "later ones are left out.",
)
class Histogram(Plain):
    """A count for each value. NULLs do not count: no format has a place for NULL as a key."""

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value] = ()) -> None:
        super().__init__(Map(STRING, BIGINT))

    def initial(self) -> Value:
        return {}

    def add(self, state: Value, value: Value) -> Value:
        return self._plus(state, value, 1)

    def merge(self, left: Value, right: Value) -> Value:
        for value, count in right.items():
            left = self._plus(left, value, count)
        return left

    def _plus(self, state: Value, value: Value, count: int) -> Value:
        if value is None:
            return state
        before = state.get(value, 0)
        if not before and len(state) >= HISTOGRAM_ENTRIES_MAX:
            return state
        return {**state, value: before + count}

    def remove(self, state: Value, value: Value) -> Value:
        count = state.get(value, 0)
        if count > 1:
            return {**state, value: count - 1}
        return {kept: count for kept, count in state.items() if kept != value}


@aggregate(
    "ATTR",
    "(value T) -> T",
    description="The one value that a column has in all rows; NULL where it has several.",
)
class Attribute:
    """Counts each value, so that rows of a table can be removed. A count of 0 stays in the list."""

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value] = ()) -> None:
        self.result_type = types[0]
        self.state_type = Array(struct_of(VALUE=types[0], COUNT=INTEGER))

    def initial(self) -> Value:
        return []

    def add(self, state: Value, value: Value) -> Value:
        return _counted(state, value, 1)

    def remove(self, state: Value, value: Value) -> Value:
        return _counted(state, value, -1)

    def merge(self, left: Value, right: Value) -> Value:
        for entry in right:
            left = _counted(left, entry["VALUE"], entry["COUNT"])
        return left

    def result(self, state: Value) -> Value:
        values = [entry["VALUE"] for entry in state if entry["COUNT"] > 0]
        return values[0] if len(values) == 1 else None


def _counted(state: Value, value: Value, count: int) -> Value:
    for index, entry in enumerate(state):
        if entry["VALUE"] == value:
            changed = {"VALUE": value, "COUNT": max(0, entry["COUNT"] + count)}
            return [*state[:index], changed, *state[index + 1 :]]
    return [*state, {"VALUE": value, "COUNT": count}] if count > 0 else state

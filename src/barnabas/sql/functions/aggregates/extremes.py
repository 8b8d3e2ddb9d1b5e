"""MIN, MAX, TOPK and TOPKDISTINCT: the values that come first or last in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap

from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.aggregates.base import Plain
from barnabas.sql.functions.catalog import aggregate
from barnabas.sql.functions.ordering import order_key
from barnabas.sql.types import Array, Field, SqlType, Struct, Value

_COMPARABLE = (
    "INTEGER",
    "BIGINT",
    "DOUBLE",
    "DECIMAL",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "STRING",
    "BYTES",
)


class Extreme(Plain):
    """The least or greatest value; NULLs do not count, NULL where there is no other."""

    def __init__(self, kind: SqlType, choose: Callable[..., Value]) -> None:
        super().__init__(kind)
        self._choose, self._key = choose, order_key(kind)

    def initial(self) -> Value:
        return None

    def add(self, state: Value, value: Value) -> Value:
        if value is None:
            return state
        if state is None:
            return value
        return self._choose(state, value, key=self._key)

    merge = add


@aggregate(
    "MIN",
    *(f"(value {kind}) -> {kind}" for kind in _COMPARABLE),
    description="The least value of a column; NULLs do not count.",
)
def minimum(types: Sequence[SqlType], constants: Sequence[Value] = ()) -> Extreme:
    return Extreme(types[0], min)


@aggregate(
    "MAX",
    *(f"(value {kind}) -> {kind}" for kind in _COMPARABLE),
    description="The greatest value of a column; NULLs do not count.",
)
def maximum(types: Sequence[SqlType], constants: Sequence[Value] = ()) -> Extreme:
    return Extreme(types[0], max)


@aggregate(
    "TOPK",
    *(
        f"(value {kind}, others ANY..., k INTEGER!) -> ARRAY<ANY>"
        for kind in ("INTEGER", "BIGINT", "DOUBLE", "STRING")
    ),
    description="The k greatest values of a column, from the greatest, with the other columns of "
    "their records if any are given.",
)
class Top(Plain):
    """An array from the greatest value; of equal ones the earlier comes first and stays."""

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value]) -> None:
        self._k = _positive(constants[0])
        kinds = types[:-1]
        self._names = ["sort_col", *(f"col{index}" for index in range(len(kinds) - 1))]
        self._is_struct = len(kinds) > 1
        item = (
            Struct(tuple(starmap(Field, zip(self._names, kinds, strict=True))))
            if self._is_struct
            else kinds[0]
        )
        super().__init__(Array(item))
        self._order = order_key(kinds[0])

    def initial(self) -> Value:
        return []

    def add(self, state: Value, value: Value, *others: Value) -> Value:
        if value is None:
            return state
        item = dict(zip(self._names, (value, *others), strict=True)) if self._is_struct else value
        return self._insert(state, item)

    def merge(self, left: Value, right: Value) -> Value:
        for item in right:
            left = self._insert(left, item)
        return left

    def _insert(self, state: Value, item: Value) -> Value:
        key = self._key(item)
        place = len(state)
        while place and self._key(state[place - 1]) < key:
            place -= 1
        if place >= self._k:
            return state
        return [*state[:place], item, *state[place : self._k - 1]]

    def _key(self, item: Value) -> Value:
        value = item["sort_col"] if self._is_struct else item
        return value if self._order is None else self._order(value)


@aggregate(
    "TOPKDISTINCT",
    *(f"(value {kind}, k INTEGER!) -> ARRAY<{kind}>" for kind in _COMPARABLE),
    description="The k greatest distinct values of a column, from the greatest.",
)
class TopDistinct(Plain):
    """Like TOPK, but each value once."""

    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value]) -> None:
        super().__init__(Array(types[0]))
        self._k, self._key = _positive(constants[0]), order_key(types[0])

    def initial(self) -> Value:
        return []

    def add(self, state: Value, value: Value) -> Value:
        if value is None or value in state:
            return state
        return sorted([*state, value], key=self._key, reverse=True)[: self._k]

    def merge(self, left: Value, right: Value) -> Value:
        for value in right:
            left = self.add(left, value)
        return left


def _positive(k: Value) -> int:
    if k is None or k < 1:
        raise AnalysisError("k must be 1 or greater")
    return int(k)

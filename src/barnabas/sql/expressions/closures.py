"""The closures that compiled expressions are made of, for what is more than one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.sql.errors import FAILURES
from barnabas.sql.expressions.calls import ScalarCall
from barnabas.sql.expressions.casts import same
from barnabas.sql.expressions.comparisons import Comparison
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.types import Value

Evaluate = Callable[[Sequence[Any]], Any]
"""From a row to a value."""


def constant(value: Value) -> Evaluate:
    """The same value for every row."""
    return lambda row: value


def comparing(
    operator: nodes.ComparisonOperator, left: Evaluate, right: Evaluate, how: Comparison
) -> Evaluate:
    """A comparison: false with NULL on either side, but for IS [NOT] DISTINCT FROM."""
    convert_left, convert_right, compare = how.convert_left, how.convert_right, how.compare
    is_distinct = operator is nodes.ComparisonOperator.IS_DISTINCT_FROM
    if is_distinct or operator is nodes.ComparisonOperator.IS_NOT_DISTINCT_FROM:
        return _telling_apart(left, right, how, is_distinct=is_distinct)
    if convert_left is None and convert_right is None:

        def compare_plain(row: Sequence[Any]) -> bool:
            one, other = left(row), right(row)
            return one is not None and other is not None and compare(one, other)

        return compare_plain

    def compare_converted(row: Sequence[Any]) -> bool:
        one, other = left(row), right(row)
        if one is None or other is None:
            return False
        return compare(
            one if convert_left is None else convert_left(one),
            other if convert_right is None else convert_right(other),
        )

    return compare_converted


def _telling_apart(
    left: Evaluate, right: Evaluate, how: Comparison, *, is_distinct: bool
) -> Evaluate:
    convert_left, convert_right = how.convert_left or same, how.convert_right or same
    compare = how.compare

    def tell_apart(row: Sequence[Any]) -> bool:
        one, other = left(row), right(row)
        if one is None or other is None:
            return ((one is None) != (other is None)) is is_distinct
        return compare(convert_left(one), convert_right(other))

    return tell_apart


def item_at(items: Sequence[Value], index: int) -> Value:
    """Counted from 1, or from the end with -1; NULL outside."""
    at = index - 1 if index > 0 else len(items) + index if index < 0 else -1
    return items[at] if 0 <= at < len(items) else None


def invocation(call: ScalarCall, arguments: Sequence[Evaluate]) -> Evaluate:
    """A call of a scalar function's implementation."""
    overload = call.overload
    implementation: Callable[..., Value] = overload.implementation
    if overload.takes_types:
        implementation = partial(
            implementation, types=tuple(argument.taken_type for argument in call.arguments)
        )
    if overload.null_is_null:
        return _null_to_null(implementation, arguments)
    match arguments:
        case []:
            return lambda row: implementation()
        case [one]:
            return lambda row: implementation(one(row))
        case [one, other]:
            return lambda row: implementation(one(row), other(row))
    return lambda row: implementation(*[argument(row) for argument in arguments])


class BatchedCall:
    """A call of a function that takes many records at once: `prepare` computes it for a batch of
    rows. A row that was not prepared is computed alone."""

    def __init__(self, call: ScalarCall, arguments: Sequence[Evaluate]) -> None:
        self._batch = call.overload.implementation.batch  # type: ignore[attr-defined]  # has one
        self._types = tuple(argument.taken_type for argument in call.arguments)
        self._arguments = tuple(arguments)
        self._made: dict[int, Value] = {}

    @staticmethod
    def suits(call: ScalarCall) -> bool:
        """Return whether the function takes batches."""
        return hasattr(call.overload.implementation, "batch")

    def __call__(self, row: Sequence[Any]) -> Value:
        place = id(row)
        if place in self._made:
            return self._made[place]
        columns = [[argument(row)] for argument in self._arguments]
        (value,) = self._batch(columns, self._types, 1)
        return value

    def prepare(self, rows: Sequence[Sequence[Any]]) -> None:
        """Call for all rows that have arguments, which stay where they are until `forget`.

        If the function fails, nobody knows of which row: then each asks for itself.
        """
        places, taken = [], []
        for row in rows:
            try:
                taken.append([argument(row) for argument in self._arguments])
            except FAILURES:
                continue  # it fails again, and is noted, when its row is evaluated
            places.append(id(row))
        if not taken:
            return
        columns = list(map(list, zip(*taken, strict=True)))
        try:
            values = self._batch(columns, self._types, len(taken))
        except FAILURES:
            return
        self._made = dict(zip(places, values, strict=True))

    def forget(self) -> None:
        """The rows that were prepared are done."""
        self._made = {}


def _null_to_null(implementation: Callable[..., Value], arguments: Sequence[Evaluate]) -> Evaluate:
    if len(arguments) == 1:
        (one,) = arguments
        return lambda row: None if (value := one(row)) is None else implementation(value)

    def invoke(row: Sequence[Any]) -> Value:
        values = [argument(row) for argument in arguments]
        return None if None in values else implementation(*values)

    return invoke

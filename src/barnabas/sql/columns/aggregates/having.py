"""HAVING for batches: what comes out of the groups of an aggregate whose rows are filtered.

A group leaves a tombstone if a row of it came out before. So the rows between count too: each
change of each group gives a state, and the condition is evaluated for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from barnabas.sql.columns.arithmetic import wrap_integers
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.kernels import KernelCompiler
from barnabas.sql.columns.vectors import Indexes, Mask, Numbers, Vector, vector_of
from barnabas.sql.errors import FAILURES
from barnabas.sql.functions.aggregates.base import Fold
from barnabas.sql.functions.catalog import Aggregator, Function
from barnabas.sql.runtime.aggregates import Aggregation, StateRow
from barnabas.sql.runtime.forms import FilterForm
from barnabas.sql.runtime.tables import TableFilterNode
from barnabas.sql.syntax.expressions import FunctionCall
from barnabas.sql.types import BaseType, Value


class Groups(NamedTuple):
    """`of`: the group of each record's part in a window. `records`: that record. Groups are
    numbered from 0; `first` and `last` are places in `of`."""

    of: Indexes
    records: Indexes
    starts: Indexes | None
    first: Indexes
    last: Indexes


class Shown(NamedTuple):
    """What HAVING lets out of the groups: the place in `Groups.of` of a group's last change that
    is a result, -1 for none; and whether that is a row, not a tombstone."""

    places: Indexes
    is_row: Mask


EachState = Callable[[list[Value], Indexes, Vector | None], list[Value]]
"""Of groups' states, after each value of a column the state of the value's group with it."""


class Having:
    """The filter behind an aggregate. `each`: the aggregates' states."""

    def __init__(
        self,
        node: TableFilterNode,
        form: FilterForm,
        functions: Mapping[str, Function],
        each: Sequence[EachState],
    ) -> None:
        self.node = node
        self._columns = form.columns
        self._condition = KernelCompiler(form.columns, functions).kernel(form.condition)
        self._each = tuple(each)

    def shown(
        self,
        aggregation: Aggregation,
        kept: Sequence[Vector],
        columns: Sequence[Vector | None],
        groups: Groups,
        states: Sequence[StateRow],
        others: Sequence[Sequence[Value]],
    ) -> Shown | None:
        """Return None if the row engine must decide. `columns`: the arguments of each part;
        `others`: of each group the window's bounds and the key."""
        count, width = len(states), len(kept)
        of = np.concatenate([np.arange(count, dtype=np.int64), groups.of]).tolist()
        try:
            found = [
                [*before, *each(before, groups.of, column)]
                for each, column, before in zip(
                    self._each,
                    columns,
                    ([state[width + n] for state in states] for n in range(len(columns))),
                    strict=True,
                )
            ]
        except FAILURES:
            return None
        holds = self.holds(
            aggregation,
            [[state[at] for state in states] + vector.to_list() for at, vector in enumerate(kept)],
            found,
            [[values[group] for group in of] for values in others],
        )
        return None if holds is None else _shown(groups, holds[:count], holds[count:])

    def holds(
        self,
        aggregation: Aggregation,
        kept: Sequence[list[Value]],
        states: Sequence[Sequence[Value]],
        others: Sequence[list[Value]],
    ) -> Mask | None:
        """Return for which of some changes of groups the condition holds; None if the row engine
        must decide. Of each change: the kept columns, the aggregates' states, and `others`."""
        made = list(kept)
        try:
            for aggregator, of_one in zip(aggregation.aggregators, states, strict=True):
                made.append(list(map(aggregator.result, of_one)))
        except FAILURES:
            return None
        made += others
        size = len(made[0])
        doubt = np.zeros(size, np.bool_)
        vectors = [
            vector_of(column.type, list(made[place]), doubt)
            for column, place in zip(self._columns, aggregation.places(len(made)), strict=True)
        ]
        places = np.arange(size, dtype=np.int64)
        frame = Frame(places, vectors, [], None, places, doubt)
        passes = self._condition(frame)
        if frame.doubt.any():
            return None
        holds: Mask = passes.data if passes.valid is None else passes.data & passes.valid
        return holds


def _shown(groups: Groups, before: Mask, after: Mask) -> Shown:
    order = np.argsort(groups.of, kind="stable")
    earlier = np.empty(len(after), np.bool_)
    earlier[order[1:]] = after[order[:-1]]
    earlier[groups.first] = before
    places = np.full(len(before), -1, np.int64)
    changes = np.flatnonzero(after | earlier)
    places[groups.of[changes]] = changes
    return Shown(places, after[places] & (places >= 0))


# --- states after each record ----------------------------------------------------------------


def _each_one_by_one(aggregator: Aggregator) -> EachState:
    def each(states: list[Value], of: Indexes, column: Vector | None) -> list[Value]:
        found, after = list(states), []
        plus = aggregator.add
        if column is None:
            for group in of.tolist():
                found[group] = plus(found[group])
                after.append(found[group])
            return after
        for group, value in zip(of.tolist(), column.to_list(), strict=True):
            found[group] = plus(found[group], value)
            after.append(found[group])
        return after

    return each


def each_count(states: list[Value], of: Indexes, column: Vector | None) -> list[Value]:
    """Counts of values that are not NULL; of records if there is no column."""
    added = np.ones(len(of), np.int64)
    if column is not None and column.valid is not None:
        added[~column.valid] = 0
    found: list[Value] = _cumulated(np.array(states, np.int64), of, added).tolist()
    return found


def _each_sum(base: BaseType) -> EachState:
    def each(states: list[Value], of: Indexes, column: Vector | None) -> list[Value]:
        assert column is not None
        added = column.data.astype(np.int64)
        if column.valid is not None:
            added[~column.valid] = 0
        found = _cumulated(np.array(states, np.int64), of, added)
        after: list[Value] = (wrap_integers(found) if base is BaseType.INTEGER else found).tolist()
        return after

    return each


def _cumulated(before: Numbers, of: Indexes, added: Numbers) -> Numbers:
    """Of each group, from `before` on, the sum after each number; it wraps around."""
    order = np.argsort(of, kind="stable")
    sums = np.cumsum(added[order])
    group = of[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    zero = (sums[starts] - added[order][starts])[np.cumsum(np.diff(group, prepend=-1) != 0) - 1]
    found = np.empty(len(of), np.int64)
    found[order] = before[group] + (sums - zero)
    return found


def each_state(call: FunctionCall, aggregator: Aggregator, base: BaseType | None) -> EachState:
    """The states of an aggregate over a column of type `base`."""
    name = call.name.upper()
    if isinstance(aggregator, Fold) and name == "COUNT":
        return each_count
    is_whole = base in (BaseType.INTEGER, BaseType.BIGINT)
    if isinstance(aggregator, Fold) and name == "SUM" and is_whole and base is not None:
        return _each_sum(base)
    return _each_one_by_one(aggregator)

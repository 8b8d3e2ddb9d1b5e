"""Aggregates over columns: the states of groups with all values of a batch added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from barnabas.java.numbers import wrap_bigint, wrap_integer
from barnabas.sql.columns.aggregates.having import EachState, each_count, each_state
from barnabas.sql.columns.compiling import Kernel
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.kernels import KernelCompiler
from barnabas.sql.columns.vectors import WHOLE, Indexes, Numbers, Vector
from barnabas.sql.functions.aggregates.base import Fold
from barnabas.sql.functions.aggregates.extremes import Extreme
from barnabas.sql.functions.catalog import Aggregator, Function
from barnabas.sql.runtime.aggregates import AggregateNode
from barnabas.sql.runtime.forms import AggregateForm
from barnabas.sql.syntax.expressions import FunctionCall
from barnabas.sql.types import BaseType, Value

AddAll = Callable[[list[Value], Indexes, Vector], list[Value]]
"""The states of groups with all values of a column added: each value has its group's number."""


class Argument(NamedTuple):
    """What one aggregate takes of a batch: `kernel` gives the column, None for COUNT(*). `add` is
    None if the aggregate has no form for columns: then values are added one by one."""

    kernel: Kernel | None
    aggregator: Aggregator
    add: AddAll | None
    each: EachState

    def column(self, frame: Frame) -> Vector | None:
        """The values of a frame's records."""
        return None if self.kernel is None else self.kernel(frame)

    def added(self, states: list[Value], of: Indexes, column: Vector | None) -> list[Value]:
        """The groups' states with all values. `of`: the groups of the records."""
        if column is None:
            counts = np.bincount(of, minlength=len(states)).tolist()
            return [one + more for one, more in zip(states, counts, strict=True)]
        return (self.add or _one_by_one(self.aggregator))(states, of, column)

    def added_to_sessions(
        self, before: Sequence[tuple[Value] | None], of: Indexes, column: Vector | None
    ) -> list[Value]:
        """The same of sessions, each with a record; None begins one. Each record finds its
        session's state merged with an initial one, as in the row engine."""
        if column is None or self.add is not None:  # merging changes nothing
            return self.added(self._begun(before), of, column)
        found = [None if state is None else state[0] for state in before]
        for group, state in zip(of.tolist(), self._merging(before, of, column), strict=True):
            found[group] = state
        return found

    def each_of_sessions(
        self, before: Sequence[tuple[Value] | None], of: Indexes, column: Vector | None
    ) -> list[Value]:
        """The state of each record's session with it; arguments as of `added_to_sessions`."""
        if column is None or self.add is not None:
            return self.each(self._begun(before), of, column)
        return list(self._merging(before, of, column))

    def _begun(self, before: Sequence[tuple[Value] | None]) -> list[Value]:
        return [self.aggregator.initial() if state is None else state[0] for state in before]

    def _merging(
        self, before: Sequence[tuple[Value] | None], of: Indexes, column: Vector
    ) -> Iterator[Value]:
        initial, plus, merge = self.aggregator.initial, self.aggregator.add, self.aggregator.merge
        found = list(before)
        for group, value in zip(of.tolist(), column.to_list(), strict=True):
            known = found[group]
            state = plus(initial() if known is None else merge(initial(), known[0]), value)
            found[group] = (state,)
            yield state


def columns_to_add(frame: Frame, arguments: Sequence[Argument]) -> list[Vector | None] | None:
    """The columns that aggregates take of a frame, which keeps only records with a key: others
    count nowhere. Return None if a record is in doubt."""
    columns = [argument.column(frame) for argument in arguments]
    if frame.doubt.any():
        return None
    if frame.has_key is not None:
        kept = np.flatnonzero(frame.has_key)
        columns = [None if column is None else column.take(kept) for column in columns]
        frame.keep(frame.has_key)
    return columns


def arguments_of(
    form: AggregateForm, node: AggregateNode, functions: Mapping[str, Function]
) -> list[Argument] | None:
    """What the aggregates of a node take; None if one must take records one by one."""
    compiler = KernelCompiler(form.columns, functions)
    found: list[Argument] = []
    for call, aggregator in zip(form.calls, node.aggregation.aggregators, strict=True):
        if not call.arguments:
            if call.name.upper() != "COUNT":
                return None
            found.append(Argument(None, aggregator, _count, each_count))
            continue
        changing = node.aggregation.column_counts[len(found)]
        if changing != 1:
            return None
        sql_type = compiler.type_of(call.arguments[0])
        base = None if sql_type is None else sql_type.base
        kernel = compiler.kernel(call.arguments[0])
        each = each_state(call, aggregator, base)
        found.append(Argument(kernel, aggregator, _adding(call, aggregator, base), each))
    return found


def _one_by_one(aggregator: Aggregator) -> AddAll:
    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        found = list(states)
        plus = aggregator.add
        for group, value in zip(of.tolist(), column.to_list(), strict=True):
            found[group] = plus(found[group], value)
        return found

    return add


def _count(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
    counted = of if column.valid is None else of[column.valid]
    counts = np.bincount(counted, minlength=len(states)).tolist()
    return [one + more for one, more in zip(states, counts, strict=True)]


def _sums(zero: Numbers, of: Indexes, column: Vector) -> Numbers:
    """Sums from `zero` on, in the order of the records."""
    data = column.data
    if column.valid is not None:
        of, data = of[column.valid], data[column.valid]
    with np.errstate(all="ignore"):
        np.add.at(zero, of, data)
    return zero


def _sum(base: BaseType) -> AddAll:
    dtype = np.float64 if base is BaseType.DOUBLE else np.int64

    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        found: list[Value] = _sums(np.array(states, dtype), of, column).tolist()
        return list(map(wrap_integer, found)) if base is BaseType.INTEGER else found

    return add


def _average(base: BaseType) -> AddAll:
    is_double = base is BaseType.DOUBLE
    dtype = np.float64 if is_double else np.int64
    wrap: Callable[[Value], Value] = float if is_double else wrap_bigint

    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        sums = _sums(np.array([state["SUM"] for state in states], dtype), of, column)
        counts = _count([state["COUNT"] for state in states], of, column)
        return [
            {"SUM": wrap(total), "COUNT": count}
            for total, count in zip(sums.tolist(), counts, strict=True)
        ]

    return add


def _extreme(*, is_least: bool) -> AddAll:
    bounds = np.iinfo(np.int64)
    worst = bounds.max if is_least else bounds.min
    choose = np.minimum if is_least else np.maximum

    def add(states: list[Value], of: Indexes, column: Vector) -> list[Value]:
        data = column.data
        if column.valid is not None:
            of, data = of[column.valid], data[column.valid]
        found = np.array([worst if state is None else state for state in states], np.int64)
        choose.at(found, of, data)
        has = np.array([state is not None for state in states], np.bool_)
        has[of] = True
        pairs = zip(found.tolist(), has.tolist(), strict=True)
        return [value if there else None for value, there in pairs]

    return add


def _adding(call: FunctionCall, aggregator: Aggregator, base: BaseType | None) -> AddAll | None:
    name = call.name.upper()
    is_number = base in (BaseType.INTEGER, BaseType.BIGINT, BaseType.DOUBLE)
    if isinstance(aggregator, Fold) and name == "COUNT":
        return _count
    if isinstance(aggregator, Fold) and name == "SUM" and is_number and base is not None:
        return _sum(base)
    if isinstance(aggregator, Extreme) and base in WHOLE and name in ("MIN", "MAX"):
        return _extreme(is_least=name == "MIN")
    if name == "AVG" and is_number and base is not None:
        return _average(base)
    return None

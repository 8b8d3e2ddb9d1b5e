"""The graph of nodes that a plan becomes, and what building one takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from barnabas.sql.runtime.evaluation import BatchedCall, Compiler, Log, value_or_none
from barnabas.sql.runtime.flow import Flow, Parts
from barnabas.sql.runtime.forms import NeededKeyForm
from barnabas.sql.runtime.layout import Layout, Pick, picker
from barnabas.sql.runtime.mentions import names_of
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stage import Channel, Exit, Stage
from barnabas.sql.runtime.streams import Getter, NotNullKeyNode
from barnabas.sql.schema import Column, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression


class Derived(NamedTuple):
    """A layout made of another one: `pick` takes its rows from a row and the values made behind it,
    at `places`; None if the row is it."""

    layout: Layout
    pick: Pick | None
    places: list[int] | None


class Graph:
    """The nodes of a plan as they are made: connects them, cuts stages, derives layouts."""

    def __init__(self, compiler: Compiler, log: Log, mentioned: frozenset[str]) -> None:
        self.compiler = compiler
        self.log = log
        self.mentioned = mentioned
        self._counts: Counter[str] = Counter()
        self._all_parts: list[Parts] = []
        self.channels: list[Channel] = []
        self.batched: list[BatchedCall] = []
        """Of the expressions that `getter` has compiled; a user of them clears it before."""

    def stages(self) -> tuple[Stage, ...]:
        """The stages, each behind those that write its channels."""
        left = [parts for parts in self._all_parts if parts.joined is None]
        made: list[Stage] = []
        written: set[int] = set()
        while left:
            parts = next(parts for parts in left if parts.reads <= written)
            left.remove(parts)
            written |= parts.writes
            made.append(Stage(len(made), parts.inputs, parts.outputs, parts.nodes))
        return tuple(made)

    def name(self, kind: str) -> str:
        """A name for a step's state that steps without state do not shift."""
        self._counts[kind] += 1
        return f"{kind}-{self._counts[kind]}"

    def new_parts(self) -> Parts:
        parts = Parts()
        self._all_parts.append(parts)
        return parts

    def next(
        self, flow: Flow, node: Node, process: Callable[[Record], None] | None = None
    ) -> Parts:
        """Connect a node behind a flow, in the same stage."""
        flow.node.forward = process or node.process
        parts = flow.parts.root()
        if node not in parts.nodes:
            parts.nodes.append(node)
        return parts

    def cut(self, flow: Flow, name: str, *, keeps_no_key: bool = False) -> Flow:
        """Repartition a flow: its records go through a channel into a new stage."""
        before = NotNullKeyNode(keeps=keeps_no_key)
        before.form = NeededKeyForm(keeps_no_key)
        self.next(flow, before)
        return self.through_channel(replace(flow, node=before), name)

    def through_channel(self, flow: Flow, name: str) -> Flow:
        entry = Node()
        parts = self.new_parts()
        parts.nodes.append(entry)
        self.channel(flow, name, parts, entry.process)
        return replace(flow, node=entry, parts=parts, is_rekeyed=False)

    def channel(
        self, flow: Flow, name: str, into: Parts, process: Callable[[Record], None]
    ) -> None:
        """Send a flow's records through a channel into a stage's node."""
        channel = Channel(len(self.channels), name, flow.layout.columns, flow.keys)
        self.channels.append(channel)
        out = Exit()
        self.next(flow, out)
        flow.parts.root().outputs.append((channel, out))
        into.root().inputs.append((channel, process))

    def getter(self, expression: Expression, layout: Layout, message: str) -> Getter:
        if isinstance(expression, ColumnReference):
            place = layout.place(expression.name)
            if place is not None:
                return itemgetter(place)
        evaluator = self.compiler.expression(expression, layout.columns)
        self.batched += evaluator.batched
        return value_or_none(evaluator, message, self.log)

    def derive(
        self, source: Layout, made: Sequence[Column], schema: Schema, *, prefers_made: bool = True
    ) -> Derived:
        """The layout of rows with the schema's value columns, taken by name from those of the
        source and those `made` behind them.

        Columns that are nowhere are left out: nothing mentions them, or they would be there.
        """
        width = len(source.columns)
        behind = {column.name: width + place for place, column in enumerate(made)}
        there = behind.keys() | set(names_of(source.columns))
        listed = tuple(column for column in schema.value if column.name in there)
        layout = Layout(listed).with_hidden((*made, *source.columns), self.mentioned)
        places = []
        for column in layout.columns:
            place = source.place(column.name)
            if column.name in behind and (place is None or prefers_made):
                place = behind[column.name]
            assert place is not None
            places.append(place)
        pick = changed(places, width, width + len(made))
        return Derived(layout, pick, None if pick is None else places)


def changed(places: list[int], width: int, whole: int) -> Pick | None:
    """A picker from a row `whole` wide, or None if the first `width` values as they are do."""
    if places == list(range(width)):
        return None
    return picker(places, whole) or (lambda row: row)

"""The graph of nodes that a plan becomes, and what building one takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple

from barnabas.sql.runtime.evaluation import BatchedCall, Compiler, Log, value_or_none
from barnabas.sql.runtime.forms import NeededKeyForm
from barnabas.sql.runtime.layout import Layout, Pick, picker
from barnabas.sql.runtime.mentions import names_of
from barnabas.sql.runtime.node import Node, TableNode
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stage import Channel, Exit, Input, Output, Stage
from barnabas.sql.runtime.streams import Getter, NotNullKeyNode
from barnabas.sql.schema import Column, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression

# -- what a plan is built with: the stage that a step's node belongs to, and what it hands on


@dataclass(eq=False)
class Parts:
    """What belongs to one stage; `joined` leads to the stage that took it in."""

    inputs: list[tuple[Input, Callable[[Record], None]]] = field(default_factory=list)
    outputs: list[tuple[Output, Exit]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    joined: Parts | None = None

    @property
    def reads(self) -> set[int]:
        """Indexes of the channels that the stage reads."""
        return {given.index for given, _ in self.inputs if isinstance(given, Channel)}

    @property
    def writes(self) -> set[int]:
        """Indexes of the channels that the stage writes."""
        return {given.index for given, _ in self.outputs if isinstance(given, Channel)}

    def root(self) -> Parts:
        return self.joined.root() if self.joined else self

    def take_in(self, other: Parts) -> None:
        if other is not self:
            self.inputs += other.inputs
            self.outputs += other.outputs
            self.nodes += other.nodes
            other.joined = self


@dataclass
class Flow:
    """What a step gives: the node whose records flow on, and what its rows hold."""

    node: Node
    layout: Layout
    keys: tuple[Column, ...]
    parts: Parts
    has_sessions: bool = False
    """True if the keys are windowed by sessions, whose ends are part of them."""
    is_rekeyed: bool = False
    """Of a stream: records of one key may lie in several partitions."""

    @property
    def table(self) -> TableNode:
        assert isinstance(self.node, TableNode), "a stream where a table must be"
        return self.node


# -- the graph of nodes


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

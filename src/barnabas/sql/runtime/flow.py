"""What a plan is built with: the stage that a step's node belongs to, and what it hands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.sql.runtime.layout import Layout
from barnabas.sql.runtime.node import Node, TableNode
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stage import Channel, Exit, Input, Output
from barnabas.sql.schema import Column


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

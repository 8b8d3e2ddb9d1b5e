"""Stages: the parts of a plan between repartitions, each run once for every partition.

A stage reads topics and channels (repartitioned records of an earlier stage) and writes channels
and the sink's topic. All records of one key reach the same partition of all of a stage's inputs:
the host sends each to `partition_of(key)`, or anywhere if it has no key. That holds for topics
too, unless their own partitions agree already.

    stage = staged.stages[i]
    stage.bind(lambda name: the store of that name in this partition)
    for output, record in stage.process(input_index, record): …
    stage.flush()                                   before the stores are committed

One Stage is compiled once and may be bound to one partition after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from barnabas.sql.plan.steps import QueryPlan, StreamSink, StreamSource, TableSink, TableSource
from barnabas.sql.runtime.node import Node, OpenStore, give_all
from barnabas.sql.runtime.records import Record
from barnabas.sql.schema import Column, Schema


@dataclass(frozen=True)
class Channel:
    """Records on their way between two stages, partitioned by their new key: the columns of their
    rows and of their keys."""

    index: int
    name: str
    columns: tuple[Column, ...] = ()
    keys: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Result:
    """What a plan without a sink gives: rows of its last step's value, for a push query."""

    schema: Schema


Input = Channel | StreamSource | TableSource
Output = Channel | StreamSink | TableSink | Result
Emitted = list[tuple[int, Record]]


class Exit(Node):
    """The exit of a stage's records."""

    def __init__(self) -> None:
        super().__init__()
        self.index = 0
        self.emitted: Emitted = []

    def process(self, record: Record) -> None:
        self.emitted.append((self.index, record))


class Stage:
    """Nodes that run together on one partition, with what goes in and comes out."""

    def __init__(
        self,
        index: int,
        inputs: Sequence[tuple[Input, Callable[[Record], None]]],
        outputs: Sequence[tuple[Output, Exit]],
        nodes: Sequence[Node],
    ) -> None:
        self.index = index
        self.inputs: tuple[Input, ...] = tuple(given for given, _ in inputs)
        self.outputs: tuple[Output, ...] = tuple(given for given, _ in outputs)
        self._entries = tuple(entry for _, entry in inputs)
        self._nodes = tuple(node for node in nodes if node.stores)
        self.takes_batches = any(node.batched for node in nodes)
        """Whether `process_all` is quicker than `process` for each record."""
        self._emitted: Emitted = []
        for place, (_, exit_node) in enumerate(outputs):
            exit_node.index, exit_node.emitted = place, self._emitted

    @property
    def stores(self) -> tuple[str, ...]:
        """Names of all stores; a stage that has none needs no keys to meet."""
        return tuple(name for node in self._nodes for name in node.stores)

    @property
    def keys(self) -> list[tuple[Column, ...]]:
        """The columns of each input's keys."""
        return [
            given.keys if isinstance(given, Channel) else given.schema.key for given in self.inputs
        ]

    def bind(self, open_store: OpenStore) -> None:
        """Work for the partition with these stores."""
        self._emitted.clear()
        for node in self._nodes:
            node.bind(open_store)

    def chain(self, input_index: int) -> list[Node]:
        """The nodes that an input's records go through one after the other, the first ones."""
        return nodes_behind(self._entries[input_index])

    def emitted(self) -> Emitted:
        """Records that nodes have sent since the last call, if they were called past `process`."""
        emitted = self._emitted[:]
        self._emitted.clear()
        return emitted

    def process(self, input_index: int, record: Record) -> Emitted:
        """Take one record, which the stage owns from then on: (output index, record) in order."""
        self._entries[input_index](record)
        if not self._emitted:
            return []
        emitted = self._emitted[:]
        self._emitted.clear()
        return emitted

    def process_all(self, input_index: int, records: Sequence[Record]) -> Emitted:
        """Take many records of one input: what `process` gives for each of them, in order."""
        give_all(self._entries[input_index], records)
        return self.emitted()

    def flush(self) -> None:
        """Write into the stores what was kept outside of them."""
        for node in self._nodes:
            node.flush()


def nodes_behind(take: Callable[[Record], None]) -> list[Node]:
    """The nodes that records go through one after the other, if `take` gets them."""
    nodes: list[Node] = []
    while isinstance(node := getattr(take, "__self__", None), Node) and take == node.process:
        nodes.append(node)
        take = node.forward
    return nodes


@dataclass(frozen=True)
class StagedPlan:
    """A plan as stages: those that write a channel come before the one that reads it.

    A channel is written by one output and read by one input. Where a stage has several inputs, a
    host that has records of more than one serves the one with the earliest timestamp first, of
    equal ones the first input's.
    """

    plan: QueryPlan
    stages: tuple[Stage, ...]
    channels: tuple[Channel, ...]

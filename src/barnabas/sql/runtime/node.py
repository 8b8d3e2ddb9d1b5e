"""Nodes: what a running stage is made of, one for each step (or half of one).

A node takes a record in `process` and gives what it makes to `forward`, before it returns. A node
owns the record that it was given: it may change it and pass it on, and does not look at it again
once it did. Rows belong to nobody and are never changed.

State lies in stores that `bind` opens, so that one compiled graph serves many partitions, one
after the other. A few figures of a node (the stream time, …) are kept in attributes while it runs:
`saved` names them, `bind` reads them and `flush` writes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.sql.runtime.evaluation import BatchedCall
from barnabas.sql.runtime.forms import Form
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.stores import Store

OpenStore = Callable[[str], Store]
StoreKey = tuple[Any, ...]

_SAVED_KEY: StoreKey = ("saved",)


def nowhere(_record: Record) -> None:
    """The target of records until a node is connected."""


class Node:
    """Passes records on as they are; other nodes are made of it."""

    saved: tuple[str, ...] = ()
    batched: Sequence[BatchedCall] = ()
    """Calls that `process_all` makes for all records at once."""
    form: Form | None = None
    """What the node does, as data; None where it can only be run record by record."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.forward: Callable[[Record], None] = nowhere
        self._figures: Store | None = None
        self._initial = None if not self.saved else [getattr(self, f) for f in self.saved]
        self._flushed: list[Any] = []

    def process(self, record: Record) -> None:
        """Take one record."""
        self.forward(record)

    def process_all(self, records: Sequence[Record]) -> None:
        """Take many records in order: the same as `process` for each."""
        for record in records:
            self.process(record)

    def forward_all(self, records: Sequence[Record]) -> None:
        """Pass many on."""
        give_all(self.forward, records)

    def bind(self, open_store: OpenStore) -> None:
        """Work for the partition whose stores `open_store` gives by name."""
        if self.saved:
            self._figures = open_store(f"{self.name}-figures")
            self._flushed = self._figures.get(_SAVED_KEY) or list(self._initial or ())
            for figure, value in zip(self.saved, self._flushed, strict=True):
                setattr(self, figure, value)

    def flush(self) -> None:
        """Write what is kept in attributes into the stores."""
        if self._figures is not None:
            figures = [getattr(self, figure) for figure in self.saved]
            if figures != self._flushed:
                self._figures.put(_SAVED_KEY, figures)
                self._flushed = figures

    @property
    def stores(self) -> tuple[str, ...]:
        """Names of the stores that `bind` opens."""
        return (f"{self.name}-figures",) if self.saved else ()


def give_all(take: Callable[[Record], None], records: Sequence[Record]) -> None:
    """Give records to what takes one at a time; to a node, all at once."""
    node = getattr(take, "__self__", None)
    if isinstance(node, Node) and take == node.process:
        node.process_all(records)
    else:
        for record in records:
            take(record)


class TableNode(Node, ABC):
    """A node whose records are changes of a table's rows.

    Old rows go along only where a node further down asks for them (`send_old`), as in Kafka
    Streams: it decides whether a filter can tell a row that leaves from one that never was there.
    """

    sends_old = False

    @abstractmethod
    def send_old(self, *, at_any_cost: bool) -> bool:
        """Ask for old rows; False if that would need a store and `at_any_cost` is not set."""

    @abstractmethod
    def need_view(self) -> None:
        """Ask that `get` works."""

    @abstractmethod
    def get(self, key: StoreKey) -> tuple[Row, int] | None:
        """The row of a key and its timestamp."""

    def rows_of(self, keys: Sequence[StoreKey]) -> list[Row | None]:
        """The rows of many keys with equally many parts."""
        return [None if given is None else given[0] for given in map(self.get, keys)]


def store_key(key: Row, window: WindowBounds | None) -> StoreKey:
    """The key of a table's row in a store."""
    return tuple(key) if window is None else (*key, *window)


def time_window_key(key: Row, window: WindowBounds | None) -> StoreKey:
    """The same where windows are known by their starts: as topics hold time windows, two of
    different sizes that start together are one key."""
    return tuple(key) if window is None else (*key, window.start_ms)

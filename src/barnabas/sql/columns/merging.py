"""Merges the records of several partitions into the order in which the row engine takes them.

The row engine takes the earliest of the heads of all queues. So a record is due at the latest
timestamp up to it in its queue; of equal ones the first queue's come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from barnabas.sql.columns.frames import Frame, joined
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.vectors import Indexes, Mask
from barnabas.sql.runtime.records import Record


class ByRows(NamedTuple):
    """The records of each batch, for the row engine: those that can be read."""

    records: list[list[Record]]


class Source(Protocol):
    """Reads batches, of a topic or a channel, as frames."""

    def read(self, raw: Any, /) -> tuple[Frame, Mask]:
        """All records that can be read, and which of them have no row."""
        ...

    def record(self, raw: Any, place: int, /) -> Record:
        """A record that `read` could read, as the row engine has it."""
        ...

    def records(self, raw: Any, places: Indexes, /) -> list[Record]:
        """The same of several."""
        ...


class Merged:
    """All records of batches that can be read, as one frame whose `places` count from 0.

    `rowless`: which have no value. `due`: when each comes.
    """

    def __init__(self, source: Source, raws: Sequence[Any]) -> None:
        self._source, self._raws = source, raws
        batches = [source.read(raw) for raw in raws]
        self._readable = [frame.places for frame, _ in batches]
        numbers = np.repeat(np.arange(len(raws)), [len(places) for places in self._readable])
        due = np.concatenate([np.maximum.accumulate(frame.timestamps) for frame, _ in batches])
        order = np.arange(len(due), dtype=np.int64)
        if len(batches) > 1:
            order = np.argsort(due, kind="stable")
        self.frame, self.rowless = _merged(batches, order)
        self.due = due[order]
        self._numbers = numbers[order]
        self._inner = np.concatenate(self._readable)[order]

    def records(self) -> list[list[Record]]:
        """The records of each batch, as the row engine has them."""
        return [
            self._source.records(raw, places)
            for raw, places in zip(self._raws, self._readable, strict=True)
        ]

    def record(self, place: int) -> Record:
        """One of them."""
        return self._source.record(self._raws[self._numbers[place]], int(self._inner[place]))

    def headers_of(self) -> Callable[[int], tuple[Header, ...]] | None:
        """Return what gives a record's headers; None if none has any."""
        return self._headers if any(raw.headers is not None for raw in self._raws) else None

    def _headers(self, place: int) -> tuple[Header, ...]:
        headers = self._raws[self._numbers[place]].headers
        return () if headers is None else tuple(headers[self._inner[place]])


def _merged(batches: Sequence[tuple[Frame, Mask]], order: Indexes) -> tuple[Frame, Mask]:
    frames = [frame for frame, _ in batches]
    places = np.arange(len(order), dtype=np.int64)
    if len(frames) == 1:
        frames[0].places = places
        return batches[0]
    frame = joined(frames, order, places)
    return frame, np.concatenate([rowless for _, rowless in batches])[order]

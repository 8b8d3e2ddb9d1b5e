"""Frames: the records of a batch on their way through the steps of a stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from barnabas.sql.columns.vectors import Indexes, Mask, Vector, concatenated
from barnabas.sql.runtime.records import Row


class Frame:
    """Records of a batch on their way through the steps, as columns.

    `places`: where each record is in the batch. `keys`: vectors of the key's columns; a record
    without a key has NULLs there, and is not in `has_key`, which is None if all have one.
    """

    __slots__ = ("columns", "doubt", "has_key", "keys", "places", "timestamps")

    def __init__(
        self,
        places: Indexes,
        columns: list[Vector],
        keys: list[Vector],
        has_key: Mask | None,
        timestamps: Indexes,
        doubt: Mask,
    ) -> None:
        self.places = places
        self.columns = columns
        self.keys = keys
        self.has_key = has_key
        self.timestamps = timestamps
        self.doubt = doubt

    def __len__(self) -> int:
        return len(self.places)

    def keyed(self) -> Mask:
        """Return which records have a key."""
        return np.ones(len(self), np.bool_) if self.has_key is None else self.has_key

    def part(self, at: Indexes) -> Frame:
        """The records at these places of the frame, as a frame of their own."""
        part = Frame(
            self.places, self.columns, self.keys, self.has_key, self.timestamps, self.doubt
        )
        part._take(at)
        return part

    def rows(self, at: Indexes) -> list[Row]:
        """The rows of the records at these places of the frame, as the row engine has them."""
        columns = [column.take(at).to_list() for column in self.columns]
        return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in at]

    def keep(self, kept: Mask) -> None:
        """Leave out the records that are not in `kept`."""
        if not kept.all():
            self._take(np.flatnonzero(kept))

    def _take(self, at: Indexes) -> None:
        self.places = self.places[at]
        self.columns = [column.take(at) for column in self.columns]
        self.keys = [key.take(at) for key in self.keys]
        self.has_key = None if self.has_key is None else self.has_key[at]
        self.timestamps = self.timestamps[at]
        self.doubt = self.doubt[at]


def together(frames: Sequence[Frame]) -> Frame:
    """Certain records of frames as one, in the order of their places."""
    if len(frames) == 1:
        return frames[0]
    places = np.concatenate([frame.places for frame in frames])
    order = np.argsort(places, kind="stable")
    return joined(frames, order, places[order])


def joined(frames: Sequence[Frame], order: Indexes, places: Indexes) -> Frame:
    """The records of frames behind each other, taken in this order; `places`: theirs in it."""
    has_key = np.concatenate([frame.keyed() for frame in frames])

    def all_of(parts: Sequence[Sequence[Vector]]) -> list[Vector]:
        return [concatenated(column).take(order) for column in zip(*parts, strict=True)]

    return Frame(
        places,
        all_of([frame.columns for frame in frames]),
        all_of([frame.keys for frame in frames]),
        None if has_key.all() else has_key[order],
        np.concatenate([frame.timestamps for frame in frames])[order],
        np.concatenate([frame.doubt for frame in frames])[order],
    )

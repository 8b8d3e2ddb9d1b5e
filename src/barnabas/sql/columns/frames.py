"""Records of a batch on their way through the steps."""

from __future__ import annotations

import numpy as np

from barnabas.sql.columns.vectors import Indexes, Mask, Vector


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

    def keep(self, kept: Mask) -> None:
        """Leave out the records that are not in `kept`."""
        if kept.all():
            return
        at = np.flatnonzero(kept)
        self.places = self.places[at]
        self.columns = [column.take(at) for column in self.columns]
        self.keys = [key.take(at) for key in self.keys]
        self.has_key = None if self.has_key is None else self.has_key[at]
        self.timestamps = self.timestamps[at]
        self.doubt = self.doubt[at]

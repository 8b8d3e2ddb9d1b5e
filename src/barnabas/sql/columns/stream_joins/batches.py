"""Both sides of a stream-stream join in a batch: their records in the row engine's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.stream_joins.meeting import Arrivals
from barnabas.sql.columns.vectors import Indexes, concatenated, key_codes
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.stream_joins import LEFT, RIGHT


class Part(NamedTuple):
    """A side's records, when each is due, and what gives their headers by their places."""

    frame: Frame
    due: Indexes
    headers: Callable[[int], tuple[Header, ...]] | None


class Batch:
    """Lists and tuples of two have the left side first.

    `places`: of each side's records among all. `keyed`: which have a key; `arrivals` are those, and
    `numbers` counts them from 1. `codes`: which of the different `keys` each record has. `times`,
    `sides`: of all records in order. `count`: of those with a key.
    """

    def __init__(self, parts: tuple[Part, Part], first: int) -> None:
        """`first`: the side of which records come first where both are due."""
        self._parts = parts
        self.frames = tuple(part.frame for part in parts)
        sizes = [len(frame) for frame in self.frames]
        sides = (first, 1 - first)
        order = np.argsort(np.concatenate([parts[side].due for side in sides]), kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        cut = sizes[first]
        by_first = (places[:cut], places[cut:])
        self.places = by_first if first == LEFT else by_first[::-1]
        self.sides = np.empty(len(order), np.int64)
        self._indexes = np.empty(len(order), np.int64)
        self.times = np.empty(len(order), np.int64)
        for side in (LEFT, RIGHT):
            self.sides[self.places[side]] = side
            self._indexes[self.places[side]] = np.arange(sizes[side])
            self.times[self.places[side]] = self.frames[side].timestamps
        self._find_keys(sizes)

    def _find_keys(self, sizes: Sequence[int]) -> None:
        keys = [concatenated(both) for both in zip(*(f.keys for f in self.frames), strict=True)]
        codes = key_codes(keys, sum(sizes))
        has_key = np.concatenate([frame.keyed() for frame in self.frames])
        with_key = np.flatnonzero(has_key)
        _, firsts, of = np.unique(codes[with_key], return_index=True, return_inverse=True)
        codes[with_key] = of
        lists = [key.take(with_key[firsts]).to_list() for key in keys]
        self.keys: list[StoreKey] = list(zip(*lists, strict=True))
        cut = sizes[LEFT]
        self.keyed = (np.flatnonzero(has_key[:cut]), np.flatnonzero(has_key[cut:]))
        self.codes = (codes[:cut], codes[cut:])
        in_order = np.zeros(len(self.times), np.int64)
        arrivals = []
        for side in (LEFT, RIGHT):
            keyed, times = self.keyed[side], self.frames[side].timestamps
            places = self.places[side][keyed]
            arrivals.append(Arrivals(places, times[keyed], self.codes[side][keyed]))
            in_order[places] = 1
        self.arrivals = (arrivals[LEFT], arrivals[RIGHT])
        counted = np.cumsum(in_order)
        self.numbers = (counted[arrivals[LEFT].places], counted[arrivals[RIGHT].places])
        self.count = len(with_key)

    def headers_of(self, places: Indexes) -> Callable[[int], tuple[Header, ...]] | None:
        """Return what gives headers of records that follow from those at these places."""
        if all(part.headers is None for part in self._parts):
            return None

        def headers(number: int) -> tuple[Header, ...]:
            place = places[number]
            part = self._parts[self.sides[place]]
            if part.headers is None:
                return ()
            return part.headers(int(part.frame.places[self._indexes[place]]))

        return headers

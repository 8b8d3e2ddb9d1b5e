"""Surviving offsets of an offset map, looked up by range instead of key."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import compress
from typing import Final

FLAGS_PER_OFFSET_MAX: Final = 12
"""A flag is a byte. Where more would be needed, the offsets are sorted, which takes as many."""


class Survivors:
    """Offsets of a map, from `first` to `last`.

    A flag for each offset between them, where not too few are in the map: to sort offsets that
    lie anywhere in memory costs several times as much.
    """

    __slots__ = ("_first", "_flags", "_sorted")

    def __init__(self, offsets: Collection[int], first: int, last: int) -> None:
        self._first = first
        self._flags: bytearray | None = None
        self._sorted: Sequence[int] = ()
        span = last - first + 1
        if span > FLAGS_PER_OFFSET_MAX * len(offsets):
            self._sorted = sorted(offsets)
            return
        self._flags = flags = bytearray(span)
        for offset in offsets:
            flags[offset - first] = 1

    def between(self, first: int, last: int) -> Sequence[int]:
        """Those from `first` to `last`, ascending."""
        flags = self._flags
        if flags is None:
            start = bisect_left(self._sorted, first)
            return self._sorted[start : bisect_right(self._sorted, last, start)]
        first = max(first, self._first)
        part = flags[first - self._first : max(0, last + 1 - self._first)]
        return list(compress(range(first, last + 1), part))

    def is_any_between(self, first: int, last: int) -> bool:
        """Whether there is one from `first` to `last`."""
        flags = self._flags
        if flags is None:
            start = bisect_left(self._sorted, first)
            return start < len(self._sorted) and self._sorted[start] <= last
        start = max(first - self._first, 0)
        return flags.find(1, start, max(0, last + 1 - self._first)) >= 0

"""A cache of objects that are made once per schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
ENTRIES_MAX = 1000


class Cache(Generic[K, V]):
    """Keeps the object made for a key; the oldest is dropped when there are too many.

    The same object is found by its identity: a schema keeps its hash, and nothing is compared.
    """

    __slots__ = ("_entries_max", "_made", "_make")

    def __init__(self, make: Callable[[K], V], entries_max: int = ENTRIES_MAX) -> None:
        self._make = make
        self._entries_max = entries_max
        self._made: dict[K, V] = {}

    def __call__(self, key: K) -> V:
        """Return the object made of the key, now or before."""
        try:
            return self._made[key]
        except KeyError:
            pass
        made = self._make(key)
        if len(self._made) >= self._entries_max:
            # Of two threads that see the same oldest key, one finds it gone.
            self._made.pop(next(iter(self._made)), None)
        self._made[key] = made
        return made

"""A store in memory: for tests, for the driver, and for queries that need no durable state."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from barnabas.sql.runtime.rows_encoding import encode_key


class MemoryStore:
    """A Store whose entries lie in a dictionary, with a sorted list of the encoded keys."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[tuple[Any, ...], Any]] = {}
        self._sorted: list[bytes] = []

    def get(self, key: tuple[Any, ...]) -> Any:
        entry = self._entries.get(encode_key(key))
        return entry[1] if entry else None

    def put(self, key: tuple[Any, ...], value: Any) -> None:
        encoded = encode_key(key)
        if value is None:
            if self._entries.pop(encoded, None) is not None:
                del self._sorted[bisect_left(self._sorted, encoded)]
            return
        if encoded not in self._entries:
            insort(self._sorted, encoded)
        self._entries[encoded] = (key, value)

    def range(
        self, low: tuple[Any, ...], high: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        start = bisect_left(self._sorted, encode_key(low))
        stop = bisect_left(self._sorted, encode_key(high))
        return iter([self._entries[key] for key in self._sorted[start:stop]])

    def __len__(self) -> int:
        return len(self._entries)

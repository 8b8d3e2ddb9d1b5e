"""Where steps keep their state: sorted keys to values, of one partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class Store(Protocol):
    """A sorted map of one step in one partition.

    Keys are tuples of plain values, which the host encodes so that their order stays. Values are
    what can be encoded: None, bool, int, float, str, bytes, Decimal, and lists, tuples and dicts
    of them. Nobody changes a value after it was put.
    """

    def get(self, key: tuple[Any, ...]) -> Any:
        """The value, or None."""
        ...

    def get_all(self, keys: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The values of many keys with equally many parts; None for a key without a value."""
        ...

    def put(self, key: tuple[Any, ...], value: Any) -> None:
        """Set the value; None deletes."""
        ...

    def put_all(self, keys: Sequence[tuple[Any, ...]], values: Sequence[Any]) -> None:
        """The same of many keys, no two of them equal, with equally many parts."""
        ...

    def range(
        self, low: tuple[Any, ...], high: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Entries with low <= key < high, ascending, as they were when the call began."""
        ...

    def numbered(
        self,
        head: tuple[Any, ...],
        keys: Sequence[tuple[Any, ...]],
        lows: Sequence[int],
        highs: Sequence[int],
    ) -> list[list[tuple[int, int, Any]]]:
        """For each key, of entries at (*head, *key, number, other number) both and the value, for
        numbers from the key's low to its high, both included. Keys have equally many parts."""
        ...

"""The order in which Java's HashMap gives its entries.

A MAP has no order, and ours keep that in which entries came. Where an order shows in a result that
users compare, as in REDUCE and in a MAP's text, it is that of `new HashMap(size)`, in which ksqlDB
keeps what it reads from JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BITS_32 = 0xFFFF_FFFF


def hash_order(entries: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The entries as a HashMap gives them; those whose keys are not all texts stay as they are."""
    items = list(entries.items())
    if len(items) < 2 or not all(isinstance(key, str) for key in entries):
        return items
    mask = _table_size(len(items)) - 1
    # Entries of one bucket stay in the order in which they came: the sort is stable.
    return sorted(items, key=lambda item: _spread(text_hash(item[0])) & mask)


def text_hash(text: str) -> int:
    """As String.hashCode, without sign."""
    value = 0
    for unit in memoryview(text.encode("utf-16", "surrogatepass")).cast("H")[1:]:
        value = (value * 31 + unit) & _BITS_32
    return value


def _spread(value: int) -> int:
    return value ^ (value >> 16)


def _table_size(count: int) -> int:
    """The buckets of a HashMap that was made for so many entries and holds them: a power of two,
    doubled when more than three quarters are taken."""
    size = 1 << (count - 1).bit_length()
    return size if count <= size * 3 // 4 else size * 2

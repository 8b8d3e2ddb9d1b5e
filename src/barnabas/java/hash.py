"""Java's hash of strings, the order of its HashMap and HashSet, and Kafka's murmur2.

Partitioning depends on them, and so does the visible order of entries: a MAP of SQL has no order,
and ours keep the order of insertion. If the order shows in a result that users compare, as in
REDUCE and in a MAP's text, it is that of `new HashMap(size)`, in which ksqlDB keeps MAPs from JSON.

Source: String.hashCode, java.util.HashMap; Kafka's Utils.abs and Utils.murmur2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

INT32_MIN = -(1 << 31)
_BITS_32 = 0xFFFF_FFFF
_SET_BUCKETS = 16
"""Of a HashSet with at most twelve elements."""


def text_hash(text: str) -> int:
    """`String.hashCode()`: over UTF-16 units, without sign."""
    value = 0
    for unit in memoryview(text.encode("utf-16", "surrogatepass")).cast("H")[1:]:
        value = (value * 31 + unit) & _BITS_32
    return value


def java_hash(text: str) -> int:
    """`String.hashCode()` as Java has it: a signed 32-bit number."""
    return as_int32(text_hash(text))


def hash_order(entries: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The entries as a HashMap gives them; those whose keys are not all texts stay as they are."""
    items = list(entries.items())
    if len(items) < 2 or not all(isinstance(key, str) for key in entries):
        return items
    mask = _table_size(len(items)) - 1
    # Entries of one bucket stay in the order in which they came: the sort is stable.
    return sorted(items, key=lambda item: _spread(text_hash(item[0])) & mask)


def hash_set_order(texts: Iterable[str]) -> list[str]:
    """Texts, each once, in the order in which a HashSet has them.

    For at most twelve: a larger set has more buckets.
    """
    return sorted(
        dict.fromkeys(texts), key=lambda text: _spread(text_hash(text)) & (_SET_BUCKETS - 1)
    )


def _spread(value: int) -> int:
    return value ^ (value >> 16)


def _table_size(count: int) -> int:
    """The buckets of a HashMap that was made for so many entries and holds them: a power of two,
    doubled when more than three quarters are taken."""
    size = 1 << (count - 1).bit_length()
    return size if count <= size * 3 // 4 else size * 2


def as_int32(value: int) -> int:
    """Return `value` as a Java int, which wraps around."""
    return ((value - INT32_MIN) & 0xFFFFFFFF) + INT32_MIN


def java_abs(value: int) -> int:
    """Kafka's Utils.abs: the smallest int, which has no absolute value, counts as 0."""
    return 0 if value == INT32_MIN else abs(value)


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 (unsigned)."""
    length = len(data)
    mixed = 0x9747B28C ^ length
    whole = length & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        k = (word * 0x5BD1E995) & 0xFFFFFFFF
        k = ((k ^ (k >> 24)) * 0x5BD1E995) & 0xFFFFFFFF
        mixed = ((mixed * 0x5BD1E995) & 0xFFFFFFFF) ^ k
    if length != whole:
        mixed = ((mixed ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 0x5BD1E995) & 0xFFFFFFFF
    return mixed ^ (mixed >> 15)

"""Keys → the latest offset of each, in bounded memory.

Python's dict, which is filled and asked for whole batches at a time in C. What it takes is
counted honestly (object headers, the table's growth), so it holds fewer keys than Kafka's table of
24 bytes an entry would: a round then ends at an earlier offset, and the next goes on from there.

Keys of up to 30 bytes stand for themselves; longer ones are replaced by 31 bytes of their BLAKE2b,
which cannot be taken for the former, and of which nobody can make two that are equal.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from hashlib import blake2b
from itertools import compress
from typing import Final

from barnabas.protocol.records.batch import NO_OFFSET

KEY_SIZE_BYTES_MAX: Final = 30
DIGEST_SIZE_BYTES: Final = 31
ENTRY_OBJECTS_BYTES: Final = 64 + 32
"""A `bytes` of up to 31 and an `int`, as the allocator rounds them."""
TABLE_ENTRY_BYTES: Final = 24
INDEX_ENTRY_BYTES: Final = 4


def map_bytes(entries: int) -> int:
    """The largest memory of a map of `count` keys, including while its table grows."""
    slots = 8
    while slots * 2 // 3 < entries:
        slots *= 2
    table = slots * 2 // 3 * TABLE_ENTRY_BYTES + slots * INDEX_ENTRY_BYTES
    return entries * ENTRY_OBJECTS_BYTES + table * 3 // 2


def entries_max(bytes_max: int) -> int:
    """The number of keys that a map of `bytes_max` holds: at least one, so that each round makes
    progress.
    """
    low, high = 1, max(2, bytes_max // ENTRY_OBJECTS_BYTES + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if map_bytes(middle) <= bytes_max:
            low = middle
        else:
            high = middle
    return low


def fingerprints(keys: Sequence[bytes], size_max: int) -> Sequence[bytes]:
    """The map's entry for each of `keys`, none of which is longer than `size_max`."""
    if size_max <= KEY_SIZE_BYTES_MAX:
        return keys
    return [
        key
        if len(key) <= KEY_SIZE_BYTES_MAX
        else blake2b(key, digest_size=DIGEST_SIZE_BYTES).digest()
        for key in keys
    ]


# Surviving offsets of an offset map, looked up by range instead of key.


FLAGS_PER_OFFSET_MAX: Final = 12
"""A flag is a byte. If more bits would be needed, the offsets are sorted instead, which takes as
much memory."""


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
        """Return whether there is one from `first` to `last`."""
        flags = self._flags
        if flags is None:
            start = bisect_left(self._sorted, first)
            return start < len(self._sorted) and self._sorted[start] <= last
        start = max(first - self._first, 0)
        return flags.find(1, start, max(0, last + 1 - self._first)) >= 0


class OffsetMap:
    """See the module. `latest_offset` is the last that the map takes in.

    Once it is full or complete, `survivors` tells the same the other way round: of the records
    that it took in, those whose offset is not in it were superseded, regardless of their keys.
    """

    __slots__ = (
        "_first_offset",
        "_last_offset",
        "_offsets",
        "_survivors",
        "entries_max",
        "get",
        "latest_offset",
    )

    def __init__(self, bytes_max: int, load_factor: float) -> None:
        self.entries_max = max(1, int(entries_max(bytes_max) * load_factor))
        self.latest_offset = NO_OFFSET
        self._offsets: dict[bytes, int] = {}
        self._survivors: Survivors | None = None
        self._first_offset, self._last_offset = 0, NO_OFFSET
        """All that was ever put lies between them."""
        self.get = self._offsets.get
        """The latest offset of what stands for a key; None if it is not in the map."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def utilization(self) -> float:
        return len(self._offsets) / self.entries_max

    @property
    def survivors(self) -> Survivors:
        """The offsets in the map.

        Found out when first asked for, in the memory that the growth of the table was given.
        """
        survivors = self._survivors
        if survivors is None:
            offsets = self._offsets.values()
            survivors = self._survivors = Survivors(offsets, self._first_offset, self._last_offset)
        return survivors

    def put_all(self, keys: Sequence[bytes], offsets: Sequence[int], key_size_max: int) -> bool:
        """Take in records in ascending order; whether all of them found room.

        If not, `latest_offset` is that of the last one that did. No key is longer than
        `key_size_max` bytes.
        """
        if not keys:
            return True
        self._survivors = None
        known = self._offsets
        if not known:
            self._first_offset = offsets[0]
        self._last_offset = offsets[-1]
        prints = fingerprints(keys, key_size_max)
        if len(known) + len(prints) <= self.entries_max:
            known.update(zip(prints, offsets, strict=True))
            return True
        for key, offset in zip(prints, offsets, strict=True):
            if len(known) >= self.entries_max:
                return False
            known[key] = offset
            self.latest_offset = offset
        return True

"""Keys → the latest offset of each, in bounded memory.

Python's dict, which is filled and asked for whole batches at a time in C. What it takes is
counted honestly (object headers, the table's growth), so it holds fewer keys than Kafka's table of
24 bytes an entry would: a round then ends at an earlier offset, and the next goes on from there.

Keys of up to 30 bytes stand for themselves; longer ones are replaced by 31 bytes of their BLAKE2b,
which cannot be taken for the former, and of which nobody can make two that are equal.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

KEY_SIZE_BYTES_MAX: Final = 30
DIGEST_SIZE_BYTES: Final = 31
ENTRY_OBJECTS_BYTES: Final = 64 + 32
"""A `bytes` of up to 31 and an `int`, as the allocator rounds them."""
TABLE_ENTRY_BYTES: Final = 24
INDEX_ENTRY_BYTES: Final = 4
NO_OFFSET: Final = -1


def map_bytes(entries: int) -> int:
    """What a map of so many keys takes at most, also while its table grows."""
    slots = 8
    while slots * 2 // 3 < entries:
        slots *= 2
    table = slots * 2 // 3 * TABLE_ENTRY_BYTES + slots * INDEX_ENTRY_BYTES
    return entries * ENTRY_OBJECTS_BYTES + table * 3 // 2


def entries_max(bytes_max: int) -> int:
    """How many keys a map of `bytes_max` holds; one at least, so that each round gets on."""
    low, high = 1, max(2, bytes_max // ENTRY_OBJECTS_BYTES + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if map_bytes(middle) <= bytes_max:
            low = middle
        else:
            high = middle
    return low


def fingerprints(keys: Sequence[bytes]) -> Sequence[bytes]:
    """What stands for each of `keys` in the map."""
    if not keys or max(map(len, keys)) <= KEY_SIZE_BYTES_MAX:
        return keys
    return [
        key
        if len(key) <= KEY_SIZE_BYTES_MAX
        else blake2b(key, digest_size=DIGEST_SIZE_BYTES).digest()
        for key in keys
    ]


class OffsetMap:
    """See the module. `latest_offset` is the last that the map takes in."""

    __slots__ = ("_offsets", "entries_max", "get", "latest_offset")

    def __init__(self, bytes_max: int, load_factor: float) -> None:
        self.entries_max = max(1, int(entries_max(bytes_max) * load_factor))
        self.latest_offset = NO_OFFSET
        self._offsets: dict[bytes, int] = {}
        self.get = self._offsets.get
        """The latest offset of what stands for a key; None if it is not in the map."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def utilization(self) -> float:
        return len(self._offsets) / self.entries_max

    def put_all(self, keys: Sequence[bytes], offsets: Iterable[int]) -> bool:
        """Take in records in ascending order; whether all of them found room.

        Where not, `latest_offset` is that of the last one that did.
        """
        known = self._offsets
        prints = fingerprints(keys)
        if len(known) + len(prints) <= self.entries_max:
            known.update(zip(prints, offsets, strict=True))
            return True
        for key, offset in zip(prints, offsets, strict=True):
            if len(known) >= self.entries_max:
                return False
            known[key] = offset
            self.latest_offset = offset
        return True

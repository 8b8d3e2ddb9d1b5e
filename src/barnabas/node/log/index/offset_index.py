"""The offset index: where in the segment an offset is to be looked for.

An entry (8 bytes, big-endian) is the last offset of an append relative to the segment's base,
i32, and the position of that append's first batch, i32. Source: Kafka's OffsetIndex.
"""

from struct import Struct
from typing import Final

from barnabas.node.log.errors import CorruptIndexError
from barnabas.node.log.index.entries import EntryFile

ENTRY: Final = Struct(">ii")
_OFFSET: Final = Struct(">i")
_POSITION: Final = Struct(">4xi")


class OffsetIndex(EntryFile):
    """Offset → position, sparse."""

    __slots__ = ()

    entry_size = 8
    offset_key = _OFFSET

    def append(self, offset: int, position: int) -> None:
        """Add an entry; offsets must ascend, which the log's order gives."""
        self._append(ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, target_offset: int) -> tuple[int, int]:
        """Find the greatest indexed offset that is not after `target_offset`.

        Returns (offset, position in bytes), or (base_offset, 0) without one.
        """
        number = self._count_up_to(_OFFSET, target_offset - self.base_offset) - 1
        return (self.base_offset, 0) if number < 0 else self.entry(number)

    def lookup_position(self, target_position: int) -> tuple[int, int]:
        """The last entry that does not point past `target_position`, as `lookup` returns it."""
        number = self._count_up_to(_POSITION, target_position) - 1
        return (self.base_offset, 0) if number < 0 else self.entry(number)

    def entry(self, number: int) -> tuple[int, int]:
        """Entry `number` as (offset, position). Raises CorruptIndexError if it cannot be true."""
        relative, position = ENTRY.unpack(self._entry(number))
        if relative < 0 or position < 0:
            raise CorruptIndexError(f"{self.path} has an entry ({relative}, {position})")
        return self.base_offset + relative, position

    def last(self) -> tuple[int, int]:
        """The last entry, or (base_offset, 0)."""
        count = self.count
        return self.entry(count - 1) if count else (self.base_offset, 0)

    def check(self, segment_size_bytes: int) -> None:
        """Raise CorruptIndexError if the last entry cannot be of a segment of that size.

        This finds ragged and zero-filled files; what else may be wrong shows at the look-up,
        when no batch is found where an entry points.
        """
        count = self.count
        if count:
            offset, position = self.entry(count - 1)
            if position >= segment_size_bytes:
                raise CorruptIndexError(f"{self.path} ends with ({offset}, {position})")
            if count > 1 and position == 0:
                raise CorruptIndexError(f"{self.path} ends with zeros")

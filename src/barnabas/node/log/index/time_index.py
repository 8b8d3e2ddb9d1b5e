"""The time index: from which offset on a timestamp is to be looked for.

An entry (12 bytes, big-endian) is a timestamp, i64, and an offset relative to the segment's
base, i32: no record up to that offset has a greater timestamp. Source: Kafka's TimeIndex.
"""

from struct import Struct
from typing import Final

from barnabas.node.log.errors import CorruptIndexError
from barnabas.node.log.file_cache import FileCache
from barnabas.node.log.index.entries import EntryFile
from barnabas.protocol.records.batch import NO_TIMESTAMP

ENTRY: Final = Struct(">qi")
_TIMESTAMP: Final = Struct(">q")
_OFFSET: Final = Struct(">8xi")


class TimeIndex(EntryFile):
    """Timestamp → offset, sparse."""

    __slots__ = ("_last_timestamp",)

    entry_size = 12
    offset_key = _OFFSET

    def __init__(
        self, files: FileCache, path: str, base_offset: int, *, is_new: bool = False
    ) -> None:
        super().__init__(files, path, base_offset, is_new=is_new)
        self._last_timestamp: int | None = NO_TIMESTAMP if is_new else None

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is greater than the last one's."""
        last = self._last_timestamp
        if last is None:
            last = self._last_timestamp = self.last()[0]
        if timestamp > last:
            self._append(ENTRY.pack(timestamp, offset - self.base_offset))
            self._last_timestamp = timestamp

    def lookup(self, target_timestamp: int) -> tuple[int, int]:
        """The last entry whose timestamp is not after `target_timestamp`.

        Returns (timestamp, offset), or (-1, base_offset) without one.
        """
        number = self._count_up_to(_TIMESTAMP, target_timestamp) - 1
        return (NO_TIMESTAMP, self.base_offset) if number < 0 else self.entry(number)

    def entry(self, number: int) -> tuple[int, int]:
        """Entry `number` as (timestamp, offset). Raises CorruptIndexError if it cannot be true."""
        timestamp, relative = ENTRY.unpack(self._entry(number))
        if relative < 0:
            raise CorruptIndexError(f"{self.path} has an entry ({timestamp}, {relative})")
        return timestamp, self.base_offset + relative

    def last(self) -> tuple[int, int]:
        """The last entry, or (-1, base_offset)."""
        count = self.count
        return self.entry(count - 1) if count else (NO_TIMESTAMP, self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries for `offset` and after."""
        super().truncate_to(offset)
        self._last_timestamp = None

    def reset(self) -> None:
        """Drop every entry."""
        super().reset()
        self._last_timestamp = NO_TIMESTAMP

    def check(self) -> None:
        """Raise CorruptIndexError if the last entry cannot be true."""
        count = self.count
        if count:
            timestamp, offset = self.entry(count - 1)
            if count > 1 and timestamp <= self.entry(0)[0]:
                raise CorruptIndexError(f"{self.path} ends with ({timestamp}, {offset})")

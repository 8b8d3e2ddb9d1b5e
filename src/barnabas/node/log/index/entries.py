"""A file of fixed-size entries in ascending order, as the offset and time indexes are.

New entries wait in memory, since an index can be rebuilt and a system call per entry would cost
as much as the write of the batch it points at. Look-ups read the file by binary search: eight
reads and a block, no copy of the file in memory, no mapping.
"""

from bisect import bisect_right
from struct import Struct
from typing import ClassVar

from barnabas.base.disk import DiskFile
from barnabas.node.log.errors import CorruptIndexError
from barnabas.node.log.file_cache import FileCache

PENDING_BYTES_MAX = 4096
BLOCK_ENTRIES = 256
_UNKNOWN = -1


class EntryFile:
    """Entries 0 … count-1; the last ones may not be in the file yet.

    Their offsets are relative to the segment's `base_offset`.
    """

    __slots__ = ("_files", "_pending", "_written", "base_offset", "is_written", "path")

    entry_size: ClassVar[int]
    offset_key: ClassVar[Struct]
    """Reads the offset of an entry, and nothing else."""

    def __init__(
        self, files: FileCache, path: str, base_offset: int, *, is_new: bool = False
    ) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._pending = bytearray() if is_new else None
        self._written = 0 if is_new else _UNKNOWN
        self.is_written = False
        """True if the file has changed since this object was made."""

    @property
    def count(self) -> int:
        """Entries. Raises OSError, or CorruptIndexError for a ragged file."""
        if self._written == _UNKNOWN:
            self._load()
        return self._written + (len(self._pending) // self.entry_size if self._pending else 0)

    def _load(self) -> None:
        size_bytes = self._file().size()
        if size_bytes % self.entry_size:
            raise CorruptIndexError(
                f"{self.path} has {size_bytes} bytes, not a multiple of the entry size"
            )
        self._written = size_bytes // self.entry_size

    def _file(self) -> DiskFile:
        return self._files.get(self.path, create=True)

    def _append(self, entry: bytes) -> None:
        pending = self._pending
        if pending is None:
            if self._written == _UNKNOWN:
                self._load()
            self._pending = bytearray(entry)
            return
        pending += entry
        if len(pending) >= PENDING_BYTES_MAX:
            self.write_pending()

    def write_pending(self) -> bool:
        """Hand what waits in memory to the file; whether there was anything."""
        pending = self._pending
        if not pending:
            self._pending = None
            return False
        self.is_written = True
        self._file().append((pending,))
        self._written += len(pending) // self.entry_size
        self._pending = None
        return True

    def _entry(self, number: int) -> bytes:
        size = self.entry_size
        if number < self._written:
            entry = self._file().pread(size, number * size)
            if len(entry) != size:
                raise CorruptIndexError(f"{self.path} ends before entry {number}")
            return entry
        start = (number - self._written) * size
        assert self._pending is not None
        return bytes(self._pending[start : start + size])

    def _count_up_to(self, key: Struct, target: int) -> int:
        """Count the entries whose key is at most `target`."""
        count = self.count
        size = self.entry_size
        unpack = key.unpack_from
        low, high = 0, self._written
        pending = self._pending
        if pending and unpack(pending, 0)[0] <= target:
            block: bytes | bytearray = pending
            low, high = self._written, count
        else:
            if high == 0:
                return 0
            file = self._file()
            while high - low > BLOCK_ENTRIES:
                middle = (low + high) // 2
                if unpack(_read(file, size, middle * size), 0)[0] <= target:
                    low = middle
                else:
                    high = middle
            block = _read(file, (high - low) * size, low * size)
        return low + bisect_right(
            range(high - low), target, key=lambda number: unpack(block, number * size)[0]
        )

    def truncate_to(self, offset: int) -> None:
        """Drop the entries for `offset` and after."""
        count = self._count_up_to(self.offset_key, offset - self.base_offset - 1)
        if count < self._written:
            self.is_written = True
            self._file().truncate(count * self.entry_size)
            self._written = count
            self._pending = None
        elif self._pending is not None:
            del self._pending[(count - self._written) * self.entry_size :]

    def reset(self) -> None:
        """Drop every entry, without reading the file; it is created if it is missing."""
        self.is_written = True
        self._file().truncate(0)
        self._written = 0
        self._pending = None


def _read(file: DiskFile, size_bytes: int, position: int) -> bytes:
    data = file.pread(size_bytes, position)
    if len(data) != size_bytes:
        raise CorruptIndexError(f"{file.path} ends before {position + size_bytes}")
    return data

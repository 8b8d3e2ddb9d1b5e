"""The `flushed-offset` file: how far the metadata log was known to be on the medium.

It is written after each fsync of the log, and not synced itself: what it says was always true
when it was written, so a power cut can only make it say too little. A log that is found shorter
than its mark was damaged (a flipped bit, a truncated file), and its voter may have acknowledged
what it does not have. Such a voter neither votes nor stands until it has a leader's log again;
else a damaged voter and others that are merely behind could elect a leader that lacks what was
committed. Kafka has no such file, and leaves it alone.

The file is one line, offset and checksum, overwritten in place. It stays open, so that a node
without a free file descriptor can go on. A line that a power cut tore fails its checksum, and then
says nothing.
"""

import zlib

from barnabas.base.disk import Disk, DiskFile

FILE_NAME = "flushed-offset"


class FlushedMark:
    """The mark of one log. Methods that write raise OSError."""

    __slots__ = ("_disk", "_file", "_path", "offset")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{FILE_NAME}"
        self._file: DiskFile | None = None
        self.offset = 0
        """The mark in the file; 0 if it cannot be read."""

    def read(self) -> int:
        """Read the file, and return its offset."""
        try:
            self.offset = _offset_in(self._disk.read(self._path))
        except FileNotFoundError:
            self.offset = 0
        return self.offset

    def raise_to(self, offset: int) -> None:
        """Everything before `offset` is on the medium."""
        if offset > self.offset:
            self._write(offset)

    def lower_to(self, offset: int) -> None:
        """The log is about to be cut there. On the medium before that is done."""
        if offset < self.offset:
            self._write(offset).fsync()

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, offset: int) -> DiskFile:
        file = self._file
        if file is None:
            if not self._disk.exists(self._path):
                self._disk.write_atomic(self._path, _line(offset), sync=False)
            file = self._file = self._disk.open(self._path)
            file.truncate(len(_line(offset)))  # one of an earlier version had no fixed length
        file.pwrite(_line(offset), 0)
        self.offset = offset
        return file


def _line(offset: int) -> bytes:
    digits = b"%020d" % offset
    return b"%b %08x\n" % (digits, zlib.crc32(digits))


def _offset_in(content: bytes) -> int:
    """The offset that a file says; earlier versions wrote the number alone."""
    words = content.split()
    if not words or not words[0].isdigit():
        return 0
    if len(words) == 1:
        return int(words[0])
    return int(words[0]) if words[1:] == [b"%08x" % zlib.crc32(words[0])] else 0

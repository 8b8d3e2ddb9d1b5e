"""Files as an argument: the one interface through which the platform touches a disk.

Failures are OSError, unchanged: `errno` says what happened (ENOSPC, EIO), and the log room
decides which directory goes offline. Production uses `LocalDisk`; the simulator passes a disk
that loses unsynced writes, tears the last one, flips bits, fills up and slows down.
"""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from barnabas.base.errors import ShownError

Buffer = bytes | bytearray | memoryview

IOV_MAX = 1024
"""Buffers of one gathering write; Linux and macOS refuse more."""


class DirectoryInUseError(ShownError):
    """Another node holds a directory's lock file."""


class DiskFile(Protocol):
    """An open file. Positions and sizes are bytes."""

    path: str

    def size(self) -> int:
        """Current length of the file."""

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all of `buffers` at the end (one gathering write where the system has it).

        Returns the bytes written, which is all of them. On a failure the file is cut back to
        its former length before OSError is raised, so a torn append is never visible.
        """

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Read up to `size_bytes` from `position`; shorter only at the end of the file."""

    def pwrite(self, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`."""

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend the file to `size_bytes`."""

    def fsync(self) -> None:
        """Force data and length to the medium, blocking."""

    def fileno(self) -> int:
        """The descriptor for sendfile, or -1 (simulated disks)."""

    def close(self) -> None:
        """Close without fsync. Harmless when closed already.

        A file that nobody refers to any more closes itself, so that holders of a FileRange can
        continue reading after its opener has let go of it.
        """


class Disk(Protocol):
    """A file system. Paths are absolute strings."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open for reading and writing. Raises FileNotFoundError unless `create`."""

    def read(self, path: str) -> bytes:
        """The whole of a small file."""

    def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace a small file: temporary file, fsync, rename, fsync of the directory.

        Without `sync` neither fsync is done: readers see the old content or the new, but after
        a power cut either, or nothing.
        """

    def exists(self, path: str) -> bool:
        """Return whether `path` is a file or a directory."""

    def is_dir(self, path: str) -> bool:
        """Return whether `path` is a directory."""

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_dirs(self, path: str) -> None:
        """Create a directory and its parents; harmless when it exists."""

    def remove(self, path: str) -> None:
        """Delete a file."""

    def remove_tree(self, path: str) -> None:
        """Delete a directory and all in it."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory, replacing a file at `target`."""

    def sync_dir(self, path: str) -> None:
        """Force a directory's entries to the medium, blocking."""

    def lock(self, path: str) -> None:
        """Hold the file at `path` for this process until the disk is closed.

        Raises DirectoryInUseError if another process holds it.
        """

    def free_bytes(self, path: str) -> int:
        """Bytes that may still be written below `path`."""

    def total_bytes(self, path: str) -> int:
        """Size of the volume that holds `path`."""

    def modified_ms(self, path: str) -> int:
        """Return when a file was last written, in milliseconds since the Unix epoch."""

    def fsync_soon(
        self, files: Sequence[DiskFile], directories: Sequence[str] = ()
    ) -> Awaitable[None]:
        """fsync `files`, then the entries of `directories`, off the event loop.

        Done when all are on the medium.
        """


class FileRange:
    """Bytes of a file that are to be sent as they lie on disk (zero-copy where possible)."""

    __slots__ = ("file", "position", "size_bytes")

    def __init__(self, file: DiskFile, position: int, size_bytes: int) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        """The bytes themselves, for receivers that cannot take a range."""
        return self.file.pread(self.size_bytes, self.position)

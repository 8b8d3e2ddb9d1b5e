"""The disk interface over the operating system's files."""

import asyncio
import fcntl
import os
import shutil
import struct
import sys
from collections.abc import Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor

from barnabas.base.disk import IOV_MAX, Buffer, DirectoryInUseError, DiskFile

FSYNC_THREADS_MAX = 4
DIRECTORY_MODE = 0o750
FILE_MODE = 0o640
"""Of what is made here, less what the process's umask takes. Records, and the credentials in the
metadata log, are not for everybody on the machine; an Apache Kafka that takes a directory over
runs as the same user, or in its group. An existing file keeps its mode."""
RECORD_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None
"""Linux keeps flock's locks and record locks apart, and Java takes record locks. This kind belongs
to the open file: closing the file elsewhere in the process does not drop it, and two nodes of one
process exclude each other. Other systems have one kind, which flock takes."""
WHOLE_FILE = struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
"""C's `struct flock`: exclusive, from the beginning, without an end."""


class LocalFile:
    """An open file of the operating system, written at its end."""

    __slots__ = ("_closed", "_fd", "_size", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._closed = False
        self._size = os.fstat(fd).st_size

    def size(self) -> int:
        return self._size

    def append(self, buffers: Sequence[Buffer]) -> int:
        start = self._size
        written = 0
        try:
            if len(buffers) == 1:  # nearly always, and a vector costs a third more
                total = len(buffers[0])
                written = os.pwrite(self._fd, buffers[0], start)
            else:
                total = sum(map(len, buffers))
                if len(buffers) <= IOV_MAX:
                    written = os.pwritev(self._fd, buffers, start)
            if written != total:
                self._append_rest(buffers, written)
        except OSError:
            os.ftruncate(self._fd, start)
            raise
        self._size = start + total
        return total

    def _append_rest(self, buffers: Sequence[Buffer], written: int) -> None:
        """Go on after a short gathering write, one buffer at a time."""
        position = self._size + written
        for buffer in buffers:
            if written >= len(buffer):
                written -= len(buffer)
                continue
            rest = memoryview(buffer)[written:]
            written = 0
            while rest:
                count = os.pwrite(self._fd, rest, position)
                position += count
                rest = rest[count:]

    def pread(self, size_bytes: int, position: int) -> bytes:
        return os.pread(self._fd, size_bytes, position)

    def pwrite(self, data: Buffer, position: int) -> None:
        rest = memoryview(data)
        while rest:
            count = os.pwrite(self._fd, rest, position)
            position += count
            rest = rest[count:]
        self._size = max(self._size, position)

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self._fd, size_bytes)
        self._size = size_bytes

    def fsync(self) -> None:
        os.fsync(self._fd)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            os.close(self._fd)

    def __del__(self) -> None:
        self.close()


def _open_new(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


class FileInMemory(LocalFile):
    """A file that may stay in the page cache, because nobody reads it after a crash."""

    __slots__ = ()

    def fsync(self) -> None:
        pass


class LocalDisk:
    """The machine's file system; fsync_soon runs in a few worker threads.

    With `is_durable` false nothing is forced to the disk: for directories that are deleted when
    the process ends.
    """

    def __init__(self, *, is_durable: bool = True) -> None:
        self._is_durable = is_durable
        self._file_class = LocalFile if is_durable else FileInMemory
        self._fsync_pool = ThreadPoolExecutor(FSYNC_THREADS_MAX, thread_name_prefix="fsync")
        self._locks: list[int] = []

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            fd = os.open(path, flags, FILE_MODE)
        except PermissionError:
            if create:
                raise
            # Kafka's snapshots are read-only files, and dumps may be run by anyone.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return self._file_class(path, fd)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        sync = sync and self._is_durable
        temporary = path + ".tmp"
        with open(temporary, "wb", opener=_open_new) as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            self.sync_dir(os.path.dirname(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dirs(self, path: str) -> None:
        try:
            os.mkdir(path, DIRECTORY_MODE)
        except OSError:  # it exists, or its parent does not
            os.makedirs(path, DIRECTORY_MODE, exist_ok=True)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def sync_dir(self, path: str) -> None:
        if not self._is_durable:
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if RECORD_LOCK is not None:
                fcntl.fcntl(fd, RECORD_LOCK, WHOLE_FILE)
        except OSError as error:
            os.close(fd)
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
            raise DirectoryInUseError(
                f"{os.path.dirname(path)} is in use by another node; stop that one first"
            ) from error
        self._locks.append(fd)

    def free_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize

    def total_bytes(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_blocks * stat.f_frsize

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def fsync_soon(
        self, files: Sequence[DiskFile], directories: Sequence[str] = ()
    ) -> Awaitable[None]:
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._fsync_pool, self._fsync_all, files, directories)

    def close(self) -> None:
        """Wait for the fsyncs under way and end the threads."""
        self._fsync_pool.shutdown(wait=True)
        while self._locks:
            os.close(self._locks.pop())

    def _fsync_all(self, files: Sequence[DiskFile], directories: Sequence[str]) -> None:
        for file in files:
            file.fsync()
        for directory in directories:
            self.sync_dir(directory)

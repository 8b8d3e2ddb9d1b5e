"""A directory as a store of files."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from barnabas.connect.connectors.storage.store import Claim, FileStore, StoredFile, Upload
from barnabas.schemas.data.errors import ConnectError, RetriableError

UNFINISHED = ".unfinished-"
"""Files that are being written begin so; a process that was killed may leave some."""
_READ_BLOCK_BYTES = 1024 * 1024
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EAGAIN)


class LocalStore(FileStore):
    """The files below a directory of this machine, or of one that all workers have mounted."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.abspath(directory)

    def check(self) -> None:
        """Make the directory where it is not there yet."""
        try:
            os.makedirs(self._directory, exist_ok=True)
        except OSError as error:
            raise failed(f"cannot use directory {self._directory}", error) from error

    def create(self, name: str, claim: Claim | None = None) -> Upload:
        """Begin a file; claims are not kept."""
        return _LocalUpload(self._path(name))

    def open(self, name: str, version: str | None = None) -> BinaryIO:
        """Open a file as it is now: some grow all the time."""
        try:
            return io.BufferedReader(_LocalFile(self._path(name), name), _READ_BLOCK_BYTES)
        except OSError as error:
            raise failed(f"cannot read {name}", error) from error

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield the files, leaving out those that are being written."""
        for folder, folders, names in os.walk(self._directory, onerror=self._unlisted):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, self._directory).replace(os.sep, "/")
                if name.startswith(UNFINISHED) or not relative.startswith(prefix):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(path)
                    yield StoredFile(
                        relative,
                        status.st_size,
                        f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}",
                        status.st_mtime_ns // 1_000_000,
                    )

    def _unlisted(self, error: OSError) -> None:
        """Not to see what is there is not to see nothing; but folders may disappear."""
        is_gone = isinstance(error, FileNotFoundError) and error.filename != self._directory
        if not is_gone:
            raise failed(f"cannot list {error.filename}", error) from error

    def delete(self, name: str) -> None:
        """Remove a file."""
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise failed(f"cannot remove {name}", error) from error

    def close(self) -> None:
        """Nothing is open."""

    def _path(self, name: str) -> str:
        path = os.path.normpath(os.path.join(self._directory, name))
        if not path.startswith(os.path.join(self._directory, "")):
            raise ConnectError(f"{name} is outside of the directory")
        return path


class _LocalFile(io.FileIO):
    """A file whose errors tell those of its disk from those of its content."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path)
        self._name = name

    def readinto(self, buffer: Any, /) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise failed(f"cannot read {self._name}", error) from error

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise failed(f"cannot read {self._name}", error) from error


class _LocalUpload(Upload):
    def __init__(self, path: str) -> None:
        self._path = path
        folder = os.path.dirname(path)
        try:
            os.makedirs(folder, exist_ok=True)
            descriptor, self._unfinished = tempfile.mkstemp(prefix=UNFINISHED, dir=folder)
            os.fchmod(descriptor, 0o644)
            self._file = os.fdopen(descriptor, "wb")
        except OSError as error:
            raise failed(f"cannot write {path}", error) from error

    def write(self, data: Any, /) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            raise failed(f"cannot write {self._path}", error) from error

    def complete(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._unfinished, self._path)
            _sync_folder(os.path.dirname(self._path))
        except OSError as error:
            self.abort()
            raise failed(f"cannot write {self._path}", error) from error

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._unfinished)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def failed(what: str, error: OSError) -> ConnectError:
    """Return the error for what the system refused; a full disk may have room again later."""
    text = f"{what}: {error.strerror or error}"
    return RetriableError(text) if error.errno in _PASSING else ConnectError(text)

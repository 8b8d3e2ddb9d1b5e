"""Open files, bounded: thousands of segments, a few hundred descriptors.

A file that falls out is let go of, not closed: it closes itself once no FileRange, fsync or
reader holds it (see DiskFile.close).
"""

import errno
from collections import OrderedDict
from weakref import WeakSet

from barnabas.base.descriptors import limit
from barnabas.base.disk import Disk, DiskFile

FILES_MAX = 32_768
FILES_MIN = 64


def files_max_allowed() -> int:
    """Half of the descriptors that the process may have: the rest is for connections."""
    return max(FILES_MIN, min(limit() // 2, FILES_MAX))


def files_to_come() -> int:
    """Count the descriptors that the caches of this process may still take."""
    return sum(max(0, cache.files_max - len(cache)) for cache in _CACHES)


class FileCache:
    """The files that were used last, open."""

    __slots__ = ("__weakref__", "_disk", "_files", "files_max")

    def __init__(self, disk: Disk, files_max: int | None = None) -> None:
        self._disk = disk
        self._files: OrderedDict[str, DiskFile] = OrderedDict()
        self.files_max = files_max_allowed() if files_max is None else files_max
        _CACHES.add(self)

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: str, *, create: bool = False) -> DiskFile:
        """The file at `path`, opened if need be. Raises OSError."""
        file = self._files.get(path)
        if file is not None:
            self._files.move_to_end(path)
            return file
        try:
            file = self._disk.open(path, create=create)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._files:
                raise
            # Too many open files is not a disk error: close half of the cached files.
            self._evict(len(self._files) // 2)
            file = self._disk.open(path, create=create)
        self._files[path] = file
        self._evict(self.files_max)
        return file

    def forget(self, path: str) -> None:
        """Let go of a file that is removed, renamed or no longer needed."""
        self._files.pop(path, None)

    def forget_below(self, directory: str) -> None:
        """Let go of all files in `directory`."""
        prefix = directory + "/"
        for path in [path for path in self._files if path.startswith(prefix)]:
            del self._files[path]

    def _evict(self, files_left: int) -> None:
        while len(self._files) > files_left:
            self._files.popitem(last=False)


_CACHES: WeakSet[FileCache] = WeakSet()

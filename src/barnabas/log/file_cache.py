"""Open files, bounded: thousands of segments, a few hundred descriptors.

A file that falls out is let go of, not closed: it closes itself once no FileRange, fsync or
reader holds it (see DiskFile.close).
"""

import errno
import resource
from collections import OrderedDict

from barnabas.base.disk import Disk, DiskFile

FILES_MAX = 32_768
FILES_MIN = 64


def files_max_allowed() -> int:
    """Half of the descriptors that the process may have: the rest is for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return FILES_MAX
    return max(FILES_MIN, min(soft // 2, FILES_MAX))


class FileCache:
    """The files that were used last, open."""

    __slots__ = ("_disk", "_files", "_files_max")

    def __init__(self, disk: Disk, files_max: int | None = None) -> None:
        self._disk = disk
        self._files: OrderedDict[str, DiskFile] = OrderedDict()
        self._files_max = files_max_allowed() if files_max is None else files_max

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
            # Too many open files is no fault of the disk: give half of ours back.
            self._evict(len(self._files) // 2)
            file = self._disk.open(path, create=create)
        self._files[path] = file
        self._evict(self._files_max)
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

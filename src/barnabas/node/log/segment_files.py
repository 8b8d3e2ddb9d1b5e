"""The files of one segment: a `.log` that starts with `base_offset`, and the indexes beside it."""

from collections.abc import Sequence

from barnabas.base.disk import Buffer, DiskFile
from barnabas.node.log.file_cache import FileCache
from barnabas.node.log.index.offset_index import OffsetIndex
from barnabas.node.log.index.time_index import TimeIndex
from barnabas.node.log.index.txn_index import AbortedTransaction, append_aborted
from barnabas.node.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
)


class SegmentFiles:
    """The files of a segment. They are open while the cache has them, and created when needed."""

    __slots__ = (
        "_cache",
        "_is_new",
        "_offset_index",
        "_time_index",
        "base_offset",
        "directory",
        "is_unmade",
        "log_path",
    )

    def __init__(
        self, cache: FileCache, directory: str, base_offset: int, *, is_new: bool = False
    ) -> None:
        self._cache = cache
        self._is_new = is_new
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        """Made at first use: of thousands of logs most have no need of them."""
        self.base_offset = base_offset
        self.directory = directory
        self.log_path = offset_file(directory, base_offset, LOG_SUFFIX)
        self.is_unmade = False
        """True if files are missing, or were not there when the directory was last synced."""

    def create(self) -> None:
        """Make the three files of a new segment, empty."""
        cache = self._cache
        self.log()
        for path in (self.log_path, *self.index_paths):
            if cache.get(path, create=True).size():
                # Left behind by a crash, after a roll or truncation that was not synced.
                cache.get(path).truncate(0)
                cache.get(path).fsync()
        for path in self.index_paths:
            cache.forget(path)

    def begin(self) -> None:
        """Make the `.log` file, so that no append has to wait for that, and do not keep it open."""
        self.is_unmade = True
        self.log()
        self._cache.forget(self.log_path)

    def make(self) -> None:
        """Make what is missing; the directory is to be synced then."""
        self.is_unmade = False
        self.log()
        for path in self.index_paths:
            self._cache.get(path, create=True)
            self._cache.forget(path)

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._offset_index
        if index is None:
            path = offset_file(self.directory, self.base_offset, INDEX_SUFFIX)
            index = OffsetIndex(self._cache, path, self.base_offset, is_new=self._is_new)
            self._offset_index = index
        return index

    @property
    def time_index(self) -> TimeIndex:
        index = self._time_index
        if index is None:
            path = offset_file(self.directory, self.base_offset, TIME_INDEX_SUFFIX)
            index = TimeIndex(self._cache, path, self.base_offset, is_new=self._is_new)
            self._time_index = index
        return index

    @property
    def index_paths(self) -> tuple[str, str]:
        """Of the offset index and the time index."""
        return (
            offset_file(self.directory, self.base_offset, INDEX_SUFFIX),
            offset_file(self.directory, self.base_offset, TIME_INDEX_SUFFIX),
        )

    @property
    def txn_index_path(self) -> str:
        return offset_file(self.directory, self.base_offset, TXN_INDEX_SUFFIX)

    @property
    def made_indexes(self) -> list[OffsetIndex | TimeIndex]:
        """The indexes that were used so far."""
        made = (self._offset_index, self._time_index)
        return [index for index in made if index is not None]

    def log(self) -> DiskFile:
        """The `.log` file, open."""
        return self._cache.get(self.log_path, create=True)

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Add to the `.log` file by one write."""
        self._cache.get(self.log_path).append(buffers)

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Add to the transaction index."""
        append_aborted(self._cache, self.txn_index_path, aborted)

    def release(self) -> None:
        """Let go of the open files."""
        for path in (self.log_path, *self.index_paths):
            self._cache.forget(path)
        self._cache.forget(self.txn_index_path)

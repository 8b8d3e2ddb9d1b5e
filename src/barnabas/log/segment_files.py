"""The files of one segment: a `.log` that starts with `base_offset`, and the indexes beside it."""

from typing import TYPE_CHECKING, Self

from barnabas.base.disk import DiskFile
from barnabas.log.file_cache import FileCache
from barnabas.log.index.offset_index import OffsetIndex
from barnabas.log.index.time_index import TimeIndex
from barnabas.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
)
from barnabas.protocol.records.batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from barnabas.log.plain_append import PlainLimits


class SegmentFiles:
    """Where a segment's files are, and what is known of them; `segment.Segment` works on them."""

    __slots__ = (
        "_bytes_since_entry",
        "_damaged_size_bytes",
        "_files",
        "_is_checked",
        "_is_new",
        "_offset_index",
        "_time_index",
        "base_offset",
        "created_ms",
        "directory",
        "first_timestamp",
        "is_unmade",
        "log_path",
        "max_timestamp",
        "max_timestamp_offset",
        "plain_limits",
        "size_bytes",
    )

    def __init__(
        self,
        files: FileCache,
        directory: str,
        base_offset: int,
        *,
        size_bytes: int,
        created_ms: int,
        is_new: bool = False,
    ) -> None:
        self._files = files
        self._bytes_since_entry = 0
        self._is_checked = self._is_new = is_new
        self._damaged_size_bytes = 0
        """The size at which new indexes were of no use; not tried again before it has doubled."""
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        """Made at first use: of thousands of logs most have no need of them."""
        self.base_offset = base_offset
        self.directory = directory
        self.created_ms = created_ms
        self.size_bytes = size_bytes
        self.log_path = offset_file(directory, base_offset, LOG_SUFFIX)
        self.max_timestamp: int | None = NO_TIMESTAMP if is_new else None
        self.max_timestamp_offset = base_offset
        """Last offset of the batch with the greatest timestamp."""
        self.first_timestamp: int | None = None
        """Greatest timestamp of the first batch: the age that rolls a segment counts from it."""
        self.plain_limits: PlainLimits | None = None
        """Made at the first append that asks for them (`plain_append`)."""
        self.is_unmade = False
        """Whether files are missing, or were not there when the directory was last synced."""

    @classmethod
    def create(cls, files: FileCache, directory: str, base_offset: int, created_ms: int) -> Self:
        """A new, empty segment with its three files."""
        segment = cls(
            files, directory, base_offset, size_bytes=0, created_ms=created_ms, is_new=True
        )
        segment.file()
        for path in (segment.log_path, *segment.index_paths):
            if files.get(path, create=True).size():
                # Left behind by a crash, after a roll or truncation that was not synced.
                files.get(path).truncate(0)
                files.get(path).fsync()
        for path in segment.index_paths:
            files.forget(path)
        return segment

    @classmethod
    def begin(cls, files: FileCache, directory: str, base_offset: int, created_ms: int) -> Self:
        """A new, empty segment where nothing was left behind: indexes come when needed.

        Its `.log` file is made, so that no append has to wait for that, and not kept open.
        """
        segment = cls(
            files, directory, base_offset, size_bytes=0, created_ms=created_ms, is_new=True
        )
        segment.is_unmade = True
        segment.file()
        files.forget(segment.log_path)
        return segment

    def make_files(self) -> None:
        """Make what is missing; the directory is to be synced then."""
        self.is_unmade = False
        self.file()
        for path in self.index_paths:
            self._files.get(path, create=True)
            self._files.forget(path)

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._offset_index
        if index is None:
            path = offset_file(self.directory, self.base_offset, INDEX_SUFFIX)
            index = OffsetIndex(self._files, path, self.base_offset, is_new=self._is_new)
            self._offset_index = index
        return index

    @property
    def time_index(self) -> TimeIndex:
        index = self._time_index
        if index is None:
            path = offset_file(self.directory, self.base_offset, TIME_INDEX_SUFFIX)
            index = TimeIndex(self._files, path, self.base_offset, is_new=self._is_new)
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

    def file(self) -> DiskFile:
        """The `.log` file, open."""
        return self._files.get(self.log_path, create=True)

    def release(self) -> None:
        """Let go of the open files."""
        for path in (self.log_path, *self.index_paths):
            self._files.forget(path)
        self._files.forget(self.txn_index_path)

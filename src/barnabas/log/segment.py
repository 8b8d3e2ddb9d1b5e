"""One segment: a `.log` file that starts with `base_offset`, and the indexes beside it.

Of a segment that is not read, only this small object is in memory; files open when needed. The
last segment of a log is the active one and the only one that grows.

What is known of timestamps is read when first needed (`max_timestamp` is None until then), since
opening a thousand logs should not read a thousand indexes. Source: Kafka's LogSegment.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from barnabas.base.disk import Buffer, DiskFile
from barnabas.log.batch_walk import MisplacedBatchError, find_behind_gap, walk_headers
from barnabas.log.errors import CorruptIndexError
from barnabas.log.file_cache import FileCache
from barnabas.log.index.offset_index import OffsetIndex
from barnabas.log.index.time_index import TimeIndex
from barnabas.log.index.txn_index import AbortedTransaction, append_aborted
from barnabas.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
)
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
)

if TYPE_CHECKING:
    from barnabas.log.plain_append import PlainLimits

RELATIVE_OFFSET_MAX = 2**31 - 1

telemetry = logging.getLogger(__name__)


def size_without_full_indexes(index_entries_max: int, index_interval_bytes: int) -> int:
    """Up to here no index can be full: it has an entry per interval, and per batch, at most."""
    interval_bytes = max(index_interval_bytes, HEADER_SIZE_BYTES)
    return _time_entries_max(index_entries_max) * interval_bytes


def _time_entries_max(index_entries_max: int) -> int:
    return index_entries_max * 8 // 12 - 1


class Segment:
    """A segment of a log. Offsets are absolute, positions and sizes bytes."""

    __slots__ = (
        "_bytes_since_entry",
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

    def append(
        self,
        buffers: Sequence[Buffer],
        size_bytes: int,
        last_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
        index_interval_bytes: int,
    ) -> int:
        """Write batches that end with `last_offset` at the end; returns their position.

        `buffers` are `size_bytes` together, and go by one write.
        """
        position = self.size_bytes
        self._files.get(self.log_path).append(buffers)
        self.size_bytes = position + size_bytes
        known = self.max_timestamp
        if known is None:
            known = self.load_max_timestamp()
        if max_timestamp > known:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = max_timestamp_offset
        if not position:
            self.first_timestamp = max_timestamp
        if self._bytes_since_entry > index_interval_bytes:
            self.note_batch(position, size_bytes, last_offset, index_interval_bytes)
        else:
            self._bytes_since_entry += size_bytes
        return position

    def note_batch(
        self, position: int, size_bytes: int, last_offset: int, index_interval_bytes: int
    ) -> None:
        """Index a batch (or several that were written at once) if the last entry is far back."""
        if self._bytes_since_entry > index_interval_bytes:
            self.offset_index.append(last_offset, position)
            assert self.max_timestamp is not None
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size_bytes

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Add to the transaction index."""
        append_aborted(self._files, self.txn_index_path, aborted)

    def is_full(
        self,
        size_bytes: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        segment_bytes: int,
        segment_ms: int,
        index_entries_max: int,
        index_interval_bytes: int,
    ) -> bool:
        """Whether an append of `size_bytes` up to `last_offset` belongs into a new segment."""
        size = self.size_bytes
        if size + size_bytes > segment_bytes:
            return True
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if size == 0:
            return False
        first = self.first_timestamp
        if first is None:
            first = self.load_first_timestamp()
        age = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        if age > segment_ms:
            return True
        if size < size_without_full_indexes(index_entries_max, index_interval_bytes):
            return False
        return (
            self.offset_index.count >= index_entries_max
            or self.time_index.count >= _time_entries_max(index_entries_max)
        )

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at or after `offset`, as (position, header); None: no such.

        An index that leads astray is rebuilt on the way. Raises CorruptBatchError.
        """
        try:
            found = self._locate(offset)
        except (CorruptIndexError, CorruptBatchError):
            self.rebuild_indexes()
            found = self._locate(offset)
        if found is None or found[1].base_offset <= offset:
            return found
        position = self.offset_index.lookup(offset)[1] if offset > self.base_offset else 0
        return find_behind_gap(self.file(), position, self.size_bytes, offset)

    def _locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        position = 0
        if offset > self.base_offset:
            self.check_indexes()
            position = self.offset_index.lookup(offset)[1]
        for place, header in walk_headers(self.file(), position, self.size_bytes):
            if header.last_offset >= offset:
                return place, header
        return None

    def last_whole_batch(self, position: int, limit: int) -> tuple[int, int] | None:
        """Where batches end that begin at `position` and end at or before `limit`.

        Returns (end position, the offset after them), or None if not even one does.
        """
        try:
            self.check_indexes()
            indexed = self.offset_index.lookup_position(limit)[1]
            return self._walk_to(max(position, indexed), position, limit)
        except (CorruptIndexError, CorruptBatchError):
            self.rebuild_indexes()
            return self._walk_to(position, position, limit)

    def _walk_to(self, start: int, floor: int, limit: int) -> tuple[int, int] | None:
        end = None
        for place, header in walk_headers(self.file(), start, self.size_bytes):
            stop = place + header.size_bytes
            if stop > limit:
                if end is None and place > floor:
                    # The index pointed at the batch that is too long: the one before ends here.
                    return place, header.base_offset
                break
            end = stop, header.next_offset
        return end

    def next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on.

        Raises CorruptBatchError if the file does not end with that batch.
        """
        try:
            self.check_indexes()
            return self._next_offset(self.offset_index.last()[1])
        except (CorruptIndexError, CorruptBatchError):
            self.rebuild_indexes()
            return self._next_offset(0)

    def _next_offset(self, position: int) -> int:
        next_offset = self.base_offset
        for place, header in walk_headers(self.file(), position, self.size_bytes):
            position = place + header.size_bytes
            next_offset = header.next_offset
        if position != self.size_bytes:
            raise CorruptBatchError(f"{self.size_bytes - position} bytes follow the last batch")
        return next_offset

    def load_max_timestamp(self) -> int:
        """The greatest timestamp, -1 for none: the last time index entry, or a batch after it."""
        if self.max_timestamp is None:
            try:
                self._find_max_timestamp()
            except (CorruptIndexError, CorruptBatchError):
                self._rebuild_max_timestamp()
        assert self.max_timestamp is not None
        return self.max_timestamp

    def _find_max_timestamp(self) -> None:
        self.check_indexes()
        timestamp, offset = self.time_index.last()
        position = self.offset_index.lookup(offset)[1]
        for _, header in walk_headers(self.file(), position, self.size_bytes):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self.max_timestamp, self.max_timestamp_offset = timestamp, offset

    def _rebuild_max_timestamp(self) -> None:
        try:
            self.rebuild_indexes()
        except CorruptBatchError as error:
            telemetry.error("%s is damaged: %s", self.log_path, error)
            self.max_timestamp = NO_TIMESTAMP  # its file's time will have to do

    def load_first_timestamp(self) -> int:
        """The greatest timestamp of the first batch, -1 for none."""
        if self.first_timestamp is None:
            self.first_timestamp = self._find_first_timestamp()
        return self.first_timestamp

    def _find_first_timestamp(self) -> int:
        try:
            for _, header in walk_headers(self.file(), 0, self.size_bytes):
                return header.max_timestamp
        except CorruptBatchError as error:
            telemetry.error("%s is damaged: %s", self.log_path, error)
        return NO_TIMESTAMP

    def check_indexes(self) -> None:
        """Raise CorruptIndexError for indexes that plainly are not this segment's."""
        if not self._is_checked:
            self.offset_index.check(self.size_bytes)
            self.time_index.check()
            self._is_checked = True

    def rebuild_indexes(self, index_interval_bytes: int = 4096) -> None:
        """Make offset and time index anew from the batches' headers.

        Raises CorruptBatchError if it is the batches that are damaged; the indexes, which may
        be all that leads to those behind the damage, are left as they are then.
        """
        for _ in walk_headers(self.file(), 0, self.size_bytes):
            pass
        self.start_rebuild()
        for position, header in walk_headers(self.file(), 0, self.size_bytes):
            self.note_recovered(position, header, index_interval_bytes)
        self.finish_rebuild()

    def start_rebuild(self) -> None:
        """Empty both indexes and what is known of timestamps."""
        self.offset_index.reset()
        self.time_index.reset()
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self.first_timestamp = None
        self._bytes_since_entry = 0
        self._is_checked = True

    def note_recovered(self, position: int, header: BatchHeader, index_interval_bytes: int) -> None:
        """Index the next batch of a rebuild."""
        assert self.max_timestamp is not None
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = header.last_offset
        if not position:
            self.first_timestamp = header.max_timestamp
        self.note_batch(position, header.size_bytes, header.last_offset, index_interval_bytes)

    def finish_rebuild(self) -> None:
        """Write the new indexes, the greatest timestamp last."""
        self.seal()

    def seal(self) -> list[str]:
        """Complete the indexes of a segment that will not grow, or not by this process.

        Returns the paths of those that were written to since they were opened.
        """
        if self.max_timestamp is not None and self.max_timestamp > NO_TIMESTAMP:
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        made = (self._offset_index, self._time_index)
        indexes = [index for index in made if index is not None]
        for index in indexes:
            index.write_pending()
        return [index.path for index in indexes if index.is_written]

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it."""
        try:
            found = self.locate(offset)
        except MisplacedBatchError as error:
            found = error.found
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if found is not None:
            file = self.file()
            file.truncate(found[0])
            file.fsync()  # what is dropped must not come back once more was appended
            self.size_bytes = found[0]
        self.max_timestamp = None
        self._bytes_since_entry = 0
        if not self.size_bytes:
            self.first_timestamp = None
        self.load_max_timestamp()

    def release(self) -> None:
        """Let go of the open files."""
        for path in (self.log_path, *self.index_paths):
            self._files.forget(path)
        self._files.forget(self.txn_index_path)

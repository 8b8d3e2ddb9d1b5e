"""One segment: a `.log` file that starts with `base_offset`, and the indexes beside it.

Of a segment that is not read, only this small object is in memory; files open when needed. The
last segment of a log is the active one and the only one that grows.

What is known of timestamps is read when first needed (`max_timestamp` is None until then), since
opening a thousand logs should not read a thousand indexes. Source: Kafka's LogSegment.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar

from barnabas.base.disk import Buffer, DiskFile
from barnabas.node.log.batch_walk import (
    MisplacedBatchError,
    RangeEnd,
    end_of_batches,
    end_of_range,
    find_behind_gap,
    walk_headers,
    walk_placed,
)
from barnabas.node.log.config import LONG_MAX, LogConfig
from barnabas.node.log.errors import CorruptIndexError
from barnabas.node.log.file_cache import FileCache
from barnabas.node.log.segment_files import SegmentFiles
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Codec,
    CorruptBatchError,
    TimestampType,
)

RELATIVE_OFFSET_MAX = 2**31 - 1

telemetry = logging.getLogger(__name__)

_T = TypeVar("_T")


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
        "_damaged_size_bytes",
        "_is_checked",
        "base_offset",
        "created_ms",
        "files",
        "first_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "plain_limits",
        "size_bytes",
    )

    def __init__(
        self,
        cache: FileCache,
        directory: str,
        base_offset: int,
        *,
        size_bytes: int,
        created_ms: int,
        is_new: bool = False,
    ) -> None:
        self.files = SegmentFiles(cache, directory, base_offset, is_new=is_new)
        self._bytes_since_entry = 0
        self._is_checked = is_new
        self._damaged_size_bytes = 0
        """The size at which new indexes were of no use; not tried again before it has doubled."""
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size_bytes = size_bytes
        self.max_timestamp: int | None = NO_TIMESTAMP if is_new else None
        self.max_timestamp_offset = base_offset
        """Last offset of the batch with the greatest timestamp."""
        self.first_timestamp: int | None = None
        """Greatest timestamp of the first batch: the age that rolls a segment counts from it."""
        self.plain_limits: PlainLimits | None = None
        """Made at the first append that asks for them (`plain_append`)."""

    @classmethod
    def create(cls, cache: FileCache, directory: str, base_offset: int, created_ms: int) -> Self:
        """A new, empty segment with its three files."""
        segment = cls._empty(cache, directory, base_offset, created_ms)
        segment.files.create()
        return segment

    @classmethod
    def begin(cls, cache: FileCache, directory: str, base_offset: int, created_ms: int) -> Self:
        """A new, empty segment if no file was left behind: indexes come when needed."""
        segment = cls._empty(cache, directory, base_offset, created_ms)
        segment.files.begin()
        return segment

    @classmethod
    def _empty(cls, cache: FileCache, directory: str, base_offset: int, created_ms: int) -> Self:
        return cls(cache, directory, base_offset, size_bytes=0, created_ms=created_ms, is_new=True)

    def file(self) -> DiskFile:
        """The `.log` file, open."""
        return self.files.log()

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
        self.files.append(buffers)
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
            assert self.max_timestamp is not None
            try:
                self.files.offset_index.append(last_offset, position)
                self.files.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            except CorruptIndexError as error:
                self._renew_indexes(error)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size_bytes

    def _renew_indexes(self, error: CorruptIndexError) -> None:
        """Recreate indexes that cannot be appended to; where the batches are damaged, with nothing
        in it."""
        telemetry.error("rebuilding the indexes of %s: %s", self.files.log_path, error)
        try:
            self.rebuild_indexes()
        except CorruptBatchError as damage:
            telemetry.error("%s is damaged: %s", self.files.log_path, damage)
            self.files.offset_index.reset()
            self.files.time_index.reset()

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
        """Return whether an append of `size_bytes` up to `last_offset` needs a new segment."""
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
            self.files.offset_index.count >= index_entries_max
            or self.files.time_index.count >= _time_entries_max(index_entries_max)
        )

    def locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at or after `offset`, as (position, header), or None.

        The batch behind is looked at too: it may tell that one of them is misplaced. An index
        that leads astray is rebuilt on the way. Raises CorruptBatchError.
        """
        try:
            return self._locate(offset)
        except MisplacedBatchError:
            raise
        except (CorruptIndexError, CorruptBatchError) as error:
            return self._once_more(error, self._locate, offset)

    def _locate(self, offset: int) -> tuple[int, BatchHeader] | None:
        indexed, start = self._indexed(offset)
        file, size_bytes = self.file(), self.size_bytes
        location: tuple[int, BatchHeader] | None = None
        next_offset = None
        position = start
        try:
            for place, header in walk_headers(file, start, size_bytes):
                base_offset = header[0]
                if next_offset is None:
                    if 0 <= indexed < header.last_offset:
                        raise CorruptIndexError(f"{self.files.offset_index.path} hides {indexed}")
                elif base_offset < next_offset:
                    break
                if location is not None:
                    return location
                next_offset = base_offset + header[6] + 1
                if next_offset > offset:
                    if base_offset > offset:
                        break
                    location = place, header
                position = place + header[1] + LOG_OVERHEAD_BYTES
            else:
                if location is None and position != size_bytes:
                    raise CorruptBatchError(f"{size_bytes - position} bytes follow the last batch")
                return location
        except CorruptBatchError:
            if location is None:
                raise
            return location
        return self._behind_gap(offset)

    def _behind_gap(self, offset: int) -> tuple[int, BatchHeader] | None:
        indexed, position = self._indexed(offset)
        start = None if position else self.base_offset
        return find_behind_gap(
            self.file(), position, self.size_bytes, offset, start=start, indexed=indexed
        )

    def _indexed(self, offset: int) -> tuple[int, int]:
        """From where on `offset` is to be looked for: (the indexed offset or -1, the position).

        Raises CorruptIndexError.
        """
        if offset <= self.base_offset:
            return -1, 0
        self.check_indexes()
        indexed, position = self.files.offset_index.lookup(offset)
        if not position:
            return -1, 0
        if position >= self.size_bytes:
            raise CorruptIndexError(
                f"{self.files.offset_index.path} points at {position}, at no batch"
            )
        return indexed, position

    def walk_from(self, offset: int) -> Iterator[tuple[int, BatchHeader, bool]]:
        """The batches from that which holds `offset` on, or some before, as by `walk_placed`.

        Raises CorruptBatchError.
        """
        try:
            position = self._indexed(offset)[1]
        except CorruptIndexError:
            position = 0
        start = None if position else self.base_offset
        return walk_placed(self.file(), position, self.size_bytes, start)

    def _once_more(self, error: Exception, action: Callable[..., _T], *args: int) -> _T:
        """Do with new indexes what failed for `error`.

        Where the batches are damaged that is of no use, and not tried at every look-up: it
        reads them all. Raises CorruptBatchError.
        """
        if self.size_bytes < 2 * self._damaged_size_bytes:
            raise CorruptBatchError(str(error)) from error
        try:
            self.rebuild_indexes()
            return action(*args)
        except (CorruptIndexError, CorruptBatchError) as damage:
            self._damaged_size_bytes = self.size_bytes
            if isinstance(damage, CorruptBatchError):
                raise
            raise CorruptBatchError(str(damage)) from damage

    def last_whole_batch(self, position: int, limit: int) -> RangeEnd | None:
        """Find the end of the batches that begin at `position` and end at or before `limit`, or
        None.

        Raises CorruptBatchError if there is no batch at `position`.
        """
        try:
            return self._end_of_range(position, limit)
        except (CorruptIndexError, CorruptBatchError) as error:
            telemetry.warning("%s: looking at each batch: %s", self.files.log_path, error)
        anything = self.base_offset + RELATIVE_OFFSET_MAX
        return end_of_range(self.file(), position, anything, position, limit, self.size_bytes)

    def _end_of_range(self, position: int, limit: int) -> RangeEnd | None:
        self.check_indexes()
        indexed, place = self.files.offset_index.lookup_position(limit)
        if place <= position:
            indexed, place = self.base_offset + RELATIVE_OFFSET_MAX, position
        return end_of_range(self.file(), place, indexed, position, limit, self.size_bytes)

    def next_offset(self) -> int:
        """The offset after the last batch. Raises CorruptBatchError as `end` does."""
        return self.end()[0]

    def end(self) -> tuple[int, int]:
        """(the offset after the last batch, its leader epoch), found from the last index entry on.

        Raises CorruptBatchError if the file does not end with that batch, or that is misplaced.
        """
        try:
            end = self._end()
        except (CorruptIndexError, CorruptBatchError) as error:
            end = self._once_more(error, self._end)
        if end[0] - self.base_offset > RELATIVE_OFFSET_MAX + 1:
            raise CorruptBatchError(f"offset {end[0] - 1} is too far from the segment's")
        return end

    def _end(self) -> tuple[int, int]:
        self.check_indexes()
        offset, position = self.files.offset_index.last()
        end = end_of_batches(self.file(), position, self.size_bytes, self.base_offset)
        if position and end[0] <= offset:
            raise CorruptIndexError(f"{self.files.offset_index.path} ends with offset {offset}")
        return end

    def is_end_sound(self, end_offset: int) -> bool:
        """Return whether a finished segment ends at or before `end_offset`, with a batch."""
        try:
            return self.next_offset() <= end_offset
        except CorruptBatchError as error:
            telemetry.error("%s is damaged at its end: %s", self.files.log_path, error)
            return False

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
        timestamp, offset = self.files.time_index.last()
        for _, header, _ in self.walk_from(offset):
            if header.max_timestamp > timestamp:
                if header.last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
                    raise CorruptBatchError(f"offset {header.last_offset} is too far")
                timestamp, offset = header.max_timestamp, header.last_offset
        self.max_timestamp, self.max_timestamp_offset = timestamp, offset

    def _rebuild_max_timestamp(self) -> None:
        try:
            self.rebuild_indexes()
        except CorruptBatchError as error:
            telemetry.error("%s is damaged: %s", self.files.log_path, error)
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
            telemetry.error("%s is damaged: %s", self.files.log_path, error)
        return NO_TIMESTAMP

    def check_indexes(self) -> None:
        """Raise CorruptIndexError for indexes that plainly are not this segment's."""
        if not self._is_checked:
            self.files.offset_index.check(self.size_bytes)
            self.files.time_index.check()
            self._is_checked = True

    def rebuild_indexes(self, index_interval_bytes: int = 4096) -> None:
        """Rebuild offset and time index from the batches' headers.

        Raises CorruptBatchError if it is the batches that are damaged; the indexes, which may
        be all that leads to those behind the damage, are left as they are then.
        """
        for _ in walk_headers(self.file(), 0, self.size_bytes):
            pass
        self.start_rebuild()
        offset_max = self.base_offset + RELATIVE_OFFSET_MAX
        for position, header, is_placed in walk_placed(
            self.file(), 0, self.size_bytes, self.base_offset
        ):
            if is_placed and header.last_offset <= offset_max:
                self.note_recovered(position, header, index_interval_bytes)
            else:
                # The entries that are made must be true, and can do without this batch's.
                self._bytes_since_entry += header.size_bytes
        self.finish_rebuild()

    def start_rebuild(self) -> None:
        """Empty both indexes and what is known of timestamps."""
        self.files.offset_index.reset()
        self.files.time_index.reset()
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
            try:
                self.files.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            except CorruptIndexError as error:
                self._renew_indexes(error)
        indexes = self.files.made_indexes
        for index in indexes:
            index.write_pending()
        return [index.path for index in indexes if index.is_written]

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that holds `offset` and all after it; returns where the segment ends.

        Damage before that batch goes too, and what lies between: nothing says where it ends.
        """
        try:
            location = self.locate(offset)
        except MisplacedBatchError as error:
            size_bytes = error.found[0]
        except CorruptBatchError as error:
            telemetry.error("%s is damaged, and is cut there: %s", self.files.log_path, error)
            offset, size_bytes = self._sound_part(offset)
        else:
            size_bytes = self.size_bytes if location is None else location[0]
        self._truncate(offset, size_bytes)
        return offset

    def _truncate(self, offset: int, size_bytes: int) -> None:
        damage = None
        try:
            self.files.offset_index.truncate_to(offset)
            self.files.time_index.truncate_to(offset)
        except CorruptIndexError as error:
            damage = error
        if size_bytes < self.size_bytes:
            file = self.file()
            file.truncate(size_bytes)
            file.fsync()  # what is dropped must not come back once more was appended
            self.size_bytes = size_bytes
        self._damaged_size_bytes = 0
        self.max_timestamp = None
        self._bytes_since_entry = 0
        if not self.size_bytes:
            self.first_timestamp = None
        if damage is not None:
            self._renew_indexes(damage)
        self.load_max_timestamp()

    def _sound_part(self, offset: int) -> tuple[int, int]:
        """Return the part before `offset` that can be walked: (the offset after it, its bytes)."""
        end, size_bytes = self.base_offset, 0
        try:
            for place, header in walk_headers(self.file(), 0, self.size_bytes):
                if header.next_offset > offset or header.base_offset < end:
                    break
                end, size_bytes = header.next_offset, place + header.size_bytes
        except CorruptBatchError:
            pass  # known, and told
        return end, size_bytes


class PlainLimits:
    """The limits, from the topic's configuration, within which an append to a segment is plain."""

    __slots__ = (
        "attributes",
        "batch_size_max_bytes",
        "config",
        "index_interval_bytes",
        "keys_required",
        "last_offset_max",
        "segment_size_max_bytes",
        "span_max_ms",
        "timestamp_after_max_ms",
    )

    def __init__(self, config: LogConfig, base_offset: int, segment_ms: int) -> None:
        self.config = config
        codecs = tuple(Codec) if config.codec is None else (config.codec,)
        is_open = (
            config.timestamp_type is TimestampType.CREATE_TIME
            and config.message_timestamp_before_max_ms == LONG_MAX
        )
        self.attributes = (
            frozenset(int(codec) | flag for codec in codecs for flag in (0, TRANSACTIONAL_MASK))
            if is_open
            else frozenset()
        )
        """Those that no broker needs to change: everything but codec and transaction is unset."""
        self.batch_size_max_bytes = min(config.max_message_bytes, config.segment_bytes)
        self.keys_required = config.is_compacted
        self.timestamp_after_max_ms = config.message_timestamp_after_max_ms
        self.index_interval_bytes = config.index_interval_bytes
        self.last_offset_max = base_offset + RELATIVE_OFFSET_MAX
        self.span_max_ms = segment_ms
        """From the segment's first timestamp to a batch's greatest."""
        self.segment_size_max_bytes = min(
            config.segment_bytes,
            size_without_full_indexes(config.index_entries_max, config.index_interval_bytes),
        )

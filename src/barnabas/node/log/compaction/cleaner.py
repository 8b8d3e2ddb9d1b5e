"""The work beside the event loop: reading a log's segments and rewriting them.

Both halves are generators that yield, after each buffer of input, the bytes they read and wrote,
so that the caller can slow them down, stop them, or do something else in between.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final

from barnabas.base.disk import Buffer, Disk, DiskFile
from barnabas.node.log.compaction.cleaned_segment import CleanedSegment
from barnabas.node.log.compaction.job import CleanJob, GroupCleaned, MapBuilt, Source
from barnabas.node.log.compaction.offset_map import OffsetMap
from barnabas.node.log.compaction.retention import BatchFilter, TransactionTracker
from barnabas.node.log.compaction.scan import (
    decompress_batch,
    offsets_of,
    require_crc,
    scan_records,
)
from barnabas.node.log.index.txn_index import AbortedTransaction, read_aborted
from barnabas.node.log.names import LOG_SUFFIX, TXN_INDEX_SUFFIX, offset_file
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    CorruptBatchError,
    read_header,
)

GAP_SIZE_BYTES_MIN: Final = 16_384
"""From this size on, ranges that are not needed are skipped instead of read."""


class Cleaner:
    """One round of cleaning one log: `build_map` first, then `clean` for one group after another.

    Everything raises OSError, CorruptBatchError for damaged batches (which are left as they are),
    and CorruptIndexError for a damaged transaction index.
    """

    def __init__(self, disk: Disk, job: CleanJob) -> None:
        self._disk = disk
        self._job = job
        self._map = OffsetMap(job.map_bytes_max, job.map_load_factor)
        self._is_keyless = False
        """True if a record without a key was met, of which the map knows nothing."""
        self._aborted = self._read_aborted()
        self._transactions = TransactionTracker(self._aborted)
        self._filter = BatchFilter(
            self._map,
            self._transactions,
            job.producers,
            end_offset=job.end_offset,
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
        )

    def _read_aborted(self) -> list[AbortedTransaction]:
        aborted = list(self._job.aborted)
        for source in self._job.sources:
            path = offset_file(self._job.directory, source.base_offset, TXN_INDEX_SUFFIX)
            aborted += read_aborted(self._disk, path)
        return aborted

    def _open(self, source: Source) -> DiskFile:
        return self._disk.open(offset_file(self._job.directory, source.base_offset, LOG_SUFFIX))

    # The map

    def build_map(self) -> Generator[int, None, MapBuilt]:
        """Read the dirty segments' keys, until their end or until the map is full."""
        job = self._job
        dirty = _from_offset(job.sources, job.start_offset)
        transactions = TransactionTracker(
            entry for entry in self._aborted if entry.last_offset >= job.start_offset
        )
        bytes_read = records_read = 0
        is_full = False
        for index, source in enumerate(dirty):
            file = self._open(source)
            for chunk, batches in read_chunks(file, source.size_bytes, job.io_buffer_bytes):
                size = 0
                for at, header in batches:
                    size += header.size_bytes
                    records_read += header.record_count
                    is_full = not self._map_batch(transactions, chunk, at, header)
                    if is_full:
                        break
                bytes_read += size
                yield size
                if is_full:
                    break
            file.close()
            if is_full:
                break
            # Offsets that are no more count as read.
            following = dirty[index + 1].base_offset if index + 1 < len(dirty) else job.end_offset
            if self._map.latest_offset >= following:
                raise CorruptBatchError(f"{file.path} ends with offset {self._map.latest_offset}")
            self._map.latest_offset = following - 1
        if not self._is_keyless:
            self._filter.trust_map_from(job.start_offset)
        return MapBuilt(
            end_offset=self._map.latest_offset + 1,
            bytes_read=bytes_read,
            records_read=records_read,
            keys=len(self._map),
            utilization=self._map.utilization,
        )

    def _map_batch(
        self, transactions: TransactionTracker, chunk: bytes, at: int, header: BatchHeader
    ) -> bool:
        """Take a batch's keys into the map; whether there was room for all."""
        start_offset = self._job.start_offset
        if header.last_offset < start_offset:
            return True
        require_crc(chunk, at, header)
        if header.is_control:
            transactions.is_marker_discardable(header, chunk, at)
        elif not transactions.is_data_discarded(header) and header.record_count:
            scan = scan_records(*decompress_batch(chunk, at, header), header.record_count)
            keys: Sequence[bytes | None] = scan.keys
            offsets = offsets_of(scan, header.base_offset)
            if scan.is_keyless or header.base_offset < start_offset:
                self._is_keyless = self._is_keyless or scan.is_keyless
                pairs = [
                    (key, offset)
                    for key, offset in zip(keys, offsets, strict=True)
                    if key is not None and offset >= start_offset
                ]
                keys, offsets = [key for key, _ in pairs], [offset for _, offset in pairs]
            present_keys: Sequence[bytes] = keys  # type: ignore[assignment]  # none is None
            if not self._map.put_all(present_keys, offsets, scan.key_size_max):
                return False
        self._map.latest_offset = header.last_offset
        return True

    # The segments

    def clean(self, group: Sequence[Source]) -> Generator[int, None, GroupCleaned]:
        """Rewrite a group of segments as one, in `.cleaned` files."""
        cleaned = CleanedSegment(
            self._disk,
            self._job.directory,
            group[0].base_offset,
            index_interval_bytes=self._job.index_interval_bytes,
        )
        try:
            return (yield from self._clean_into(cleaned, group))
        except Exception:  # not when this generator is closed: the process may be no more
            cleaned.discard()
            raise

    def _clean_into(
        self, cleaned: CleanedSegment, group: Sequence[Source]
    ) -> Generator[int, None, GroupCleaned]:
        counts = self._filter
        before = counts.records_read, counts.records_written, counts.keyless_records
        bytes_read = 0
        same_bytes = 0 if len(group) == 1 else None
        """The part of a segment that stays unchanged and is not written yet."""
        for source in group:
            file = self._open(source)
            for chunk, batches in read_chunks(
                file, source.size_bytes, self._job.io_buffer_bytes, self._filter.is_superseded
            ):
                size = sum([header.size_bytes for _, header in batches])
                written = cleaned.size_bytes
                parts, is_same = self._filter_chunk(cleaned, chunk, batches)
                bytes_read += size
                if same_bytes is not None and is_same:
                    same_bytes += size
                    yield size
                    continue
                if same_bytes is not None:
                    yield from _copy(file, same_bytes, self._job.io_buffer_bytes, cleaned)
                    same_bytes = None
                cleaned.write(parts)
                yield min(size, len(chunk)) + cleaned.size_bytes - written
            file.close()
        if same_bytes is not None:
            cleaned.discard()
        else:
            cleaned.finish(self._transactions.kept_aborted)
        self._transactions.kept_aborted = []
        return GroupCleaned(
            base_offset=cleaned.base_offset,
            size_bytes=cleaned.size_bytes,
            bytes_read=bytes_read,
            bytes_written=0 if same_bytes is not None else cleaned.size_bytes,
            records_read=counts.records_read - before[0],
            records_written=counts.records_written - before[1],
            keyless_records=counts.keyless_records - before[2],
            is_changed=same_bytes is None,
        )

    def _filter_chunk(
        self,
        cleaned: CleanedSegment,
        chunk: bytes,
        batches: list[tuple[int, BatchHeader]],
    ) -> tuple[list[Buffer], bool]:
        """Return the buffers to write of a chunk's batches, and whether they are the whole chunk,
        unchanged.
        """
        keep = self._filter.keep
        view = memoryview(chunk)
        parts: list[Buffer] = []
        is_same = True
        run_start = run_end = batches[0][0]
        for at, header in batches:
            kept = keep(header, chunk, at)
            if kept is header:
                if run_end != at:
                    if run_end > run_start:
                        parts.append(view[run_start:run_end])
                    run_start = at
                run_end = at + header.size_bytes
                cleaned.note(header, header.size_bytes)
                continue
            is_same = False
            if kept is not None:
                if run_end > run_start:
                    parts.append(view[run_start:run_end])
                run_start = run_end = -1
                assert isinstance(kept, bytearray)
                parts.append(kept)
                cleaned.note(read_header(kept), len(kept))
        if run_end > run_start:
            parts.append(view[run_start:run_end])
        return parts, is_same


def _from_offset(sources: Sequence[Source], offset: int) -> Sequence[Source]:
    """The sources from the one on that holds `offset`."""
    index = bisect_right(sources, offset, key=lambda source: source.base_offset) - 1
    return sources[max(0, index) :]


def _copy(
    file: DiskFile, end: int, buffer_bytes: int, cleaned: CleanedSegment
) -> Generator[int, None, None]:
    """Write the first `end` bytes of `file`, whose batches were noted already."""
    position = 0
    while position < end:
        data = file.pread(min(buffer_bytes, end - position), position)
        if not data:
            raise CorruptBatchError(f"{file.path} ends at {position}")
        cleaned.write([data])
        position += len(data)
        yield 2 * len(data)


def read_chunks(
    file: DiskFile,
    end: int,
    buffer_bytes: int,
    is_superseded: Callable[[BatchHeader], bool] = lambda _: False,
) -> Iterator[tuple[bytes, list[tuple[int, BatchHeader]]]]:
    """The batches of a file up to `end`, by whole ones that one buffer holds (one at least).

    Yields (buffer, [(place in the buffer, header)]). Of batches that `is_superseded` takes, the
    buffer need not have more than the header. Raises CorruptBatchError where something that is no
    batch stands, the last is cut off, or an offset steps back: one that claims to be further on
    than it was written would supersede what is newer.
    """
    position = next_offset = 0
    wanted = buffer_bytes
    while position < end:
        chunk = file.pread(min(wanted, end - position), position)
        header = read_header(chunk, header_only=True)
        size = header.size_bytes
        if size > end - position:
            raise CorruptBatchError(
                f"{file.path}: batch of {size} bytes at {position}, the file ends at {end}"
            )
        batches = list(_batches(chunk, end - position, is_superseded))
        if not batches:
            if wanted < buffer_bytes:
                wanted = buffer_bytes  # only its header was asked for
                continue
            chunk = file.pread(size, position)
            batches = [(0, header)]
            if len(chunk) < size:
                raise CorruptBatchError(f"{file.path} ends within a batch at {position}")
        for _, header in batches:
            if header.base_offset < next_offset:
                raise CorruptBatchError(
                    f"{file.path}: offset {header.base_offset} comes after {next_offset - 1}"
                )
            next_offset = header.base_offset + header.last_offset_delta + 1
        yield chunk, batches
        at, header = batches[-1]
        position += at + header.size_bytes
        wanted = _wanted(chunk, batches, buffer_bytes)


def _wanted(chunk: bytes, batches: list[tuple[int, BatchHeader]], buffer_bytes: int) -> int:
    """The number of bytes to read next: up to the end of a batch, if the coming ones are like the
    next.
    """
    at, header = batches[-1]
    size = header.size_bytes
    left = len(chunk) - at - size
    if left < -GAP_SIZE_BYTES_MIN:
        return HEADER_SIZE_BYTES  # one batch was not read; another may be neither
    if left >= HEADER_SIZE_BYTES:
        size = read_header(chunk, at + size, header_only=True).size_bytes
    elif left:
        return buffer_bytes
    return max(1, buffer_bytes // size) * size


def _batches(
    chunk: bytes, end: int, is_superseded: Callable[[BatchHeader], bool]
) -> Iterator[tuple[int, BatchHeader]]:
    """The batches that `chunk` holds as far as they are asked for, and that lie before `end`."""
    at, size = 0, len(chunk)
    while size - at >= HEADER_SIZE_BYTES:
        header = read_header(chunk, at, header_only=True)
        following = at + header.size_bytes
        if following > size and (following > end or not is_superseded(header)):
            return
        yield at, header
        at = following

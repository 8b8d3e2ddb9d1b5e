"""The segment that a group of segments is written to: `.cleaned` files beside the log's own.

Nothing refers to them until they are renamed, so any leftovers are removed at start.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.base.disk import Buffer, Disk, DiskFile
from barnabas.node.log.index.offset_index import ENTRY as OFFSET_ENTRY
from barnabas.node.log.index.time_index import ENTRY as TIME_ENTRY
from barnabas.node.log.index.txn_index import ENTRY as TXN_ENTRY
from barnabas.node.log.index.txn_index import VERSION as TXN_VERSION
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_file,
)
from barnabas.protocol.records.batch import NO_TIMESTAMP, BatchHeader, CorruptBatchError

SIZE_BYTES_MAX: Final = 2**31 - 1
"""Positions in an index are 32 bits."""


class CleanedSegment:
    """See the module. Positions and sizes are bytes."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, *, index_interval_bytes: int
    ) -> None:
        self.base_offset = base_offset
        self.size_bytes = 0
        self._disk = disk
        self._directory = directory
        self._interval_bytes = index_interval_bytes
        self._file = self._create(LOG_SUFFIX)
        self._since_entry = 0
        self._offset_index = bytearray()
        self._time_index = bytearray()
        self._max_timestamp = self._indexed_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset

    def note(self, header: BatchHeader, size_bytes: int) -> None:
        """Count, and index now and then, a batch of `size_bytes` that will be written next."""
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if self._since_entry > self._interval_bytes:
            relative = header.last_offset - self.base_offset
            self._offset_index += OFFSET_ENTRY.pack(relative, self.size_bytes)
            self._index_time()
            self._since_entry = 0
        self._since_entry += size_bytes
        self.size_bytes += size_bytes
        if self.size_bytes > SIZE_BYTES_MAX:
            raise CorruptBatchError("recompressed batches do not fit into one segment")

    def _index_time(self) -> None:
        if self._max_timestamp > self._indexed_timestamp:
            relative = self._max_timestamp_offset - self.base_offset
            self._time_index += TIME_ENTRY.pack(self._max_timestamp, relative)
            self._indexed_timestamp = self._max_timestamp

    def write(self, parts: list[Buffer]) -> None:
        """Put batches that were noted into the file."""
        if parts:
            self._file.append(parts if len(parts) == 1 else (b"".join(parts),))

    def finish(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Write the indexes, and force all files to the medium."""
        self._index_time()
        files = [self._file]
        for suffix, content in (
            (INDEX_SUFFIX, self._offset_index),
            (TIME_INDEX_SUFFIX, self._time_index),
            (
                TXN_INDEX_SUFFIX,
                b"".join(TXN_ENTRY.pack(TXN_VERSION, *entry) for entry in aborted),
            ),
        ):
            if content or suffix != TXN_INDEX_SUFFIX:
                file = self._create(suffix)
                if content:
                    file.append((content,))
                files.append(file)
        for file in files:
            file.fsync()
            file.close()

    def discard(self) -> None:
        """Remove what was written."""
        self._file.close()
        remove_cleaned(self._disk, self._directory, self.base_offset)

    def _create(self, suffix: str) -> DiskFile:
        path = cleaned_path(self._directory, self.base_offset, suffix)
        file = self._disk.open(path, create=True)
        file.truncate(0)
        return file


def cleaned_path(directory: str, base_offset: int, suffix: str) -> str:
    """The path of one file of a cleaned segment, as the worker leaves it."""
    return offset_file(directory, base_offset, suffix) + CLEANED_SUFFIX


def remove_cleaned(disk: Disk, directory: str, base_offset: int) -> None:
    """Remove the files of a cleaned segment that is not to be, as far as they are there."""
    for suffix in SEGMENT_SUFFIXES:
        path = cleaned_path(directory, base_offset, suffix)
        if disk.exists(path):
            disk.remove(path)

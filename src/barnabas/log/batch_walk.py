"""Walking the batches of a file by their headers, reading as little as will do."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.base.disk import DiskFile
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    CorruptBatchError,
    read_header,
)

CHUNK_SIZE_BYTES: Final = 8192
"""Read at once where batches are small; those that are larger cost a read per header."""
STREAM_SIZE_BYTES: Final = 1 << 20
_LENGTH: Final = Struct(">i")


def walk_headers(file: DiskFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The batches from `position` on that lie before `end`, as (position, header).

    A batch that would reach over `end` ends the walk. Raises CorruptBatchError for bytes that
    are no header, and OSError.
    """
    chunk = b""
    chunk_start = position
    previous_size = 0
    while end - position >= HEADER_SIZE_BYTES:
        at = position - chunk_start
        if len(chunk) - at < HEADER_SIZE_BYTES:
            wanted = HEADER_SIZE_BYTES if previous_size > CHUNK_SIZE_BYTES else CHUNK_SIZE_BYTES
            chunk = file.pread(wanted, position)
            chunk_start = position
            at = 0
        header = read_header(chunk, at, header_only=True)
        previous_size = header.size_bytes
        if position + previous_size > end:
            return
        yield position, header
        position += previous_size


class MisplacedBatchError(CorruptBatchError):
    """No batch holds `offset`, and one stands where it cannot; `found` is the first behind."""

    def __init__(self, offset: int, found: tuple[int, BatchHeader]) -> None:
        super().__init__(f"no batch holds offset {offset}, and an offset there steps back")
        self.found = found


def find_behind_gap(
    file: DiskFile, position: int, end: int, offset: int
) -> tuple[int, BatchHeader] | None:
    """The batch that holds `offset`, else the first behind the gap in which that lies.

    Where a batch stands is not covered by its CRC. One that claims to be further on than it is
    shows by the next, which steps back: it is passed over, so that what follows is found. Kafka
    believes it. Raises MisplacedBatchError where `offset` itself may be what is misplaced.
    """
    found = None
    next_offset = 0
    is_astray = False
    for place, header in walk_headers(file, position, end):
        is_astray = is_astray or header.base_offset < next_offset
        if found is not None and not is_astray:
            return found
        next_offset = header.next_offset
        if next_offset > offset:
            if header.base_offset <= offset:
                return place, header
            if is_astray:
                raise MisplacedBatchError(offset, found or (place, header))
            found = place, header
    if is_astray and found is not None:
        raise MisplacedBatchError(offset, found)
    return found


def read_batch(file: DiskFile, position: int, header: BatchHeader) -> bytes:
    """The whole batch. Raises CorruptBatchError if the file ends within it."""
    size = header.size_bytes
    data = file.pread(size, position)
    if len(data) != size:
        raise CorruptBatchError(f"batch of {size} bytes, of which {len(data)} are there")
    return data


def stream_batches(
    file: DiskFile, position: int, end: int
) -> Iterator[tuple[int, BatchHeader, bytes, int]]:
    """Every batch from `position` to `end`, whole: (position, header, buffer, place in buffer).

    Raises CorruptBatchError where something that is no batch stands, or the last is cut off.
    """
    chunk = b""
    chunk_start = position
    while position < end:
        at = position - chunk_start
        left = len(chunk) - at
        if left < HEADER_SIZE_BYTES or left < _LENGTH.unpack_from(chunk, at + 8)[0] + 12:
            chunk = file.pread(min(STREAM_SIZE_BYTES, end - position), position)
            chunk_start, at = position, 0
            header = read_header(chunk, header_only=True)
            if header.size_bytes > len(chunk):
                if header.size_bytes > end - position:
                    raise CorruptBatchError(
                        f"batch of {header.size_bytes} bytes, of which {end - position} are there"
                    )
                chunk = read_batch(file, position, header)
        else:
            header = read_header(chunk, at)
        yield position, header, chunk, at
        position += header.size_bytes

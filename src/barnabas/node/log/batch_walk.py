"""Walking the batches of a file by their headers, reading as little as will do."""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.base.disk import DiskFile
from barnabas.node.log.errors import CorruptIndexError
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_LEADER_EPOCH,
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

    def __init__(self, offset: int, batch: tuple[int, BatchHeader]) -> None:
        super().__init__(f"no batch holds offset {offset}, and an offset there steps back")
        self.found = batch


def find_behind_gap(
    file: DiskFile, position: int, end: int, offset: int, *, start: int | None, indexed: int
) -> tuple[int, BatchHeader] | None:
    """The batch that holds `offset`, else the first behind the gap in which that lies.

    A batch's position is not covered by its CRC. One that claims to be further on than it is
    shows by the next, which steps back: it is passed over, so that what follows is found. Kafka
    believes it. Raises MisplacedBatchError where `offset` itself may be what is misplaced.

    `start` is as in `walk_placed`; `indexed` is the last offset of one of the first batches, as
    the index says, or -1. Raises CorruptIndexError if there is no such batch.
    """
    misplaced: tuple[int, BatchHeader] | None = None
    is_indexed_met = indexed < 0
    for place, header, is_placed in walk_placed(file, position, end, start):
        is_indexed_met = is_indexed_met or header.last_offset == indexed
        if not is_placed:
            misplaced = misplaced or (place, header)
        elif header.next_offset > offset:
            if header.base_offset <= offset:
                return place, header
            if misplaced is not None:
                raise MisplacedBatchError(offset, misplaced)
            if not is_indexed_met:
                raise CorruptIndexError(f"no batch of {file.path} ends with {indexed}")
            return place, header
        else:
            misplaced = None
    if misplaced is not None:
        raise MisplacedBatchError(offset, misplaced)
    return None


class RangeEnd(NamedTuple):
    """The end of the whole batches that can be sent as a range of a file."""

    position: int
    next_offset: int
    """The offset after the last of them."""
    is_followed: bool
    """True if the batch behind says that it begins there: who goes on needs no look-up."""


def end_of_range(
    file: DiskFile, start: int, indexed: int, floor: int, limit: int, size_bytes: int
) -> RangeEnd | None:
    """Find the end of the batches that begin at `floor` and end at or before `limit`.

    At `start`, which is `floor` or behind it, the batch begins that, or one soon after it, ends
    with offset `indexed`. The first batch that is left out is seen as well: where it steps back,
    one of the two is misplaced, and the range ends before both. So it does before bytes that are
    no batch. None if no batch is left; raises CorruptBatchError if there is no batch at `start`.
    """
    before = stop = -1  # where the last batch but one ends, and the last
    before_offset = next_offset = -1
    try:
        for place, header in walk_headers(file, start, size_bytes):
            base_offset = header[0]
            if stop < 0:
                if base_offset + header[6] > indexed:
                    raise CorruptBatchError(f"offset {header.last_offset} is not {indexed}")
                if place > floor:
                    before, before_offset = place, base_offset
                if place + header[1] + LOG_OVERHEAD_BYTES > limit:
                    return RangeEnd(before, before_offset, True) if before >= 0 else None
            elif base_offset < next_offset:
                if before < 0:
                    before, before_offset = stop, next_offset
                return RangeEnd(before, before_offset, False)
            elif place + header[1] + LOG_OVERHEAD_BYTES > limit:
                return RangeEnd(stop, next_offset, base_offset == next_offset)
            else:
                before, before_offset = stop, next_offset
            stop = place + header[1] + LOG_OVERHEAD_BYTES
            next_offset = base_offset + header[6] + 1
    except CorruptBatchError:
        if stop < 0:
            raise
    return RangeEnd(stop, next_offset, False) if stop >= 0 else None


def end_of_batches(
    file: DiskFile, position: int, size_bytes: int, next_offset: int
) -> tuple[int, int]:
    """(the offset after the last batch, its leader epoch or -1 without any).

    The one at `position` begins at `next_offset` or after. Raises CorruptBatchError if an offset
    steps back, or the file does not end with a batch.
    """
    epoch = NO_LEADER_EPOCH
    for place, header in walk_headers(file, position, size_bytes):
        position = place + header.size_bytes
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise CorruptBatchError(f"offset {header.base_offset} comes after {next_offset - 1}")
        next_offset, epoch = header.next_offset, header.partition_leader_epoch
    if position != size_bytes:
        raise CorruptBatchError(f"{size_bytes - position} bytes follow the last batch")
    return next_offset, epoch


def walk_placed(
    file: DiskFile, position: int, end: int, next_offset: int | None
) -> Iterator[tuple[int, BatchHeader, bool]]:
    """As `walk_headers`, with whether the neighbours confirm the place of each batch.

    If an offset steps back, the previous batch is misplaced if this one continues the one before
    that; otherwise both may be. A misplaced batch comes with the offset that it would have without
    a gap, not the one in its header. The first batch begins at `next_offset` or later; None accepts
    the offset that it names.
    """
    held: BatchHeader | None = None
    held_place, is_placed = 0, True
    damage: CorruptBatchError | None = None
    try:
        for place, header in walk_headers(file, position, end):
            if held is None:
                if next_offset is None:
                    next_offset = header.base_offset
                is_next_placed = header.base_offset >= next_offset
            else:
                assert next_offset is not None
                as_if = next_offset + held.last_offset_delta + 1
                if not is_placed:
                    is_next_placed = header.base_offset >= next_offset
                elif header.base_offset >= held.next_offset:
                    is_next_placed = True
                else:
                    is_placed = header.base_offset < as_if
                    is_next_placed = header.base_offset == as_if
                yield held_place, held if is_placed else _at(held, next_offset), is_placed
                if is_placed:
                    next_offset = held.next_offset
                elif next_offset < as_if <= header.base_offset:
                    next_offset = as_if
            held_place, held = place, header
            is_placed = is_next_placed and header.last_offset_delta >= 0
    except CorruptBatchError as error:
        damage = error  # for the next read
    if held is not None:
        assert next_offset is not None
        yield held_place, held if is_placed else _at(held, next_offset), is_placed
    if damage is not None:
        raise damage


def _at(header: BatchHeader, base_offset: int) -> BatchHeader:
    return header._replace(base_offset=base_offset)


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

    Raises CorruptBatchError where something that is not a batch stands, or the last is cut off.
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

"""The 61-byte header of a record batch (magic 2): read, checked and patched in place.

A broker rarely looks further. The CRC covers everything after itself, so base offset and leader
epoch, which lie before it, are patched without touching it. Layout, big-endian:

    0 base offset i64 | 8 length i32 | 12 leader epoch i32 | 16 magic i8 | 17 crc u32
    21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64
    43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 count i32 | 61 records

Attributes: bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon.
Source: Kafka's DefaultRecordBatch, KIP-98.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from barnabas.base.checksum import crc32c
from barnabas.base.disk import Buffer
from barnabas.protocol.errors import DecodeError, ErrorCode

HEADER_SIZE_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""Base offset and length: what the length field does not count."""
BATCH_LENGTH_MIN = HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES
MAGIC = 2
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35
SEQUENCE_MAX = 2**31 - 1
PRODUCER_EPOCH_MAX = 2**15 - 1

NO_OFFSET = -1
"""No offset, or none that is known."""
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40

HEADER = Struct(">qiibIhiqqqhii")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT16 = Struct(">h")
_unpack_header = HEADER.unpack_from
_pack_int64 = _INT64.pack_into
_pack_int32 = _INT32.pack_into
_new_tuple = tuple.__new__


class CorruptBatchError(DecodeError):
    """Bytes that are not a record batch. `error` is the code that a client is given."""

    def __init__(self, message: str, error: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(message)
        self.error = error


class Codec(IntEnum):
    """The compression of a batch's records."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """The origin of a batch's timestamps: its producer, or the broker on append."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


CODECS = tuple(Codec)


class BatchHeader(NamedTuple):
    """One batch's header. A tuple, since it is built for every batch that passes.

    Timestamps are milliseconds since the epoch, -1 if none exists; `batch_length` counts
    the bytes after itself. Producer id, epoch and sequence are -1 for a plain producer.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """Raises CorruptBatchError for the numbers that name no codec."""
        return codec_of(self.attributes)

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_MASK != 0

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & TIMESTAMP_TYPE_MASK:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_MASK != 0

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; numbers wrap from 2^31-1 to 0 (KIP-98)."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones inside may go (KIP-534); kept in the base timestamp's place."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_MASK else None


def codec_of(attributes: int) -> Codec:
    """Raises CorruptBatchError for the numbers that name no codec."""
    number = attributes & CODEC_MASK
    if number >= len(CODECS):
        raise CorruptBatchError(
            f"compression codec {number} is unknown", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    return CODECS[number]


def read_header(buffer: Buffer, position: int = 0, *, header_only: bool = False) -> BatchHeader:
    """Read the header of the batch that starts at `position`.

    The whole batch must lie in `buffer`, unless `header_only` says that just its first 61 bytes
    were read. The CRC is not looked at. Raises CorruptBatchError for a header or batch that is
    cut off, a length below 49, and any magic but 2 (INVALID_RECORD for 0 and 1, whose message
    sets ended with Kafka 4.0, KIP-724; CORRUPT_MESSAGE for those that never were).
    """
    available = len(buffer) - position
    if available < HEADER_SIZE_BYTES:
        raise _short_header(buffer, position, available)
    header: BatchHeader = _new_tuple(BatchHeader, _unpack_header(buffer, position))
    if header[3] != MAGIC:
        raise _wrong_magic(header[3])
    length = header[1]
    if length < BATCH_LENGTH_MIN:
        raise CorruptBatchError(f"batch length {length} is below {BATCH_LENGTH_MIN}")
    if length + LOG_OVERHEAD_BYTES > available and not header_only:
        raise CorruptBatchError(
            f"batch of {length + LOG_OVERHEAD_BYTES} bytes, of which {available} are there"
        )
    return header


def iterate_headers(
    buffer: Buffer, *, allow_partial_tail: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """Walk the batches that follow each other in `buffer`, as (position, header).

    Raises CorruptBatchError as `read_header` does. With `allow_partial_tail` a last batch that
    is cut off ends the walk instead, as in a fetch response or a chunk of a segment.
    """
    position = 0
    end = len(buffer)
    while position < end:
        if end - position >= HEADER_SIZE_BYTES:
            header: BatchHeader = _new_tuple(BatchHeader, _unpack_header(buffer, position))
            next_position = position + header[1] + LOG_OVERHEAD_BYTES
            if header[3] == MAGIC and header[1] >= BATCH_LENGTH_MIN and next_position <= end:
                yield position, header
                position = next_position
                continue
        if allow_partial_tail and _is_cut_off(buffer, position, end):
            return
        header = read_header(buffer, position)  # says what is wrong with it
        yield position, header
        position += header[1] + LOG_OVERHEAD_BYTES


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Return whether the bytes of the batch at `position` give the CRC-32C in its header."""
    end = position + header[1] + LOG_OVERHEAD_BYTES
    checksum: int = crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end])
    return checksum == header[4]


def patch(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Give the batch at `position` its offset and epoch; both lie outside the CRC."""
    _pack_int64(buffer, position, base_offset)
    _pack_int32(buffer, position + 12, leader_epoch)


def set_log_append_time(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Stamp the batch at `position` with the broker's time and update its CRC.

    Readers then take `timestamp_ms` as the timestamp of each record.
    """
    set_max_timestamp(buffer, position, timestamp_ms, TimestampType.LOG_APPEND_TIME)


def set_max_timestamp(
    buffer: bytearray | memoryview,
    position: int,
    timestamp_ms: int,
    timestamp_type: TimestampType,
) -> None:
    """Set max timestamp and timestamp type of the batch at `position` and update its CRC."""
    (attributes,) = _INT16.unpack_from(buffer, position + ATTRIBUTES_POSITION)
    attributes &= ~TIMESTAMP_TYPE_MASK
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    _INT16.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _pack_int64(buffer, position + MAX_TIMESTAMP_POSITION, timestamp_ms)
    set_crc(buffer, position)


def set_crc(buffer: bytearray | memoryview, position: int) -> None:
    """Compute the CRC-32C of the batch at `position` and write it."""
    (length,) = _INT32.unpack_from(buffer, position + 8)
    end = position + LOG_OVERHEAD_BYTES + length
    checksum = crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end])
    _UINT32.pack_into(buffer, position + CRC_POSITION, checksum)


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequence arithmetic: from 2^31-1 it goes on with 0. Source: KIP-98."""
    return (sequence + increment) & SEQUENCE_MAX


def _is_cut_off(buffer: Buffer, position: int, end: int) -> bool:
    if end - position < HEADER_SIZE_BYTES:
        return True
    (length,) = _INT32.unpack_from(buffer, position + 8)
    return bool(length + LOG_OVERHEAD_BYTES > end - position)


def _short_header(buffer: Buffer, position: int, available: int) -> CorruptBatchError:
    """Legacy messages may be shorter than our header: name them for what they are."""
    if available > MAGIC_POSITION and buffer[position + MAGIC_POSITION] < MAGIC:
        return _wrong_magic(buffer[position + MAGIC_POSITION])
    return CorruptBatchError(f"{available} bytes are too few for a batch header")


def _wrong_magic(magic: int) -> CorruptBatchError:
    if 0 <= magic < MAGIC:
        return CorruptBatchError(f"magic {magic} is not 2", ErrorCode.INVALID_RECORD)
    return CorruptBatchError(f"Invalid magic found in record: {magic}")

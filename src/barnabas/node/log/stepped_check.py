"""The check of a client's compressed or long batch before its append, apart from the log.

A small batch is checked at once. One that decompresses to more, or to an unknown size, is checked
in steps of less than a millisecond, so that its caller can do other work between them. So is an
uncompressed one whose check would take longer than that. Both depend
on the batch and the topic's configuration only. The append that follows takes the `CheckedBatch`
and checks the rest: producer, sequence, epoch. The outcome is that of `validator.py`.
"""

from collections.abc import Generator
from functools import partial
from typing import Final, NamedTuple

from barnabas.node.log.config import LogConfig
from barnabas.node.log.validator import (
    RECORD_ERRORS_MAX,
    RecordErrors,
    Rejection,
    check_header,
    needs_timestamp_check,
)
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    CorruptBatchError,
    TimestampType,
    check_crc,
    read_header,
    set_crc,
    set_max_timestamp,
)
from barnabas.protocol.records.compression import DECOMPRESSED_SIZE_BYTES_MAX, decompress
from barnabas.protocol.records.decompressing import (
    PACK_SIZE_BYTES,
    Aside,
    Budget,
    Packer,
    decompress_in_pieces,
    likely_size,
)
from barnabas.protocol.records.records import RECORDS_PER_BATCH_MAX
from barnabas.protocol.records.structure import StructureCheck, Watch
from barnabas.protocol.records.uniform import RECORD_SIZE_BYTES_MIN, is_uniform
from barnabas.protocol.records.walk import BadRecordError, walk_records

PACKED_SMALL_MAX_BYTES: Final = 64 * 1024
PACKED_TINY_MAX_BYTES: Final = 2 * 1024
"""Compressed records of at most this size are unpacked, up to their limit, regardless of their
declared size.
"""
DECOMPRESSED_SMALL_MAX_BYTES: Final = 256 * 1024
RECORDS_SMALL_MAX: Final = 8192
DECODED_SMALL_MAX: Final = 512
"""Records of a batch whose timestamps must be checked or that must be recompressed."""
LONG_SIZE_BYTES_MIN: Final = DECODED_SMALL_MAX * RECORD_SIZE_BYTES_MIN
"""The check of an uncompressed batch that has no more takes little."""
LENGTH_POSITION: Final = 8
COUNT_POSITION: Final = 57

Steps = Generator[Aside | None, bytes | None, "Rejection | CheckedBatch"]
"""A check under way. None ends a step; what an `Aside` returns or raises is to be sent back."""


class CheckedBatch(NamedTuple):
    """A batch whose CRC and records are good."""

    config: LogConfig
    """With which it was checked. An append with another one refuses it."""
    data: memoryview | None = None
    """The batch in the topic's form; None: as it was sent, and that form is not looked at yet."""


def may_be_long(buffer: bytearray | memoryview, start: int, end: int) -> bool:
    """Return whether the batch from `start` to `end` has the size and records of a long one."""
    size = end - start
    return size > LONG_SIZE_BYTES_MIN and (
        size > DECOMPRESSED_SMALL_MAX_BYTES
        or int.from_bytes(buffer[start + COUNT_POSITION : start + HEADER_SIZE_BYTES], "big")
        > DECODED_SMALL_MAX
    )


def is_long(data: memoryview, config: LogConfig, now_ms: int) -> bool:
    """Return whether the check of an uncompressed batch takes long."""
    if not may_be_long(data, 0, len(data)):
        return False
    try:
        header = read_header(data, header_only=True)
    except CorruptBatchError:
        return False
    count, is_large = header.record_count, len(data) > DECOMPRESSED_SMALL_MAX_BYTES
    return (
        count > RECORDS_SMALL_MAX
        or (is_large and config.schema_validation is not None)
        or ((is_large or count > DECODED_SMALL_MAX) and _is_to_be_decoded(header, config, now_ms))
    )


def header_to_check(data: memoryview, config: LogConfig, now_ms: int) -> BatchHeader | None:
    """The header of a compressed or long batch whose records the log would look at.

    None for all others: what is neither, or is refused for its size, header or CRC.
    """
    try:
        header = read_header(data)
    except CorruptBatchError:
        return None
    size = len(data)
    if (
        header.batch_length + LOG_OVERHEAD_BYTES != size
        or size > min(config.max_message_bytes, config.segment_bytes)
        or header.record_count > RECORDS_PER_BATCH_MAX
        or not (header.attributes & CODEC_MASK or is_long(data, config, now_ms))
        or check_header(header, config) is not None
        or not check_crc(data, 0, header)
    ):
        return None
    return header


def check_at_once(
    data: memoryview, header: BatchHeader, config: LogConfig, now_ms: int, size_max: int
) -> int:
    """Check a small batch's records; returns the bytes that they decompress to.

    -1 for a batch that is to be checked in steps: it is not small, decompresses to more than
    `size_max` bytes, or something is wrong with it.
    """
    count = header.record_count
    if (
        not header.attributes & CODEC_MASK
        or len(data) > PACKED_SMALL_MAX_BYTES
        or count > RECORDS_SMALL_MAX
        or (count > DECODED_SMALL_MAX and _is_to_be_decoded(header, config, now_ms))
    ):
        return -1
    size_max = min(size_max, DECOMPRESSED_SMALL_MAX_BYTES)
    codec, body = header.codec, data[HEADER_SIZE_BYTES:]
    if len(body) > PACKED_TINY_MAX_BYTES and likely_size(codec, body) > size_max:
        return -1
    keys_required = config.is_compacted
    try:
        records = decompress(codec, body, size_max=size_max)
        if not is_uniform(records, count, keys_required=keys_required):
            walk_records(records, count, keys_required=keys_required)
    except (DecodeError, IndexError):
        return -1
    return len(records)


def check_in_steps(
    data: memoryview,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    budget: Budget,
    watch: Watch | None = None,
) -> Steps:
    """Check a batch's records and bring it into the topic's form; `budget` is what may decompress.

    `watch` sees the records. `data` may be changed, as by `prepare_client_batch`.
    """
    timestamps = _Timestamps(header, config, now_ms) if _has_times(header, config, now_ms) else None
    try:
        packed = yield from _read(data, header, config, budget, timestamps, watch)
    except BadRecordError as error:
        record_errors: RecordErrors = [(error.index, str(error))]
        return Rejection(
            ErrorCode.INVALID_RECORD, f"the batch is refused for {error}", record_errors
        )
    except CorruptBatchError as error:
        return Rejection(error.error, str(error))
    if timestamps is not None:
        if timestamps.errors:
            errors = timestamps.errors
            return Rejection(ErrorCode.INVALID_TIMESTAMP, "timestamps are out of range", errors)
        is_typed = header.attributes & TIMESTAMP_TYPE_MASK
        if timestamps.greatest != header.max_timestamp or is_typed:
            set_max_timestamp(data, 0, timestamps.greatest, TimestampType.CREATE_TIME)
    if packed is not None:
        assert config.codec is not None
        batch = bytearray(data[:HEADER_SIZE_BYTES]) + packed
        batch[LENGTH_POSITION : LENGTH_POSITION + 4] = (len(batch) - LOG_OVERHEAD_BYTES).to_bytes(
            4, "big"
        )
        low_byte = ATTRIBUTES_POSITION + 1
        batch[low_byte] = batch[low_byte] & ~CODEC_MASK | config.codec
        set_crc(batch, 0)
        data = memoryview(batch)
    return CheckedBatch(config, data)


def _read(
    data: memoryview,
    header: BatchHeader,
    config: LogConfig,
    budget: Budget,
    timestamps: "_Timestamps | None",
    watch: Watch | None,
) -> Generator[Aside | None, bytes | None, bytearray | None]:
    """Read all records; returns them compressed if the topic demands another codec."""
    check = StructureCheck(
        header.record_count,
        keys_required=config.is_compacted,
        size_max=DECOMPRESSED_SIZE_BYTES_MAX,
        see=None if timestamps is None else timestamps.see,
        watch=watch,
    )
    packer = None
    if config.codec is not None and _is_to_be_packed(header, config):
        packer = Packer(config.codec, config.codec_level)
    unpacked = bytearray()
    for step in decompress_in_pieces(header.codec, data[HEADER_SIZE_BYTES:], budget):
        piece: bytes | None = step if isinstance(step, bytes) else (yield step)
        assert piece is not None
        for _ in check.feed(piece):
            yield None
        yield None
        if packer is not None:
            unpacked += piece
            while len(unpacked) >= PACK_SIZE_BYTES:
                yield partial(packer.pack, bytes(unpacked[:PACK_SIZE_BYTES]), is_last=False)
                del unpacked[:PACK_SIZE_BYTES]
    check.finish()
    if packer is None:
        return None
    yield partial(packer.pack, bytes(unpacked), is_last=True)
    return packer.packed


def _has_times(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    return config.timestamp_type is not TimestampType.LOG_APPEND_TIME and needs_timestamp_check(
        header, config, now_ms
    )


def _is_to_be_packed(header: BatchHeader, config: LogConfig) -> bool:
    return config.codec is not None and config.codec != header.attributes & CODEC_MASK


def _is_to_be_decoded(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    return _is_to_be_packed(header, config) or _has_times(header, config, now_ms)


class _Timestamps:
    """As `check_timestamps`, record by record."""

    __slots__ = ("_base", "_earliest", "_fixed", "_latest", "errors", "greatest")

    def __init__(self, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
        self._earliest = now_ms - config.message_timestamp_before_max_ms
        self._latest = now_ms + config.message_timestamp_after_max_ms
        self._base = header.base_timestamp
        is_fixed = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        self._fixed = header.max_timestamp if is_fixed else None
        self.errors: RecordErrors = []
        self.greatest = NO_TIMESTAMP

    def see(self, index: int, delta: int) -> None:
        timestamp = self._base + delta if self._fixed is None else self._fixed
        if timestamp > self.greatest:
            self.greatest = timestamp
        if (
            timestamp != NO_TIMESTAMP
            and not self._earliest <= timestamp <= self._latest
            and len(self.errors) < RECORD_ERRORS_MAX
        ):
            problem = f"timestamp {timestamp} is not within [{self._earliest}, {self._latest}]"
            self.errors.append((index, problem))

"""Is this batch fit for the log? Asked once for every batch that a client produces.

What the header can tell is taken from it: the records themselves are walked for their structure
only, and their timestamps read one by one only where the header says that one may be out of
range. So a client that lies about its greatest timestamp fools look-ups in its own data, and
nothing else. Source: Kafka's LogValidator and UnifiedLog.analyzeAndValidateRecords.
"""

from enum import IntEnum
from typing import NamedTuple

from barnabas.base.disk import Buffer
from barnabas.node.log.config import LONG_MAX, LogConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_MASK,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    Codec,
    TimestampType,
    check_crc,
    read_header,
    set_log_append_time,
    set_max_timestamp,
)
from barnabas.protocol.records.records import (
    decode_records,
    encode_batch,
    find_invalid_record,
    validate_records,
)

RECORD_ERRORS_MAX = 100


class AppendOrigin(IntEnum):
    """The kind of appender, which decides what is checked."""

    CLIENT = 0
    COORDINATOR = 1
    RAFT = 2


RecordErrors = list[tuple[int, str | None]]
"""(index of the record in its batch, what is wrong with it)."""


class Rejection(NamedTuple):
    """Why a batch is refused."""

    error: ErrorCode
    message: str
    record_errors: RecordErrors = []  # noqa: RUF012  # never changed


def check_header(header: BatchHeader, config: LogConfig) -> Rejection | None:
    """Check a client's batch by its header, apart from sizes and CRC."""
    count = header.record_count
    if count <= 0 or header.last_offset_delta != count - 1:
        return Rejection(
            ErrorCode.INVALID_RECORD,
            f"the batch states {count} records and last offset delta {header.last_offset_delta}",
        )
    attributes = header.attributes
    if header.base_offset or attributes & CONTROL_MASK or attributes & CODEC_MASK > Codec.ZSTD:
        return _refuse_header(header)
    if header.producer_id >= 0 and header.base_sequence < 0:
        return Rejection(
            ErrorCode.INVALID_RECORD,
            f"producer {header.producer_id} sent base sequence {header.base_sequence}",
        )
    if attributes & TIMESTAMP_TYPE_MASK and (
        config.timestamp_type is TimestampType.LOG_APPEND_TIME
        or header.max_timestamp == NO_TIMESTAMP
    ):
        return Rejection(
            ErrorCode.INVALID_TIMESTAMP, "a producer must not set timestamp type LogAppendTime"
        )
    return None


def _refuse_header(header: BatchHeader) -> Rejection:
    if header.base_offset:
        message = f"the batch of a producer starts with offset 0, not {header.base_offset}"
    elif header.is_control:
        message = "clients are not allowed to write control records"
    else:
        message = f"compression codec {header.attributes & CODEC_MASK} is unknown"
        return Rejection(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
    return Rejection(ErrorCode.INVALID_RECORD, message)


def check_records(data: Buffer, header: BatchHeader, config: LogConfig) -> Rejection | None:
    """Walk the records of the batch at the start of `data`."""
    keys_required = config.is_compacted
    error = validate_records(data, 0, header, keys_required=keys_required)
    if not error:
        return None
    invalid = find_invalid_record(data, 0, header, keys_required=keys_required)
    if invalid is None:
        return Rejection(error, "the records of the batch cannot be read")
    return Rejection(error, f"the batch is refused for {invalid[1]}", [invalid])


def needs_timestamp_check(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Whether the header alone cannot show that every timestamp is in range and the maximum is
    correct."""
    return (
        header.max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or config.message_timestamp_before_max_ms != LONG_MAX
        or header.max_timestamp < header.base_timestamp
        or header.attributes & TIMESTAMP_TYPE_MASK != 0
    )


def check_timestamps(
    data: bytearray | memoryview, header: BatchHeader, config: LogConfig, now_ms: int
) -> Rejection | None:
    """Hold every record's timestamp against the topic's limits; correct the header's greatest."""
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    errors: RecordErrors = []
    greatest = NO_TIMESTAMP
    for index, record in enumerate(decode_records(data)):
        timestamp = record.timestamp
        greatest = max(greatest, timestamp)
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            errors.append((index, f"timestamp {timestamp} is not within [{earliest}, {latest}]"))
            if len(errors) == RECORD_ERRORS_MAX:
                break
    if errors:
        return Rejection(ErrorCode.INVALID_TIMESTAMP, "timestamps are out of range", errors)
    if greatest != header.max_timestamp or header.attributes & TIMESTAMP_TYPE_MASK:
        set_max_timestamp(data, 0, greatest, TimestampType.CREATE_TIME)
    return None


def recompress(data: Buffer, header: BatchHeader, config: LogConfig) -> bytearray:
    """The batch with the codec that the topic demands."""
    assert config.codec is not None
    return encode_batch(
        decode_records(data),
        codec=config.codec,
        compression_level=config.codec_level,
        timestamp_type=header.timestamp_type,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        max_timestamp=header.max_timestamp,
    )


def prepare_client_batch(
    data: bytearray | memoryview,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    *,
    is_checked: bool = False,
    is_in_form: bool = False,
) -> Rejection | tuple[bytearray | memoryview, BatchHeader]:
    """Check a client's one batch and bring it into the topic's form.

    `is_checked`: its CRC and records are known to be good; `is_in_form`: timestamps and codec are
    too. Returns the batch to append (`data` itself unless it is recompressed) and its header.
    Raises CorruptBatchError for records that do not decompress.
    """
    if not is_checked:
        if not check_crc(data, 0, header):
            return Rejection(ErrorCode.CORRUPT_MESSAGE, "the batch fails its CRC")
        rejection = check_header(header, config) or check_records(data, header, config)
        if rejection is not None:
            return rejection
    by_broker = config.timestamp_type is TimestampType.LOG_APPEND_TIME
    if not is_in_form:
        if not by_broker and needs_timestamp_check(header, config, now_ms):
            rejection = check_timestamps(data, header, config, now_ms)
            if rejection is not None:
                return rejection
            header = read_header(data)
        if config.codec is not None and config.codec != header.attributes & CODEC_MASK:
            data = recompress(data, header, config)
            header = read_header(data)
    if by_broker:
        set_log_append_time(data, 0, now_ms)
        header = read_header(data)
    return data, header

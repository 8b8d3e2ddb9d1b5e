"""The records inside a batch: read, written and validated.

Brokers validate every batch that a client produces (`validate_records`) and decode only where
meaning is needed: compaction, the internal topics. Source: Kafka's
DefaultRecord, MemoryRecordsBuilder and LogValidator.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from barnabas.base.checksum import crc32c
from barnabas.base.disk import Buffer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    CRC_POSITION,
    DELETE_HORIZON_MASK,
    HEADER,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Codec,
    CorruptBatchError,
    TimestampType,
    codec_of,
    read_header,
)
from barnabas.protocol.records.compression import DECOMPRESSED_SIZE_BYTES_MAX, compress, decompress
from barnabas.protocol.records.uniform import RECORD_SIZE_BYTES_MIN, is_uniform
from barnabas.protocol.records.walk import (
    NULL,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    BadRecordError,
    read_varint,
    walk_records,
)

RECORDS_PER_BATCH_MAX = 1_000_000
"""More are refused from clients, so that none keeps the node busy for seconds with a compressed
megabyte. librdkafka's batch.num.messages ends there too."""
NEXT_OFFSET = -1

Header = tuple[str, bytes | None]


@dataclass(slots=True)
class Record:
    """One record.

    `offset` is absolute; when writing, -1 means the one after the record before. `timestamp` is
    milliseconds since the epoch, -1 for none. None as key or value is Kafka's null (a null
    value is a tombstone).
    """

    offset: int = NEXT_OFFSET
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: list[Header] = field(default_factory=list)


def validate_records(
    buffer: Buffer, position: int, header: BatchHeader, *, keys_required: bool
) -> ErrorCode:
    """Check that the batch at `position` contains the records that its header promises.

    Counts agree, offset deltas are 0, 1, 2 …, every length lies within its record, every record
    within the batch, and nothing follows the last; with `keys_required` no key is null.
    Compressed records are decompressed, up to DECOMPRESSED_SIZE_BYTES_MAX. CRC, timestamps and
    sequences are not looked at. Returns NONE, INVALID_RECORD (also for more records than
    RECORDS_PER_BATCH_MAX), CORRUPT_MESSAGE for what does not decompress, or
    UNSUPPORTED_COMPRESSION_TYPE.
    """
    count = header.record_count
    if not 0 < count <= RECORDS_PER_BATCH_MAX or header.last_offset_delta != count - 1:
        return ErrorCode.INVALID_RECORD
    try:
        end = position + header.batch_length + LOG_OVERHEAD_BYTES
        batch = memoryview(buffer)[position:end]
        check_structure(batch, header.attributes, count, keys_required=keys_required)
    except CorruptBatchError as error:
        return error.error
    except BadRecordError:
        return ErrorCode.INVALID_RECORD
    return ErrorCode.NONE


def check_structure(batch: memoryview, attributes: int, count: int, *, keys_required: bool) -> None:
    """Hold the records of one whole batch against what its header states of them.

    The header itself is the caller's to check. Raises BadRecordError, or CorruptBatchError for
    what does not decompress.
    """
    data = _decompress(batch[HEADER_SIZE_BYTES:], attributes)
    if not is_uniform(data, count, keys_required=keys_required):
        walk_records(data, count, keys_required=keys_required)


def find_invalid_record(
    buffer: Buffer, position: int, header: BatchHeader, *, keys_required: bool
) -> tuple[int, str] | None:
    """Find the record that `validate_records` refused, and why, for the answer's record_errors.

    None if the records are well-formed, or the fault is the batch's and not of one record.
    """
    try:
        data = decompressed_records(buffer, position, header)
        walk_records(data, header.record_count, keys_required=keys_required)
    except BadRecordError as error:
        return error.index, str(error)
    except CorruptBatchError:
        return None
    return None


def decode_records(buffer: Buffer, position: int = 0) -> list[Record]:
    """Every record of the batch at `position`, in order.

    Offset deltas may have gaps, as compaction leaves them. Timestamps of a LOG_APPEND_TIME
    batch are all its max timestamp. Raises CorruptBatchError for a header, compressed data or
    records that are malformed; the CRC is the caller's to check.
    """
    header = read_header(buffer, position)
    count = header.record_count
    data = decompressed_records(buffer, position, header)
    if not 0 <= count <= len(data) // RECORD_SIZE_BYTES_MIN:
        raise CorruptBatchError(f"{count} records do not fit in {len(data)} bytes")
    base_timestamp = header.base_timestamp
    append_time = (
        header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None
    )
    at = 0
    records: list[Record] = []
    try:
        for index in range(count):
            record, at = _decode_record(data, at, index)
            record.offset += header.base_offset
            record.timestamp = (
                record.timestamp + base_timestamp if append_time is None else append_time
            )
            records.append(record)
    except BadRecordError as error:
        raise CorruptBatchError(str(error), ErrorCode.INVALID_RECORD) from error
    except IndexError:
        raise CorruptBatchError(f"record {len(records)} ends after the batch") from None
    if at != len(data):
        raise CorruptBatchError(f"{len(data) - at} bytes follow the last record")
    return records


def decode_deltas(data: bytes, index: int) -> Iterator[Record]:
    """The records in `data`, the first of which is record `index`, with deltas for offset and time.

    They are known to be well-formed.
    """
    position = 0
    while position < len(data):
        record, position = _decode_record(data, position, index)
        yield record
        index += 1


def decode_records_between(buffer: Buffer, position: int, first: int, last: int) -> list[Record]:
    """The records with offsets `first` to `last` of the batch at `position`, in order.

    For readers of a few records of many: the others are passed over by their lengths, and what they
    hold is not looked at. Raises CorruptBatchError, as `decode_records` does.
    """
    header = read_header(buffer, position)
    data = decompressed_records(buffer, position, header)
    append_time = (
        header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None
    )
    skipped, end = 0, header.record_count
    if header.last_offset_delta == header.record_count - 1:  # without gaps
        skipped = max(first - header.base_offset, 0)
        end = min(last + 1 - header.base_offset, end)
    at = 0
    records: list[Record] = []
    try:
        for index in range(min(skipped, end)):
            size, at = read_varint(data, at, index, VARINT_BYTES_MAX)
            if size < 0:
                raise BadRecordError(index, f"has length {size}")
            at += size
        for index in range(skipped, end):
            record, at = _decode_record(data, at, index)
            record.offset += header.base_offset
            if first <= record.offset <= last:
                record.timestamp = (
                    record.timestamp + header.base_timestamp if append_time is None else append_time
                )
                records.append(record)
    except BadRecordError as error:
        raise CorruptBatchError(str(error), ErrorCode.INVALID_RECORD) from error
    except IndexError:
        raise CorruptBatchError("a record ends after the batch") from None
    return records


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    compression_level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    last_offset_delta: int | None = None,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """One batch holding `records`, ready to be appended.

    `last_offset_delta` and `max_timestamp` override what the records give: compaction keeps the
    former when it takes records out (so no records at all are allowed then), and a
    LOG_APPEND_TIME batch states the broker's time in the latter. `delete_horizon_ms` takes the
    base timestamp's place (KIP-534). Raises ValueError for offsets that are below
    `base_offset` or do not ascend, and for a `compression_level` that the codec lacks.
    """
    if not records and last_offset_delta is None:
        raise ValueError("a batch needs a record, or last_offset_delta as compaction leaves it")
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    else:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    body, last_delta = _encode_records(records, base_offset, base_timestamp)
    if last_offset_delta is None:
        last_offset_delta = last_delta
    elif last_offset_delta < last_delta:
        raise ValueError(f"last_offset_delta {last_offset_delta} is below {last_delta}")
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    if not records:
        codec = Codec.NONE
    attributes = (
        (TIMESTAMP_TYPE_MASK if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_MASK if is_transactional else 0)
        | (CONTROL_MASK if is_control else 0)
        | (DELETE_HORIZON_MASK if delete_horizon_ms is not None else 0)
    )
    return framed_batch(
        body,
        len(records),
        codec=codec,
        compression_level=compression_level,
        attributes=attributes,
        base_offset=base_offset,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
    )


def framed_batch(
    body: bytearray,
    count: int,
    *,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    codec: Codec = Codec.NONE,
    compression_level: int | None = None,
    attributes: int = 0,
    base_offset: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The batch of `count` records that are encoded in `body`, behind room for the header.

    `attributes` are those beside the codec. Raises ValueError for a `compression_level` that the
    codec lacks.
    """
    if codec is not Codec.NONE:
        body = bytearray(HEADER_SIZE_BYTES) + compress(
            codec, memoryview(body)[HEADER_SIZE_BYTES:], compression_level
        )
    HEADER.pack_into(
        body,
        0,
        base_offset,
        len(body) - LOG_OVERHEAD_BYTES,
        partition_leader_epoch,
        MAGIC,
        0,
        codec | attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    checksum: int = crc32c(memoryview(body)[ATTRIBUTES_POSITION:])
    body[CRC_POSITION:ATTRIBUTES_POSITION] = checksum.to_bytes(4, "big")
    return body


def decompressed_records(buffer: Buffer, position: int, header: BatchHeader) -> bytes:
    """The records of the batch at `position`, uncompressed. Raises CorruptBatchError."""
    end = position + header.batch_length + LOG_OVERHEAD_BYTES
    return _decompress(memoryview(buffer)[position + HEADER_SIZE_BYTES : end], header.attributes)


def _decompress(data: memoryview, attributes: int) -> bytes:
    """The bytes after the header, uncompressed, in one `bytes`: indexing a view is slower."""
    if attributes & CODEC_MASK and len(data):
        return decompress(codec_of(attributes), data, size_max=DECOMPRESSED_SIZE_BYTES_MAX)
    return bytes(data)


def _decode_record(data: bytes, position: int, index: int) -> tuple[Record, int]:
    """The record at `position`, with deltas for offset and timestamp, and where it ends.

    Raises BadRecordError, or IndexError where `data` ends first.
    """
    size, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    end = position + size
    if size < 0 or end > len(data):
        raise BadRecordError(index, f"has length {size}")
    timestamp, position = read_varint(data, position + 1, index, VARLONG_BYTES_MAX)
    offset, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    key = value = None
    size, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    if size >= 0:
        key = data[position : position + size]
        position += size
    size, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    if size >= 0:
        value = data[position : position + size]
        position += size
    count, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    headers: list[Header] = []
    if count:
        position = decode_headers(data, position, end, index, count, headers)
    if position != end:
        raise BadRecordError(index, f"ends {end - position} bytes after its last part")
    return Record(offset, timestamp, key, value, headers), position


def decode_headers(
    data: bytes, position: int, end: int, index: int, count: int, headers: list[Header]
) -> int:
    """Add the headers of a record, which begin at `position`; returns where they end.

    Raises BadRecordError, or IndexError where `data` ends first.
    """
    if not 0 <= count <= end - position:
        raise BadRecordError(index, f"has {count} headers")
    for _ in range(count):
        size, position = read_varint(data, position, index, VARINT_BYTES_MAX)
        if size < 0:
            raise BadRecordError(index, "has a header without a name")
        # Kafka decodes names with replacement characters; a name is never a reason to refuse.
        name = data[position : position + size].decode("utf-8", "replace")
        position += size
        value = None
        size, position = read_varint(data, position, index, VARINT_BYTES_MAX)
        if size >= 0:
            value = data[position : position + size]
            position += size
        if position > end:
            raise BadRecordError(index, "ends before its headers")
        headers.append((name, value))
    return position


def _encode_records(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytearray, int]:
    """The records after room for the header, and the last one's offset delta (-1 for none)."""
    out = bytearray(HEADER_SIZE_BYTES)
    delta = -1
    for record in records:
        previous = delta
        delta = delta + 1 if record.offset == NEXT_OFFSET else record.offset - base_offset
        if delta <= previous:
            raise ValueError(f"offset {base_offset + delta} follows {base_offset + previous}")
        body = bytearray(1)  # attributes, unused
        _write_varint(body, record.timestamp - base_timestamp)
        _write_varint(body, delta)
        _write_bytes(body, record.key)
        _write_bytes(body, record.value)
        if record.headers:
            body += encode_headers(record.headers)
        else:
            body.append(0)
        _write_varint(out, len(body))
        out += body
    return out, delta


def encode_headers(headers: Sequence[Header]) -> bytearray:
    """Headers as a record ends with them: how many there are, then each name and value."""
    out = bytearray()
    _write_varint(out, len(headers))
    for name, value in headers:
        _write_bytes(out, name.encode())
        _write_bytes(out, value)
    return out


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(NULL)
    else:
        _write_varint(out, len(data))
        out += data


def _write_varint(out: bytearray, value: int) -> None:
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)

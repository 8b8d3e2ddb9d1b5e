"""Batch headers: known bytes, every cut, patching inside and outside the CRC."""

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    Codec,
    CorruptBatchError,
    TimestampType,
    add_to_sequence,
    check_crc,
    iterate_headers,
    patch,
    read_header,
    set_log_append_time,
    set_max_timestamp,
)
from barnabas.protocol.records.records import Record, decode_records, encode_batch

# Written by Apache Kafka 4.3.1: the snapshot footer of a bootstrap checkpoint.
KAFKA_BATCH = bytes.fromhex(
    "00000000000000030000003f00000000026f6d34f1002000000000000001a1fc2526f9000001a1fc2526f9"
    "ffffffffffffffffffffffffffff000000011a0000000800000004060000000000"[:-2]
)
KAFKA_HEADER = BatchHeader(
    base_offset=3,
    batch_length=63,
    partition_leader_epoch=0,
    magic=2,
    crc=0x6F6D34F1,
    attributes=0x20,
    last_offset_delta=0,
    base_timestamp=0x1A1FC2526F9,
    max_timestamp=0x1A1FC2526F9,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    record_count=1,
)


def test_header_of_a_batch_that_kafka_wrote() -> None:
    header = read_header(KAFKA_BATCH)
    assert header == KAFKA_HEADER
    assert header.size_bytes == len(KAFKA_BATCH) == 75
    assert (header.last_offset, header.next_offset) == (3, 4)
    assert header.codec is Codec.NONE
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.is_control
    assert not header.is_transactional
    assert not header.is_compressed
    assert header.last_sequence == -1
    assert header.delete_horizon_ms is None
    assert check_crc(KAFKA_BATCH, 0, header)


@pytest.mark.parametrize("size", range(len(KAFKA_BATCH)))
def test_every_cut_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatchError):
        read_header(KAFKA_BATCH[:size])


def test_header_only_does_not_ask_for_the_records() -> None:
    assert read_header(KAFKA_BATCH[:HEADER_SIZE_BYTES], header_only=True) == KAFKA_HEADER
    with pytest.raises(CorruptBatchError):
        read_header(KAFKA_BATCH[: HEADER_SIZE_BYTES - 1], header_only=True)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 64, 2**31 - 1])
def test_length_that_cannot_be(length: int) -> None:
    data = KAFKA_BATCH[:8] + length.to_bytes(4, "big", signed=True) + KAFKA_BATCH[12:]
    with pytest.raises(CorruptBatchError) as caught:
        read_header(data)
    assert caught.value.error is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("magic", "error"),
    [
        (0, ErrorCode.INVALID_RECORD),
        (1, ErrorCode.INVALID_RECORD),
        (3, ErrorCode.CORRUPT_MESSAGE),
        (127, ErrorCode.CORRUPT_MESSAGE),
        (255, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_other_magic_is_what_kafka_calls_it(magic: int, error: ErrorCode) -> None:
    data = KAFKA_BATCH[:16] + bytes([magic]) + KAFKA_BATCH[17:]
    with pytest.raises(CorruptBatchError, match="magic") as caught:
        read_header(data)
    assert caught.value.error is error


def test_legacy_message_shorter_than_a_header_is_named() -> None:
    # Magic 1: offset, size, crc, magic, attributes, timestamp, null key, empty value.
    message = bytes(8) + (22).to_bytes(4, "big") + bytes(4) + b"\x01\x00" + bytes(8)
    message += b"\xff\xff\xff\xff" + bytes(4)
    with pytest.raises(CorruptBatchError, match="magic 1") as caught:
        read_header(message)
    assert caught.value.error is ErrorCode.INVALID_RECORD


def test_flipping_any_byte_after_the_crc_shows() -> None:
    for position in range(21, len(KAFKA_BATCH)):
        data = bytearray(KAFKA_BATCH)
        data[position] ^= 0x10
        assert not check_crc(data, 0, KAFKA_HEADER), position


def test_patch_leaves_the_crc_valid() -> None:
    data = bytearray(b"before" + KAFKA_BATCH + b"after")
    patch(memoryview(data), 6, 2**40, 7)
    header = read_header(data, 6)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 7)
    assert check_crc(data, 6, header)
    assert header[1:2] + header[3:] == KAFKA_HEADER[1:2] + KAFKA_HEADER[3:]
    assert data[:6] == b"before"
    assert data[-5:] == b"after"


def test_log_append_time_is_every_records_time() -> None:
    data = encode_batch([Record(timestamp=5, value=b"a"), Record(timestamp=9, value=b"b")])
    set_log_append_time(data, 0, 1000)
    header = read_header(data)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.base_timestamp, header.max_timestamp) == (5, 1000)
    assert check_crc(data, 0, header)
    assert [record.timestamp for record in decode_records(data)] == [1000, 1000]
    set_max_timestamp(data, 0, 9, TimestampType.CREATE_TIME)
    assert check_crc(data, 0, read_header(data))
    assert [record.timestamp for record in decode_records(data)] == [5, 9]


def test_iterating_batches() -> None:
    second = encode_batch([Record(value=b"x" * 100)], base_offset=4)
    data = KAFKA_BATCH + second
    assert [(at, h.base_offset) for at, h in iterate_headers(data)] == [(0, 3), (75, 4)]
    assert list(iterate_headers(b"")) == []
    for size in range(76, len(data)):
        cut = data[:size]
        with pytest.raises(CorruptBatchError):
            list(iterate_headers(cut))
        assert [at for at, _ in iterate_headers(cut, allow_partial_tail=True)] == [0]


def test_unknown_codec() -> None:
    header = KAFKA_HEADER._replace(attributes=5)
    with pytest.raises(CorruptBatchError) as caught:
        _ = header.codec
    assert caught.value.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(
    ("sequence", "increment", "expected"),
    [(0, 1, 1), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 2, 5, 3)],
)
def test_sequences_wrap_to_zero(sequence: int, increment: int, expected: int) -> None:
    assert add_to_sequence(sequence, increment) == expected
    header = KAFKA_HEADER._replace(base_sequence=sequence, last_offset_delta=increment)
    assert header.last_sequence == expected

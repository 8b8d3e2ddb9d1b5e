"""Records and batches: known bytes, writing, reading, and Kafka's own files."""

import json
import tarfile
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    Codec,
    CorruptBatchError,
    TimestampType,
    check_crc,
    iterate_headers,
    read_header,
)
from barnabas.protocol.records.records import (
    Record,
    decode_records,
    decode_records_between,
    encode_batch,
    validate_records,
)

KAFKA_DATA = Path(__file__).parents[5] / "shared" / "kafka-data"

RECORDS = [
    Record(10, 1_767_225_600_000, None, None, [("a", b"1"), ("a", b"2"), ("e", b""), ("n", None)]),
    Record(11, 1_767_225_600_001, b"", b""),
    Record(12, 1_767_225_600_002, "kü".encode(), "€".encode(), [("ü", b"x")]),
    Record(13, 1_767_225_599_000, b"k" * 100, b"v" * 20_000),
]


@pytest.mark.parametrize("codec", Codec)
def test_round_trip_of_awkward_records(codec: Codec) -> None:
    data = encode_batch(
        RECORDS,
        base_offset=10,
        codec=codec,
        producer_id=7,
        producer_epoch=3,
        base_sequence=2**31 - 2,
        is_transactional=True,
        partition_leader_epoch=5,
    )
    header = read_header(data)
    assert check_crc(data, 0, header)
    assert decode_records(data) == RECORDS
    assert validate_records(data, 0, header, keys_required=False) == 0
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 13, 4)
    assert (header.base_timestamp, header.max_timestamp) == (1_767_225_600_000, 1_767_225_600_002)
    assert (header.producer_id, header.producer_epoch) == (7, 3)
    assert header.last_sequence == 1
    assert header.is_transactional
    assert header.codec is codec
    assert header.partition_leader_epoch == 5


def test_known_bytes_of_one_record() -> None:
    data = encode_batch([Record(timestamp=1, key=b"k", value=b"v", headers=[("h", None)])])
    assert bytes(data[61:]) == bytes.fromhex("16000000026b027602026801")


def test_offsets_follow_each_other_unless_given() -> None:
    records = [Record(value=b"a"), Record(offset=107, value=b"b"), Record(value=b"c")]
    data = encode_batch(records, base_offset=100)
    assert [record.offset for record in decode_records(data)] == [100, 107, 108]
    assert read_header(data).last_offset == 108


@pytest.mark.parametrize("offsets", [[5], [100, 100], [101, 100]])
def test_offsets_must_ascend(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="follows"):
        encode_batch([Record(offset=offset) for offset in offsets], base_offset=100)


def test_batch_that_compaction_emptied() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        encode_batch([])
    data = encode_batch(
        [], base_offset=50, last_offset_delta=9, max_timestamp=77, codec=Codec.ZSTD, producer_id=3
    )
    header = read_header(data)
    assert (header.record_count, header.last_offset, header.max_timestamp) == (0, 59, 77)
    assert header.codec is Codec.NONE
    assert check_crc(data, 0, header)
    assert decode_records(data) == []


def test_batch_that_compaction_thinned() -> None:
    data = encode_batch([Record(51, 10), Record(55, 20)], base_offset=50, last_offset_delta=9)
    assert read_header(data).last_offset == 59
    assert [record.offset for record in decode_records(data)] == [51, 55]
    with pytest.raises(ValueError, match="below"):
        encode_batch([Record(55)], base_offset=50, last_offset_delta=4)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("is_thinned", [False, True])
@pytest.mark.parametrize("timestamp_type", TimestampType)
def test_records_between_two_offsets(
    codec: Codec, is_thinned: bool, timestamp_type: TimestampType
) -> None:
    made = [record for record in RECORDS if not is_thinned or record.offset != 11]
    data = bytes(7) + encode_batch(
        made, base_offset=10, codec=codec, timestamp_type=timestamp_type, last_offset_delta=3
    )
    everything = decode_records(data, 7)
    for first in range(8, 16):
        for last in range(first - 1, 16):
            found = decode_records_between(data, 7, first, last)
            assert found == [one for one in everything if first <= one.offset <= last]


def test_records_that_are_passed_over_are_not_looked_at() -> None:
    data = encode_batch([Record(0, 1, b"k", b"v"), Record(1, 2, b"k", b"w"), Record(2, 3)])
    data[HEADER_SIZE_BYTES + 4] = 0x7F  # the first key's length
    assert [one.value for one in decode_records_between(data, 0, 1, 1)] == [b"w"]
    data[HEADER_SIZE_BYTES] = 1  # the first record's length
    with pytest.raises(CorruptBatchError, match="has length -1"):
        decode_records_between(data, 0, 1, 1)
    data[HEADER_SIZE_BYTES] = 0x7E
    with pytest.raises(CorruptBatchError, match="ends after the batch"):
        decode_records_between(data, 0, 1, 1)


def test_delete_horizon_takes_the_base_timestamps_place() -> None:
    data = encode_batch([Record(0, 1000, b"k"), Record(1, 2000, b"k")], delete_horizon_ms=500_000)
    header = read_header(data)
    assert header.delete_horizon_ms == header.base_timestamp == 500_000
    assert [record.timestamp for record in decode_records(data)] == [1000, 2000]


def test_log_append_time_batch() -> None:
    data = encode_batch(
        [Record(0, 1), Record(1, 2)],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp=99,
    )
    assert [record.timestamp for record in decode_records(data)] == [99, 99]


@pytest.mark.parametrize("codec", Codec)
def test_every_cut_is_corrupt(codec: Codec) -> None:
    data = encode_batch(RECORDS[:3], base_offset=10, codec=codec)
    for size in range(len(data)):
        with pytest.raises(CorruptBatchError):
            decode_records(data[:size])
        if size >= 61:  # the same with a header that fits, so that the records are at fault
            cut = data[:size]
            cut[8:12] = (size - 12).to_bytes(4, "big")
            with pytest.raises(CorruptBatchError):
                decode_records(cut)


def test_count_is_never_believed() -> None:
    data = encode_batch([Record(value=b"v")])
    data[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(CorruptBatchError, match="do not fit"):
        decode_records(data)


@pytest.fixture(scope="module")
def kafka_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = KAFKA_DATA / "data.tar.gz"
    if not archive.exists():
        pytest.skip("the data directory that Apache Kafka wrote is not beside this checkout")
    target = tmp_path_factory.mktemp("kafka")
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    return target / "data"


def _batches(directory: Path) -> list[bytes]:
    batches = []
    for path in sorted(directory.glob("*.log")) + sorted(directory.glob("*.checkpoint")):
        data = path.read_bytes()
        batches += [data[at : at + h.size_bytes] for at, h in iterate_headers(data)]
    return batches


def test_every_batch_that_kafka_wrote_is_read_and_written_again(kafka_files: Path) -> None:
    seen = 0
    for directory in sorted(kafka_files.iterdir()):
        for batch in _batches(directory) if directory.is_dir() else []:
            header = read_header(batch)
            assert check_crc(batch, 0, header)
            records = decode_records(batch)
            seen += len(records)
            if header.last_offset_delta == header.record_count - 1:
                assert validate_records(batch, 0, header, keys_required=False) == 0
            written = encode_batch(
                records,
                base_offset=header.base_offset,
                codec=header.codec,
                timestamp_type=header.timestamp_type,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                is_transactional=header.is_transactional,
                is_control=header.is_control,
                partition_leader_epoch=header.partition_leader_epoch,
                last_offset_delta=header.last_offset_delta,
                max_timestamp=header.max_timestamp,
                delete_horizon_ms=header.delete_horizon_ms,
            )
            assert decode_records(written) == records
            # Compressors differ in their choices, and append time hides the producer's times.
            if header.codec is Codec.NONE and header.timestamp_type is TimestampType.CREATE_TIME:
                assert written == batch, directory.name
    assert seen > 17_000


def test_codecs_and_records_that_kafka_wrote(kafka_files: Path) -> None:
    topics = json.loads((KAFKA_DATA / "MANIFEST.json").read_text())["topics"]
    for codec in Codec:
        name = f"codec-{codec.name.lower()}"
        batches = [batch for path in kafka_files.glob(f"{name}-*") for batch in _batches(path)]
        assert {read_header(batch).codec for batch in batches} == {codec}
        total = sum(len(decode_records(batch)) for batch in batches)
        assert total == topics[name]["records"]
    batches = _batches(kafka_files / "headers-and-nulls-0")
    written = [record for batch in batches for record in decode_records(batch)]
    expected = topics["headers-and-nulls"]["records"]
    assert len(written) == len(expected)
    for record, row in zip(written, expected, strict=True):
        assert record.timestamp == row["timestamp_ms"]
        assert record.key == _text(row["key"])
        assert record.value == _text(row["value"])
        assert record.headers == [(name, _text(value)) for name, value in row["headers"]]


def _text(value: str | None) -> bytes | None:
    return None if value is None else value.encode()

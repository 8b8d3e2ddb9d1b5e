"""Record batches over generated records: round trips, foreign readers, and hostile bytes."""

import warnings
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    Codec,
    CorruptBatchError,
    TimestampType,
    check_crc,
    iterate_headers,
    read_header,
)
from barnabas.protocol.records.compression import decompress
from barnabas.protocol.records.records import (
    Record,
    decode_records,
    encode_batch,
    validate_records,
)
from barnabas.protocol.records.walk import BadRecordError, walk_records
from support.effort import examples

with warnings.catch_warnings():  # kafka-python reads its schemas in a deprecated way
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords as OtherMemoryRecords

blobs = st.none() | st.binary(max_size=200)
records_lists = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(0, 2**42),
        key=blobs,
        value=blobs | st.binary(min_size=60, max_size=70) | st.just(bytes(9000)),
        headers=st.lists(st.tuples(st.text(max_size=20), blobs), max_size=4),
    ),
    min_size=1,
    max_size=80,
)
codecs = st.sampled_from(Codec)


def _with_offsets(records: list[Record], base_offset: int) -> list[Record]:
    return [
        Record(base_offset + index, r.timestamp, r.key, r.value, r.headers)
        for index, r in enumerate(records)
    ]


@given(records_lists, codecs, st.integers(0, 2**62))
def test_round_trip(records: list[Record], codec: Codec, base_offset: int) -> None:
    data = encode_batch(records, base_offset=base_offset, codec=codec)
    header = read_header(data)
    assert check_crc(data, 0, header)
    assert decode_records(data) == _with_offsets(records, base_offset)
    has_all_keys = all(record.key is not None for record in records)
    assert validate_records(data, 0, header, keys_required=False) is ErrorCode.NONE
    assert validate_records(data, 0, header, keys_required=True) is (
        ErrorCode.NONE if has_all_keys else ErrorCode.INVALID_RECORD
    )


@given(records_lists, codecs)
@settings(max_examples=examples(15))
def test_other_libraries_read_what_we_write(records: list[Record], codec: Codec) -> None:
    data = bytes(encode_batch(records, base_offset=40, codec=codec))
    libraries = [MemoryRecords, OtherMemoryRecords]
    if codec is Codec.SNAPPY:
        libraries.pop()  # kafka-python needs a separate package for it
    for library in libraries:
        batch: Any = library(data).next_batch()
        assert batch.validate_crc()
        read = [
            Record(r.offset, r.timestamp, _bytes(r.key), _bytes(r.value), list(r.headers))
            for r in batch
        ]
        assert read == _with_offsets(records, 40)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


@given(records_lists, codecs)
@settings(max_examples=examples(15))
def test_we_read_what_another_library_writes(records: list[Record], codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**30,
    )
    for index, record in enumerate(records):
        assert builder.append(index, record.timestamp, record.key, record.value, record.headers)
    data = bytes(builder.build())
    header = read_header(data)
    assert check_crc(data, 0, header)
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert decode_records(data) == _with_offsets(records, 0)
    assert validate_records(data, 0, header, keys_required=False) is ErrorCode.NONE


@given(records_lists, codecs, st.data())
def test_hostile_bytes_raise_the_one_error(
    records: list[Record], codec: Codec, choices: st.DataObject
) -> None:
    data = encode_batch(records, codec=codec)
    for position, value in choices.draw(
        st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=6)
    ):
        data[position] = value
    hostile = bytes(
        data[: choices.draw(st.integers(0, len(data)))] if choices.draw(st.booleans()) else data
    )
    try:
        for position, header in iterate_headers(hostile):
            validate_records(hostile, position, header, keys_required=True)
            check_crc(hostile, position, header)
            decode_records(hostile, position)
    except CorruptBatchError:
        return


@given(st.binary(max_size=400), codecs)
def test_garbage_never_decompresses_to_another_error(data: bytes, codec: Codec) -> None:
    try:
        assert len(decompress(codec, data, size_max=2**20)) <= 2**20
    except CorruptBatchError:
        return


@given(records_lists, st.data())
def test_fast_gears_judge_as_the_slow_one(records: list[Record], choices: st.DataObject) -> None:
    """Repeated and damaged records: the walk accepts exactly what reading them one by one does."""
    repeat = choices.draw(st.integers(1, 100))
    data = bytearray(encode_batch((records[:3] * repeat)[:150])[61:])
    count = min(len(records[:3]) * repeat, 150)
    for position, value in choices.draw(
        st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=3)
    ):
        data[position] = value
    assert _walks(bytes(data), count) == _walks_slowly(bytes(data), count)


def _walks(data: bytes, count: int) -> bool:
    try:
        walk_records(data, count, keys_required=False)
    except BadRecordError:
        return False
    return True


def _walks_slowly(data: bytes, count: int) -> bool:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("barnabas.protocol.records.walk._shape_of", lambda *_: None)
        return _walks(data, count)

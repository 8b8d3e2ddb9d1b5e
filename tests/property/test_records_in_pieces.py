"""The check of a batch in steps gives the same result as the check at once, for any content."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.node.log.config import LogConfig
from barnabas.node.log.stepped_check import CheckedBatch, Steps, check_in_steps
from barnabas.node.log.validator import Rejection, prepare_client_batch
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    Codec,
    CorruptBatchError,
    TimestampType,
    read_header,
    set_crc,
)
from barnabas.protocol.records.compression import compress
from barnabas.protocol.records.decompressing import Budget
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from barnabas.protocol.records.structure import StructureCheck
from barnabas.protocol.records.walk import BadRecordError, walk_records
from support.effort import examples

NOW_MS = 1_700_000_000_000
MEBIBYTE = 2**20
BYTES = bytes(range(256)) * 100
Shape = tuple[int, int | None, int | None, list[tuple[int, int | None]]]

sizes = st.none() | st.integers(0, 80) | st.integers(8000, 20_000)
shapes = st.lists(
    st.tuples(
        st.sampled_from([0, 1, -(10**9), 10**9]),
        sizes,
        sizes,
        st.lists(st.tuples(st.integers(0, 5), sizes), max_size=3),
    ),
    min_size=1,
    max_size=12,
)
"""Of each record: how far its timestamp is off, bytes of key and value, and those of headers."""
damages = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=2)


def blob(size: int | None) -> bytes | None:
    return None if size is None else BYTES[:size]


def records_of(
    found: list[Shape],
) -> list[Record]:
    return [
        Record(
            timestamp=NOW_MS + off,
            key=blob(key),
            value=blob(value),
            headers=[("n" * name, blob(size)) for name, size in headers],
        )
        for off, key, value, headers in found
    ]


def damaged(data: bytes, damage: list[tuple[float, int]], cut: int, more: bytes) -> bytes:
    changed = bytearray(data)
    for place, byte in damage:
        changed[int(place * len(changed))] = byte
    return bytes(changed[: len(changed) - cut]) + more


def run(steps: Steps) -> CheckedBatch | Rejection:
    """Take all steps, with what is for a thread done here."""
    piece: bytes | None = None
    while True:
        try:
            aside = steps.send(piece)
            piece = None
            while aside is not None:
                try:
                    piece = aside()
                    break
                except CorruptBatchError as error:
                    aside = steps.throw(error)
        except StopIteration as over:
            result: CheckedBatch | Rejection = over.value
            return result


def in_pieces(data: bytes, count: int, cuts: list[float], *, keys_required: bool) -> None:
    check = StructureCheck(count, keys_required=keys_required, size_max=len(data))
    places = sorted(int(cut * len(data)) for cut in cuts)
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        for _ in check.feed(data[start:end]):
            pass
    check.finish()


@settings(max_examples=examples(18))
@given(
    shapes,
    damages,
    st.integers(0, 3),
    st.binary(max_size=2),
    st.lists(st.floats(0, 1), max_size=6),
    st.integers(-1, 1),
    st.booleans(),
)
def test_any_cut_of_any_records(
    found: list[Shape],
    damage: list[tuple[float, int]],
    cut: int,
    more: bytes,
    cuts: list[float],
    off: int,
    keys_required: bool,
) -> None:
    data = damaged(bytes(encode_batch(records_of(found))[HEADER_SIZE_BYTES:]), damage, cut, more)
    count = len(found) + off
    try:
        walk_records(data, count, keys_required=keys_required)
    except BadRecordError as error:
        expected: int | None = error.index
    else:
        expected = None
    if expected is None:
        in_pieces(data, count, cuts, keys_required=keys_required)
        return
    with pytest.raises(BadRecordError) as raised:
        in_pieces(data, count, cuts, keys_required=keys_required)
    # Of a last record that is cut off, the walk may say that too few bytes follow it.
    assert raised.value.index in (expected, expected - 1)


configs = st.builds(
    LogConfig,
    cleanup_policy=st.sampled_from([frozenset({"delete"}), frozenset({"compact"})]),
    compression_type=st.sampled_from(["producer", "gzip", "snappy", "lz4", "zstd", "uncompressed"]),
    message_timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    message_timestamp_before_max_ms=st.sampled_from([2**63 - 1, 1000]),
)


@settings(max_examples=examples(18))
@example(
    [(0, None, 18033, [(5, None)]), *[(0, None, None, [])] * 2],
    [(0.0, 0)],
    Codec.GZIP,
    LogConfig(),
    0,
)
@given(shapes, damages, st.sampled_from(list(Codec)[1:]), configs, st.integers(-1, 1))
def test_the_outcome_is_that_of_the_check_at_once(
    found: list[Shape],
    damage: list[tuple[float, int]],
    codec: Codec,
    config: LogConfig,
    claimed: int,
) -> None:
    whole = encode_batch(records_of(found))
    body = compress(codec, damaged(bytes(whole[HEADER_SIZE_BYTES:]), damage, 0, b""))
    batch = whole[:HEADER_SIZE_BYTES] + body
    header = read_header(whole)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[22] |= codec
    batch[35:43] = (header.max_timestamp + claimed).to_bytes(8, "big", signed=True)
    set_crc(batch, 0)
    data, other = bytearray(batch), bytearray(batch)
    header = read_header(batch)
    expected = prepare_client_batch(data, header, config, NOW_MS)
    result = run(check_in_steps(memoryview(other), header, config, NOW_MS, Budget(64 * MEBIBYTE)))
    if isinstance(expected, Rejection):
        assert isinstance(result, Rejection)
        assert result.error is expected.error
        assert [index for index, _ in result.record_errors] == [
            index for index, _ in expected.record_errors
        ]
        return
    assert isinstance(result, CheckedBatch)
    assert result.data is not None
    stamped = prepare_client_batch(
        result.data, read_header(result.data), config, NOW_MS, is_checked=True, is_in_form=True
    )
    assert not isinstance(stamped, Rejection)
    (data_before, header_before), (data_now, header_now) = expected, stamped
    assert header_now.codec is header_before.codec
    assert header_now.max_timestamp == header_before.max_timestamp
    assert header_now.timestamp_type is header_before.timestamp_type
    assert decode_records(data_now) == decode_records(data_before)
    if header_now.timestamp_type is TimestampType.CREATE_TIME and config.codec is None:
        assert bytes(data_now) == bytes(data_before)


@pytest.mark.parametrize("place", ["cut off", "followed", "long"])
def test_a_large_record_that_lies_of_its_length(place: str) -> None:
    record = bytes(encode_batch([Record(value=bytes(30_000))])[HEADER_SIZE_BYTES:])
    data = {
        "cut off": record[:-1],
        "followed": record + b"\0",
        "long": b"\xff\xff\xff\xff\x0e" + record[3:],
    }[place]
    with pytest.raises(BadRecordError):
        in_pieces(data, 1, [0.1, 0.5], keys_required=False)

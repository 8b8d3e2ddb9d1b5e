"""Batches as columns hold what the decoder of single records finds in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.messages.fetch import AbortedTransaction
from barnabas.protocol.records.batch import (
    CRC_POSITION,
    HEADER_SIZE_BYTES,
    Codec,
    CorruptBatchError,
    TimestampType,
    set_crc,
    set_log_append_time,
)
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from barnabas.spark import batch_columns
from barnabas.spark.batch_columns import BatchColumns, columns_of_batches

EVERYTHING = 2**62
START_MS = 1_700_000_000_000

Seen = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def seen_of(columns: Sequence[BatchColumns]) -> list[Seen]:
    """The records of columns, one by one."""
    found: list[Seen] = []
    for one in columns:
        lists = (one.offsets, one.timestamps, one.keys, one.values)
        headers = one.headers or [()] * len(one)
        found += zip(*(column.to_pylist() for column in lists), headers, strict=True)
    return found


def record_of(record: Record) -> Seen:
    headers = tuple(record.headers)
    return record.offset, record.timestamp, record.key, record.value, headers


def seen(buffer: bytes | bytearray, first: int = 0, until: int = EVERYTHING) -> list[Seen]:
    return seen_of(list(columns_of_batches(bytes(buffer), first, until)))


DATA = (
    st.none() | st.binary(max_size=9) | st.binary(min_size=60, max_size=70) | st.just(b"x" * 9000)
)
HEADERS = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=70)), max_size=3)
RECORDS = st.builds(
    Record,
    timestamp=st.integers(START_MS - 100, START_MS + 100_000) | st.integers(-1, 2**60),
    key=DATA,
    value=DATA,
    headers=st.just([]) | HEADERS,
)
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 200), RECORDS), min_size=1, max_size=70),
        st.sampled_from(list(Codec)),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=5,
)
"""Of each its records and the gaps before them, its codec, whether the broker's time counts, and
the offsets that follow its last record."""


def batches_of(drawn: Any) -> list[bytearray]:
    made = []
    offset = 0
    for rows, codec, is_append_time, behind in drawn:
        base, records = offset, []
        for gap, drawn_record in rows:
            offset += gap
            records.append(Record(offset, *(getattr(drawn_record, name) for name in FIELDS)))
            offset += 1
        offset += behind
        batch = encode_batch(
            records, base_offset=base, codec=codec, last_offset_delta=offset - 1 - base
        )
        if is_append_time:
            set_log_append_time(batch, 0, START_MS + 7)
        made.append(batch)
    return made


FIELDS = ("timestamp", "key", "value", "headers")


@given(BATCHES, st.integers(0, 400), st.integers(0, 400), st.integers(0, 500))
def test_columns_hold_what_single_records_do(drawn: Any, first: int, length: int, cut: int) -> None:
    batches = batches_of(drawn)
    expected = [record_of(record) for batch in batches for record in decode_records(batch)]
    buffer = b"".join(map(bytes, batches))
    assert seen(buffer) == expected
    until = first + length
    assert seen(buffer, first, until) == [one for one in expected if first <= one[0] < until]
    if batches:  # the last one is cut off, as an answer's often is
        last = batches.pop()
        kept = sum(len(decode_records(batch)) for batch in batches)
        assert seen(buffer[: len(buffer) - min(cut, len(last) - 1) - 1]) == expected[:kept]


@given(BATCHES, st.integers(1, 40))
def test_batches_that_do_not_fit_together_make_several(drawn: Any, records_max: int) -> None:
    batches = batches_of(drawn)
    expected = [record_of(record) for batch in batches for record in decode_records(batch)]
    before = batch_columns.TOGETHER_RECORDS_MAX
    batch_columns.TOGETHER_RECORDS_MAX = records_max  # type: ignore[misc]
    try:
        found = list(columns_of_batches(b"".join(map(bytes, batches)), 0, EVERYTHING))
    finally:
        batch_columns.TOGETHER_RECORDS_MAX = before  # type: ignore[misc]
    assert seen_of(found) == expected
    assert all(len(one) <= max(records_max, 70) for one in found)


def plain(offset: int, count: int, **more: Any) -> bytes:
    records = [Record(offset + n, START_MS, b"k", b"%d" % (offset + n)) for n in range(count)]
    return bytes(encode_batch(records, base_offset=offset, **more))


def of_transaction(offset: int, count: int, producer_id: int) -> bytes:
    return plain(offset, count, producer_id=producer_id, producer_epoch=0, is_transactional=True)


def end(offset: int, producer_id: int, *, is_commit: bool) -> bytes:
    marker = encode_end_txn(
        is_commit=is_commit,
        coordinator_epoch=1,
        producer_id=producer_id,
        producer_epoch=0,
        timestamp_ms=START_MS,
    )
    marker[:8] = offset.to_bytes(8, "big")
    return bytes(marker)


LOG = b"".join(
    [
        plain(0, 2),
        of_transaction(2, 2, 7),
        of_transaction(4, 2, 8),
        of_transaction(6, 2, 7),
        end(8, 7, is_commit=False),
        end(9, 8, is_commit=True),
        of_transaction(10, 2, 7),
        end(12, 7, is_commit=True),
        plain(13, 1),
        of_transaction(14, 1, 7),
        end(15, 7, is_commit=False),
    ]
)


@pytest.mark.parametrize(
    ("aborted", "first", "offsets"),
    [
        (None, 0, [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 13, 14]),
        ([], 0, [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 13, 14]),
        ([(7, 2), (7, 14)], 0, [0, 1, 4, 5, 10, 11, 13]),
        ([(7, 14), (7, 2)], 0, [0, 1, 4, 5, 10, 11, 13]),
        # A range that begins within a transaction: brokers name it with its first offset.
        ([(7, 2), (7, 14)], 3, [4, 5, 10, 11, 13]),
        ([(7, 14)], 10, [10, 11, 13]),
    ],
)
def test_a_reader_sees_no_aborted_and_no_control_records(
    aborted: list[tuple[int, int]] | None, first: int, offsets: list[int]
) -> None:
    told = None
    if aborted is not None:
        told = [AbortedTransaction(producer_id=one, first_offset=at) for one, at in aborted]
    found = seen_of(list(columns_of_batches(LOG, first, EVERYTHING, told)))
    assert [one[0] for one in found] == offsets
    assert [one[3] for one in found] == [b"%d" % offset for offset in offsets]


def test_a_batch_of_another_crc_is_refused() -> None:
    batch = bytearray(plain(0, 3))
    batch[CRC_POSITION] ^= 1
    with pytest.raises(CorruptBatchError, match="offset 0 has another CRC"):
        seen(batch)


@given(st.integers(HEADER_SIZE_BYTES, 10_000), st.integers(0, 255), st.booleans())
def test_damaged_records_are_refused_or_read_as_single_ones_are(
    place: int, byte: int, has_headers: bool
) -> None:
    headers: list[tuple[str, bytes | None]] = [("a", b"b"), ("c", None)] if has_headers else []
    records = [Record(n, START_MS + n, b"key", b"value" * 20, headers) for n in range(70)]
    batch = bytearray(encode_batch(records))
    batch[HEADER_SIZE_BYTES + place % (len(batch) - HEADER_SIZE_BYTES)] = byte
    set_crc(batch, 0)
    try:
        expected = [record_of(record) for record in decode_records(batch)]
    except CorruptBatchError:
        with pytest.raises(CorruptBatchError):
            seen(batch, -(2**62))
    else:
        assert seen(batch, -(2**62)) == expected


@pytest.mark.parametrize("count", [-1, 0, 2, 4, 2**30])
def test_a_batch_with_another_number_of_records_is_refused(count: int) -> None:
    batch = bytearray(plain(0, 3))
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    set_crc(batch, 0)
    with pytest.raises(CorruptBatchError):
        seen(batch)


def test_a_batch_that_compaction_has_emptied_gives_nothing() -> None:
    empty = bytes(encode_batch([], base_offset=2, last_offset_delta=3))
    assert [one[0] for one in seen(plain(0, 2) + empty + plain(6, 1))] == [0, 1, 6]
    assert seen(empty) == []


@pytest.mark.parametrize("kind", list(TimestampType))
def test_a_record_without_a_timestamp_has_minus_one(kind: TimestampType) -> None:
    records = [Record(0, -1, None, None), Record(1, -1, b"", b"")]
    batch = encode_batch(records, timestamp_type=kind)
    assert seen(batch) == [(0, -1, None, None, ()), (1, -1, b"", b"", ())]

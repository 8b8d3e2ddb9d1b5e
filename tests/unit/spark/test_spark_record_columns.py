"""Batches that are made of columns are those that are made of records, byte for byte."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.java.hash import murmur2
from barnabas.kafka.partitioners import JAVA_PARTITIONER, Partitioner
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, Codec
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.spark import record_columns
from barnabas.spark.record_columns import (
    TOGETHER_MIN,
    ColumnsChecksum,
    RecordColumns,
    murmur2_of_all,
)

DATA = st.none() | st.binary(max_size=300) | st.binary(min_size=1, max_size=9)
TIMES = st.integers(0, 2**48) | st.integers(1_700_000_000_000, 1_700_000_000_100)
ROWS = st.lists(st.tuples(DATA, DATA, TIMES), min_size=1, max_size=200)
IDENTITY: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 11}

Row = tuple[bytes | None, bytes | None, int]


def columns_of(rows: list[Row], before: int = 0) -> RecordColumns:
    """The rows, in arrays that begin `before` values earlier."""
    keys, values, stamps = zip(*([(b"before", b"it", 1)] * before + rows), strict=True)
    arrays = (pa.array(keys, pa.binary())[before:], pa.array(values, pa.binary())[before:])
    return RecordColumns.of(*arrays, stamps[before:])


def records_of(rows: list[Row]) -> list[Record]:
    return [Record(timestamp=stamp, key=key, value=value) for key, value, stamp in rows]


@given(ROWS, st.integers(0, 3), st.sampled_from(list(Codec)), st.booleans())
def test_a_batch_of_columns_is_that_of_records(
    rows: list[Row], before: int, codec: Codec, is_transactional: bool
) -> None:
    made = columns_of(rows, before).encoded(codec, is_transactional=is_transactional, **IDENTITY)
    expected = encode_batch(
        records_of(rows), codec=codec, is_transactional=is_transactional, **IDENTITY
    )
    assert bytes(made) == bytes(expected)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
HEADERS = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=200)), max_size=3)
MARKS = [("query", b"q"), ("none", None)]


@given(st.lists(st.tuples(DATA, DATA, TIMES, HEADERS), min_size=1, max_size=50), st.booleans())
def test_headers_of_records_and_those_of_all_are_in_the_batch(
    rows: list[tuple[bytes | None, bytes | None, int, list[Any]]], has_marks: bool
) -> None:
    marks = MARKS if has_marks else []
    keys, values, stamps, headers = map(list, zip(*rows, strict=True))
    records = [
        Record(timestamp=stamp, key=key, value=value, headers=[*given, *marks])
        for key, value, stamp, given in rows
    ]
    columns = RecordColumns.of(keys, values, stamps, headers, marks=marks)
    assert bytes(columns.encoded()) == bytes(encode_batch(records))
    for half in columns.halves():
        if len(half):
            some, records = records[: len(half)], records[len(half) :]
            assert bytes(half.encoded()) == bytes(encode_batch(some))
    bare = RecordColumns.of(keys, values, stamps, marks=marks)
    expected = [Record(timestamp=s, key=k, value=v, headers=marks) for k, v, s, _ in rows]
    assert bytes(bare.encoded()) == bytes(encode_batch(expected))


def checksum(*pieces: RecordColumns) -> int:
    made = ColumnsChecksum()
    for piece in pieces:
        made.add(piece)
    return made.value


@given(ROWS, st.integers(0, 3))
def test_a_checksum_does_not_depend_on_the_pieces(rows: list[Row], before: int) -> None:
    whole = columns_of(rows, before)
    assert checksum(whole) == checksum(*whole.halves()) == checksum(columns_of(rows))
    keys, values, stamps = zip(*rows, strict=True)
    without = RecordColumns.of(keys, values, stamps, headers=[[] for _ in rows])
    assert checksum(without) == checksum(whole)


OTHERS: list[list[Any]] = [
    [(b"a", b"b", 1), (b"c", b"d", 2)],
    [(b"c", b"d", 2), (b"a", b"b", 1)],
    [(b"a", b"b", 2), (b"c", b"d", 1)],
    [(b"c", b"b", 1), (b"a", b"d", 2)],
    [(b"ab", b"", 1), (b"c", b"d", 2)],
    [(b"a", b"", 1), (b"c", b"bd", 2)],
    [(b"a", None, 1), (b"c", b"bd", 2)],
    [(b"a", b"b", 1)],
    [(b"a", b"b", 1, [("h", b"x")]), (b"c", b"d", 2, [])],
    [(b"a", b"b", 1, []), (b"c", b"d", 2, [("h", b"x")])],
]


def test_other_records_have_another_checksum() -> None:
    found = {checksum(RecordColumns.of(*zip(*rows, strict=True))) for rows in OTHERS}
    assert len(found) == len(OTHERS)
    assert all(0 <= one < 1 << 63 for one in found)


@given(
    st.lists(st.none() | st.binary(max_size=40), max_size=100),
    st.integers(0, 3),
    st.sampled_from([0, 8, 16]),
)
def test_hashes_of_keys_are_javas(keys: list[bytes | None], before: int, suffix: int) -> None:
    array = pa.array([b"before"] * before + keys, pa.binary())[before:]
    bare = [(key or b"")[: max(0, len(key or b"") - suffix)] for key in keys]
    assert murmur2_of_all(array, suffix).tolist() == [murmur2(key) for key in bare]


@pytest.mark.parametrize("count", [1, TOGETHER_MIN - 1, TOGETHER_MIN, TOGETHER_MIN + 1])
def test_few_keys_of_a_size_hash_as_many_do(count: int) -> None:
    keys = [b"%04d" % number + b"x" * 1_001 for number in range(count)] + [b"short"]
    assert murmur2_of_all(pa.array(keys, pa.binary())).tolist() == [murmur2(key) for key in keys]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.large_string()])
def test_arrays_of_other_types_make_the_same_batch(kind: pa.DataType) -> None:
    rows: list[Row] = [(b"a", b"one", 5), (None, b"two", 6), (b"bc", None, 7)]
    keys, values, stamps = map(list, zip(*rows, strict=True))
    own, others = (pa.array(one, pa.binary()).cast(kind) for one in (keys, values))
    columns = RecordColumns.of(own, others, stamps)
    assert bytes(columns.encoded()) == bytes(encode_batch(records_of(rows)))
    assert [partition for partition, _ in columns.spread(1)] == [0]


@given(ROWS, st.integers(1, 5), st.integers(1, 400))
def test_records_go_where_their_keys_belong_in_their_order(
    rows: list[Row], partitions: int, size_max: int
) -> None:
    before, record_columns.BATCH_SIZE_BYTES_MAX = record_columns.BATCH_SIZE_BYTES_MAX, size_max
    try:
        spread = list(columns_of(rows).spread(partitions))
    finally:
        record_columns.BATCH_SIZE_BYTES_MAX = before
    partition_of = Partitioner(JAVA_PARTITIONER["partitioner"]).of
    sent: dict[int, list[Row]] = {number: [] for number in range(partitions)}
    for partition, batch in spread:
        lists = (batch._keys.to_pylist(), batch._values.to_pylist(), batch._timestamps.tolist())
        assert len(batch) == 1 or len(batch.encoded()) <= size_max + HEADER_SIZE_BYTES
        sent[partition] += zip(*lists, strict=True)
    without = {number for number, found in sent.items() if any(key is None for key, *_ in found)}
    assert len(without) <= 1
    for number, found in sent.items():
        expected = [
            row
            for row in rows
            if (number in without if row[0] is None else partition_of(row[0], partitions) == number)
        ]
        assert found == expected


def test_windows_of_a_key_are_in_one_partition() -> None:
    keys = [b"k%d" % (n % 20) + n.to_bytes(8, "big") for n in range(500)]
    columns = RecordColumns.of(keys, keys, [1] * len(keys), suffix_bytes=8)
    partition_of = Partitioner(JAVA_PARTITIONER["partitioner"]).of
    for partition, batch in columns.spread(7):
        assert {partition_of(key[:-8], 7) for key in batch._keys.to_pylist()} == {partition}


@given(ROWS)
def test_halves_are_all_of_a_batch(rows: list[Row]) -> None:
    first, second = columns_of(rows).halves()
    parts = [half.encoded() for half in (first, second) if len(half)]
    half = len(rows) // 2
    expected = [encode_batch(records_of(part)) for part in (rows[:half], rows[half:]) if part]
    assert list(map(bytes, parts)) == list(map(bytes, expected))

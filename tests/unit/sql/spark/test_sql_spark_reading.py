"""Topics that workers read: who reads, and that ranges give what records do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from barnabas.kafka.wire_reader import Fetched, ReadError
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.spark import reading, worker
from barnabas.sql.spark.hosting import Hosting
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import Notes, Results, decode_parcel
from barnabas.sql.spark.reading import RangeReading, read_ranges, why_spark_reads
from barnabas.sql.spark.worker import SourceFunction
from support.sql_queries import plans_of

OPTIONS = SparkQueryOptions("127.0.0.1:9", "/nowhere", reads_in_workers=True)
READING = RangeReading("127.0.0.1:9")
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "secret",
}
START_MS = 1_700_000_000_000
Rows = list[tuple[int, Record]]


class Reader:
    """Gives batches of two partitions, three records each."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.asked: list[tuple[str, int, int, int]] = []

    def read(self, topic: str, partition: int, first: int, until: int) -> Iterator[Fetched]:
        self.asked.append((topic, partition, first, until))
        of_it = [record for place, record in self.rows if place == partition]
        for start in range(0, len(of_it), 3):
            some = of_it[start : start + 3]
            yield Fetched(first, encode_batch(some, base_offset=some[0].offset), None)


def rows_of(count: int) -> Rows:
    made: Rows = []
    for number in range(count):
        offset, partition = divmod(number, 2)
        value = json.dumps({"V": number % 10}).encode() if number % 7 else b"no JSON"
        headers: list[Any] = [("h", b"x")] if number % 5 == 0 else []
        made.append((partition, Record(offset, START_MS + number, b"k%d" % number, value, headers)))
    return made


def ranges_of(*ranges: tuple[str, int, int, int]) -> pa.RecordBatch:
    topics, partitions, firsts, untils = (list(column) for column in zip(*ranges, strict=True))
    return pa.RecordBatch.from_pydict(
        {"topic": topics, "partition": partitions, "first": firsts, "until": untils}
    )


def records_of(rows: Rows) -> pa.RecordBatch:
    """As Spark's source gives them."""
    headers = [
        [{"key": key, "value": value} for key, value in record.headers] or None
        for _, record in rows
    ]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([partition for partition, _ in rows], pa.int32()),
            pa.array([record.offset for _, record in rows], pa.int64()),
            pa.array([record.timestamp for _, record in rows], pa.int64()),
            pa.array([record.key for _, record in rows], pa.binary()),
            pa.array([record.value for _, record in rows], pa.binary()),
            pa.array(headers, kind),
        ],
        ["partition", "offset", "timestamp", "key", "value", "headers"],
    )


@pytest.fixture
def hosting() -> Hosting:
    statements = (
        "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON');"
        "CREATE STREAM q AS SELECT k, v FROM s WHERE v > 3;"
    )
    (plan,) = plans_of(statements, {"s": 2, "Q": 2})
    return Hosting(plan.query_id, encode_plan(plan), 2, 2)


def reader_of(monkeypatch: pytest.MonkeyPatch, rows: Rows) -> Reader:
    made = Reader(rows)
    monkeypatch.setitem(reading._readers, READING, made)  # type: ignore[arg-type]
    return made


def parcels_of(batches: Iterator[pa.RecordBatch]) -> tuple[list[Any], Notes]:
    """Results, by partition and in their order, and what all notes add up to."""
    results: list[Any] = []
    notes = Notes()
    for batch in batches:
        for label, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            parcel = decode_parcel(data)
            if isinstance(parcel, Notes):
                notes.add(parcel)
            elif isinstance(parcel, Results):
                headers = parcel.headers or [()] * len(parcel.keys)
                results += zip([label] * len(headers), *parcel.lists(), headers, strict=True)
    return sorted(results, key=lambda one: (one[0], one[3])), notes


@pytest.mark.parametrize("columns_from", [None, 2])
@pytest.mark.parametrize("together_max", [1, 5, 1_000])
def test_ranges_give_what_records_do(
    monkeypatch: pytest.MonkeyPatch, hosting: Hosting, columns_from: int | None, together_max: int
) -> None:
    rows = rows_of(100)
    reader = reader_of(monkeypatch, rows)
    monkeypatch.setattr(worker, "TOGETHER_RECORDS_MAX", together_max)
    hosting = replace(hosting, columns_from=columns_from)
    ranges = [("s", 0, 3, 40), ("s", 1, 0, 50), ("s", 0, 40, 40)]
    mine = [
        (partition, record)
        for partition, record in rows
        if (partition == 0 and 3 <= record.offset < 40) or partition == 1
    ]
    want, expected_notes = parcels_of(SourceFunction(hosting, 0, 0)(iter([records_of(mine)])))
    function = SourceFunction(hosting, 0, 0, READING)
    got, notes = parcels_of(function(iter([ranges_of(*ranges[:1]), ranges_of(*ranges[1:])])))
    assert got == want
    assert len(got) > 30
    assert notes.read == expected_notes.read == 87
    assert (notes.count, notes.latest_ms) == (expected_notes.count, expected_notes.latest_ms)
    assert reader.asked == ranges


@pytest.mark.parametrize(
    ("records_max", "size_bytes_max", "count"), [(1_000, 1_000, 1), (6, 1_000, 2), (1_000, 1, 4)]
)
def test_what_is_processed_together_has_bounds(
    monkeypatch: pytest.MonkeyPatch,
    hosting: Hosting,
    records_max: int,
    size_bytes_max: int,
    count: int,
) -> None:
    reader_of(monkeypatch, [(0, record) for place, record in rows_of(24) if place == 0])
    monkeypatch.setattr(worker, "TOGETHER_RECORDS_MAX", records_max)
    monkeypatch.setattr(worker, "TOGETHER_SIZE_BYTES_MAX", size_bytes_max)
    function = SourceFunction(hosting, 0, 0, READING)
    assert len(list(function(iter([ranges_of(("s", 0, 0, 12))])))) == count


def test_a_range_without_records_gives_nothing(
    monkeypatch: pytest.MonkeyPatch, hosting: Hosting
) -> None:
    reader_of(monkeypatch, [])
    batches = iter([ranges_of(("s", 0, 3, 40))])
    assert list(SourceFunction(hosting, 0, 0, READING)(batches)) == []


def test_batches_that_overlap_give_each_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the cleaner has joined two batches after the first of them was fetched."""

    class Overlapping(Reader):
        def read(self, topic: str, partition: int, first: int, until: int) -> Iterator[Fetched]:
            of_it = [record for place, record in self.rows if place == partition]
            yield Fetched(first, encode_batch(of_it[:3]), None)
            yield Fetched(3, encode_batch(of_it), None)

    monkeypatch.setitem(reading._readers, READING, Overlapping(rows_of(12)))  # type: ignore[arg-type]
    found = list(read_ranges(READING, ranges_of(("s", 1, 1, 6))))
    assert [offset for one in found for offset in one.offsets.to_pylist()] == [1, 2, 3, 4, 5]


def test_damaged_batches_are_named_by_their_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    class Damaged(Reader):
        def read(self, topic: str, partition: int, first: int, until: int) -> Iterator[Fetched]:
            for one in super().read(topic, partition, first, until):
                damaged = bytearray(one.batches)
                damaged[-1] ^= 1
                yield Fetched(one.first, damaged, None)

    monkeypatch.setitem(reading._readers, READING, Damaged(rows_of(4)))  # type: ignore[arg-type]
    with pytest.raises(ReadError, match="cannot read s-1: the batch at offset 0 has another CRC"):
        list(read_ranges(READING, ranges_of(("s", 1, 0, 2))))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (OPTIONS, ""),
        (replace(OPTIONS, clients={"security.protocol": "SSL"}), ""),
        (replace(OPTIONS, clients=PLAIN), ""),
        (replace(OPTIONS, reads_in_workers=False), "workers.read is false"),
        (
            replace(
                OPTIONS,
                clients={"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"},
            ),
            "workers do not support this login: ",
        ),
    ],
)
def test_who_reads_is_decided_by_setting_and_login(options: SparkQueryOptions, reason: str) -> None:
    found = why_spark_reads(options, None)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)

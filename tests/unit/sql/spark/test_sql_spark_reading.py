"""Topics that workers read: who reads, and that ranges give what records do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # comes without types
import pyarrow as pa
import pytest

from barnabas.kafka.wire_reader import Fetched, ReadError
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.spark import reading, worker
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.spark.hosting import Hosting, RangeReading
from barnabas.sql.spark.options import SparkQueryOptions
from barnabas.sql.spark.parcels import (
    RANGE_NUMBERS,
    Notes,
    Range,
    Results,
    decode_parcel,
    encode_parcel,
)
from barnabas.sql.spark.reading import read_ranges, why_spark_reads
from barnabas.sql.spark.worker import SourceFunction, run_operator
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


COUNT = "CREATE TABLE q AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
JOIN = "CREATE STREAM q AS SELECT s.k, v, name FROM s JOIN t ON s.k = t.id;"
JOIN_BY_VALUE = "CREATE STREAM q AS SELECT s.site, v, name FROM s JOIN t ON s.site = t.id;"
FILTER = "CREATE STREAM q AS SELECT k, v FROM s WHERE v > 3;"
SOURCES = """
CREATE STREAM s (k STRING KEY, v INT, site STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE t (id STRING PRIMARY KEY, name STRING) WITH (kafka_topic='t', value_format='JSON');
"""


def hosting_of(statement: str, partitions: int = 2, **more: Any) -> Hosting:
    (plan,) = plans_of(SOURCES + statement, {"s": 2, "t": 2, "Q": 2})
    return Hosting(plan.query_id, encode_plan(plan), partitions, partitions, **more)


class State:
    """A MapState of Spark's."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def getValue(self, key: Any) -> Any:  # noqa: N802  Spark's name
        return self.values.get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802  Spark's name
        self.values[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802  Spark's name
        del self.values[key]


def counted(hosting: Hosting, sent: list[tuple[int, bytes]]) -> tuple[list[Any], Notes]:
    """The results and notes of an operator that is given parcels by label."""
    made = []
    for label in HostedPlan(hosting).labels:
        given = [data for of, data in sent if of == label]
        frames = iter([pd.DataFrame({"parcel": given[:1]}), pd.DataFrame({"parcel": given[1:]})])
        made.append(run_operator(hosting, 0, State(), label, frames, READING))
    return parcels_of(
        pa.RecordBatch.from_pydict({name: frame[name].tolist() for name in ("label", "parcel")})
        for frame in made
    )


@pytest.mark.parametrize("columns_from", [None, 2])
def test_an_operator_fetches_the_ranges_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch, columns_from: int | None
) -> None:
    rows = rows_of(100)
    reader = reader_of(monkeypatch, rows)
    hosting = hosting_of(COUNT, columns_from=columns_from)
    labels = HostedPlan(hosting).labels
    sent = [
        row
        for batch in SourceFunction(hosting, 0, 0)(iter([records_of(rows)]))
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    want, expected_notes = counted(replace(hosting, state_name="records"), sent)
    # Of one partition in two ranges, whose rows arrive in another order.
    ranges = [(1, 20, 50), (0, 0, 50), (1, 0, 20)]
    parcels = [encode_parcel(Range(0, 0, "s", *numbers)) for numbers in ranges]
    sent = [(labels[one[0]], parcel) for one, parcel in zip(ranges, parcels, strict=True)]
    monkeypatch.setattr(reader, "rows", rows)
    got, notes = counted(replace(hosting, state_name="ranges"), sent)
    assert got == want
    assert len(got) > 80
    assert notes.read == expected_notes.read == 100
    assert notes.count == expected_notes.count > 10
    assert (notes.by_columns, notes.latest_ms) == (
        expected_notes.by_columns,
        expected_notes.latest_ms,
    )
    assert sorted(reader.asked) == sorted(("s", *numbers) for numbers in ranges)


@pytest.mark.parametrize(
    ("statement", "more", "takers"),
    [
        (COUNT, {}, [0]),
        (JOIN, {}, [0, 0]),
        (JOIN, {"is_copartitioned": False}, [None, None]),
        (JOIN, {"partitions": 1, "is_copartitioned": False}, [0, 0]),
        # The stream's records go to the partitions of other keys.
        (JOIN_BY_VALUE, {}, [None, None]),
        (FILTER, {}, [None]),
    ],
)
def test_operators_with_the_partitions_of_their_topics_take_ranges(
    statement: str, more: dict[str, Any], takers: list[int | None]
) -> None:
    plan = HostedPlan(hosting_of(statement, **more))
    assert [plan.takes_ranges(stage) for stage, _ in sorted(plan.topology.topics)] == takers


def test_the_numbers_of_a_range_are_the_end_of_its_bytes() -> None:
    head = encode_parcel(Range(3, 1, "töpic", 0, 0, 0))[: -RANGE_NUMBERS.size]
    numbers = (2**31 - 1, 0, 2**62)
    assert decode_parcel(head + RANGE_NUMBERS.pack(*numbers)) == Range(3, 1, "töpic", *numbers)


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

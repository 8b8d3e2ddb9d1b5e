"""Parcels: many records in one Spark row.

What Spark does for a row in shuffle, sort and conversions takes longer than a record takes in our
stages. So between operators a row is one parcel: the records of one partition and micro-batch that
come from one place, as bytes.

    Range    offsets of a topic's partition, for an operator that fetches the records itself
    Raw      records of a topic as they are there
    Records  records of a channel, or of a topic once read
    Columns  the same as columns
    Results  records for the sink's topic
    Notes    how many records were read, what the processing log gets
    Written  a transaction with results, which a task has left open

In a shared stream also:

    Member   the query that the other parcels of the row's label are for
    Turn     how the label's results are written, if not at least once
    Left     the label's state is to be deleted
    Closing  the end of a task's labels: how long it reads on for them
    Report   what became of a member's part of the micro-batch
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

import pyarrow as pa

from barnabas.spark.datasource.protocol import Prepared
from barnabas.sql.columns.channels import ChannelColumns
from barnabas.sql.columns.sources import RawColumns
from barnabas.sql.runtime.records import Record, WindowBounds
from barnabas.sql.runtime.rows_encoding import pack, unpack

Header = tuple[str, bytes | None]
Note = tuple[str, str | None, str | None]
"""The event, its step, and the processing log's message as JSON."""
NOTES_MAX = 1_000
"""So many notes of a partition and micro-batch are kept; all are counted."""
NOTES_CHARS_MAX = 1 << 20
"""Nor are more kept once they are this long together."""

Origin = tuple[int, int]
"""Which operator sent a parcel (-1: a source), and from which of its partitions."""


@dataclass(slots=True)
class Range:
    """Records of one partition of a topic, from offset `first` on, before `until`."""

    stage: int
    place: int
    topic: str
    partition: int
    first: int
    until: int


RANGE_NUMBERS: Final = Struct(">3q")
"""Partition and offsets, with which the bytes of a range end: Spark's JVM can write them."""


@dataclass(slots=True)
class Raw:
    """Records from one partition of a topic, by offset."""

    stage: int
    place: int
    records: RawColumns

    @property
    def partition(self) -> int:
        return self.records.partition

    @property
    def first_offset(self) -> int:
        return int(self.records.offsets[0].as_py())

    @property
    def order(self) -> tuple[int, int, Origin, int]:
        return self.stage, self.place, (-1, self.partition), self.first_offset


@dataclass(slots=True)
class Records:
    """Records of one partition on their way through a channel, from one place."""

    stage: int
    place: int
    origin: Origin
    sequence: int
    records: list[Record]

    @property
    def order(self) -> tuple[int, int, Origin, int]:
        return self.stage, self.place, self.origin, self.sequence


@dataclass(slots=True)
class Columns:
    """Records of one partition on their way to the operator that takes them, from one place."""

    stage: int
    place: int
    origin: Origin
    sequence: int
    records: ChannelColumns

    @property
    def order(self) -> tuple[int, int, Origin, int]:
        return self.stage, self.place, self.origin, self.sequence


@dataclass(slots=True)
class Results:
    """Columns of records for the sink's topic, in order: lists, or Arrow's and NumPy's arrays."""

    keys: Any
    values: Any
    timestamps: Any
    headers: Sequence[Sequence[Header]] | None

    def lists(self) -> tuple[list[bytes | None], list[bytes | None], list[int]]:
        """Keys, values and timestamps, as Python has them."""
        if isinstance(self.keys, pa.Array):
            return self.keys.to_pylist(), self.values.to_pylist(), self.timestamps.tolist()
        return list(self.keys), list(self.values), list(self.timestamps)


@dataclass(slots=True)
class Notes:
    """An operator's report about a micro-batch."""

    read: int = 0
    """Records that sources have given."""
    count: int = 0
    """Failures, of which `notes` has the first."""
    notes: list[Note] = field(default_factory=list)
    calls: int = 0
    """Calls to Spark's state."""
    seconds: float = 0.0
    """Time in our code."""
    written: int = 0
    """Results that tasks have written to the sink's topic."""
    by_columns: int = 0
    """Records that sources have given and that went through their first stage as columns."""
    latest_ms: int = -1
    """The latest timestamp of the records that were read."""

    def add(self, other: Notes) -> None:
        """Take in what another place has noted."""
        self.read += other.read
        self.count += other.count
        left = NOTES_CHARS_MAX - sum(len(text or "") for _, _, text in self.notes)
        for note in other.notes[: max(0, NOTES_MAX - len(self.notes))]:
            if left <= 0:
                break
            self.notes.append(note)
            left -= len(note[2] or "")
        self.calls += other.calls
        self.seconds += other.seconds
        self.written += other.written
        self.by_columns += other.by_columns
        self.latest_ms = max(self.latest_ms, other.latest_ms)


@dataclass(slots=True)
class Written:
    """Results that a task has written exactly once: the driver commits them."""

    prepared: Prepared
    was_retried: bool
    """True if the task had run before."""


@dataclass(slots=True)
class Member:
    """A query that shares a stream; `hosting`: all of it that is no secret."""

    hosting: bytes


@dataclass(slots=True)
class Turn:
    """The micro-batch that a label's results are committed with, exactly once.

    `is_repeated`: they are committed, and only the state lacks the records.
    """

    number: int
    is_repeated: bool


@dataclass(slots=True)
class Left:
    """The state of a label, whose query is gone, is to be deleted."""


@dataclass(slots=True)
class Closing:
    """The end of what a task gets.

    It reads on behind its ranges for `lasts_ms`, or until there is a file `ending`, in rounds that
    begin at least `round_ms` apart. If `lasts_ms` is 0, it reads the ranges alone.
    """

    lasts_ms: int = 0
    ending: str = ""
    round_ms: int = 0


@dataclass(slots=True)
class Report:
    """How a partition of a member fared; `failure`: why it has changed nothing, with traceback.

    `reached`: where it reads on, by topic and partition, if it has read behind its ranges.
    """

    label: int
    notes: Notes
    failure: str | None
    written: tuple[Written, ...] = ()
    reached: dict[tuple[str, int], int] = field(default_factory=dict)


Incoming = Raw | Records | Columns
"""The input of operators."""
Parcel = Incoming | Range | Results | Notes | Written | Member | Turn | Left | Closing | Report

_RAW, _RECORDS, _RESULTS, _NOTES, _WRITTEN, _COLUMNS, _RANGE, _MEMBER, _LEFT, _REPORT = range(10)
_TURN: Final = 10
_CLOSING: Final = 11


def encode_parcel(parcel: Parcel) -> bytes:
    """The bytes of a parcel."""
    of = parcel
    if isinstance(of, Raw):
        return pack(
            (_RAW, of.stage, of.place, of.partition, _arrow(of.records), of.records.headers)
        )
    if isinstance(of, Records):
        rows = [_record_row(record) for record in of.records]
        return pack((_RECORDS, of.stage, of.place, of.origin, of.sequence, rows))
    if isinstance(of, Columns):
        return pack((_COLUMNS, of.stage, of.place, of.origin, of.sequence, of.records.packed()))
    if isinstance(of, Range):
        numbers = RANGE_NUMBERS.pack(of.partition, of.first, of.until)
        return pack((_RANGE, of.stage, of.place, of.topic, numbers))
    if isinstance(of, Results):
        return pack((_RESULTS, _arrow_results(of), of.headers))
    if isinstance(of, Written):
        one = of.prepared
        identity = (one.task, one.transactional_id, one.producer_id, one.producer_epoch)
        return pack((_WRITTEN, of.was_retried, *identity, one.records, one.checksum))
    if isinstance(of, Member):
        return pack((_MEMBER, of.hosting))
    if isinstance(of, Turn):
        return pack((_TURN, of.number, of.is_repeated))
    if isinstance(of, Left):
        return pack((_LEFT,))
    if isinstance(of, Report):
        written = [encode_parcel(one) for one in of.written]
        reached = [(*place, offset) for place, offset in of.reached.items()]
        return pack((_REPORT, of.label, encode_parcel(of.notes), of.failure, written, reached))
    if isinstance(of, Closing):
        return pack((_CLOSING, of.lasts_ms, of.ending, of.round_ms))
    counts = (of.read, of.count, of.notes, of.calls, of.seconds, of.written)
    return pack((_NOTES, *counts, of.by_columns, of.latest_ms))


def decode_parcel(data: bytes) -> Parcel:
    """The parcel that `encode_parcel` was given."""
    kind, *rest = unpack(data)
    if kind == _RECORDS:
        stage, place, origin, sequence, rows = rest
        return Records(stage, place, tuple(origin), sequence, [_row_record(row) for row in rows])
    if kind == _COLUMNS:
        stage, place, origin, sequence, packed = rest
        return Columns(stage, place, tuple(origin), sequence, ChannelColumns.unpacked(packed))
    if kind == _NOTES:
        read, count, notes, *others = rest
        return Notes(read, count, list(map(tuple, notes)), *others)
    if kind == _RANGE:
        stage, place, topic, numbers = rest
        return Range(stage, place, topic, *RANGE_NUMBERS.unpack(numbers))
    if kind == _WRITTEN:
        return Written(Prepared(*rest[1:]), rest[0])
    if kind == _MEMBER:
        return Member(*rest)
    if kind == _TURN:
        return Turn(*rest)
    if kind == _LEFT:
        return Left()
    if kind == _REPORT:
        label, counted, failure, transactions, ends = rest
        notes = decode_parcel(counted)
        assert isinstance(notes, Notes)
        written = [one for data in transactions if isinstance(one := decode_parcel(data), Written)]
        reached = {(topic, partition): offset for topic, partition, offset in ends}
        return Report(label, notes, failure, tuple(written), reached)
    if kind == _CLOSING:
        return Closing(*rest)
    if rest[-1] is not None:
        rest[-1] = [tuple(map(tuple, headers)) for headers in rest[-1]]
    if kind == _RESULTS:
        batch = pa.ipc.read_record_batch(pa.py_buffer(rest[0]), _RESULT)
        keys, values, timestamps = batch.columns
        return Results(keys, values, timestamps.to_numpy(), rest[1])
    stage, place, partition, arrow, headers = rest
    batch = pa.ipc.read_record_batch(pa.py_buffer(arrow), _RECORD)
    offsets, timestamps, keys, values = batch.columns
    return Raw(stage, place, RawColumns(partition, offsets, timestamps, keys, values, headers))


_RECORD = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


def _arrow(of: RawColumns) -> bytes:
    columns = [of.offsets, of.timestamps, of.keys, of.values]
    data: bytes = pa.RecordBatch.from_arrays(columns, schema=_RECORD).serialize().to_pybytes()
    return data


_RESULT = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())],
)


def _arrow_results(of: Results) -> bytes:
    columns = [
        pa.array(of.keys, pa.binary()),
        pa.array(of.values, pa.binary()),
        pa.array(of.timestamps, pa.int64()),
    ]
    data: bytes = pa.RecordBatch.from_arrays(columns, schema=_RESULT).serialize().to_pybytes()
    return data


def _record_row(record: Record) -> tuple[Any, ...]:
    return (
        record.key,
        record.value,
        record.timestamp_ms,
        record.old_value,
        record.window and tuple(record.window),
        record.headers,
        record.partition,
        record.offset,
    )


def _row_record(row: tuple[Any, ...]) -> Record:
    key, value, timestamp_ms, old_value, window, headers, partition, offset = row
    if key is not None:
        key = tuple(key)
    if headers:
        headers = tuple(map(tuple, headers))
    bounds = WindowBounds(*window) if window else None
    return Record(key, value, timestamp_ms, bounds, headers, partition, offset, old_value)

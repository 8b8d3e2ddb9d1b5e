"""The source step for whole batches: reads the records of a topic as frames.

What the readers of vectors are not certain of is read by the row reader, and put in its place; it
leaves out what it cannot read. Queries that get the same batch share what one of them has decoded,
its readings, and each makes its own notes for the processing log:

    batch ─▶ key's vectors, value's vectors ─▶ frame of the records that can be read

The name of a reading is all that decides what it contains: streams over one topic that differ in
columns, types or formats have other names. Readings belong to their batch, and are freed with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from barnabas.schemas.registry_client import RegistryClient, SchemaStore
from barnabas.sql.columns import reading
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.vectors import Indexes, Mask, Read, Reader, Vector, replaced, vector_of
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.processing_log import UnreadableError
from barnabas.sql.runtime.forms import SourceForm
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.streams import TIMESTAMP_MAX_MS
from barnabas.sql.runtime.topics import TopicReader, TopicRecord, key_part, value_part
from barnabas.sql.schema import PSEUDO_COLUMNS, ROWOFFSET, ROWPARTITION, ROWTIME, Column

Header = tuple[str, bytes | None]
_UNREADABLE_MAX: Final = 10_000
"""Each query decodes a batch for itself that has more records that cannot be read."""
_KEPT_MAX: Final = 32
"""So many readings a batch keeps; it forgets the oldest."""
_JOINED_MAX: Final = 4
"""The same of longer batches that begin with it."""
Batch = TypeVar("Batch")
T = TypeVar("T")


class Readings(Generic[Batch]):
    """The readings of a batch, by name, and the longer batches that begin with it."""

    __slots__ = ("__weakref__", "_joined", "_kept")

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}
        self._joined: list[tuple[list[weakref.ref[Readings[Batch]]], Batch]] = []

    def of(self, name: Hashable, read: Callable[[], T]) -> T:
        """The reading of that name; the first time, `read` makes it."""
        found: T | None = self._kept.get(name)
        if found is None:
            found = self._kept[name] = read()
            while len(self._kept) > _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return found

    def forget(self, name: Hashable) -> None:
        """Let the next one read again."""
        del self._kept[name]

    def joined(self, behind: Sequence[Readings[Batch]], join: Callable[[], Batch]) -> Batch:
        """The batch of this one and those with these readings behind it, which `join` makes."""
        for parts, batch in self._joined:
            if len(parts) == len(behind) and all(
                part() is one for part, one in zip(parts, behind, strict=True)
            ):
                return batch
        batch = join()
        # Weak: the parts may have it themselves, and would stay until the garbage collector runs.
        self._joined.append(([weakref.ref(one) for one in behind], batch))
        del self._joined[:-_JOINED_MAX]
        return batch


@dataclass(slots=True)
class RawColumns:
    """Records of one partition of a topic, as Arrow arrays. `headers` is None if none has any.

    `readings`: what sources have decoded. All that read these records share it, if they get this
    object, or another one with the same records and the same readings.
    """

    partition: int
    offsets: Any
    timestamps: Any
    keys: Any
    values: Any
    headers: Sequence[Sequence[Header]] | None
    readings: Readings[RawColumns] = field(default_factory=Readings, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def of_lists(
        cls,
        partition: int,
        offsets: Sequence[int],
        timestamps: Sequence[int],
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Sequence[Header]] | None = None,
    ) -> RawColumns:
        """The same of Python's lists."""
        whole, data = pa.int64(), pa.binary()
        arrays = (pa.array(offsets, whole), pa.array(timestamps, whole))
        return cls(partition, *arrays, pa.array(keys, data), pa.array(values, data), headers)

    @classmethod
    def joined(cls, parts: Sequence[RawColumns]) -> RawColumns:
        """Records of one partition behind each other: the same object for the same parts."""
        first, *others = parts
        if not others:
            return first
        behind = [part.readings for part in others]
        return first.readings.joined(behind, lambda: cls._joined(parts))

    @classmethod
    def _joined(cls, parts: Sequence[RawColumns]) -> RawColumns:
        return cls(
            parts[0].partition,
            pa.concat_arrays([part.offsets for part in parts]),
            pa.concat_arrays([part.timestamps for part in parts]),
            pa.concat_arrays([part.keys for part in parts]),
            pa.concat_arrays([part.values for part in parts]),
            headers_behind(parts),
        )

    def slice(self, count: int) -> RawColumns:
        """The first records."""
        return RawColumns(
            self.partition,
            self.offsets.slice(0, count),
            self.timestamps.slice(0, count),
            self.keys.slice(0, count),
            self.values.slice(0, count),
            None if self.headers is None else self.headers[:count],
        )

    def headers_of(self) -> Callable[[int], tuple[Header, ...]] | None:
        """Return what gives a record's headers; None if none has any."""
        headers = self.headers
        return None if headers is None else lambda place: tuple(headers[place])

    def records(self) -> list[TopicRecord]:
        """All records."""
        headers = self.headers or ((),) * len(self)
        columns = [
            column.to_pylist() for column in (self.keys, self.values, self.timestamps, self.offsets)
        ]
        return [
            TopicRecord(key, value, timestamp_ms, tuple(given), self.partition, offset)
            for key, value, timestamp_ms, offset, given in zip(*columns, headers, strict=True)
        ]

    def record(self, place: int) -> TopicRecord:
        """The record at a place of the batch."""
        return TopicRecord(
            self.keys[place].as_py(),
            self.values[place].as_py(),
            self.timestamps[place].as_py(),
            () if self.headers is None else tuple(self.headers[place]),
            self.partition,
            self.offsets[place].as_py(),
        )


class _WithHeaders(Protocol):
    @property
    def headers(self) -> Sequence[Sequence[Header]] | None: ...

    def __len__(self) -> int: ...


def headers_behind(parts: Sequence[_WithHeaders]) -> list[Sequence[Header]] | None:
    """The headers of records behind each other; None if none has any."""
    if all(part.headers is None for part in parts):
        return None
    return [given for part in parts for given in (part.headers or ((),) * len(part))]


class PartReader(NamedTuple):
    """What reads keys or values; `name`: of what it gives, among the readings of records."""

    name: Hashable
    read: Reader

    @classmethod
    def of(cls, format_name: str, part: RecordPart) -> PartReader:
        """The reader of a format."""
        return cls(name_of(format_name, part), reading.reader(format_name, part))


class _Decoded(NamedTuple):
    """Records of a topic, as all sources share them. `frame`: of those that can be read, with no
    other columns than the value's. `rowless`: which of them have no value."""

    frame: Frame
    rowless: Mask
    unreadable: list[UnreadableError]


class ColumnSource:
    """A source step for batches. `reader` reads records as the row engine does."""

    def __init__(
        self,
        form: SourceForm,
        read_key: PartReader,
        read_value: PartReader,
        reader: Callable[[], TopicReader],
    ) -> None:
        schema = form.step.schema
        self._key, self._value = schema.key, schema.value
        self._read_key, self._read_value = read_key, read_value
        self._name = read_key.name, read_value.name
        self._reader = reader
        self._extras = form.layout.columns[len(self._value) :]

    def read(self, raw: RawColumns) -> tuple[Frame, Mask]:
        """All records that can be read, and which of them have no value. Of those in doubt the
        columns say nothing: `record` reads them."""
        frame, rowless, unreadable = raw.readings.of(self._name, lambda: self._decoded(raw))
        if len(unreadable) > _UNREADABLE_MAX:
            raw.readings.forget(self._name)
        for one in unreadable:
            self._reader().note(one)
        extras = (self._extra(frame, raw, column) for column in self._extras)
        columns, keys = [*frame.columns, *extras], list(frame.keys)
        # Steps put more records in doubt.
        doubt = frame.doubt.copy()
        own = Frame(frame.places, columns, keys, frame.has_key, frame.timestamps, doubt)
        return own, rowless

    def _decoded(self, raw: RawColumns) -> _Decoded:
        size = len(raw)
        key = raw.readings.of(self._read_key.name, lambda: self._read_key.read(raw.keys))
        value = raw.readings.of(self._read_value.name, lambda: self._read_value.read(raw.values))
        timestamps = raw.timestamps.to_numpy(zero_copy_only=False)
        rows = _Rows(key, value, size)
        uncertain = np.flatnonzero(key.doubt | value.doubt)
        if len(uncertain):
            self._read_rows(raw, uncertain, rows)
        doubt = rows.doubt | (timestamps < 0) | (timestamps > TIMESTAMP_MAX_MS)
        if self._key:
            for vector in rows.keys:
                if vector.valid is not None:
                    doubt |= rows.has_key & ~vector.valid
        frame = Frame(
            np.arange(size, dtype=np.int64),
            rows.columns,
            rows.keys,
            None if rows.has_key.all() else rows.has_key,
            timestamps,
            doubt,
        )
        frame.keep(~rows.gone)
        rowless = ~rows.is_row[~rows.gone]
        rowless.flags.writeable = False
        return _Decoded(unchangeable(frame), rowless, rows.unreadable)

    def record(self, raw: RawColumns, place: int) -> Record:
        """A record that `read` could read, as the row engine has it."""
        record = self._reader().read(raw.record(place))
        assert record is not None, "a record that was read once"
        return record

    def records(self, raw: RawColumns, places: Indexes) -> list[Record]:
        """The same of several."""
        return [self.record(raw, place) for place in places.tolist()]

    def _read_rows(self, raw: RawColumns, places: Indexes, into: _Rows) -> None:
        """Put what the row reader reads at these places in the place of what is there."""
        read = self._reader().try_read
        given = map(raw.record, places.tolist()) if len(places) < len(raw) else raw.records()
        records: list[Record | None] = []
        for place, found in zip(places.tolist(), map(read, given), strict=True):
            record = None if isinstance(found, UnreadableError) else found
            if isinstance(found, UnreadableError):
                found.forget_frames()
                into.unreadable.append(found)
            into.gone[place] = record is None
            into.has_key[place] = record is not None and record.key is not None
            into.is_row[place] = record is not None and record.value is not None
            records.append(record)
        of_rows = np.zeros(len(places), np.bool_)

        def patched(vectors: list[Vector], rows: Sequence[Row | None]) -> list[Vector]:
            made = []
            for number, vector in enumerate(vectors):
                values = [None if row is None else row[number] for row in rows]
                made.append(replaced(vector, places, vector_of(vector.type, values, of_rows)))
            return made

        into.keys = patched(into.keys, [None if r is None else r.key for r in records])
        into.columns = patched(into.columns, [None if r is None else r.value for r in records])
        into.doubt[places] = of_rows

    def _extra(self, frame: Frame, raw: RawColumns, column: Column) -> Vector:
        sql_type = column.type
        if column.name == ROWTIME:
            return Vector(sql_type, frame.timestamps)
        if column.name == ROWPARTITION:
            return Vector(sql_type, np.full(len(frame), raw.partition, np.int64))
        if column.name == ROWOFFSET:
            return Vector(sql_type, raw.offsets.to_numpy(zero_copy_only=False)[frame.places])
        names = [key.name for key in self._key]
        return frame.keys[names.index(column.name)]


class _Rows:
    """Keys and values of all records on their way to a frame. `gone`: which cannot be read."""

    def __init__(self, key: Read, value: Read, size: int) -> None:
        self.keys, self.columns = key.columns, value.columns
        self.has_key, self.is_row = key.is_row.copy(), value.is_row.copy()
        self.doubt = np.zeros(size, np.bool_)
        self.gone = np.zeros(size, np.bool_)
        self.unreadable: list[UnreadableError] = []


def column_source(
    form: SourceForm, schemas: SchemaStore | None, reader: Callable[[], TopicReader]
) -> ColumnSource | None:
    """The source for batches; None if it has none."""
    step = form.step
    if step.window is not None or step.timestamp is not None:
        return None
    schema = step.schema
    names = [*(key.name for key in schema.key), *PSEUDO_COLUMNS]
    extras = form.layout.columns[len(schema.value) :]
    if any(column.name not in names for column in extras):
        return None
    read_key = PartReader.of(step.formats.key.name, key_part(step, schemas)[1])
    read_value = PartReader.of(step.formats.value.name, value_part(step, schemas)[1])
    return ColumnSource(form, read_key, read_value, reader)


def name_of(format_name: str, part: RecordPart) -> Hashable:
    """The name of the reading of a part: equal for sources that decode the same."""
    schemas = part.schemas
    return (
        format_name,
        part.subject,
        part.wraps,
        tuple(part.columns),
        tuple(sorted(part.properties.items())),
        schemas.identity if isinstance(schemas, RegistryClient) else schemas,
    )


def unchangeable(frame: Frame) -> Frame:
    """The frame, whose arrays refuse changes in place."""
    vectors = [*frame.columns, *frame.keys]
    arrays = [frame.places, frame.has_key, frame.timestamps, frame.doubt]
    arrays += [vector.valid for vector in vectors]
    arrays += [vector.data for vector in vectors if not vector.is_arrow]
    for array in arrays:
        if array is not None:
            array.flags.writeable = False
    return frame

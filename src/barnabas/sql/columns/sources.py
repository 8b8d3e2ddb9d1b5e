"""The source step for whole batches: reads the records of a topic as frames.

What the readers of vectors are not certain of is read by the row reader, and put in its place: it
makes the notes for the processing log, and leaves out what it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns import reading
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.vectors import Indexes, Mask, Reader, Vector, replaced, vector_of
from barnabas.sql.runtime.forms import SourceForm
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.streams import TIMESTAMP_MAX_MS
from barnabas.sql.runtime.topics import TopicReader, TopicRecord, key_part, value_part
from barnabas.sql.schema import PSEUDO_COLUMNS, ROWOFFSET, ROWPARTITION, ROWTIME, Column

Header = tuple[str, bytes | None]


@dataclass(slots=True)
class RawColumns:
    """Records of one partition of a topic, as Arrow arrays. `headers` is None if none has any."""

    partition: int
    offsets: Any
    timestamps: Any
    keys: Any
    values: Any
    headers: Sequence[Sequence[Header]] | None

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
        """Records of one partition behind each other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            parts[0].partition,
            pa.concat_arrays([part.offsets for part in parts]),
            pa.concat_arrays([part.timestamps for part in parts]),
            pa.concat_arrays([part.keys for part in parts]),
            pa.concat_arrays([part.values for part in parts]),
            headers_behind(parts),
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


class ColumnSource:
    """A source step for batches. `read_row` reads a record as the row engine does."""

    def __init__(
        self,
        form: SourceForm,
        read_key: Reader,
        read_value: Reader,
        reader: Callable[[], TopicReader],
    ) -> None:
        self._form = form
        schema = form.step.schema
        self._key, self._value = schema.key, schema.value
        self._read_key, self._read_value = read_key, read_value
        self._reader = reader
        self._extras = form.layout.columns[len(self._value) :]

    def read(self, raw: RawColumns) -> tuple[Frame, Mask]:
        """All records that can be read, and which of them have no value. Of those in doubt the
        columns say nothing: `record` reads them."""
        size = len(raw)
        key = self._read_key(raw.keys)
        value = self._read_value(raw.values)
        keys, columns = key.columns, value.columns
        has_key, is_row = key.is_row, value.is_row
        timestamps = raw.timestamps.to_numpy(zero_copy_only=False)
        doubt = np.zeros(size, np.bool_)
        gone = np.zeros(size, np.bool_)
        uncertain = np.flatnonzero(key.doubt | value.doubt)
        if len(uncertain):
            keys, columns = self._read_rows(
                raw, uncertain, keys, columns, has_key, is_row, doubt, gone
            )
        if self._key:
            for vector in keys:
                if vector.valid is not None:
                    doubt |= has_key & ~vector.valid
        doubt |= (timestamps < 0) | (timestamps > TIMESTAMP_MAX_MS)
        frame = Frame(
            np.arange(size, dtype=np.int64),
            columns,
            keys,
            None if has_key.all() else has_key,
            timestamps,
            doubt,
        )
        frame.columns = [*columns, *(self._extra(frame, raw, column) for column in self._extras)]
        frame.keep(~gone)
        return frame, ~is_row[~gone]

    def record(self, raw: RawColumns, place: int) -> Record:
        """A record that `read` could read, as the row engine has it."""
        record = self._reader().read(raw.record(place))
        assert record is not None, "a record that was read once"
        return record

    def records(self, raw: RawColumns, places: Indexes) -> list[Record]:
        """The same of several."""
        return [self.record(raw, place) for place in places.tolist()]

    def _read_rows(
        self,
        raw: RawColumns,
        places: Indexes,
        keys: list[Vector],
        columns: list[Vector],
        has_key: Mask,
        is_row: Mask,
        doubt: Mask,
        gone: Mask,
    ) -> tuple[list[Vector], list[Vector]]:
        """The same with what the row reader reads at these places."""
        read = self._reader().read
        given = map(raw.record, places.tolist()) if len(places) < len(raw) else raw.records()
        records: list[Record | None] = list(map(read, given))
        of_rows = np.zeros(len(places), np.bool_)
        for at, (place, record) in enumerate(zip(places.tolist(), records, strict=True)):
            gone[place] = record is None
            has_key[place] = record is not None and record.key is not None
            is_row[place] = record is not None and record.value is not None
            of_rows[at] = False
        made: list[list[Vector]] = []
        for listed, part, vectors in (
            ([None if r is None else r.key for r in records], self._key, keys),
            ([None if r is None else r.value for r in records], self._value, columns),
        ):
            patched = []
            for number, (column, vector) in enumerate(zip(part, vectors, strict=True)):
                values = [None if row is None else row[number] for row in listed]
                patch = vector_of(column.type, values, of_rows)
                patched.append(replaced(vector, places, patch))
            made.append(patched)
        doubt[places] = of_rows
        return made[0], made[1]

    def _extra(self, frame: Frame, raw: RawColumns, column: Column) -> Vector:
        size = len(frame)
        sql_type = column.type
        if column.name == ROWTIME:
            return Vector(sql_type, frame.timestamps)
        if column.name == ROWPARTITION:
            return Vector(sql_type, np.full(size, raw.partition, np.int64))
        if column.name == ROWOFFSET:
            return Vector(sql_type, raw.offsets.to_numpy(zero_copy_only=False))
        names = [key.name for key in self._key]
        return frame.keys[names.index(column.name)]


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
    read_key = reading.reader(step.formats.key.name, key_part(step, schemas)[1])
    read_value = reading.reader(step.formats.value.name, value_part(step, schemas)[1])
    return ColumnSource(form, read_key, read_value, reader)

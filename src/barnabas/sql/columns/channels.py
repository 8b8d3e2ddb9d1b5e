"""Channels between stages: records with a new key, as columns up to the stage that takes them.

    topic ─▶ steps ─▶ partition of each distinct key ─▶ parcels ─▶ frames of the next stage

Records that are in doubt go through the row engine's nodes and come back to their places, unless a
vector cannot hold their values: then the batch goes on as records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns.frames import Frame, together
from barnabas.sql.columns.sources import (
    ColumnSource,
    Header,
    RawColumns,
    column_source,
    headers_behind,
)
from barnabas.sql.columns.steps import ColumnChain, stateless_from_topic, steps_of
from barnabas.sql.columns.vectors import (
    Indexes,
    Mask,
    Vector,
    arrow_type,
    key_codes,
    mask_of,
    of_arrow,
    of_values,
    vector_of,
)
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.forms import KeyForm, NeededKeyForm
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.rows_encoding import partition_of
from barnabas.sql.runtime.stage import Channel, Stage
from barnabas.sql.runtime.topics import TopicReader
from barnabas.sql.schema import Column
from barnabas.sql.types import Value


@dataclass(slots=True)
class ChannelColumns:
    """Records from one partition of a topic, on their way to the stage that takes them: Arrow
    arrays, but lists of Python's values for types that Arrow does not have as they are.

    A record without a key has NULLs there, and is not in `has_key`; `is_row` is the same of rows.
    """

    partition: int
    offsets: Any
    timestamps: Any
    has_key: Any
    is_row: Any
    keys: list[Any]
    columns: list[Any]
    headers: Sequence[Sequence[Header]] | None

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def joined(cls, parts: Sequence[ChannelColumns]) -> ChannelColumns:
        """Records of one origin behind each other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            parts[0].partition,
            pa.concat_arrays([part.offsets for part in parts]),
            pa.concat_arrays([part.timestamps for part in parts]),
            pa.concat_arrays([part.has_key for part in parts]),
            pa.concat_arrays([part.is_row for part in parts]),
            [_behind(column) for column in zip(*(part.keys for part in parts), strict=True)],
            [_behind(column) for column in zip(*(part.columns for part in parts), strict=True)],
            headers_behind(parts),
        )

    def packed(self) -> tuple[Any, ...]:
        """Plain values and bytes, for `unpacked`."""
        arrays = [self.offsets, self.timestamps, self.has_key, self.is_row]
        lists: list[list[Value] | None] = []
        for column in (*self.keys, *self.columns):
            lists.append(column if isinstance(column, list) else None)
            if not isinstance(column, list):
                arrays.append(column)
        batch = pa.RecordBatch.from_arrays(arrays, [str(n) for n in range(len(arrays))])
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema) as stream:
            stream.write_batch(batch)
        data: bytes = out.getvalue().to_pybytes()
        return self.partition, len(self.keys), lists, data, self.headers

    @classmethod
    def unpacked(cls, parts: Sequence[Any]) -> ChannelColumns:
        """What `packed` was called on."""
        partition, keys, lists, data, headers = parts
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            arrays = stream.read_next_batch().columns
        offsets, timestamps, has_key, is_row, *others = arrays
        rest = iter(others)
        columns = [next(rest) if found is None else found for found in lists]
        if headers is not None:
            headers = [tuple(map(tuple, given)) for given in headers]
        plain = (offsets, timestamps, has_key, is_row)
        return cls(partition, *plain, columns[:keys], columns[keys:], headers)

    def at(self, place: int) -> ChannelColumns:
        """The record at a place."""

        def one(column: Any) -> Any:
            return column[place : place + 1]

        return ChannelColumns(
            self.partition,
            one(self.offsets),
            one(self.timestamps),
            one(self.has_key),
            one(self.is_row),
            list(map(one, self.keys)),
            list(map(one, self.columns)),
            None if self.headers is None else one(self.headers),
        )

    def records(self, width: int) -> list[Record]:
        """All records, as the row engine has them, with the first `width` columns."""
        keys, rows = _rows(self.keys, len(self)), _rows(self.columns[:width], len(self))
        masks = zip(self.has_key.to_pylist(), self.is_row.to_pylist(), strict=True)
        headers = self.headers or ((),) * len(self)
        plain = zip(self.timestamps.to_pylist(), self.offsets.to_pylist(), headers, strict=True)
        return [
            Record(
                key if has_key else None,
                row if is_row else None,
                timestamp_ms,
                None,
                tuple(given),
                self.partition,
                offset,
            )
            for key, row, (has_key, is_row), (timestamp_ms, offset, given) in zip(
                keys, rows, masks, plain, strict=True
            )
        ]


def _behind(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], list):
        return [value for part in parts for value in part]
    return pa.concat_arrays(parts)


def _rows(columns: Sequence[Any], size: int) -> list[Row]:
    lists = [c if isinstance(c, list) else c.to_pylist() for c in columns]
    return [list(row) for row in zip(*lists, strict=True)] if lists else [[] for _ in range(size)]


def _stored(vector: Vector) -> Any:
    kind = arrow_type(vector.type)
    return vector.to_list() if kind is None else vector.to_arrow(kind)


def _vector(column: Column, stored: Any) -> Vector:
    if isinstance(stored, list):
        return of_values(column.type, stored)
    return of_arrow(column.type, stored)


class ChannelSource:
    """Records that come as columns, as the source of a stage: what ColumnSource is for topics.

    `width`: how many of the columns are those of the row that the stage takes; those behind them
    its source adds.
    """

    def __init__(self, columns: Sequence[Column], keys: Sequence[Column], width: int) -> None:
        self._columns, self._keys = tuple(columns), tuple(keys)
        self._width = width

    def read(self, raw: ChannelColumns) -> tuple[Frame, Mask]:
        """All records, and which of them have no row."""
        size = len(raw)
        has_key: Mask = mask_of(raw.has_key)
        frame = Frame(
            np.arange(size, dtype=np.int64),
            [_vector(*pair) for pair in zip(self._columns, raw.columns, strict=True)],
            [_vector(*pair) for pair in zip(self._keys, raw.keys, strict=True)],
            None if has_key.all() else has_key,
            raw.timestamps.to_numpy(zero_copy_only=False),
            np.zeros(size, np.bool_),
        )
        return frame, ~mask_of(raw.is_row)

    def record(self, raw: ChannelColumns, place: int) -> Record:
        """A record, as the row engine has it."""
        return self.all_records(raw.at(place))[0]

    def records(self, raw: ChannelColumns, places: Indexes) -> list[Record]:
        """The same of several."""
        records = self.all_records(raw)
        return [records[place] for place in places.tolist()]

    def all_records(self, raw: ChannelColumns) -> list[Record]:
        """The same of all."""
        return raw.records(self._width)

    def of_records(self, records: Sequence[Record]) -> ChannelColumns | None:
        """Records of one origin as columns; None if those cannot hold them all."""
        frame = _frame_of(self._columns, self._keys, list(enumerate(records)))
        if frame is None:
            return None
        offsets = pa.array([record.offset for record in records], pa.int64())
        headers = [record.headers for record in records]
        return _channel_columns(
            frame, records[0].partition, offsets, headers if any(headers) else None
        )


def _frame_of(
    columns: Sequence[Column], keys: Sequence[Column], placed: Sequence[tuple[int, Record]]
) -> Frame | None:
    """Records and their places as a frame; None if that cannot hold them all."""
    records = [record for _, record in placed]
    if any(r.value is None or r.window is not None for r in records):
        return None
    doubt = np.zeros(len(records), np.bool_)
    without: Row = [None] * len(keys)

    def vectors(listed: Sequence[Column], rows: Sequence[Any]) -> list[Vector]:
        return [
            vector_of(column.type, [row[place] for row in rows], doubt)
            for place, column in enumerate(listed)
        ]

    has_key = np.array([record.key is not None for record in records], np.bool_)
    made = vectors(columns, [record.value for record in records])
    made_keys = vectors(keys, [record.key or without for record in records])
    if doubt.any() or any((has_key & key.nulls()).any() for key in made_keys):
        return None
    return Frame(
        np.array([place for place, _ in placed], np.int64),
        made,
        made_keys,
        None if has_key.all() else has_key,
        np.array([record.timestamp_ms for record in records], np.int64),
        doubt,
    )


def _channel_columns(
    frame: Frame,
    partition: int,
    offsets: Any,
    headers: Sequence[Sequence[Header]] | None,
    rowless: Mask | None = None,
) -> ChannelColumns:
    return ChannelColumns(
        partition,
        offsets,
        pa.array(frame.timestamps, pa.int64()),
        pa.array(frame.keyed()),
        pa.array(np.ones(len(frame), np.bool_) if rowless is None else ~rowless),
        [_stored(vector) for vector in frame.keys],
        [_stored(vector) for vector in frame.columns],
        headers,
    )


@dataclass(slots=True)
class Sent:
    """What a stage sends through its channel: columns by partition, or records in their order."""

    columns: list[tuple[int, ChannelColumns]]
    records: list[Record]
    by_rows: int
    """Number of the batch's records that went through the row engine."""


class ChannelProgram:
    """A stage without state from a topic to a channel, for whole batches."""

    def __init__(self, chain: ColumnChain, channel: Channel) -> None:
        self._chain, self._channel = chain, channel

    def run(self, raw: RawColumns, partitions: int) -> Sent:
        """Run a batch, and spread what comes out over so many partitions."""
        frame, rows, by_rows = self._chain.run(raw)
        return _with_rows(self._channel, frame, rows, by_rows, _Origin.of(raw), partitions)


class ChannelEnd:
    """The exit of a stage with a join: its records go through a channel."""

    def __init__(self, channel: Channel, partitions: int) -> None:
        self._channel, self._partitions = channel, partitions

    def made(
        self,
        frame: Frame,
        rows: Sequence[tuple[int, Record]],
        by_rows: int,
        headers: Callable[[int], tuple[Header, ...]] | None,
    ) -> Sent:
        """The records of a frame and those that the row engine has made; all have keys."""
        # Columns that show a record's origin were made where its topic was read.
        origin = _Origin(0, None, headers)
        return _with_rows(self._channel, frame, rows, by_rows, origin, self._partitions)


def _with_rows(
    channel: Channel,
    frame: Frame,
    rows: Sequence[tuple[int, Record]],
    by_rows: int,
    origin: _Origin,
    partitions: int,
) -> Sent:
    if rows:
        of_rows = _frame_of(channel.columns, channel.keys, rows)
        if of_rows is None:
            columns = _of_origin(frame, origin, None)
            made = columns.records(len(columns.columns))
            placed = [*zip(frame.places.tolist(), made, strict=True), *rows]
            listed = [record for _, record in sorted(placed, key=lambda one: one[0])]
            return Sent([], listed, by_rows)
        frame = together([frame, of_rows])
    return Sent(_sent(frame, origin, partitions, None), [], by_rows)


class TopicProgram:
    """Reads a topic whose records go to the stage that takes them by their key."""

    def __init__(self, source: ColumnSource) -> None:
        self._source = source

    def run(self, raw: RawColumns, partitions: int) -> Sent:
        """Spread a batch over so many partitions."""
        frame, rowless = self._source.read(raw)
        if frame.doubt.any():
            records = self._source.records(raw, frame.places)
            return Sent([], records, len(records))
        return Sent(_sent(frame, _Origin.of(raw), partitions, rowless), [], 0)


class _Origin(NamedTuple):
    """Where records come from: the topic's partition, their offsets if they are known, and what
    gives their headers if any has some."""

    partition: int
    offsets: Any
    headers: Callable[[int], tuple[Header, ...]] | None

    @classmethod
    def of(cls, raw: RawColumns) -> _Origin:
        return cls(raw.partition, raw.offsets, raw.headers_of())


def _sent(
    frame: Frame, origin: _Origin, partitions: int, rowless: Mask | None
) -> list[tuple[int, ChannelColumns]]:
    sent = []
    for partition, at in _spread(frame, origin.partition, partitions):
        of_part = None if rowless is None else rowless[at]
        sent.append((partition, _of_origin(frame.part(at), origin, of_part)))
    return sent


def _of_origin(frame: Frame, origin: _Origin, rowless: Mask | None) -> ChannelColumns:
    headers = origin.headers
    given = None if headers is None else [headers(place) for place in frame.places.tolist()]
    offsets = pa.array(np.zeros(len(frame), np.int64))
    if origin.offsets is not None:
        offsets = origin.offsets.take(pa.array(frame.places))
    return _channel_columns(frame, origin.partition, offsets, given, rowless)


def _spread(frame: Frame, own: int, partitions: int) -> Iterator[tuple[int, Indexes]]:
    """Partitions, and which records go there: by the key, without one by the `own` partition."""
    targets = np.full(len(frame), own % partitions, np.int64)
    # A NULL has the code of another key.
    keyed = np.arange(len(frame), dtype=np.int64)
    if frame.has_key is not None:
        keyed = np.flatnonzero(frame.has_key)
    if len(keyed):
        keys = [key.take(keyed) for key in frame.keys]
        codes = key_codes(keys, len(keyed))
        _, firsts, of = np.unique(codes, return_index=True, return_inverse=True)
        lists = [key.take(firsts).to_list() for key in keys]
        found = [partition_of(key, partitions) for key in zip(*lists, strict=True)]
        targets[keyed] = np.array(found, np.int64)[of]
    for partition in np.unique(targets).tolist():
        yield partition, np.flatnonzero(targets == partition)


def channel_program(
    stage: Stage,
    place: int,
    functions: Mapping[str, Function],
    schemas: SchemaStore | None,
    reader: Callable[[], TopicReader],
) -> ChannelProgram | None:
    """The stage for batches of an input's records; None if it can only run row by row."""
    found = stateless_from_topic(stage, place)
    if found is None or len(stage.outputs) != 1:
        return None
    form, between = found
    channel = stage.outputs[0]
    if not isinstance(channel, Channel) or not channel.keys:
        return None
    source = column_source(form, schemas, reader)
    steps = steps_of(between, functions)
    if source is None or steps is None:
        return None
    return ChannelProgram(ColumnChain(stage, place, source, steps), channel)


def is_keyed(last: Node, channel: Channel) -> bool:
    """Return whether all records that a node lets into a channel have keys."""
    form = last.form
    only_keyed = isinstance(form, KeyForm) and form.is_group
    only_keyed = only_keyed or (isinstance(form, NeededKeyForm) and not form.keeps)
    return only_keyed and bool(channel.keys)

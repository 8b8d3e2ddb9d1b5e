"""Stages without state: from a topic through filters and selections to the sink's topic.

Records that are in doubt go through the row engine's nodes, one after the other, and their results
come back to the places of their records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns import writing
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.sources import Header, RawColumns, column_source
from barnabas.sql.columns.steps import ColumnChain, stateless_from_topic, steps_of
from barnabas.sql.columns.vectors import CheckedWriter, Vector
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import StreamSink
from barnabas.sql.runtime.forms import KeyForm, SinkForm
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stage import Stage
from barnabas.sql.runtime.topics import TopicReader, TopicRecord, TopicWriter, key_part, value_part


@dataclass(slots=True)
class Made:
    """Results as Arrow arrays of bytes, their timestamps, and the places of the records that they
    are made of."""

    places: Any
    keys: Any
    values: Any
    timestamps: Any
    headers: list[tuple[Header, ...]] | None
    by_rows: int
    """Number of the batch's records that went through the row engine."""


class ColumnSink:
    """The last step of a stream: writes the records of frames."""

    def __init__(
        self,
        form: SinkForm,
        write_key: writing.Writer | None,
        write_value: writing.Writer,
        *,
        writes_null_keys: bool,
    ) -> None:
        """`writes_null_keys`: a new key that is NULL has bytes."""
        self._places = tuple(form.places)
        self._write_key, self._write_value = write_key, write_value
        self._writes_null_keys = writes_null_keys

    def check(self, frame: Frame) -> None:
        """Doubt the records that only the row writer can write."""
        if self._writes_null_keys and frame.has_key is not None:
            frame.doubt |= ~frame.has_key
        parts: list[tuple[writing.Writer | None, Sequence[Vector]]] = [
            (self._write_value, [frame.columns[place] for place in self._places])
        ]
        if frame.has_key is None or frame.has_key.any():
            parts.insert(0, (self._write_key, frame.keys))
        for write, vectors in parts:
            if isinstance(write, CheckedWriter) and not frame.doubt.all():
                doubt = write.doubt(vectors)
                if doubt is not None:
                    frame.doubt |= doubt

    def write(self, frame: Frame) -> tuple[Any, Any]:
        """Keys and values."""
        keys: Any = pa.nulls(len(frame), pa.binary())
        if self._write_key is not None and frame.keys:
            keys = self._write_key(frame.keys)
            if frame.has_key is not None:
                keys = pc.if_else(pa.array(frame.has_key), keys, pa.scalar(None, pa.binary()))
        return keys, self._write_value([frame.columns[place] for place in self._places])


def column_sink(
    form: SinkForm, schemas: SchemaStore | None, between: Sequence[Node]
) -> ColumnSink | None:
    """The sink for frames; None if only the row writer writes what the step gives. `between`: the
    nodes before it."""
    step = form.step
    if not isinstance(step, StreamSink):
        return None
    write_value = writing.writer(step.formats.value.name, value_part(step, schemas)[1])
    format_, part = key_part(step, schemas)
    write_key = writing.writer(format_.name, part)
    if write_value is None or (write_key is None and step.schema.key):
        return None
    has_new_key = any(isinstance(node.form, KeyForm) for node in between)
    # Of several columns the step doubts those with NULLs.
    has_bytes = len(part.columns) == 1 and (format_.name == "DELIMITED" or not part.is_bare)
    return ColumnSink(form, write_key, write_value, writes_null_keys=has_new_key and has_bytes)


class Ending:
    """The end of a stage: the sink for frames, and the row writer for single records."""

    def __init__(self, sink: ColumnSink, writer: Callable[[], TopicWriter]) -> None:
        self._sink, self._writer = sink, writer

    def made(
        self,
        frame: Frame,
        rows: Sequence[tuple[int, Record]],
        by_rows: int,
        headers: Callable[[int], tuple[Header, ...]] | None,
    ) -> Made:
        """The results of a frame, and at their places those that the row engine has made."""
        keys, values = self._sink.write(frame)
        made = Made(frame.places, keys, values, frame.timestamps, None, by_rows)
        write = self._writer().write
        written: list[tuple[int, TopicRecord]] = []
        for place, record in rows:
            result = write(record)
            if result is not None:
                written.append((place, result))
        if written:
            _insert(made, written)
        if headers is not None:
            made.headers = [headers(place) for place in made.places.tolist()]
        return made


def _insert(made: Made, written: Sequence[tuple[int, TopicRecord]]) -> None:
    order = np.concatenate([made.places, np.array([place for place, _ in written], np.int64)])
    by_place = np.argsort(order, kind="stable")
    made.places = order[by_place]
    taken = pa.array(by_place)
    rows = [result for _, result in written]
    made.keys = _joined(made.keys, [row.key for row in rows]).take(taken)
    made.values = _joined(made.values, [row.value for row in rows]).take(taken)
    stamps = np.array([row.timestamp_ms for row in rows], np.int64)
    made.timestamps = np.concatenate([made.timestamps, stamps])[by_place]


class StreamProgram:
    """A stage from a topic to the sink, for whole batches."""

    def __init__(self, chain: ColumnChain, ending: Ending) -> None:
        self._chain, self._ending = chain, ending

    def run(self, raw: RawColumns) -> Made:
        """The results of a batch's records, in their order."""
        frame, rows, by_rows = self._chain.run(raw)
        return self._ending.made(frame, rows, by_rows, raw.headers_of())


def _joined(array: Any, more: Sequence[bytes | None]) -> Any:
    return pa.concat_arrays([array, pa.array(more, pa.binary())])


def stream_program(
    stage: Stage,
    place: int,
    functions: Mapping[str, Function],
    schemas: SchemaStore | None,
    reader: Callable[[], TopicReader],
    writer: Callable[[], TopicWriter],
) -> StreamProgram | None:
    """The stage for batches of an input's records; None if it can only run row by row."""
    found = stateless_from_topic(stage, place)
    if found is None or not found[1]:
        return None
    form, (*between, last) = found
    if not isinstance(last.form, SinkForm):
        return None
    steps = steps_of(between, functions)
    source = column_source(form, schemas, reader)
    sink = column_sink(last.form, schemas, between)
    if source is None or sink is None or steps is None:
        return None
    chain = ColumnChain(stage, place, source, [*steps, sink.check])
    return StreamProgram(chain, Ending(sink, writer))

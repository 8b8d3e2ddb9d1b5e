"""Stages that join a stream to a table: the keys of a batch are looked up together.

A batch is cut where the table changes between the stream's records. Of the table's changes those
that a later one of the same key replaces before any record sees them are not written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
import pyarrow.compute as pc

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.merging import ByRows, Merged
from barnabas.sql.columns.sources import ColumnSource, RawColumns, column_source
from barnabas.sql.columns.steps import Step, only_renames, run, step_of
from barnabas.sql.columns.streams import Ending, Made, column_sink
from barnabas.sql.columns.vectors import Indexes, Mask, Vector, concatenated, vector_of
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import StreamSource, TableSource
from barnabas.sql.runtime.forms import JoinForm, SinkForm, SourceForm
from barnabas.sql.runtime.node import StoreKey
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.stage import Exit, Stage
from barnabas.sql.runtime.stream_joins import StreamTableJoinNode
from barnabas.sql.runtime.tables import TableSourceNode
from barnabas.sql.runtime.topics import TopicReader, TopicWriter
from barnabas.sql.types import BaseType

CUTS_MAX: Final = 100
"""A batch in which the table changes more often between the stream's records goes row by row."""
_KEYS: Final = (BaseType.STRING, BaseType.INTEGER, BaseType.BIGINT)


class JoinProgram:
    """A stage with a stream and a table as its inputs, for whole batches."""

    def __init__(
        self,
        stage: Stage,
        stream: int,
        join: StreamTableJoinNode,
        table: TableSourceNode,
        sources: tuple[ColumnSource, ColumnSource],
        before: Sequence[Step],
        after: Sequence[Step],
        ending: Ending,
    ) -> None:
        """`stream`: the number of the stream's input. `sources`: the stream's, the table's."""
        self._stage, self._stream = stage, stream
        self._join, self._table = join, table
        self._sources = sources
        self._before, self._after, self._ending = tuple(before), tuple(after), ending
        assert isinstance(join.form, JoinForm)
        self._form = join.form

    def run(self, inputs: Sequence[Sequence[RawColumns]]) -> Made | ByRows | None:
        """The results, or the records of all inputs in their order if the row engine must run
        them. `inputs`: the batches of both, in the stage's order."""
        # In the order of the inputs, as the row engine notes what it cannot read.
        merged = [
            Merged(self._sources[0 if place == self._stream else 1], raws) if raws else None
            for place, raws in enumerate(inputs)
        ]
        records, changes = merged[self._stream], merged[1 - self._stream]
        if changes is not None and changes.frame.doubt.any():
            return self._by_rows(records, changes)
        if records is None:
            if changes is not None:
                self._change(changes, 0, len(changes.frame))
            return None
        # A tie is decided by the order of the inputs.
        side: Literal["left", "right"] = "left" if self._stream == 0 else "right"
        seen = np.zeros(len(records.due), np.int64)
        if changes is not None:
            seen = np.searchsorted(changes.due, records.due, side=side)
        # A batch without readable records is one empty part: the table still changes.
        cuts = np.unique(seen).tolist() or [0]
        if len(cuts) > CUTS_MAX:
            return self._by_rows(records, changes)
        return self._joined(records, changes, seen, cuts)

    def _by_rows(self, records: Merged | None, changes: Merged | None) -> ByRows:
        of_stream = [] if records is None else records.records()
        of_table = [] if changes is None else changes.records()
        return ByRows([*of_stream, *of_table] if self._stream == 0 else [*of_table, *of_stream])

    def _joined(
        self, records: Merged, changes: Merged | None, seen: Indexes, cuts: Sequence[int]
    ) -> Made:
        frame = records.frame
        frame.keep(~records.rowless | frame.doubt)
        left = run(frame, self._before)
        done = 0
        frames: list[Frame] = []
        rows: list[tuple[int, Record]] = []
        count = 0
        for cut in cuts:
            if changes is not None:
                self._change(changes, done, cut)
                done = cut
            part = frame if len(cuts) == 1 else _of(frame, seen[frame.places] == cut)
            doubtful = left[seen[left] == cut]
            self._look_up(part)
            doubtful = np.sort(np.concatenate([doubtful, run(part, self._after)]))
            frames.append(part)
            count += len(doubtful)
            rows += self._rows(records, doubtful)
        if changes is not None:
            self._change(changes, done, len(changes.frame))
        headers = records.headers if records.has_headers else None
        return self._ending.made(_together(frames), rows, count, headers)

    def _rows(self, records: Merged, places: Indexes) -> list[tuple[int, Record]]:
        process = self._stage.process
        return [
            (place, made)
            for place in places.tolist()
            for _, made in process(self._stream, records.record(place))
        ]

    def _change(self, changes: Merged, start: int, stop: int) -> None:
        """Put the table's changes from one place to another into its store."""
        if start == stop:
            return
        frame = changes.frame
        at = np.arange(start, stop, dtype=np.int64)
        keys = list(zip(*(key.take(at).to_list() for key in frame.keys), strict=True))
        has_key = None if frame.has_key is None else frame.has_key[start:stop].tolist()
        last: dict[StoreKey, int] = {}
        for place, key in enumerate(keys):
            if has_key is None or has_key[place]:
                last.pop(key, None)
                last[key] = place
        at = at[np.array(list(last.values()), np.int64)]
        columns = [column.take(at).to_list() for column in frame.columns]
        values: list[Row] = (
            [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in at]
        )
        stamps, rowless = frame.timestamps[at].tolist(), changes.rowless[at].tolist()
        for key, stamp, row, is_gone in zip(last, stamps, values, rowless, strict=True):
            self._table.keep(Record(key, None if is_gone else row, stamp))

    def _look_up(self, frame: Frame) -> None:
        """Put the table's rows beside those of the stream; leave out those without one, unless the
        join keeps them."""
        form = self._form
        (key,) = frame.keys
        if key.is_text:
            encoded = pc.dictionary_encode(key.data)
            distinct = encoded.dictionary.to_pylist()
            codes = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
            codes = codes.astype(np.int64)
        else:
            found, codes = np.unique(key.data, return_inverse=True)
            distinct = found.tolist()
        if frame.has_key is not None:
            codes = np.where(frame.has_key, codes, len(distinct))
        get = self._join.table
        rows = [None if given is None else given[0] for given in (get((k,)) for k in distinct)]
        rows.append(None)
        is_there = np.array([row is not None for row in rows], np.bool_)
        doubt = np.zeros(len(rows), np.bool_)
        width = len(form.right.columns)
        nothing = (None,) * width
        listed = list(zip(*(nothing if row is None else row for row in rows), strict=True))
        right = [
            vector_of(column.type, list(values), doubt)
            for column, values in zip(form.right.columns, listed, strict=True)
        ]
        if not form.is_left:
            kept = is_there[codes]
            codes = codes[kept]
            frame.keep(kept)
        frame.doubt |= doubt[codes]
        wide = [*frame.columns, *(vector.take(codes) for vector in right), *frame.keys]
        frame.columns = [wide[place] for place in form.places]


def _of(frame: Frame, kept: Mask) -> Frame:
    part = Frame(
        frame.places, frame.columns, frame.keys, frame.has_key, frame.timestamps, frame.doubt
    )
    part.keep(kept)
    return part


def _together(frames: Sequence[Frame]) -> Frame:
    """Frames as one, in the order of the places."""
    if len(frames) == 1:
        return frames[0]
    places = np.concatenate([frame.places for frame in frames])
    has_key = None
    if frames[0].has_key is not None:
        has_key = np.concatenate([f.has_key for f in frames if f.has_key is not None])
    order = np.argsort(places, kind="stable")

    def all_of(parts: Sequence[Sequence[Vector]]) -> list[Vector]:
        return [concatenated(column).take(order) for column in zip(*parts, strict=True)]

    return Frame(
        places[order],
        all_of([frame.columns for frame in frames]),
        all_of([frame.keys for frame in frames]),
        None if has_key is None else has_key[order],
        np.concatenate([frame.timestamps for frame in frames])[order],
        np.zeros(len(order), np.bool_),
    )


def join_program(
    stage: Stage,
    functions: Mapping[str, Function],
    schemas: SchemaStore | None,
    reader: Callable[[int], TopicReader],
    writer: Callable[[], TopicWriter],
) -> JoinProgram | None:
    """The stage for batches; None if it can only run row by row. `reader` takes an input."""
    kinds = [type(given) for given in stage.inputs]
    if sorted(kinds, key=str) != sorted((StreamSource, TableSource), key=str):
        return None
    if stage.takes_batches or len(stage.outputs) != 1:
        return None
    stream = kinds.index(StreamSource)
    first, *nodes = stage.chain(stream)
    (table, *others) = stage.chain(1 - stream)
    places = [at for at, node in enumerate(nodes) if isinstance(node, StreamTableJoinNode)]
    if len(places) != 1 or not all(map(only_renames, others)) or len(nodes) < places[0] + 3:
        return None
    join, last = nodes[places[0]], nodes[-2]
    if not isinstance(table, TableSourceNode) or table.sends_old or not table.is_stored:
        return None
    forms = first.form, table.form, last.form
    if not isinstance(join, StreamTableJoinNode) or not isinstance(nodes[-1], Exit):
        return None
    if not isinstance(forms[0], SourceForm) or not isinstance(forms[1], SourceForm):
        return None
    keys = (forms[0].step.schema.key, forms[1].step.schema.key)
    if any(len(key) != 1 or key[0].type.base not in _KEYS for key in keys):
        return None
    if keys[0][0].type != keys[1][0].type or not isinstance(forms[2], SinkForm):
        return None
    sources = (
        column_source(forms[0], schemas, lambda: reader(stream)),
        column_source(forms[1], schemas, lambda: reader(1 - stream)),
    )
    before = [step_of(node, functions) for node in nodes[: places[0]]]
    after = [step_of(node, functions) for node in nodes[places[0] + 1 : -2]]
    sink = column_sink(forms[2], schemas)
    if sources[0] is None or sources[1] is None or sink is None:
        return None
    if None in before or None in after:
        return None
    return JoinProgram(
        stage,
        stream,
        join,
        table,
        (sources[0], sources[1]),
        [step for step in before if step],
        [*(step for step in after if step), sink.check],
        Ending(sink, writer),
    )

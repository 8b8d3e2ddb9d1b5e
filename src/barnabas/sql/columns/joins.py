"""Stages that join a stream to a table: the keys of a batch are looked up together.

A batch is cut where the table changes between the stream's records. Of the table's changes those
that a later one of the same key replaces before any record sees them are not written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow.compute as pc

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns.channels import ChannelEnd, Sent, is_keyed
from barnabas.sql.columns.frames import Frame, together
from barnabas.sql.columns.merging import ByRows, Merged, Source
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.steps import (
    Step,
    needs_row,
    nodes_behind_source,
    only_renames,
    run,
    steps_of,
)
from barnabas.sql.columns.streams import Ending, Made, column_sink
from barnabas.sql.columns.vectors import DICT_KEYS, Indexes, codes_of, vector_of
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import TableSource
from barnabas.sql.runtime.forms import JoinForm, SinkForm
from barnabas.sql.runtime.node import Node, StoreKey
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.rows_encoding import encode_keys
from barnabas.sql.runtime.stage import Channel, Emitted, Exit, Output, Stage
from barnabas.sql.runtime.stream_joins import StreamTableJoinNode
from barnabas.sql.runtime.tables import TableSourceNode
from barnabas.sql.runtime.topics import TopicWriter

CUTS_MAX: Final = 100
"""A batch in which the table changes more often between the stream's records goes row by row."""


class JoinParts(NamedTuple):
    """The parts of a join, up to its joined rows.

    `process` takes a record of the stream. `stream`: the number of its input. `sources`: the
    stream's, the table's. `is_first`: a record of the stream comes before a change of its time.
    `needs_rows`: a step may note something of a record without a row. `behind`: the nodes that
    take the joined rows.
    """

    process: Callable[[Record], Emitted]
    stream: int
    join: StreamTableJoinNode
    table: TableSourceNode
    sources: tuple[Source, Source]
    before: Sequence[Step]
    behind: Sequence[Node]
    is_first: bool
    needs_rows: bool


class End(Protocol):
    """The end of a join: takes joined frames, and single records from the row engine."""

    def made(
        self,
        frame: Frame,
        rows: Sequence[tuple[int, Record]],
        by_rows: int,
        headers: Callable[[int], tuple[Header, ...]] | None,
        /,
    ) -> Made | Sent:
        """The results of a frame, and at their places those of `rows`."""
        ...


class Joining(ABC):
    """A stream and a table as inputs of an operator, for whole batches."""

    def __init__(self, parts: JoinParts, after: Sequence[Step]) -> None:
        self._after = tuple(after)
        self._process, self._stream, self._is_first = parts.process, parts.stream, parts.is_first
        self._needs_rows = parts.needs_rows
        self._join, self._table = parts.join, parts.table
        self._sources = parts.sources
        self._before = tuple(parts.before)
        assert isinstance(self._join.form, JoinForm)
        self._form = self._join.form

    def run(self, inputs: Sequence[Sequence[Any]]) -> Made | Sent | Emitted | ByRows | None:
        """The results, or the records of all inputs in their order if the row engine must run
        them. `inputs`: the batches of both, in the stage's order."""
        # In this order, as the row engine notes what it cannot read.
        places = (self._stream, 1 - self._stream)
        merged = {
            place: Merged(self._sources[place != self._stream], inputs[place])
            for place in (places if self._is_first else reversed(places))
            if inputs[place]
        }
        records, changes = map(merged.get, places)
        if changes is not None and changes.frame.doubt.any():
            return self._by_rows(records, changes)
        if records is None:
            if changes is not None:
                self._change(changes, 0, len(changes.frame))
            return None
        # A tie is decided by the order of the inputs.
        side: Literal["left", "right"] = "left" if self._is_first else "right"
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
        return ByRows([*of_stream, *of_table] if self._is_first else [*of_table, *of_stream])

    @abstractmethod
    def _joined(
        self, records: Merged, changes: Merged | None, seen: Indexes, cuts: Sequence[int]
    ) -> Made | Sent | Emitted | ByRows:
        """Join the stream's records. `seen`: how many of the changes each of them sees; `cuts`:
        these numbers in order."""

    def _with_rows(self, records: Merged) -> Frame:
        """The stream's records, without those that have no row."""
        frame = records.frame
        if self._needs_rows:
            frame.doubt |= records.rowless
        frame.keep(~records.rowless | frame.doubt)
        return frame

    def _parts(
        self, frame: Frame, changes: Merged | None, seen: Indexes, cuts: Sequence[int]
    ) -> Iterator[tuple[int, Frame]]:
        """The stream's records beside the table's rows, in parts that see the same of its changes.

        The changes that a part sees are put into the table before the part is given, the others
        after the last one."""
        done = 0
        for cut in cuts:
            if changes is not None:
                self._change(changes, done, cut)
                done = cut
            part = frame
            if len(cuts) > 1:
                part = frame.part(np.flatnonzero(seen[frame.places] == cut))
            self._look_up(part)
            yield cut, part
        if changes is not None:
            self._change(changes, done, len(changes.frame))

    def _change(self, changes: Merged, start: int, stop: int) -> None:
        """Put the table's changes from one place to another into its store."""
        if start == stop:
            return
        frame = changes.frame
        at = np.arange(start, stop, dtype=np.int64)
        keys = list(zip(*(key.take(at).to_list() for key in frame.keys), strict=True))
        has_key = None if frame.has_key is None else frame.has_key[start:stop].tolist()
        # Keys that are equal in Python may be different ones for stores.
        is_plain = all(key.type.base in DICT_KEYS for key in frame.keys)
        known: Sequence[StoreKey | bytes] = keys if is_plain else encode_keys(keys)
        last: dict[StoreKey | bytes, int] = {}
        for place, key in enumerate(known):
            if has_key is None or has_key[place]:
                last.pop(key, None)
                last[key] = place
        changed = list(last.values())
        at = at[np.array(changed, np.int64)]
        rows: list[Row | None] = list(frame.rows(at))
        for gone in np.flatnonzero(changes.rowless[at]).tolist():
            rows[gone] = None
        self._keep([keys[place] for place in changed], rows, frame.timestamps[at].tolist())

    def _keep(
        self, keys: Sequence[StoreKey], rows: Sequence[Row | None], timestamps_ms: Sequence[int]
    ) -> None:
        self._table.keep_all(keys, rows, timestamps_ms)

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
            keyed = np.arange(len(frame), dtype=np.int64)
            if frame.has_key is not None:
                keyed = np.flatnonzero(frame.has_key)
            of_keys = codes_of(key)[keyed]
            _, firsts, of = np.unique(of_keys, return_index=True, return_inverse=True)
            distinct = key.take(keyed[firsts]).to_list()
            codes = np.zeros(len(frame), np.int64)
            codes[keyed] = of
        if frame.has_key is not None:
            codes = np.where(frame.has_key, codes, len(distinct))
        rows = [*self._join.table.rows_of([(value,) for value in distinct]), None]
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


class JoinProgram(Joining):
    """A stage with a stream and a table as its inputs up to what it ends with."""

    def __init__(self, parts: JoinParts, after: Sequence[Step], ending: End) -> None:
        super().__init__(parts, after)
        self._ending = ending

    def _joined(
        self, records: Merged, changes: Merged | None, seen: Indexes, cuts: Sequence[int]
    ) -> Made | Sent:
        frame = self._with_rows(records)
        left = run(frame, self._before)
        frames: list[Frame] = []
        rows: list[tuple[int, Record]] = []
        count = 0
        for cut, part in self._parts(frame, changes, seen, cuts):
            doubtful = left[seen[left] == cut]
            doubtful = np.sort(np.concatenate([doubtful, run(part, self._after)]))
            frames.append(part)
            count += len(doubtful)
            rows += self._rows(records, doubtful)
        return self._ending.made(together(frames), rows, count, records.headers_of())

    def _rows(self, records: Merged, places: Indexes) -> list[tuple[int, Record]]:
        return [
            (place, made)
            for place in places.tolist()
            for _, made in self._process(records.record(place))
        ]


def join_parts(
    stage: Stage,
    functions: Mapping[str, Function],
    sources: Sequence[Source | None],
    feeder: Stage | None = None,
) -> JoinParts | None:
    """The join of a stage; None if it can only run row by row. `sources`: of its inputs, or of
    the stage that feeds the stream's."""
    are_tables = [isinstance(given, TableSource) for given in stage.inputs]
    if sorted(are_tables) != [False, True]:
        return None
    if stage.takes_batches or len(stage.outputs) != 1:
        return None
    stream = are_tables.index(False)
    nodes = nodes_behind_source(stage, stream, feeder)
    (table, *others) = stage.chain(1 - stream)
    places = [at for at, node in enumerate(nodes) if isinstance(node, StreamTableJoinNode)]
    if len(places) != 1 or not all(map(only_renames, others)) or len(nodes) < places[0] + 3:
        return None
    join = nodes[places[0]]
    if not isinstance(table, TableSourceNode) or table.sends_old or not table.is_stored:
        return None
    if not isinstance(join, StreamTableJoinNode) or not isinstance(nodes[-1], Exit):
        return None
    keys = stage.keys
    if any(len(key) != 1 for key in keys):
        return None
    before = steps_of(nodes[: places[0]], functions)
    of_stream, of_table = sources[stream], sources[1 - stream]
    if keys[0][0].type != keys[1][0].type or before is None:
        return None
    if of_stream is None or of_table is None:
        return None

    def process(record: Record) -> Emitted:
        if feeder is None:
            return stage.process(stream, record)
        fed = feeder.process(0, record)
        return [made for _, given in fed for made in stage.process(stream, given)]

    return JoinParts(
        process,
        stream,
        join,
        table,
        (of_stream, of_table),
        before,
        nodes[places[0] + 1 :],
        # The feeding stage comes before this one.
        is_first=stream == 0 or feeder is not None,
        needs_rows=any(map(needs_row, nodes[: places[0]])),
    )


def join_program(
    parts: JoinParts,
    output: Output,
    functions: Mapping[str, Function],
    schemas: SchemaStore | None,
    writer: Callable[[], TopicWriter],
    partitions: int,
) -> JoinProgram | None:
    """The stage up to its output for batches; None if it can only run row by row. `partitions`:
    of the stage that takes a channel's records."""
    found = end_of(parts.behind, output, functions, schemas, writer, partitions)
    return None if found is None else JoinProgram(parts, *found)


def end_of(
    behind: Sequence[Node],
    output: Output,
    functions: Mapping[str, Function],
    schemas: SchemaStore | None,
    writer: Callable[[], TopicWriter],
    partitions: int,
) -> tuple[Sequence[Step], End] | None:
    """What the nodes behind a join do: steps, and the end of their stage. None if a part of it can
    only be done row by row."""
    *between, last, _ = behind
    if isinstance(output, Channel):
        steps = steps_of([*between, last], functions)
        if steps is None or not is_keyed(last, output):
            return None
        return steps, ChannelEnd(output, partitions)
    steps = steps_of(between, functions)
    if not isinstance(last.form, SinkForm) or steps is None:
        return None
    sink = column_sink(last.form, schemas, between)
    return None if sink is None else ([*steps, sink.check], Ending(sink, writer))

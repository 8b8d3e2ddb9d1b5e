"""Stages that join two streams: the records of a batch meet each other and those that are kept.

    both sides ─▶ order of the row engine ─▶ pairs that meet ─▶ joined rows ─▶ steps ─▶ end
                      the join's stores ─┘└─▶ the join's stores

The stores are read once for each key, and change when the batch has been joined: until then the row
engine can take it, as it does where a record is in doubt before the join. Joined rows in doubt go
through the nodes behind the join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

import numpy as np

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.columns.channels import Sent
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.joins import End, end_of
from barnabas.sql.columns.merging import ByRows, Merged, Source
from barnabas.sql.columns.sources import Header
from barnabas.sql.columns.steps import Step, nodes_behind_source, run, steps_of
from barnabas.sql.columns.stream_joins.joining import BatchJoin
from barnabas.sql.columns.stream_joins.meeting import Batch, Part
from barnabas.sql.columns.streams import Made
from barnabas.sql.columns.vectors import DICT_KEYS, vector_of
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import TableSource
from barnabas.sql.runtime.forms import JoinForm
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stage import Channel, Exit, Output, Stage, nodes_behind
from barnabas.sql.runtime.stream_joins import LEFT, RIGHT, StreamStreamJoinNode
from barnabas.sql.runtime.topics import TopicWriter
from barnabas.sql.schema import Column
from barnabas.sql.types import BaseType

_KEYS: Final = (*DICT_KEYS, BaseType.BYTES, BaseType.DECIMAL)
"""Types of keys that Python compares and orders as stores do."""
_SPAN_MAX_MS = 1 << 60
"""With a longer window, timestamps and it might have more than 64 bits together."""


class StreamJoinParts(NamedTuple):
    """The parts of a join, up to its joined rows; those of two have the left side first.

    `inputs`: which of the stage's each side is. `first`: the side whose records come first where
    both are due. `keys`: the columns of the key. `behind`: the nodes that take the joined rows.
    """

    stage: Stage
    join: StreamStreamJoinNode
    inputs: tuple[int, int]
    first: int
    sources: tuple[Source, Source]
    before: tuple[Sequence[Step], Sequence[Step]]
    keys: Sequence[Column]
    behind: Sequence[Node]


class StreamJoinProgram:
    """A stage with two streams as its inputs up to what it ends with."""

    def __init__(self, parts: StreamJoinParts, after: Sequence[Step], ending: End) -> None:
        self._parts, self._stage, self._join = parts, parts.stage, parts.join
        self._after, self._ending = tuple(after), ending
        form = parts.join.form
        assert isinstance(form, JoinForm)
        self._form = form

    def run(self, inputs: Sequence[Sequence[Any]]) -> Made | Sent | ByRows | None:
        """The results, or the records of all inputs in their order if the row engine must run
        them. `inputs`: the batches of both, in the stage's order."""
        sides = (self._parts.first, 1 - self._parts.first)
        # In this order, as the row engine notes what it cannot read.
        merged = {
            side: Merged(self._parts.sources[side], inputs[self._parts.inputs[side]])
            for side in sides
            if inputs[self._parts.inputs[side]]
        }
        left, right = (self._part(side, merged.get(side)) for side in (LEFT, RIGHT))
        if left is None or right is None:
            return _by_rows(list(merged.values()))
        batch = Batch((left, right), self._parts.first)
        joined = BatchJoin(self._join, batch)
        if not joined.join():
            return _by_rows(list(merged.values()))
        made = self._made(joined, batch.headers_of(joined.places))
        joined.keep()
        return made

    def _part(self, side: int, merged: Merged | None) -> Part | None:
        """A side's records at the join; None if the row engine must decide."""
        if merged is None:
            return Part(self._nothing(side), np.zeros(0, np.int64), None)
        frame = merged.frame
        if merged.rowless.any() or len(run(frame, self._parts.before[side])):
            return None
        return Part(frame, merged.due[frame.places], merged.headers_of())

    def _nothing(self, side: int) -> Frame:
        none = np.zeros(0, np.int64)
        layout = self._form.left if side == LEFT else self._form.right
        columns, keys = (
            [vector_of(column.type, [], np.zeros(0, np.bool_)) for column in listed]
            for listed in (layout.columns, self._parts.keys)
        )
        return Frame(none, columns, keys, None, none, np.zeros(0, np.bool_))

    def _made(
        self, joined: BatchJoin, headers: Callable[[int], tuple[Header, ...]] | None
    ) -> Made | Sent:
        frame = joined.frame
        before = copy(frame)
        in_doubt = run(frame, self._after)
        rows = self._rows(before.part(in_doubt), headers)
        return self._ending.made(frame, rows, len(np.unique(joined.places[in_doubt])), headers)

    def _rows(
        self, frame: Frame, headers: Callable[[int], tuple[Header, ...]] | None
    ) -> list[tuple[int, Record]]:
        """Run joined rows through the row engine's nodes: its results, with the rows' places."""
        rows: list[tuple[int, Record]] = []
        joined = frame.rows(np.arange(len(frame)))
        (keys,) = (key.to_list() for key in frame.keys)
        for place, row, key, timestamp_ms in zip(
            frame.places.tolist(), joined, keys, frame.timestamps.tolist(), strict=True
        ):
            given = () if headers is None else headers(place)
            record = Record(None if key is None else [key], row, timestamp_ms, None, given)
            self._join.forward(record)
            rows += [(place, made) for _, made in self._stage.emitted()]
        return rows


def _by_rows(merged: Sequence[Merged]) -> ByRows:
    return ByRows([records for one in merged for records in one.records()])


def stream_join_parts(
    stage: Stage,
    functions: Mapping[str, Function],
    sources: Sequence[Source | None],
    feeder: Stage | None = None,
) -> StreamJoinParts | None:
    """The stream-stream join of a stage; None if it can only run row by row. `sources`: of its
    inputs, or of the stage that feeds one of them."""
    if len(stage.inputs) != 2 or stage.takes_batches or len(stage.outputs) != 1:
        return None
    if any(isinstance(given, TableSource) for given in stage.inputs):
        return None
    found = [_join_behind(stage.chain(place)) for place in (0, 1)]
    if found[0] is None or found[1] is None or found[0][0] is not found[1][0]:
        return None
    join, of_first = found[0]
    inputs = (0, 1) if of_first == LEFT else (1, 0)
    behind = nodes_behind(join.forward)
    if len(behind) < 2 or not isinstance(behind[-1], Exit) or not isinstance(join.form, JoinForm):
        return None
    keys = stage.keys
    types = [[key.type for key in listed] for listed in keys]
    if types[0] != types[1] or len(types[0]) != 1 or types[0][0].base not in _KEYS:
        return None
    if join.segments.retention_ms > _SPAN_MAX_MS:
        return None
    fed = [isinstance(given, Channel) and feeder is not None for given in stage.inputs]
    before = []
    for place in inputs:
        nodes = nodes_behind_source(stage, place, feeder if fed[place] else None)
        steps = steps_of(nodes, functions)
        if steps is None:
            return None
        before.append(steps)
    left, right = (sources[place] for place in inputs)
    if left is None or right is None:
        return None
    # The feeding stage comes before this one.
    first = inputs.index(fed.index(True) if any(fed) else 0)
    return StreamJoinParts(
        stage,
        join,
        inputs,
        first,
        (left, right),
        (before[LEFT], before[RIGHT]),
        keys[0],
        behind,
    )


def _join_behind(chain: Sequence[Node]) -> tuple[StreamStreamJoinNode, int] | None:
    """The join that takes what nodes give, and as which side."""
    take = chain[-1].forward
    join = getattr(take, "__self__", None)
    if not isinstance(join, StreamStreamJoinNode):
        return None
    return join, LEFT if take == join.process_left else RIGHT


def stream_join_program(
    parts: StreamJoinParts,
    output: Output,
    functions: Mapping[str, Function],
    schemas: SchemaStore | None,
    writer: Callable[[], TopicWriter],
    partitions: int,
) -> StreamJoinProgram | None:
    """The stage up to its output for batches; None if it can only run row by row. `partitions`:
    of the stage that takes a channel's records."""
    found = end_of(parts.behind, output, functions, schemas, writer, partitions)
    return None if found is None else StreamJoinProgram(parts, *found)

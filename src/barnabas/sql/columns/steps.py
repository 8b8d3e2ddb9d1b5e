"""The steps of a stage between source and end, over frames: filter, selection, new key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.kernels import KernelCompiler
from barnabas.sql.columns.sources import ColumnSource, RawColumns
from barnabas.sql.columns.vectors import Indexes
from barnabas.sql.functions.catalog import BUILT_IN, Function
from barnabas.sql.plan.steps import StreamSource
from barnabas.sql.runtime.forms import FilterForm, KeyForm, NeededKeyForm, SelectForm, SourceForm
from barnabas.sql.runtime.node import Node, TableNode
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.stage import Exit, Stage
from barnabas.sql.syntax.expressions import ColumnReference, Expression, FunctionCall
from barnabas.sql.syntax.rewriting import walk

Step = Callable[[Frame], None]
"""Changes a frame, and may put more of its records in doubt."""


def steps_of(nodes: Sequence[Node], functions: Mapping[str, Function]) -> list[Step] | None:
    """Return what nodes do, for frames; None if one of them has no such form."""
    steps = [_step_of(node, functions) for node in nodes]
    found = [step for step in steps if step is not None]
    return found if len(found) == len(steps) else None


def _step_of(node: Node, functions: Mapping[str, Function]) -> Step | None:
    form = node.form
    if isinstance(form, FilterForm) and not isinstance(node, TableNode):
        return _filter(form, functions)
    if isinstance(form, SelectForm):
        return _select(form, functions)
    if isinstance(form, KeyForm):
        # A record in doubt gets its key again, which a function of the user's may not give twice.
        return _new_key(form, functions) if _only_ours(form.expressions, functions) else None
    if isinstance(form, NeededKeyForm):
        return _pass_on if form.keeps else _needed_key
    if type(node) is Node:
        return _pass_on
    return None


def nodes_behind_source(stage: Stage, place: int, feeder: Stage | None) -> list[Node]:
    """The nodes that an input's records go through behind its source, or behind that of the stage
    that feeds it."""
    nodes = stage.chain(place)[1:]
    return nodes if feeder is None else [*feeder.chain(0)[1:-1], *nodes]


def stateless_from_topic(stage: Stage, place: int) -> tuple[SourceForm, list[Node]] | None:
    """The source of a stage without state that reads a stream's topic, and the nodes behind it up
    to the exit; None for other stages."""
    if stage.stores or stage.takes_batches:
        return None
    first, *nodes = stage.chain(place)
    if not nodes or not isinstance(nodes[-1], Exit) or not isinstance(first.form, SourceForm):
        return None
    return (first.form, nodes[:-1]) if isinstance(first.form.step, StreamSource) else None


def only_renames(node: Node) -> bool:
    """Return whether a node takes columns as they are, so that it cannot fail."""
    form = node.form
    return isinstance(form, SelectForm) and all(
        isinstance(expression, ColumnReference) for expression in form.expressions
    )


def _only_ours(expressions: Sequence[Expression], functions: Mapping[str, Function]) -> bool:
    """Return whether expressions call only functions that ship with us."""
    calls = [
        part.name.upper()
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, FunctionCall)
    ]
    return all(name in BUILT_IN and functions.get(name) is BUILT_IN[name] for name in calls)


def needs_row(node: Node) -> bool:
    """Return whether a node may fail for a record without a row: a key made of the old one."""
    form = node.form
    return (
        isinstance(form, KeyForm)
        and not form.is_group
        and not all(isinstance(expression, ColumnReference) for expression in form.expressions)
    )


def _pass_on(_frame: Frame) -> None:
    pass


def _filter(form: FilterForm, functions: Mapping[str, Function]) -> Step:
    condition = KernelCompiler(form.columns, functions).kernel(form.condition)

    def step(frame: Frame) -> None:
        vector = condition(frame)
        passes = vector.data if vector.valid is None else vector.data & vector.valid
        frame.keep(passes | frame.doubt)

    return step


def _select(form: SelectForm, functions: Mapping[str, Function]) -> Step:
    compiler = KernelCompiler(form.columns, functions)
    kernels = [compiler.kernel(expression) for expression in form.expressions]
    key_places = form.key_places

    def step(frame: Frame) -> None:
        frame.columns = [kernel(frame) for kernel in kernels]
        if key_places is not None:
            frame.keys = [frame.keys[place] for place in key_places]
            if not frame.keys:
                frame.has_key = np.zeros(len(frame), np.bool_)

    return step


def _new_key(form: KeyForm, functions: Mapping[str, Function]) -> Step:
    compiler = KernelCompiler(form.columns, functions)
    kernels = [compiler.kernel(expression) for expression in form.expressions]
    places = form.places

    def step(frame: Frame) -> None:
        keys = [kernel(frame) for kernel in kernels]
        wide = [*frame.columns, *keys]
        if places is not None:
            frame.columns = [wide[place] for place in places]
        frame.keys = keys
        frame.has_key = None if keys else np.zeros(len(frame), np.bool_)
        if len(keys) == 1 and not form.is_group:
            frame.has_key = keys[0].valid
            return
        for key in keys:
            if key.valid is not None:
                frame.doubt |= ~key.valid

    return step


def _needed_key(frame: Frame) -> None:
    if frame.has_key is not None:
        frame.keep(frame.has_key | frame.doubt)


def run(frame: Frame, steps: Sequence[Step]) -> Indexes:
    """Run steps on the records that are certain; the places of the others, which leave."""
    left = [_certain(frame)]
    for step in steps:
        step(frame)
        left.append(_certain(frame))
    return np.sort(np.concatenate(left))


class ColumnChain:
    """A stage without state from its source through its steps, for whole batches."""

    def __init__(
        self, stage: Stage, place: int, source: ColumnSource, steps: Sequence[Step]
    ) -> None:
        self._stage, self._place = stage, place
        self._source, self._steps = source, tuple(steps)

    def run(self, raw: RawColumns) -> tuple[Frame, list[tuple[int, Record]], int]:
        """Return a batch's certain results, those that the row engine has made of the records in
        doubt with these records' places, and how many were in doubt."""
        frame, rowless = self._source.read(raw)
        frame.doubt |= rowless
        left = run(frame, self._steps)
        rows = [
            (place, record)
            for place in left.tolist()
            for _, record in self._stage.process(self._place, self._source.record(raw, place))
        ]
        return frame, rows, len(left)


def _certain(frame: Frame) -> Indexes:
    """Keep the records that are certain; the places of the others."""
    places: Indexes = frame.places[frame.doubt]
    if len(places):
        frame.keep(~frame.doubt)
    return places

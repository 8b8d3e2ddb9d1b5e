"""Steps between a source and what ends a stage, over frames: filter and selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.kernels import KernelCompiler
from barnabas.sql.columns.vectors import Indexes
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.forms import FilterForm, SelectForm
from barnabas.sql.runtime.node import Node, TableNode
from barnabas.sql.syntax.expressions import ColumnReference

Step = Callable[[Frame], None]
"""Changes a frame, and may put more of its records in doubt."""


def step_of(node: Node, functions: Mapping[str, Function]) -> Step | None:
    """Return what a node does, for frames; None if it has no such form."""
    form = node.form
    if isinstance(form, FilterForm) and not isinstance(node, TableNode):
        return _filter(form, functions)
    if isinstance(form, SelectForm):
        return _select(form, functions)
    if type(node) is Node:
        return _pass_on
    return None


def only_renames(node: Node) -> bool:
    """Return whether a node takes columns as they are, so that it cannot fail."""
    form = node.form
    return isinstance(form, SelectForm) and all(
        isinstance(expression, ColumnReference) for expression in form.expressions
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


def run(frame: Frame, steps: Sequence[Step]) -> Indexes:
    """Run steps on the records that are certain; the places of the others, which leave."""
    left = [_certain(frame)]
    for step in steps:
        step(frame)
        left.append(_certain(frame))
    return np.sort(np.concatenate(left))


def _certain(frame: Frame) -> Indexes:
    """Keep the records that are certain; the places of the others."""
    places: Indexes = frame.places[frame.doubt]
    if len(places):
        frame.keep(~frame.doubt)
    return places

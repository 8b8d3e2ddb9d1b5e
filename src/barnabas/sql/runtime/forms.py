"""What a node does, as data: from it `sql/columns` makes the same thing for whole batches.

A node whose `form` is None has none, and its stage runs row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.sql.plan.steps import StreamSink, StreamSource, TableSink, TableSource
from barnabas.sql.runtime.layout import Layout
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import Expression, FunctionCall


@dataclass(frozen=True)
class SourceForm:
    """A topic's records, as rows of `layout`."""

    step: StreamSource | TableSource
    layout: Layout


@dataclass(frozen=True)
class FilterForm:
    """A stream's records, or a table's rows, for which the condition over `columns` holds."""

    condition: Expression
    columns: Sequence[Column]


@dataclass(frozen=True)
class SelectForm:
    """Rows of what `expressions` over `columns` give; `key_places` as StreamSelectNode has it."""

    expressions: Sequence[Expression]
    columns: Sequence[Column]
    key_places: Sequence[int] | None


@dataclass(frozen=True)
class KeyForm:
    """A new key of what `expressions` over `columns` give, and rows of the values at `places` of a
    row and its key behind each other; None leaves rows as they are. `is_group`: a row for which an
    expression gives NULL is left out, with a note."""

    expressions: Sequence[Expression]
    columns: Sequence[Column]
    places: Sequence[int] | None
    is_group: bool


@dataclass(frozen=True)
class NeededKeyForm:
    """Records without a key are left out, unless `keeps` is set. A NULL as the only value of a key
    is none."""

    keeps: bool


@dataclass(frozen=True)
class AggregateForm:
    """The calls over `columns`, one for each of the node's aggregates."""

    calls: Sequence[FunctionCall]
    columns: Sequence[Column]


@dataclass(frozen=True)
class JoinForm:
    """A join of a stream to a table or a stream: the joined row's values as places in the left row,
    the right row and the key behind each other. `is_left`: a left row goes on without a right one.
    """

    left: Layout
    right: Layout
    places: Sequence[int]
    is_left: bool


@dataclass(frozen=True)
class SinkForm:
    """The places of the row's values that `step` writes."""

    step: StreamSink | TableSink
    places: Sequence[int]


Form = (
    SourceForm
    | FilterForm
    | SelectForm
    | KeyForm
    | NeededKeyForm
    | AggregateForm
    | JoinForm
    | SinkForm
)

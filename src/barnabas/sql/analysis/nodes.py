"""Nodes of a query on the way to its plan: sources, filters, table functions.

A node first knows its schema, so that the query can be checked as a whole; then `build` makes the
steps. Schemas of nodes are planning schemas (see `schemas`), those of steps are plain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.projection import Projection
from barnabas.sql.analysis.query import QueryAnalysis
from barnabas.sql.analysis.resolving import AliasedSource
from barnabas.sql.analysis.schemas import (
    build_schema,
    joined_words,
    planning_schema,
    star_order,
    value_column,
)
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import FormatChoice, Step, WindowInfo
from barnabas.sql.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression, FunctionCall
from barnabas.sql.syntax.rewriting import rewrite
from barnabas.sql.syntax.tree import SingleColumn, SourceKind

_SYNTHETIC_KEYS = "https://cnfl.io/2LV7ouS"


@dataclass(frozen=True)
class KeyFormat:
    """The format of the keys of a step's records."""

    format: FormatChoice
    window: WindowInfo | None = None


@dataclass(frozen=True)
class Built:
    """A step, with the planning schema and the key's format of what it gives."""

    step: Step
    schema: Schema
    key_format: KeyFormat


@dataclass(frozen=True)
class BuildContext:
    """`mentioned`: names of all columns that the query's expressions refer to; nobody looks at the
    others, so that joins do not keep them."""

    environment: Environment
    mentioned: frozenset[str]


class PlanNode(ABC):
    """`alias`: the name of the only source that the node's columns come from, if there is one."""

    kind: SourceKind
    schema: Schema
    alias: str | None = None
    inputs: tuple[PlanNode, ...] = ()

    @abstractmethod
    def build(self, context: BuildContext) -> Built:
        """The node's step, behind those of its inputs; raises AnalysisError."""

    @property
    def source_nodes(self) -> list[SourceNode]:
        """The sources under this node, from left to right."""
        return [source for node in self.inputs for source in node.source_nodes]

    def partitions(self, topics: Environment) -> int | None:
        """Return the number of partitions of the node's records, if it is known."""
        return self.inputs[-1].partitions(topics)

    def select_star(self, source: str | None) -> list[str]:
        """Names of the columns that `*`, or `source.*`, stands for."""
        return [
            name
            for node in self.inputs
            if source is None or node.alias is None or source == node.alias
            for name in node.select_star(source)
        ]

    def resolve_select(self, index: int, expression: Expression) -> Expression:
        """Return a selected expression over the columns of this node."""
        return expression

    def unknown(self, columns: Sequence[ColumnReference]) -> list[ColumnReference]:
        """Those of the columns that no source has."""
        return self.inputs[0].unknown(columns)

    def check_key(self, sink: str, projection: Projection) -> None:
        """Raise AnalysisError if the projection lacks a column of the key."""
        for node in self.inputs:
            node.check_key(sink, projection)


def missing_keys(
    sink: str,
    what: str,
    required: Sequence[str],
    *,
    needs_all: bool = True,
    is_synthetic: bool = False,
) -> AnalysisError:
    """The error of a projection without key columns."""
    plural = "s" if needs_all and len(required) > 1 else ""
    what += "" if len(required) == 1 else "s"
    listed = joined_words(required, " and " if needs_all else " or ")
    example = ", ".join(required) if needs_all else required[0]
    see = f"See {_SYNTHETIC_KEYS}." if is_synthetic else ""
    hint = ""
    if is_synthetic:
        hint = (
            f"\n{required[0]} was added as a synthetic key column because the join criteria did "
            "not match any source column. This expression must be included in the projection and "
            "may be aliased. "
        )
    return AnalysisError(
        f"Key{plural} missing from projection (ie, SELECT). {see}\n"
        f"The query used to build {backquoted(sink)} must include the {what} {listed} in its "
        f"projection (eg, SELECT {example}...).{hint}"
    )


class SourceNode(PlanNode):
    """A stream or table that the query reads."""

    def __init__(self, aliased: AliasedSource) -> None:
        self.source = aliased.source
        self.alias: str = aliased.alias
        self.kind = aliased.source.kind
        self.schema = planning_schema(aliased.source.schema, is_windowed=aliased.source.is_windowed)

    @property
    def source_nodes(self) -> list[SourceNode]:
        return [self]

    @property
    def key_format(self) -> KeyFormat:
        return KeyFormat(self.source.formats.key, self.source.window)

    def partitions(self, topics: Environment) -> int | None:
        return topics.topics.get(self.source.topic)

    def build(self, context: BuildContext) -> Built:
        source = self.source
        make = steps.TableSource if source.is_table else steps.StreamSource
        step = make(source.topic, source.formats, source.schema, source.timestamp, source.window)
        return Built(step, self.schema, self.key_format)

    def select_star(self, source: str | None) -> list[str]:
        return star_order(self.schema.value, self.schema)

    def unknown(self, columns: Sequence[ColumnReference]) -> list[ColumnReference]:
        return [column for column in columns if not self._knows(column)]

    def _knows(self, column: ColumnReference) -> bool:
        if column.source not in (None, self.alias):
            return False
        if column.name in PSEUDO_COLUMNS:
            return True
        if column.name in WINDOW_BOUNDS:
            return self.source.is_windowed
        return self.source.schema.find(column.name) is not None

    def check_key(self, sink: str, projection: Projection) -> None:
        names = [column.name for column in self.schema.key]
        for name in names:
            qualified = ColumnReference(name, self.alias)
            if not projection.contains(qualified) and not projection.contains(
                ColumnReference(name)
            ):
                raise missing_keys(sink, "key column", names)


class FilterNode(PlanNode):
    """WHERE."""

    def __init__(self, source: PlanNode, condition: Expression) -> None:
        self.inputs = (source,)
        self.kind, self.schema, self.alias = source.kind, source.schema, source.alias
        self._condition = condition

    def build(self, context: BuildContext) -> Built:
        source = self.inputs[0].build(context)
        is_table = self.kind is SourceKind.TABLE
        make = steps.TableFilter if is_table else steps.StreamFilter
        step = make(source.step, self._condition, source.step.schema)
        return Built(step, source.schema, source.key_format)


class FlatMapNode(PlanNode):
    """Table functions: a record becomes as many as they give rows."""

    def __init__(self, source: PlanNode, analysis: QueryAnalysis, environment: Environment) -> None:
        self.inputs = (source,)
        self.kind = source.kind
        calls = [analysis.rewritten(call) for call in analysis.table_functions]
        self._calls = tuple(call for call in calls if isinstance(call, FunctionCall))
        self._made = tuple(
            value_column(f"KSQL_SYNTH_{place}", environment.must_type(call, source.schema.columns))
            for place, call in enumerate(self._calls)
        )
        self.schema = build_schema((*source.schema.key, *source.schema.value, *self._made))
        self._environment = environment
        self._selected = self._rewritten_select(analysis)

    def _rewritten_select(self, analysis: QueryAnalysis) -> dict[int, Expression]:
        """Selected expressions with what table functions made in place of their calls."""
        count = 0

        def made(part: Expression) -> Expression | None:
            nonlocal count
            if not isinstance(part, FunctionCall):
                return None
            if not self._environment.is_table_function(part.name):
                return None
            count += 1
            return ColumnReference(f"KSQL_SYNTH_{count - 1}", place=part.place)

        return {
            index: rewrite(analysis.rewritten(item.expression), made)
            for index, item in enumerate(analysis.select)
            if isinstance(item, SingleColumn)
        }

    def resolve_select(self, index: int, expression: Expression) -> Expression:
        return self._selected.get(index, expression)

    def build(self, context: BuildContext) -> Built:
        source = self.inputs[0].build(context)
        schema = build_schema((*source.step.schema.columns, *self._made))
        step = steps.StreamFlatMap(source.step, self._calls, schema)
        return Built(step, self.schema, source.key_format)

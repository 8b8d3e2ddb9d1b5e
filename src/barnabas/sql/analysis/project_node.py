"""The last node of a query without aggregates: what is selected."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.nodes import BuildContext, Built, PlanNode
from barnabas.sql.analysis.projection import (
    Projection,
    cast_literal,
    projected_schema,
    struct_fields,
    without_keys,
)
from barnabas.sql.analysis.query import QueryAnalysis
from barnabas.sql.analysis.schemas import build_schema, check_clash, plain_schema, value_column
from barnabas.sql.errors import AnalysisError
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import SelectedColumn, Step
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import column_references
from barnabas.sql.syntax.tree import AllColumns, SelectItem, SingleColumn, SourceKind, StructAll


def rewritten_items(analysis: QueryAnalysis) -> tuple[SelectItem, ...]:
    """The selected items over the names that columns have in the plan."""
    items: list[SelectItem] = []
    for item in analysis.select:
        match item:
            case SingleColumn():
                expression = analysis.rewritten(item.expression)
                items.append(SingleColumn(expression, item.alias, place=item.place))
            case StructAll():
                items.append(StructAll(analysis.rewritten(item.base), place=item.place))
            case AllColumns():
                items.append(item)
    return tuple(items)


def selected_columns(
    source: PlanNode, items: Sequence[SelectItem], target: Schema | None
) -> list[SelectedColumn]:
    """Expand the items over the source's columns.

    `target`: the schema of the stream that INSERT INTO writes to; literals become its decimals.
    """
    selected: list[SelectedColumn] = []
    for index, item in enumerate(items):
        match item:
            case AllColumns():
                names = source.select_star(item.source)
                selected += [SelectedColumn(name, ColumnReference(name)) for name in names]
            case StructAll():
                selected += struct_fields(source.resolve_select(index, item.base), source.schema)
            case SingleColumn():
                expression = source.resolve_select(index, item.expression)
                if target is not None and index < len(target.columns):
                    expression = cast_literal(expression, target.columns[index].type)
                assert item.alias is not None
                selected.append(SelectedColumn(item.alias, expression))
    return selected


class ProjectNode(PlanNode):
    """`target`: as for `selected_columns`."""

    def __init__(
        self,
        source: PlanNode,
        analysis: QueryAnalysis,
        environment: Environment,
        target: Schema | None,
    ) -> None:
        self.inputs = (source,)
        self.kind, self.alias = source.kind, source.alias
        self._is_persistent = analysis.is_persistent
        items = rewritten_items(analysis)
        self.projection = Projection(items)
        self._check_columns()
        self._selected = selected_columns(source, items, target)
        schema = projected_schema(source.schema, self._selected, environment)
        for item in self._selected:
            environment.check(item.expression, source.schema.columns, "Select")
        if self._is_persistent:
            check_clash(schema)
            self._selected = without_keys(self._selected, source.schema)
            self.schema = plain_schema(schema)
        else:
            values = [value_column(column.name, column.type) for column in schema.columns]
            self.schema = build_schema((*_hidden_keys(source.schema), *values))
        if not self.schema.value:
            raise AnalysisError("The projection contains no value columns.")

    def _check_columns(self) -> None:
        """Names that could be those of a synthetic key are known only now."""
        used = [
            column
            for expression in self.projection.single
            for column in column_references(expression)
        ]
        unknown = self.inputs[0].unknown(used)
        if unknown:
            lines = []
            for column in unknown:
                place = column.place
                where = f"Line: {place.line}, Col: {place.column}: " if place else ""
                lines.append(f"{where}Column '{message_text(column)}' cannot be resolved.")
            raise AnalysisError("\n".join(lines))

    @property
    def selected_expressions(self) -> list[Expression]:
        """The expressions that calculate the result's columns."""
        return [item.expression for item in self._selected]

    def check_sink_key(self, sink: str) -> None:
        """Raise AnalysisError if a column of the key is not selected."""
        self.inputs[0].check_key(sink, self.projection)

    def build(self, context: BuildContext) -> Built:
        source = self.inputs[0].build(context)
        step = select_step(self.kind, source.step, self.schema, self._selected)
        return Built(step, self.schema, source.key_format)


def select_step(
    kind: SourceKind, source: Step, schema: Schema, selected: Sequence[SelectedColumn]
) -> Step:
    """The step that calculates the columns of the value; the key gets the schema's names."""
    make = steps.TableSelect if kind is SourceKind.TABLE else steps.StreamSelect
    types = {column.name: column.type for column in schema.value}
    emitted = Schema(
        (*schema.key, *(value_column(item.name, types[item.name]) for item in selected))
    )
    return make(source, tuple(column.name for column in schema.key), tuple(selected), emitted)


def _hidden_keys(schema: Schema) -> list[Column]:
    """Key columns under names that no selected column has: of a query without a sink, the key is
    no part of the result, where it can be selected like any other column."""
    return [Column(f"KSQL_KEY_{c.name}", c.type, Part.KEY) for c in schema.key]

"""Sides of a join: keys in the format that both agree on, and columns named after their source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from barnabas.sql.analysis.nodes import BuildContext, Built, KeyFormat, PlanNode
from barnabas.sql.analysis.schemas import build_schema, joined_name, key_column, value_column
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import SelectedColumn
from barnabas.sql.syntax.expressions import ColumnReference
from barnabas.sql.syntax.tree import SourceKind


class JoiningNode(PlanNode):
    """A node below a join."""

    @property
    @abstractmethod
    def preferred_format(self) -> KeyFormat | None:
        """The format that the keys have, if they stay as they are."""

    @abstractmethod
    def set_format(self, key_format: KeyFormat) -> None:
        """Have keys in that format."""


class PrefixNode(JoiningNode):
    """Gives a source's columns names that begin with its alias."""

    def __init__(self, source: PlanNode, alias: str) -> None:
        self.inputs = (source,)
        self.kind, self.alias = source.kind, source.alias
        self._alias = alias
        self._names = {c.name: joined_name(alias, c.name) for c in source.schema.columns}
        keys = [key_column(self._names[c.name], c.type) for c in source.schema.key]
        values = [value_column(self._names[c.name], c.type) for c in source.schema.value]
        self.schema = build_schema((*keys, *values))

    @property
    def preferred_format(self) -> KeyFormat | None:
        below = self.inputs[0]
        if isinstance(below, JoiningNode):
            return below.preferred_format
        return self.source_nodes[0].key_format

    def set_format(self, key_format: KeyFormat) -> None:
        below = self.inputs[0]
        if isinstance(below, JoiningNode):
            below.set_format(key_format)

    def select_star(self, source: str | None) -> list[str]:
        return [self._names.get(name, name) for name in self.inputs[0].select_star(source)]

    def unknown(self, columns: Sequence[ColumnReference]) -> list[ColumnReference]:
        """Columns are known here by their new names, below by those of the source."""
        old = {new: name for name, new in self._names.items()}
        missing = []
        for column in columns:
            own = column
            if column.source is None and column.name in old:
                own = ColumnReference(old[column.name], place=column.place)
            if self.inputs[0].unknown([own]):
                missing.append(column)
        return missing

    def build(self, context: BuildContext) -> Built:
        source = self.inputs[0].build(context)
        keys = [key_column(self._names[c.name], c.type) for c in source.schema.key]
        of_key = {column.name for column in keys}
        selected, values = [], []
        for column in source.schema.value:
            name = self._names[column.name]
            if name not in of_key and name in context.mentioned:
                selected.append(SelectedColumn(name, ColumnReference(column.name)))
                values.append(value_column(name, column.type))
        make = steps.TableSelect if self.kind is SourceKind.TABLE else steps.StreamSelect
        names = tuple(column.name for column in keys)
        step = make(source.step, names, tuple(selected), build_schema((*keys, *values)))
        return Built(step, self.schema, source.key_format)

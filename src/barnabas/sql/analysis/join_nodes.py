"""Nodes of joins: the join, and before it new keys and columns named after their source.

Both sides must lie together: in as many partitions, by keys in the same format. Who has to give
way is settled from the top (`settle_formats`) once the whole tree is known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from barnabas.sql.analysis.environment import DEFAULT_KEY_FORMAT, Environment
from barnabas.sql.analysis.formats import check_key_types
from barnabas.sql.analysis.new_keys import (
    rekeyed,
    repartition_needed,
    repartitioned_schema,
)
from barnabas.sql.analysis.nodes import BuildContext, Built, KeyFormat, PlanNode, missing_keys
from barnabas.sql.analysis.projection import Projection
from barnabas.sql.analysis.schemas import (
    build_schema,
    joined_name,
    key_column,
    synthetic_key_name,
    value_column,
    value_named,
)
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.names import backquoted
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import FormatChoice, SelectedColumn, Step
from barnabas.sql.schema import Column, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import JoinKind, SourceKind, Within


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


class RekeyNode(JoiningNode):
    """Gives a side of a join the key that it is joined by, where that is not its key already."""

    def __init__(self, source: PlanNode, expression: Expression, environment: Environment) -> None:
        self.inputs = (source,)
        self.kind, self.alias = source.kind, source.alias
        self._expressions = (expression,)
        self.schema = repartitioned_schema(source.schema, self._expressions, environment)
        self._join = source if isinstance(source, JoinNode) else None
        self._asked: KeyFormat | None = None
        self._is_forced = False

    @property
    def _needed(self) -> bool:
        return repartition_needed(self.inputs[0].schema, self._expressions)

    @property
    def _source_format(self) -> KeyFormat:
        return self.source_nodes[0].key_format

    @property
    def preferred_format(self) -> KeyFormat | None:
        if self._needed:
            return None
        return self._join.preferred_format if self._join else self._source_format

    def set_format(self, key_format: KeyFormat) -> None:
        below = self._format_below(key_format)
        if self._join is None:
            return
        if below is None:
            self._join.settle_formats()
        else:
            self._join.set_format(below)

    def _format_below(self, key_format: KeyFormat) -> KeyFormat | None:
        """Note what this node has to do; gives the format that the join below must have.

        Keys with schemas in a registry always move: those of other makers may have other ids.
        """
        self._is_forced = format_named(key_format.format.name).schemas is not None
        if self._needed or self._is_forced:
            self._asked = key_format
            return None
        if self._join is not None:
            preferred = self._join.preferred_format
            if preferred is None or preferred == key_format:
                return key_format
            self._asked = key_format
        elif key_format != self._source_format:
            self._asked = key_format
        return None

    def build(self, context: BuildContext) -> Built:
        source = self.inputs[0].build(context)
        key_format = self._asked or source.key_format
        return rekeyed(self, source, self._expressions, key_format, forced=self._is_forced)


@dataclass(frozen=True)
class JoinKey:
    """The key of a join: `name` is None if none of the sources' columns holds it, then it is a new
    one. `foreign`: the expression of a foreign key; the key is then the left side's."""

    name: str | None
    viable: tuple[ColumnReference, ...]
    foreign: Expression | None = None


class JoinNode(JoiningNode):
    """`is_last`: no other join is above. `viable` columns of the key are those of the query."""

    def __init__(
        self,
        kind: JoinKind,
        key: JoinKey,
        left: JoiningNode,
        right: JoiningNode,
        within: Within | None,
        environment: Environment,
        *,
        is_last: bool,
    ) -> None:
        self.inputs = (left, right)
        self._left, self._right = left, right
        tables = left.kind is SourceKind.TABLE and right.kind is SourceKind.TABLE
        self.kind = SourceKind.TABLE if tables else SourceKind.STREAM
        self._join_kind, self._key, self._within = kind, key, within
        self._is_last, self._environment = is_last, environment
        self._key_name = self._resolved_key_name()
        self.schema = self._joined_schema()

    @property
    def _is_synthetic(self) -> bool:
        return self._key.name is None and self._key.foreign is None

    def _resolved_key_name(self) -> str:
        if self._key.foreign is not None:
            return ""
        if self._key.name is not None:
            return self._key.name
        return synthetic_key_name(node.source.schema for node in self.source_nodes)

    def _joined_schema(self) -> Schema:
        left, right = self._left.schema, self._right.schema
        if self._key.foreign is not None:
            return build_schema((*left.key, *left.value, *right.value))
        if len(left.key) != 1 or len(right.key) != 1:
            raise AnalysisError("Multi-key joins not supported")
        key_type = left.key[0].type
        if key_type != right.key[0].type:
            raise AnalysisError(
                f"Invalid join. Key types differ: {key_type} vs {right.key[0].type}"
            )
        columns = [key_column(self._key_name, key_type), *left.value, *right.value]
        if all(value_named(side, self._key_name) is None for side in (left, right)):
            columns.append(value_column(self._key_name, key_type))
        return build_schema(columns)

    # --- formats of keys ---------------------------------------------------------------------

    def settle_formats(self) -> None:
        """Choose the format of both sides' keys: one that a side has already, if possible."""
        self.set_format(self.preferred_format or self._default_format())

    @property
    def preferred_format(self) -> KeyFormat | None:
        return self._left.preferred_format or self._right.preferred_format

    def set_format(self, key_format: KeyFormat) -> None:
        self._left.set_format(key_format)
        self._right.set_format(key_format)

    def _default_format(self) -> KeyFormat:
        for node in self.source_nodes:
            if node.key_format.format.name != "NONE":
                return node.key_format
        return KeyFormat(FormatChoice(str(self._environment.setting(DEFAULT_KEY_FORMAT))))

    # --- what is selected --------------------------------------------------------------------

    def select_star(self, source: str | None) -> list[str]:
        names = [
            name
            for node in self._prefixed()
            if source is None or source == node.alias
            for name in node.select_star(source)
        ]
        if source is None and self._is_synthetic and self._is_last:
            return [self._key_name, *names]
        return names

    def _prefixed(self) -> Iterator[PlanNode]:
        """The nodes right above the sources."""
        for node in (self._left, self._right):
            below: PlanNode = node
            while isinstance(below, JoiningNode) and not isinstance(below, JoinNode):
                below = below.inputs[0]
            if isinstance(below, JoinNode):
                yield from below._prefixed()
            else:
                yield node

    def unknown(self, columns: Sequence[ColumnReference]) -> list[ColumnReference]:
        if self._is_last and self._is_synthetic:
            columns = [c for c in columns if c != ColumnReference(self._key_name)]
        right = self._right.unknown(columns)
        return [column for column in self._left.unknown(columns) if column in right]

    def check_key(self, sink: str, projection: Projection) -> None:
        if self._key.foreign is not None:
            self._check_left_key(projection)
            return
        viable: list[ColumnReference] = [ColumnReference(self._key_name)]
        shown = [self._key_name]
        if not self._is_synthetic:
            renamed = [
                ColumnReference(joined_name(v.source or "", v.name)) for v in self._key.viable
            ]
            viable = [*renamed, *self._key.viable]
            shown = list(map(message_text, self._key.viable))
        if not any(projection.contains(column) for column in viable):
            raise missing_keys(
                sink,
                "join expression",
                shown,
                needs_all=False,
                is_synthetic=self._is_synthetic,
            )

    def _check_left_key(self, projection: Projection) -> None:
        """A foreign-key join has the key of its left table."""
        left = self.source_nodes[0]
        missing = [
            column.name
            for column in left.source.schema.key
            if not projection.contains(ColumnReference(column.name, left.alias))
            and not projection.contains(ColumnReference(joined_name(left.alias, column.name)))
        ]
        if missing:
            what = "column" if len(missing) == 1 else "columns"
            names = ", ".join(f"`{name}`" for name in missing)
            raise AnalysisError(
                f"Primary key {what} missing in projection. For foreign-key table-table joins, the "
                "projection must include all primary key columns from the left input table "
                f"({backquoted(left.alias)}). Missing {what}: {names}."
            )

    # --- steps -------------------------------------------------------------------------------

    def partitions(self, topics: Environment) -> int | None:
        return self._right.partitions(topics)

    def build(self, context: BuildContext) -> Built:
        if self._key.foreign is None:
            self._check_partitions(context.environment)
        self._check_within()
        left, right = self._left.build(context), self._right.build(context)
        check_key_types(left.step.schema.key)
        step = self._step(left.step, right.step)
        return Built(step, self.schema, left.key_format)

    def _check_partitions(self, environment: Environment) -> None:
        left, right = self._left.partitions(environment), self._right.partitions(environment)
        if left is None or right is None or left == right:
            return
        names = [backquoted(node.source_nodes[0].alias) for node in (self._left, self._right)]
        raise AnalysisError(
            f"Can't join {names[0]} with {names[1]} since the number of partitions don't match. "
            f"{names[0]} partitions = {left}; {names[1]} partitions = {right}. Please repartition "
            "either one so that the number of partitions match."
        )

    def _check_within(self) -> None:
        kinds = (self._left.kind, self._right.kind)
        if kinds == (SourceKind.STREAM, SourceKind.STREAM):
            if self._within is None:
                raise AnalysisError(
                    "Stream-Stream joins must have a WITHIN clause specified. None was provided."
                )
            return
        if self._within is not None:
            what = "Stream-Table" if kinds[0] is SourceKind.STREAM else "Table-Table"
            raise AnalysisError(
                f"A window definition was provided for a {what} join. These joins are not "
                "windowed. Please drop the window definition (i.e. the WITHIN clause) and try to "
                "execute your join again."
            )
        if kinds[0] is SourceKind.STREAM and self._join_kind in (JoinKind.RIGHT, JoinKind.OUTER):
            raise AnalysisError(f"Invalid join type encountered: {JOIN_WORDS[self._join_kind]}")
        if self._key.foreign is not None and self._join_kind is JoinKind.RIGHT:
            raise AnalysisError("RIGHT OUTER JOIN on a foreign key is not supported")

    def _step(self, left: Step, right: Step) -> Step:
        kind = self._join_kind
        if self._key.foreign is not None:
            schema = build_schema(
                (*left.schema.key, *left.schema.value, *_as_values(right.schema.columns))
            )
            return steps.ForeignKeyJoin(kind, self._key.foreign, left, right, schema)
        values = [
            column
            for column in _as_values((*left.schema.columns, *right.schema.columns))
            if column.name != self._key_name
        ]
        schema = build_schema((self.schema.key[0], *values))
        name = self._key_name
        if self._left.kind is SourceKind.TABLE:
            return steps.TableTableJoin(kind, name, left, right, schema)
        if self._right.kind is SourceKind.TABLE:
            return steps.StreamTableJoin(kind, name, left, right, schema)
        assert self._within is not None
        return steps.StreamStreamJoin(kind, name, left, right, self._within, schema)


def _as_values(columns: Sequence[Column]) -> list[Column]:
    return [value_column(column.name, column.type) for column in columns]


JOIN_WORDS = {
    JoinKind.INNER: "[INNER] JOIN",
    JoinKind.LEFT: "LEFT [OUTER] JOIN",
    JoinKind.RIGHT: "RIGHT [OUTER] JOIN",
    JoinKind.OUTER: "[FULL] OUTER JOIN",
}
"""Kinds of joins, as messages show them."""

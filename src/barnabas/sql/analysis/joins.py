"""From a query's joins to their nodes, and which joins there can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.join_conditions import JoinInfo
from barnabas.sql.analysis.join_nodes import (
    JOIN_WORDS,
    JoiningNode,
    JoinKey,
    JoinNode,
    PrefixNode,
    RekeyNode,
)
from barnabas.sql.analysis.nodes import PlanNode, SourceNode
from barnabas.sql.analysis.projection import Projection
from barnabas.sql.analysis.query import QueryAnalysis, plan_expression
from barnabas.sql.analysis.resolving import AliasedSource
from barnabas.sql.analysis.schemas import joined_name
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.names import backquoted
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import ColumnReference, Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import JoinKind, SourceKind
from barnabas.sql.types import SqlType, Struct


def join_node(analysis: QueryAnalysis, environment: Environment) -> JoinNode:
    """The node of all joins of a query; raises AnalysisError."""
    node = _JoinBuilder(analysis, environment).build(join_tree(analysis.joins), is_last=True)
    node.settle_formats()
    return node


class _JoinBuilder:
    def __init__(self, analysis: QueryAnalysis, environment: Environment) -> None:
        self._environment = environment
        self._projection = Projection(analysis.select)

    def build(self, tree: JoinBranch, *, is_last: bool) -> JoinNode:
        left, right = self._below(tree.left), self._below(tree.right)
        info = tree.info
        foreign = self._verified(info, left, right)
        return JoinNode(
            info.kind,
            self._key(tree) if foreign is None else self._foreign_key(tree, foreign),
            self._side(tree.left, left, info.left_expression, foreign, is_right=False),
            self._side(tree.right, right, info.right_expression, foreign, is_right=True),
            info.within,
            self._environment,
            is_last=is_last,
        )

    def _below(self, tree: JoinTree) -> PlanNode:
        if isinstance(tree, Leaf):
            return SourceNode(tree.source)
        return self.build(tree, is_last=False)

    def _key(self, tree: JoinBranch) -> JoinKey:
        """The first viable key that is selected, else the first one; that is reported later."""
        viable = tree.viable_keys
        if not viable:
            return JoinKey(None, ())
        selected = [column for column in viable if self._projection.contains(column)]
        chosen = (selected or viable)[0]
        return JoinKey(joined_name(chosen.source or "", chosen.name), tuple(viable))

    def _foreign_key(self, tree: JoinBranch, foreign: Expression) -> JoinKey:
        left = tree.info.left
        keys = tuple(ColumnReference(c.name, left.alias) for c in left.source.schema.key)
        return JoinKey(None, keys, plan_expression(foreign, is_join=True))

    def _side(
        self,
        tree: JoinTree,
        node: PlanNode,
        expression: Expression,
        foreign: Expression | None,
        *,
        is_right: bool,
    ) -> JoiningNode:
        if isinstance(tree, JoinBranch):
            assert isinstance(node, JoinNode)
            if foreign is not None or expression in tree.equivalent:
                return node
            rewritten = plan_expression(expression, is_join=True)
            return RekeyNode(node, rewritten, self._environment)
        if foreign is not None and not (is_right and _has_struct_key(node)):
            return PrefixNode(node, tree.source.alias)
        rewritten = plan_expression(expression, is_join=False)
        rekeyed = RekeyNode(node, rewritten, self._environment)
        return PrefixNode(rekeyed, tree.source.alias)

    # --- which joins there can be ------------------------------------------------------------

    def _verified(self, info: JoinInfo, left: PlanNode, right: PlanNode) -> Expression | None:
        """The expression of a foreign key, if it is such a join; raises AnalysisError."""
        if left.kind is SourceKind.STREAM:
            if right.kind is SourceKind.TABLE:
                self._verify_stream_table(info, right)
            return None
        if right.kind is SourceKind.STREAM:
            raise AnalysisError(
                "Invalid join order: table-stream joins are not supported; only stream-table "
                f"joins. Got {_shown_join(info)}."
            )
        if not _is_on_key(info.right_expression, right, info.right.alias):
            raise AnalysisError(
                "Invalid join condition: table-table joins require to join on the primary key of "
                f"the right input table. Got {info.shown_left} = {info.shown_right}."
            )
        if not _is_on_key(info.left_expression, left, info.left.alias):
            return self._verified_foreign_key(info, left, right)
        _check_types(info, left.schema.key[0].type, right.schema.key[0].type)
        return None

    def _verify_stream_table(self, info: JoinInfo, right: PlanNode) -> None:
        if info.kind is JoinKind.OUTER:
            raise AnalysisError(
                "Invalid join type: full-outer join not supported for stream-table join. Got "
                f"{_shown_join(info)}."
            )
        if not _is_on_key(info.right_expression, right, info.right.alias):
            raise AnalysisError(
                "Invalid join condition: stream-table joins require to join on the table's primary "
                f"key. Got {info.shown_left} = {info.shown_right}."
            )

    def _verified_foreign_key(self, info: JoinInfo, left: PlanNode, right: PlanNode) -> Expression:
        if info.kind is JoinKind.OUTER:
            raise AnalysisError(
                "Invalid join type: full-outer join not supported for foreign-key table-table "
                f"join. Got {_shown_join(info)}."
            )
        if not isinstance(left, SourceNode) or not isinstance(right, SourceNode):
            raise AnalysisError(
                "Invalid join condition: foreign-key table-table joins are not supported as part "
                f"of n-way joins. Got {info.shown_left} = {info.shown_right}."
            )
        expression = plan_expression(info.left_expression, is_join=False)
        key_type = self._environment.must_type(expression, left.schema.columns)
        _check_types(info, key_type, right.schema.key[0].type)
        if left.source.is_windowed:
            raise AnalysisError(
                "Foreign-key table-table joins are not supported on windowed tables."
            )
        return info.left_expression


def _shown_join(info: JoinInfo) -> str:
    return f"{info.left.source.name} {JOIN_WORDS[info.kind]} {info.right.source.name}"


def _check_types(info: JoinInfo, left: SqlType, right: SqlType) -> None:
    if left == right:
        return
    sides = [
        f"{message_text(info.left_expression)}{{{left}}}",
        f"{message_text(info.right_expression)}{{{right}}}",
    ]
    if info.is_flipped:
        sides.reverse()
    raise AnalysisError(f"Invalid join condition: types don't match. Got {sides[0]} = {sides[1]}.")


def _is_on_key(expression: Expression, node: PlanNode, alias: str) -> bool:
    """Return whether a side is joined by its only key column."""
    if not isinstance(expression, ColumnReference):
        return False
    keys = _keys_of(expression, node, alias)
    return len(keys) == 1 and keys[0].name == expression.name


def _keys_of(column: ColumnReference, node: PlanNode, alias: str) -> tuple[Column, ...]:
    """The key of the source that the column belongs to."""
    sources = node.source_nodes
    if len(sources) == 1:
        return sources[0].schema.key
    wanted = alias if column.source is None else column.source
    matching = [source for source in sources if source.alias == wanted]
    if len(matching) != 1:
        raise AnalysisError(
            f"Join qualifier '{backquoted(wanted)}' could not be resolved (either not found or not "
            "unique)."
        )
    return matching[0].schema.key


def _has_struct_key(node: PlanNode) -> bool:
    """Whether a table's key is a struct with a schema in a registry: somebody else may have written
    it, with other bytes than those that foreign keys are looked up by."""
    if not isinstance(node, SourceNode):
        return False
    has_schemas = format_named(node.source.formats.key.name).schemas is not None
    return has_schemas and any(isinstance(column.type, Struct) for column in node.schema.key)


# -- the order of joins: a tree whose leaves are sources, and what its key can be called


@dataclass(frozen=True)
class Leaf:
    """A source, where the tree of joins ends."""

    source: AliasedSource

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset({self.source.alias})

    @property
    def equivalent(self) -> frozenset[Expression]:
        return frozenset()

    @property
    def viable_keys(self) -> list[ColumnReference]:
        return []

    def drawn(self, indent: int = 0) -> str:
        return self.source.alias


@dataclass(frozen=True)
class JoinBranch:
    """Two trees joined. `info` has what is new on its right side."""

    left: JoinTree
    right: JoinTree
    info: JoinInfo

    @property
    def aliases(self) -> frozenset[str]:
        return self.left.aliases | self.right.aliases

    @property
    def equivalent(self) -> frozenset[Expression]:
        """Expressions whose value is the key's: both sides of the condition, and those of the
        joins below if one of the sides is among them. None of a full join, where each may be
        missing."""
        if self.info.kind is JoinKind.OUTER:
            return frozenset()
        own = frozenset({self.info.left_expression, self.info.right_expression})
        expressions = own
        for below in (self.left.equivalent, self.right.equivalent):
            if below & own:
                expressions |= below
        return expressions

    @property
    def viable_keys(self) -> list[ColumnReference]:
        """Columns that hold the key, so that the result's key can have their names."""
        if self.info.kind is JoinKind.OUTER:
            return []
        candidates = [
            *self.left.viable_keys,
            self.info.left_expression,
            *self.right.viable_keys,
            self.info.right_expression,
        ]
        columns = [c for c in candidates if isinstance(c, ColumnReference) and c.source is not None]
        equivalent = self.equivalent
        keys = dict.fromkeys(column for column in columns if column in equivalent)
        return list(keys)

    def drawn(self, indent: int = 0) -> str:
        pad = " " * indent
        left, right = self.left.drawn(indent + 3), self.right.drawn(indent + 3)
        return f"⋈\n{pad}+--{left}\n{pad}+--{right}"


JoinTree = Leaf | JoinBranch


def join_tree(joins: Sequence[JoinInfo]) -> JoinBranch:
    """The tree of joins, each of which adds one source; raises AnalysisError."""
    root: JoinTree = Leaf(joins[0].left)
    for join in joins:
        has_left, has_right = join.left.alias in root.aliases, join.right.alias in root.aliases
        if has_left and has_right:
            raise AnalysisError(
                f"Cannot perform circular join - both {backquoted(join.right.alias)} and "
                f"{message_text(join.left_expression)} are already included in the current join "
                f"tree: {root.drawn()}"
            )
        if has_left:
            root = JoinBranch(root, Leaf(join.right), join)
        elif has_right:
            root = JoinBranch(root, Leaf(join.left), join.flip())
        else:
            raise AnalysisError(
                "Cannot build JOIN tree; neither source in the join is the FROM source or included "
                f"in a previous JOIN: {join.shown_left} = {join.shown_right}. The current join "
                f"tree is {root.drawn()}"
            )
    assert isinstance(root, JoinBranch)
    return root

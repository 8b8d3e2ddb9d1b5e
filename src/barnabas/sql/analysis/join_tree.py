"""The order of joins: a tree whose leaves are sources, and what its key can be called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.sql.analysis.join_conditions import JoinInfo
from barnabas.sql.analysis.resolving import AliasedSource
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.syntax.expressions import ColumnReference, Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import JoinKind


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

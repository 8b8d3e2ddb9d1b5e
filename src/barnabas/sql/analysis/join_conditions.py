"""Conditions of joins: which expression of which source equals which of the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NoReturn

from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.resolving import AliasedSource, check_known, schema_of
from barnabas.sql.analysis.windows import check_within
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.schema import Schema
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import Join, JoinKind, WindowKind, Within


@dataclass(frozen=True)
class JoinInfo:
    """One join of two sources; `is_flipped`: its condition named the right one first."""

    left: AliasedSource
    left_expression: Expression
    right: AliasedSource
    right_expression: Expression
    kind: JoinKind
    within: Within | None
    is_flipped: bool = False

    def flip(self) -> JoinInfo:
        """The same join seen from the other side."""
        return replace(
            self,
            left=self.right,
            left_expression=self.right_expression,
            right=self.left,
            right_expression=self.left_expression,
            is_flipped=True,
        )

    @property
    def shown_left(self) -> str:
        """The left side of the condition, as it was written."""
        return message_text(self.right_expression if self.is_flipped else self.left_expression)

    @property
    def shown_right(self) -> str:
        return message_text(self.left_expression if self.is_flipped else self.right_expression)


class JoinConditions:
    """Conditions of joins, in order: each sees the sources up to its own."""

    def __init__(self, sources: tuple[AliasedSource, ...], environment: Environment) -> None:
        self._sources = sources
        self._environment = environment

    def infos(self, joins: Iterable[Join]) -> Iterable[JoinInfo]:
        for place, join in enumerate(joins, 1):
            yield self._info(join, self._sources[: place + 1])

    def _info(self, join: Join, known: tuple[AliasedSource, ...]) -> JoinInfo:
        check_within(join.within)
        condition = join.condition
        if not isinstance(condition, nodes.Comparison):
            self._fail_condition(condition)
        if condition.operator is not nodes.ComparisonOperator.EQUAL:
            raise AnalysisError("Only equality join criteria is supported.")
        schemas = {source.alias: schema_of(source, with_window=False) for source in known}
        left_alias = self._only_source(condition.left, condition, schemas)
        right_alias = self._only_source(condition.right, condition, schemas)
        by_alias = {source.alias: source for source in known}
        left, right = by_alias[left_alias], by_alias[right_alias]
        if left_alias == right_alias:
            raise AnalysisError(
                "Each side of the join must reference exactly one source and not the same source. "
                f"Left side references {backquoted(left_alias)} and right references "
                f"{backquoted(right_alias)}"
            )
        _check_windowing(left, right)
        own = known[-1]
        if own.alias not in (left_alias, right_alias):
            raise AnalysisError(
                f"A join criteria is expected to reference the source ({backquoted(own.alias)}) in "
                f"the FROM clause, instead the right source references {backquoted(right_alias)} "
                f"and the left source references {backquoted(left_alias)}"
            )
        info = JoinInfo(left, condition.left, right, condition.right, join.kind, join.within)
        return info.flip() if right_alias == known[0].alias else info

    def _fail_condition(self, condition: Expression) -> NoReturn:
        shown = message_text(condition)
        if isinstance(condition, nodes.Logical) and all(
            isinstance(side, nodes.Comparison) and side.operator is nodes.ComparisonOperator.EQUAL
            for side in (condition.left, condition.right)
        ):
            raise AnalysisError(
                "Invalid join condition: joins on multiple conditions are not yet supported. Got "
                f"{shown}."
            )
        raise AnalysisError(f"Unsupported join expression: {shown}")

    def _only_source(
        self, side: Expression, condition: Expression, schemas: dict[str, Schema]
    ) -> str:
        used = check_known(side, schemas, "JOIN ON", may_be_synthetic=False)
        if len(used) != 1:
            raise AnalysisError(
                f"Invalid comparison expression '{message_text(side)}' in join "
                f"'{message_text(condition)}'. Each side of the join comparision must contain "
                "references from exactly one source."
            )
        return used.pop()


def _check_windowing(left: AliasedSource, right: AliasedSource) -> None:
    windows = [source.source.window for source in (left, right)]
    kinds = [None if window is None else window.kind for window in windows]
    if (kinds[0] is None) != (kinds[1] is None):
        shown = [
            f"{backquoted(source.alias)} is {'not' if kind is None else kind.value} windowed"
            for source, kind in zip((left, right), kinds, strict=True)
        ]
        raise AnalysisError(
            f"Can not join windowed source to non-windowed source.\n{shown[0]}\n{shown[1]}"
        )
    if kinds[0] is None or kinds[1] is None:
        return
    if (kinds[0] is WindowKind.SESSION) != (kinds[1] is WindowKind.SESSION):
        raise AnalysisError(
            f"Incompatible windowed sources.\nLeft source: {kinds[0].value}\n"
            f"Right source: {kinds[1].value}\nSession windowed sources can only be joined to other "
            "session windowed sources, and may still not result in expected behaviour as session "
            "bounds must be an exact match for the join to work\nHopping and tumbling windowed "
            "sources can only be joined to other hopping and tumbling windowed sources"
        )

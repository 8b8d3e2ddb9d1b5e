"""Walking through expressions and rebuilding them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, cast

from barnabas.sql.syntax.expressions import ColumnReference, Expression, Node, When
from barnabas.sql.syntax.tree import NamedType

Rewriter = Callable[[Expression], Expression | None]
"""Gives what an expression is replaced by, or None to go on into its parts."""


def rewrite(expression: Expression, rewriter: Rewriter) -> Expression:
    """The expression with what the rewriter replaces, from the outside in."""
    replaced = rewriter(expression)
    if replaced is not None:
        return replaced
    return with_parts(expression, lambda part: rewrite(part, rewriter))


def with_parts(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with each of its direct parts changed."""
    return cast(Expression, rebuilt(expression, lambda value: _changed(value, change)))


def _changed(value: Any, change: Callable[[Expression], Expression]) -> Any:
    if isinstance(value, When | tuple):  # a WHEN is no expression: its parts are the CASE's
        return rebuilt(value, lambda part: _changed(part, change))
    if isinstance(value, Node) and not isinstance(value, NamedType):
        return change(cast(Expression, value))
    return value


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tuple, or dataclass, with each of its items, or fields, changed; itself if none is."""
    if isinstance(node, tuple):
        items = tuple(map(change, node))
        return node if all(a is b for a, b in zip(items, node, strict=True)) else items
    changed = {}
    for field in fields(node):
        value = getattr(node, field.name)
        new = change(value)
        if new is not value:
            changed[field.name] = new
    return replace(node, **changed) if changed else node


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, each before its own, from left to right."""
    yield expression
    for part in parts(expression):
        yield from walk(part)


def parts(expression: Expression) -> list[Expression]:
    """The expression's direct parts."""
    expressions: list[Expression] = []

    def note(part: Expression) -> Expression:
        expressions.append(part)
        return part

    with_parts(expression, note)
    return expressions


def column_references(expression: Expression) -> list[ColumnReference]:
    """All references to columns in the expression, in order."""
    return [part for part in walk(expression) if isinstance(part, ColumnReference)]

"""Which columns a plan's expressions refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import Step
from barnabas.sql.schema import Column, Schema
from barnabas.sql.syntax.expressions import ColumnReference


def mentioned_names(step: Step) -> frozenset[str]:
    """Names of columns that an expression of the plan refers to, or that its result has."""
    names: set[str] = set()
    renamed: list[tuple[str, str]] = []

    def walk(thing: Any) -> None:
        if isinstance(thing, ColumnReference):
            names.add(thing.name)
        elif isinstance(thing, steps.StreamSelect | steps.TableSelect):
            renamed.extend(zip(thing.key_names, names_of(thing.source.schema.key), strict=False))
        elif isinstance(thing, _AGGREGATES):
            names.update(thing.kept)
        if isinstance(thing, tuple):
            for item in thing:
                walk(item)
        elif is_dataclass(thing) and not isinstance(thing, Schema):
            for item in fields(thing):
                walk(getattr(thing, item.name))

    walk(step)
    names.update(names_of(step.schema.value))
    while added := {old for new, old in renamed if new in names} - names:
        names |= added
    return frozenset(names)


_AGGREGATES = steps.StreamAggregate | steps.TableAggregate | steps.StreamWindowedAggregate


def references(thing: Any) -> set[str]:
    """Names of the columns that an expression refers to."""
    if isinstance(thing, ColumnReference):
        return {thing.name}
    if isinstance(thing, tuple):
        return set().union(*map(references, thing)) if thing else set()
    if is_dataclass(thing):
        return set().union(*(references(getattr(thing, f.name)) for f in fields(thing)), set())
    return set()


def names_of(columns: Sequence[Column]) -> list[str]:
    """The columns' names."""
    return [column.name for column in columns]

"""Calls of SQL functions with types told by names: `call("DATEADD", "INTEGER, DATE", …)`."""

from __future__ import annotations

from typing import Any

from barnabas.pipeline.sql.functions.catalog import BUILT_IN, ScalarOverload, TableOverload
from barnabas.pipeline.sql.functions.signatures import (
    Argument,
    Choice,
    LambdaShape,
    choose,
    parse_signature,
    substitute,
)
from barnabas.pipeline.sql.types import SqlType


def types_of(text: str) -> list[SqlType]:
    """The types that a text names: `STRING, ARRAY<INTEGER>`."""
    return [
        substitute(parameter.pattern, {}) for parameter in parse_signature(f"({text})").parameters
    ]


def call(name: str, types: str, *arguments: Any) -> Any:
    """The value of a call with arguments of those types.

    Lambdas and intervals are left out of `types`: they are Python functions and names of units."""
    overload = scalar_choice(name, types, *arguments).overload
    if overload.null_is_null and None in arguments:
        return None
    if overload.takes_types:
        return overload.implementation(*arguments, types=types_of(types))
    return overload.implementation(*arguments)


def scalar_choice(name: str, types: str, *arguments: Any) -> Choice[ScalarOverload]:
    """The overload that a call with arguments of those types takes."""
    return choose(name, BUILT_IN[name.upper()].scalars, _argument_types(types, arguments))


def rows(name: str, types: str, *arguments: Any) -> list[Any]:
    """The rows that a table function gives for arguments of those types."""
    return list(table_choice(name, types, *arguments).overload.implementation(*arguments))


def table_choice(name: str, types: str, *arguments: Any) -> Choice[TableOverload]:
    """The overload that a call of a table function takes."""
    return choose(name, BUILT_IN[name.upper()].tables, _argument_types(types, arguments))


def _argument_types(types: str, arguments: tuple[Any, ...]) -> list[Argument]:
    named = iter(types_of(types) if types else [])
    found: list[Argument] = []
    for argument in arguments:
        if callable(argument):
            found.append(LambdaShape(argument.__code__.co_argcount))
        elif isinstance(argument, str) and argument in _UNITS:
            found.append(None)
        else:
            found.append(next(named))
    return found


_UNITS = ("DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS")

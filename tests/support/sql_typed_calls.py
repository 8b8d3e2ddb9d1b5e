"""Calls of SQL functions with types told by names: `call("DATEADD", "INTEGER, DATE", …)`.

Lambdas and intervals have no such names: they are Python functions and names of units.
"""

from __future__ import annotations

from typing import Any

from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.catalog import TableOverload
from barnabas.sql.functions.patterns import substitute
from barnabas.sql.functions.signature_text import parse_signature
from barnabas.sql.functions.signatures import Argument, Choice, LambdaShape, choose
from barnabas.sql.types import SqlType
from support import sql_calls

_UNITS = ("DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS")


def types_of(text: str) -> list[SqlType]:
    """The types that a text names: `STRING, ARRAY<INTEGER>`."""
    parameters = parse_signature(f"({text})").parameters
    return [substitute(parameter.pattern, {}) for parameter in parameters]


def call(name: str, types: str, *arguments: Any) -> Any:
    """The value of a call with arguments of those types."""
    return sql_calls.call(name, *arguments, types=_argument_types(types, arguments))


def rows(name: str, types: str, *arguments: Any) -> list[Any]:
    """The rows that a table function gives for arguments of those types."""
    return list(table_choice(name, types, *arguments).overload.implementation(*arguments))


def table_choice(name: str, types: str, *arguments: Any) -> Choice[TableOverload]:
    """The overload that a call of a table function takes."""
    return choose(name, functions()[name.upper()].tables, _argument_types(types, arguments))


def _argument_types(types: str, arguments: tuple[Any, ...]) -> list[Argument]:
    named = iter(types_of(types))
    found: list[Argument] = []
    for argument in arguments:
        if callable(argument):
            found.append(LambdaShape(argument.__code__.co_argcount))
        elif argument in _UNITS:
            found.append(None)
        else:
            found.append(next(named))
    return found

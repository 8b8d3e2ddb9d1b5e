"""Patterns of types: what a parameter takes, and which types its variables stand for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from barnabas.sql import types
from barnabas.sql.errors import AnalysisError
from barnabas.sql.types import Array, Map, Primitive, SqlType, Struct


class Wildcard(Enum):
    """A parameter that takes many types."""

    ANY = "ANY"
    DECIMAL = "DECIMAL"
    STRUCT = "STRUCT<>"
    INTERVAL = "INTERVAL UNIT"


@dataclass(frozen=True, slots=True)
class Variable:
    """Stands for one type, the same one everywhere in a signature."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayOf:
    item: Pattern


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map whose keys and values have these patterns."""

    key: Pattern
    value: Pattern


@dataclass(frozen=True, slots=True)
class LambdaOf:
    """A function given as an argument."""

    inputs: tuple[Pattern, ...]
    result: Pattern


Pattern: TypeAlias = (
    Primitive | types.Decimal | Struct | Wildcard | Variable | ArrayOf | MapOf | LambdaOf
)


def has_variables(pattern: Pattern) -> bool:
    """Return whether types of arguments decide what the pattern means."""
    match pattern:
        case Variable():
            return True
        case ArrayOf(item):
            return has_variables(item)
        case MapOf(key, value):
            return has_variables(key) or has_variables(value)
        case LambdaOf(inputs, result):
            return any(map(has_variables, inputs)) or has_variables(result)
    return False


def substitute(pattern: Pattern, bindings: dict[str, SqlType]) -> SqlType:
    """The type that the pattern means; raises AnalysisError for a variable without a type."""
    match pattern:
        case Variable(name):
            if name not in bindings:
                raise AnalysisError(f"Could not find mapping for generic type: {name}")
            return bindings[name]
        case ArrayOf(item):
            return Array(substitute(item, bindings))
        case MapOf(key, value):
            return Map(substitute(key, bindings), substitute(value, bindings))
        case Primitive() | types.Decimal() | Struct():
            return pattern
    raise AnalysisError(f"The signature does not tell the type: {pattern_text(pattern)}")


def pattern_text(pattern: Pattern) -> str:
    """The pattern as ksqlDB shows it."""
    match pattern:
        case Variable(name):
            return name
        case Wildcard():
            return pattern.value
        case ArrayOf(item):
            return f"ARRAY<{pattern_text(item)}>"
        case MapOf(key, value):
            return f"MAP<{pattern_text(key)}, {pattern_text(value)}>"
        case LambdaOf(inputs, result):
            return f"LAMBDA ({', '.join(map(pattern_text, inputs))}) => {pattern_text(result)}"
        case types.STRING:
            return "VARCHAR"
        case types.INTEGER:
            return "INT"
        case types.Decimal():
            return "DECIMAL"
    return type_text(pattern)


def type_text(sql_type: SqlType) -> str:
    """The type with the names of fields unquoted, as messages about calls show it."""
    match sql_type:
        case Array(item):
            return f"ARRAY<{type_text(item)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case Struct(fields):
            return f"STRUCT<{', '.join(f'{f.name} {type_text(f.type)}' for f in fields)}>"
    return str(sql_type)

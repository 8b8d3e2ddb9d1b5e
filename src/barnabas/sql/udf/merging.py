"""Adds declared functions to the catalog, beside the built-in ones.

A built-in name may get overloads for other types. The same types twice are refused, and so is one
name for two kinds of functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from barnabas.sql.functions.catalog import Function
from barnabas.sql.functions.patterns import ArrayOf, MapOf, Pattern, Variable, pattern_text
from barnabas.sql.functions.signature_text import parse_signature
from barnabas.sql.udf.declaring import Declaration, DeclarationError, declared_as

_FIELDS = {"scalar": "scalars", "table": "tables", "aggregate": "aggregates"}


def functions_of(*implementations: Any) -> dict[str, Function]:
    """The catalog's entries for decorated functions and classes, by name in upper case.

    For tests: `{**functions(), **functions_of(with_tax)}`. Raises DeclarationError.
    """
    declarations: list[Declaration] = []
    for implementation in implementations:
        own = declared_as(implementation)
        if not own:
            raise DeclarationError(f"{implementation!r} is not declared")
        declarations += own
    return merged({}, declarations)


def merged(
    catalog: Mapping[str, Function], declarations: Iterable[Declaration], source: str = ""
) -> dict[str, Function]:
    """The catalog with what is declared; `source` is where that comes from, if not its own file.

    Raises DeclarationError where it does not fit in. The given catalog stays as it is.
    """
    result = dict(catalog)
    places: dict[tuple[str, object], str] = {}
    fresh: set[str] = set()
    for declaration in declarations:
        details = declaration.details
        name = details.name.upper()
        if name not in fresh:
            fresh.add(name)
            result[name] = _copy(result[name]) if name in result else _new(declaration, source)
        function = result[name]
        _add(function, declaration, places)
        function.is_volatile |= details.is_volatile
    return result


def _new(declaration: Declaration, source: str) -> Function:
    details = declaration.details
    return Function(
        details.name,
        details.description,
        details.category,
        details.author,
        version=details.version,
        path=source or declaration.place.path,
    )


def _copy(function: Function) -> Function:
    return replace(
        function,
        scalars=list(function.scalars),
        tables=list(function.tables),
        aggregates=list(function.aggregates),
    )


def _add(
    function: Function, declaration: Declaration, places: dict[tuple[str, object], str]
) -> None:
    name, field = function.name.upper(), _FIELDS[declaration.kind]
    for other in _FIELDS.values():
        if other != field and getattr(function, other):
            kind = next(kind for kind, known in _FIELDS.items() if known == other)
            raise DeclarationError(f"{declaration.place}: {name} is {_an(kind)} function already")
    overloads: list[Any] = getattr(function, field)
    shapes = {shape(overload.signature): overload for overload in overloads}
    for overload in declaration.overloads:
        own = shape(overload.signature)
        if own in shapes:
            where = places.get((name, own), "built in" if function.path == "internal" else "")
            raise DeclarationError(
                f"{declaration.place}: {name} with those parameters is there already"
                f"{f' ({where or function.path})'}: {overload.signature}"
            )
        shapes[own] = overload
        places[name, own] = str(declaration.place)
        overloads.append(overload)


def _an(kind: str) -> str:
    return f"an {kind}" if kind == "aggregate" else f"a {kind}"


def shape(signature: str) -> tuple[str, ...]:
    """What two signatures have in common between which no call can choose: their parameters' types
    without names; type variables are numbered."""
    numbers: dict[str, str] = {}
    return tuple(
        f"{_shape(parameter.pattern, numbers)}{'...' if parameter.is_variadic else ''}"
        for parameter in parse_signature(signature).parameters
    )


def _shape(pattern: Pattern, numbers: dict[str, str]) -> str:
    match pattern:
        case Variable(name):
            return numbers.setdefault(name, str(len(numbers)))
        case ArrayOf(item):
            return f"ARRAY<{_shape(item, numbers)}>"
        case MapOf(key, value):
            return f"MAP<{_shape(key, numbers)}, {_shape(value, numbers)}>"
    return pattern_text(pattern)

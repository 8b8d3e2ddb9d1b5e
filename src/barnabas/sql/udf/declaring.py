"""The declarations of `@udf`, `@udaf` and `@udtf`, kept until they are loaded.

They are kept by the name of the module whose text has the decorator: a function of the same name
further down, for other types, hides the first from the module, but not from us.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from barnabas.sql.decimals import decimal_type
from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.catalog import AggregateOverload, ScalarOverload, TableOverload
from barnabas.sql.functions.patterns import ArrayOf, LambdaOf, MapOf, Pattern, Variable, Wildcard
from barnabas.sql.functions.signature_text import Signature, parse_signature
from barnabas.sql.names import RESERVED
from barnabas.sql.types import Decimal

Kind = Literal["scalar", "table", "aggregate"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class DeclarationError(Exception):
    """A function cannot be declared so."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a decorator."""

    module: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Details:
    """A declaration's details of a function, beside its types."""

    name: str
    description: str = ""
    author: str = ""
    version: str = ""
    category: str = "OTHER"
    is_volatile: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """A decorated function or class."""

    kind: Kind
    details: Details
    implementation: Any
    overloads: Sequence[ScalarOverload | TableOverload | AggregateOverload]
    place: Place


_DECLARED: dict[str, list[Declaration]] = {}
"""By module."""


def keep(declaration: Declaration) -> None:
    """Remember it for the loader of its module."""
    _DECLARED.setdefault(declaration.place.module, []).append(declaration)


def declared(module: str) -> list[Declaration]:
    """Return the declarations of that module."""
    return list(_DECLARED.get(module, ()))


def declared_as(implementation: object) -> list[Declaration]:
    """Return the declarations of that function or class."""
    return [
        declaration
        for several in _DECLARED.values()
        for declaration in several
        if declaration.implementation is implementation
    ]


def declared_below(module: str) -> list[Declaration]:
    """Return the declarations of that module and of the modules in its package."""
    return [
        declaration
        for name, several in _DECLARED.items()
        if name == module or name.startswith(f"{module}.")
        for declaration in several
    ]


def forget(module: str) -> None:
    """Drop what a module declared that is about to be run again."""
    _DECLARED.pop(module, None)


def caller() -> Place:
    """The place of the decorator that calls this."""
    frame = sys._getframe(2)
    module = str(frame.f_globals.get("__name__", ""))
    return Place(module, frame.f_code.co_filename, frame.f_lineno)


def checked_name(name: str) -> str:
    """The name, if statements can say it; raises DeclarationError."""
    if not _NAME.match(name):
        raise DeclarationError(f"{name!r} is not a name for a function: give one with name=")
    if name.upper() in RESERVED:
        raise DeclarationError(f"{name} is a reserved word of SQL: give another name with name=")
    return name


def described(implementation: Any, description: str) -> str:
    """The description, or the first paragraph of the docstring."""
    text = description or (inspect.getdoc(implementation) or "")
    return " ".join(text.split("\n\n")[0].split())


def with_names_of_sql(text: str) -> str:
    """The signature with its structs' fields in upper case, unless they are in back quotes: as a
    statement would have them, and so that statements find them."""
    made, depth, is_quoted = [], 0, False
    for place, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            pass
        elif character == "<":
            depth += 1
        elif character == ">" and text[place - 1 : place] != "-":
            depth -= 1
        elif depth:
            character = character.upper()
        made.append(character)
    return "".join(made)


def checked_signature(text: str, *, needs_result: bool) -> Signature:
    """The signature; raises DeclarationError if it has types that our functions cannot have.

    `needs_result`: whether nothing else than the signature tells the type of the result.
    """
    try:
        signature = parse_signature(text)
        for parameter in signature.parameters:
            _check(parameter.pattern)
        if signature.result is not None:
            _check(signature.result)
    except (ValueError, AnalysisError) as error:
        raise DeclarationError(f"the signature {text} cannot be read: {error}") from error
    if signature.result is None:
        raise DeclarationError(f"the signature {text} does not tell the result")
    if needs_result:
        check_result(signature.result, signature, text)
    return signature


def check_result(result: Pattern, signature: Signature, text: str) -> None:
    """Raise DeclarationError unless the parameters' types decide the result's."""
    if _wildcards(result):
        raise DeclarationError(
            f"the signature {text} leaves the result open: write all of its type, or returns="
        )
    known = set().union(*[_variables(p.pattern) for p in signature.parameters])
    unknown = sorted(_variables(result) - known)
    if unknown:
        raise DeclarationError(f"no parameter of {text} tells what {unknown[0]} is")


def check_descriptions(parameters: Iterable[str], signature: Signature, text: str) -> None:
    """Raise DeclarationError for a description of a parameter that there is not."""
    unknown = set(parameters) - {parameter.name for parameter in signature.parameters}
    if unknown:
        raise DeclarationError(f"{text} has no parameter {min(unknown)}")


def check_parameters(function: Callable[..., Any], signature: Signature, text: str) -> None:
    """Raise DeclarationError unless the Python function takes what the signature says."""
    count = len(signature.parameters)
    counts = (count,) if signature.variadic_index < 0 else (count - 1, count, count + 5)
    check_counts(function, counts, text)


def check_counts(function: Callable[..., Any], counts: Iterable[int], text: str) -> None:
    """Raise DeclarationError unless the Python function takes so many arguments."""
    try:
        own = inspect.signature(function)
    except (ValueError, TypeError):
        return  # written in C: it tells nothing
    for given in counts:
        try:
            own.bind(*[None] * given)
        except TypeError as error:
            raise DeclarationError(
                f"{text} gives {given} arguments, which {_named(function)}{own} does not take"
            ) from error


def _named(function: Any) -> str:
    return str(getattr(function, "__name__", function))


def _parts(pattern: Pattern) -> tuple[Pattern, ...]:
    match pattern:
        case ArrayOf(item):
            return (item,)
        case MapOf(key, value):
            return key, value
    return ()


def _check(pattern: Pattern) -> None:
    match pattern:
        case LambdaOf():
            raise ValueError("user functions take no lambdas")
        case Decimal(precision, scale):
            decimal_type(precision, scale)
    for part in _parts(pattern):
        _check(part)


def _wildcards(pattern: Pattern) -> bool:
    return isinstance(pattern, Wildcard) or any(map(_wildcards, _parts(pattern)))


def _variables(pattern: Pattern) -> set[str]:
    if isinstance(pattern, Variable):
        return {pattern.name}
    return set().union(*map(_variables, _parts(pattern)))


def depends_on_call(pattern: Pattern) -> bool:
    """Whether only a call tells the type: for DECIMAL and intervals it makes no difference."""
    if isinstance(pattern, Variable) or pattern in (Wildcard.ANY, Wildcard.STRUCT):
        return True
    return any(isinstance(p, Wildcard) or depends_on_call(p) for p in _parts(pattern))

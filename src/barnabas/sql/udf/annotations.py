"""Signatures of SQL from the annotations of Python functions."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Generator, Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Union, get_args, get_origin, get_type_hints

from barnabas.sql.udf.declaring import DeclarationError

_TYPES: dict[Any, str] = {
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bool: "BOOLEAN",
    bytes: "BYTES",
    date: "DATE",
    time: "TIME",
    datetime: "TIMESTAMP",
}
_SEVERAL = (list, Iterator, Iterable, Generator)
"""The annotations with which a table function returns several rows of a type."""


def annotated_signatures(function: Callable[..., Any], *, gives_rows: bool = False) -> list[str]:
    """The signature, and one for each parameter with a default value that calls can leave out.

    Raises DeclarationError for annotations that tell no type.
    """
    hints = _hints(function)
    if "return" not in hints:
        name = getattr(function, "__name__", function)
        raise DeclarationError(f"{name} has no signature and no annotation of its result")
    result = hints["return"]
    if gives_rows:
        if get_origin(result) not in _SEVERAL or not get_args(result):
            raise DeclarationError(
                f"the result of {function.__name__} has to be annotated as Iterator[…] or list[…]"
            )
        result = get_args(result)[0]
    texts: list[str] = []
    signatures: list[str] = []
    returned = _type_text(result, "the result")
    for parameter in _positional(function):
        if parameter.default is not parameter.empty:
            signatures.append(f"({', '.join(texts)}) -> {returned}")
        if parameter.name not in hints:
            raise DeclarationError(f"parameter {parameter.name} has no annotation")
        dots = "..." if parameter.kind is parameter.VAR_POSITIONAL else ""
        told = _type_text(hints[parameter.name], f"parameter {parameter.name}")
        texts.append(f"{parameter.name} {told}{dots}")
    return [*signatures, f"({', '.join(texts)}) -> {returned}"]


def optional_parameters(function: Callable[..., Any]) -> list[bool]:
    """Whether each parameter is annotated as one that may be None; empty if that is not known."""
    try:
        hints = _hints(function)
        parameters = _positional(function)
    except (DeclarationError, ValueError, TypeError):
        return []
    return [_is_optional(hints.get(parameter.name)) for parameter in parameters]


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception as error:
        raise DeclarationError(f"an annotation cannot be read: {error}") from error


def _positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _type_text(hint: Any, what: str) -> str:
    if _is_optional(hint):
        others = [part for part in get_args(hint) if part is not type(None)]
        if len(others) == 1:
            return _type_text(others[0], what)
    if hint in _TYPES:
        return _TYPES[hint]
    match get_origin(hint), get_args(hint):
        case (origin, (item,)) if origin is list:
            return f"ARRAY<{_type_text(item, what)}>"
        case (origin, (key, value)) if origin is dict and key is str:
            return f"MAP<STRING, {_type_text(value, what)}>"
    shown = getattr(hint, "__name__", hint) if not get_args(hint) else hint
    if hint is Decimal:
        raise DeclarationError(f"{what} is a Decimal: its precision and scale need a signature")
    raise DeclarationError(f"{what} has the annotation {shown}, which tells no SQL type")

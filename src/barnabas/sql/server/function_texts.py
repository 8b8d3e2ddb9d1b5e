"""Functions as DESCRIBE FUNCTION shows them."""

from __future__ import annotations

import re
from typing import Any

from barnabas.sql.functions.catalog import Function

_SIGNATURE = re.compile(r"\((.*)\)\s*->\s*(.*)\Z", re.DOTALL)


def described_function(function: Function) -> dict[str, Any]:
    """The members of a description."""
    overloads: list[Any]
    if function.aggregates:
        kind, overloads = "AGGREGATE", list(function.aggregates)
    elif function.tables:
        kind, overloads = "TABLE", list(function.tables)
    else:
        kind, overloads = "SCALAR", list(function.scalars)
    return {
        "name": function.name.upper(),
        "description": function.description,
        "author": function.author,
        "version": function.version,
        "path": function.path,
        "functions": [_overload(one, function) for one in overloads],
        "type": kind,
    }


def _overload(overload: Any, function: Function) -> dict[str, Any]:
    match = _SIGNATURE.match(overload.signature)
    parameters, returns = match.groups() if match else ("", overload.signature)
    described = getattr(overload, "parameters", {})
    return {
        "arguments": [
            _argument(parameter, described) for parameter in split_parameters(parameters)
        ],
        "returnType": returns.strip(),
        "description": getattr(overload, "description", "") or function.description,
    }


def _argument(parameter: str, described: Any) -> dict[str, Any]:
    name, _, kind = parameter.partition(" ")
    kind = kind.strip()
    is_variadic = "..." in kind
    return {
        "name": name,
        "type": kind.replace("...", "").replace("!", ""),
        "description": described.get(name, ""),
        "isVariadic": is_variadic,
    }


def split_parameters(text: str) -> list[str]:
    """The parameters of a signature, split at the commas that are within no brackets."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts

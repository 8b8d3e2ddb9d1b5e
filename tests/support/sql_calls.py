"""Calls of SQL functions in tests: `call("LPAD", "foo", 5, "x")`, with types told by the values."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

from barnabas.sql import types
from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.patterns import Wildcard
from barnabas.sql.functions.signature_text import Parameter
from barnabas.sql.functions.signatures import Argument, choose
from barnabas.sql.types import SqlType, Value

_WIDER: dict[Any, Any] = {types.DOUBLE: float, Wildcard.DECIMAL: decimal.Decimal}


def call(name: str, *arguments: Value, types: Sequence[Argument] | None = None) -> Value:
    """The value of a call. `types` are those of the arguments where their values do not tell.

    Raises what the implementation raises, and AnalysisError if there is no such overload.
    """
    argument_types: list[Argument] = list(map(type_of, arguments) if types is None else types)
    choice = choose(name, functions()[name].scalars, argument_types)
    overload = choice.overload
    if overload.null_is_null and None in arguments:
        return None
    cast = [_cast(a, p) for a, p in zip(arguments, choice.parameters, strict=True)]
    if overload.takes_types:
        return overload.implementation(*cast, types=argument_types)
    return overload.implementation(*cast)


def result_type(name: str, *argument_types: SqlType) -> SqlType:
    """The type of a call whose overload computes it."""
    overload = choose(name, functions()[name].scalars, argument_types).overload
    assert overload.returns is not None
    return overload.returns(argument_types)


def _cast(value: Value, parameter: Parameter) -> Value:
    widen = _WIDER.get(parameter.pattern)
    return widen(value) if widen and value is not None else value


def type_of(value: Value) -> SqlType | None:
    """The type that a literal of the value would have."""
    match value:
        case None:
            return None
        case bool():
            return types.BOOLEAN
        case int():
            return types.INTEGER if -(2**31) <= value < 2**31 else types.BIGINT
        case float():
            return types.DOUBLE
        case str():
            return types.STRING
        case bytes():
            return types.BYTES
        case decimal.Decimal():
            _, digits, exponent = value.as_tuple()
            assert isinstance(exponent, int)
            scale = max(-exponent, 0)
            return types.Decimal(max(len(digits) + max(exponent, 0), scale), scale)
        case list():
            item = next((type_of(i) for i in value if i is not None), None)
            return types.Array(item or types.STRING)
    raise TypeError(f"tell the type of {value!r}")

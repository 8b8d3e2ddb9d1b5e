"""The boundary between calls in statements and users' functions: conversion, NULL, errors."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import ReturnType
from barnabas.sql.functions.patterns import Pattern, Wildcard, pattern_text, substitute
from barnabas.sql.functions.signature_text import Signature
from barnabas.sql.functions.signatures import bind
from barnabas.sql.types import SqlType, Value
from barnabas.sql.udf.declaring import depends_on_call
from barnabas.sql.udf.values import Convert, from_python, to_python

_WIDE = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP)
"""Python's own context rounds to 28 digits, which is less than a DECIMAL may have."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a call. `convert`: None where users get the value as it is."""

    type: SqlType | None
    convert: Convert | None
    may_be_null: bool


@dataclass(frozen=True, slots=True)
class Conversions:
    """Those of one call's arguments and of its result."""

    parameters: tuple[Parameter, ...]
    result: Convert

    def arguments(self, values: Sequence[Value]) -> list[Any] | None:
        """The values as users get them; None if one is NULL that may not be."""
        given = []
        for value, parameter in zip(values, self.parameters, strict=True):
            if value is None:
                if not parameter.may_be_null:
                    return None
            elif parameter.convert is not None:
                value = parameter.convert(value)
            given.append(value)
        return given


class Boundary:
    """Makes the Conversions of a signature's calls. `takes_types`: whether it needs the types of
    their arguments for that; `has_decimals`: whether there may be a DECIMAL."""

    def __init__(
        self, signature: Signature, returns: ReturnType | None, optional: Sequence[bool]
    ) -> None:
        """`optional`: for each parameter whether it may be NULL, False for all by default."""
        self._signature = signature
        self._returns = returns
        flags = list(optional) + [False] * len(signature.parameters)
        self._optional = tuple(flags[: len(signature.parameters)])
        patterns = [parameter.pattern for parameter in signature.parameters]
        self.takes_types = returns is not None or any(map(depends_on_call, patterns))
        shown = [*map(pattern_text, patterns), pattern_text(signature.result or Wildcard.ANY)]
        self.has_decimals = self.takes_types or any("DECIMAL" in text for text in shown)
        self._made: dict[Any, Conversions] = {}

    def conversions(self, count: int, types: Sequence[SqlType | None] | None) -> Conversions:
        """For a call with so many arguments, of those types if they matter."""
        key = tuple(types) if self.takes_types and types is not None else count
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(count, types if self.takes_types else None)
        return made

    def result_type(self, types: Sequence[SqlType | None]) -> SqlType:
        """The type of the result for arguments of those types; raises AnalysisError."""
        if self._returns is not None:
            return self._returns(types)
        assert self._signature.result is not None, "it was checked when it was declared"
        return self.resolved(self._signature.result, types)

    def resolved(self, pattern: Pattern, types: Sequence[SqlType | None]) -> SqlType:
        """Resolve a pattern for arguments of those types. Raises AnalysisError."""
        bindings: dict[str, SqlType] = {}
        parameters = self._signature.expanded(len(types)) or self._signature.parameters
        for parameter, sql_type in zip(parameters, types, strict=False):
            bind(parameter.pattern, sql_type, bindings)
        return substitute(pattern, bindings)

    def _make(self, count: int, types: Sequence[SqlType | None] | None) -> Conversions:
        parameters = self._signature.expanded(count)
        assert parameters is not None, "the call was checked against the signature"
        if types is None:
            types = [static_type(parameter.pattern) for parameter in parameters]
        at, extra = self._signature.variadic_index, count - len(self._optional)
        flags = list(self._optional)
        if at >= 0:
            flags[at : at + 1] = [flags[at]] * (extra + 1)
        return Conversions(
            tuple(
                Parameter(sql_type, None if sql_type is None else to_python(sql_type), flag)
                for sql_type, flag in zip(types, flags, strict=True)
            ),
            from_python(self.result_type(types)),
        )


def static_type(pattern: Pattern) -> SqlType | None:
    """A parameter's type; None for an interval, and for a DECIMAL of any precision and scale."""
    return None if isinstance(pattern, Wildcard) else substitute(pattern, {})


def guarded(name: str, call: Callable[..., Any], *, has_decimals: bool) -> Callable[..., Any]:
    """The call, whose failures are EvaluationErrors with the function's name. With DECIMALs it
    calculates with as many digits as one may have."""

    def attempt(*values: Any, **types: Any) -> Any:
        try:
            return call(*values, **types)
        except EvaluationError as error:
            raise EvaluationError(f"{name}: {error}") from error
        except (Exception, SystemExit) as error:
            raise EvaluationError(f"{name}: {type(error).__name__}: {error}") from error

    def attempt_exactly(*values: Any, **types: Any) -> Any:
        with decimal.localcontext(_WIDE):
            return attempt(*values, **types)

    return attempt_exactly if has_decimals else attempt

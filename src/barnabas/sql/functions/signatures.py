"""The overload of a function that a call means.

The choice follows ksqlDB. A call first looks for signatures that take its arguments as they are;
only without one, for those that take them after implicit casts. Of several, the best is the
one without a variadic parameter, then with more parameters, with fewer type variables, without
`ANY...`, with its variadic parameter later. Two equally good ones make the call ambiguous. NULL
and intervals have no type (None) and fit every parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from barnabas.sql import types
from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.patterns import (
    ArrayOf,
    LambdaOf,
    MapOf,
    Pattern,
    Variable,
    Wildcard,
    has_variables,
    type_text,
)
from barnabas.sql.functions.signature_text import Parameter, Signature, parse_signature
from barnabas.sql.types import Array, BaseType, Map, Primitive, SqlType, Struct


@dataclass(frozen=True, slots=True)
class LambdaShape:
    """A lambda as an argument, before its types are known: they follow from the overload."""

    parameter_count: int


Argument: TypeAlias = SqlType | LambdaShape | None


class HasSignature(Protocol):
    @property
    def signature(self) -> str: ...


O = TypeVar("O", bound=HasSignature)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Choice(Generic[O]):
    """The overload for a call, and the parameter that each argument goes to."""

    overload: O
    signature: Signature
    parameters: tuple[Parameter, ...]


def choose(
    name: str, overloads: Sequence[O], arguments: Sequence[Argument], *, casts: bool = True
) -> Choice[O]:
    """The overload that takes the arguments; raises AnalysisError if none or several do.

    `casts`: whether implicit casts are allowed (they are not for aggregates).
    """
    choices = [
        Choice(overload, signature, parameters)
        for overload in overloads
        if (signature := parse_signature(overload.signature))
        and (parameters := signature.expanded(len(arguments))) is not None
    ]
    for with_casts in (False, True) if casts else (False,):
        fitting = [c for c in choices if _fits(c.parameters, arguments, with_casts)]
        if fitting:
            fitting.sort(key=lambda choice: choice.signature.rank)
            if len(fitting) > 1 and fitting[-1].signature.rank == fitting[-2].signature.rank:
                raise _ambiguous(name, overloads, arguments)
            return fitting[-1]
    raise _none_fits(name, overloads, arguments)


def _fits(parameters: Sequence[Parameter], arguments: Sequence[Argument], casts: bool) -> bool:
    bindings: dict[str, SqlType] = {}
    return all(
        bind(parameter.pattern, argument, bindings)
        if has_variables(parameter.pattern)
        else _takes(parameter.pattern, argument, casts)
        for parameter, argument in zip(parameters, arguments, strict=True)
    )


def _takes(pattern: Pattern, argument: Argument, casts: bool) -> bool:
    """Return whether a parameter without variables takes the argument."""
    match pattern, argument:
        case (_, None) | (Wildcard.ANY, _):
            return True
        case LambdaOf(inputs, _), LambdaShape(count):
            return len(inputs) == count
        case (LambdaOf(), _) | (_, LambdaShape()) | (Wildcard.INTERVAL, _):
            return False
        case ArrayOf(item), Array(argument_item):
            return _takes(item, argument_item, casts)
        case MapOf(key, value), Map(argument_key, argument_value):
            return _takes(key, argument_key, casts) and _takes(value, argument_value, casts)
        case Wildcard.STRUCT, Struct():
            return True
        case Struct(fields), Struct(argument_fields):
            return not argument_fields or (
                {field.name: field.type for field in fields}
                == {field.name: field.type for field in argument_fields}
            )
    assert not isinstance(argument, LambdaShape)
    base = _base(pattern)
    if base is None or argument is None:
        return False
    return argument.base is base or (casts and can_cast_implicitly(argument.base, base))


def _base(pattern: Pattern) -> BaseType | None:
    match pattern:
        case Wildcard.DECIMAL:
            return BaseType.DECIMAL
        case Wildcard.STRUCT:
            return BaseType.STRUCT
        case Primitive() | types.Decimal() | Struct():
            return pattern.base
    return None


def can_cast_implicitly(source: BaseType, target: BaseType) -> bool:
    """Whether a value becomes the other type without CAST: numbers become wider ones, and texts
    become dates, times and bytes."""
    if source.is_number and target.is_number:
        return types.NUMBERS.index(source) <= types.NUMBERS.index(target)
    if source is BaseType.STRING and (target.is_time or target is BaseType.BYTES):
        return True
    return source is target


def bind(pattern: Pattern, argument: Argument, bindings: dict[str, SqlType]) -> bool:
    """Note in `bindings` what the pattern's variables stand for; False if the argument does not
    have the pattern's shape, or a variable already stands for another type. Types of lambdas are
    bound by what types their bodies."""
    match pattern, argument:
        case _, None:
            return True
        case Variable(), LambdaShape():
            return False
        case Variable(name), _:
            assert not isinstance(argument, LambdaShape)
            return bindings.setdefault(name, argument) == argument
        case LambdaOf(inputs, _), LambdaShape(count):
            return len(inputs) == count
        case ArrayOf(item), Array(argument_item):
            return bind(item, argument_item, bindings)
        case MapOf(key, value), Map(argument_key, argument_value):
            return bind(key, argument_key, bindings) and bind(value, argument_value, bindings)
        case Wildcard.ANY, _:
            return True
    if isinstance(argument, LambdaShape) or argument is None:
        return False
    return _base(pattern) is argument.base


def _argument_text(argument: Argument) -> str:
    if argument is None:
        return "null"
    if isinstance(argument, LambdaShape):
        return "LAMBDA"
    return type_text(argument)


def _none_fits(
    name: str, overloads: Sequence[HasSignature], arguments: Sequence[Argument]
) -> AnalysisError:
    return AnalysisError(
        f"Function '{name}' does not accept parameters ({_texts(arguments)}).\n"
        f"Valid alternatives are:\n{_alternatives(name, overloads)}\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def _ambiguous(
    name: str, overloads: Sequence[HasSignature], arguments: Sequence[Argument]
) -> AnalysisError:
    return AnalysisError(
        f"Function '{name}' cannot be resolved due to ambiguous method parameters "
        f"({_texts(arguments)}).\n"
        "Use CAST() to explicitly cast your parameters to one of the supported function calls.\n"
        f"Valid function calls are:\n{_alternatives(name, overloads)}\n"
        "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"
    )


def _texts(arguments: Sequence[Argument]) -> str:
    return ", ".join(map(_argument_text, arguments))


def _alternatives(name: str, overloads: Sequence[HasSignature]) -> str:
    signatures = [parse_signature(overload.signature) for overload in overloads]
    return "\n".join(sorted(f"{name}({', '.join(map(str, s.parameters))})" for s in signatures))

"""Calls of functions: the overload that is meant, the types of lambdas, and the type of the result.

Types of a lambda's parameters follow from the arguments before it, and what its body gives may be
a type that the result is made of: arguments are taken from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from barnabas.sql.decimals import as_decimal_type
from barnabas.sql.errors import AnalysisError
from barnabas.sql.expressions.coercion import LITERALS
from barnabas.sql.expressions.scope import Scope
from barnabas.sql.functions.catalog import (
    AggregateOverload,
    Aggregator,
    ScalarOverload,
    TableOverload,
)
from barnabas.sql.functions.patterns import (
    ArrayOf,
    LambdaOf,
    MapOf,
    Pattern,
    Variable,
    Wildcard,
    has_variables,
    pattern_text,
    substitute,
)
from barnabas.sql.functions.signature_text import Parameter
from barnabas.sql.functions.signatures import Argument, LambdaShape, bind, choose
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import BIGINT, Array, Map, SqlType, Value

TypeOf = Callable[[Expression, Scope], SqlType | None]
O = TypeVar("O", ScalarOverload, TableOverload)  # noqa: E741


@dataclass(frozen=True, slots=True)
class TypedArgument:
    """An argument of a call. `taken_type` is what the implementation gets, after implicit casts;
    `lambda_scope` is the scope of a lambda's body, whose type is then that of the argument."""

    expression: Expression
    type: SqlType | None
    taken_type: SqlType | None
    lambda_scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Call(Generic[O]):
    """A call of a scalar function, or of a table function."""

    overload: O
    arguments: tuple[TypedArgument, ...]
    result: SqlType


ScalarCall: TypeAlias = Call[ScalarOverload]


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate: its first `column_count` arguments change with every record, the
    others are `constants`."""

    overload: AggregateOverload
    types: tuple[SqlType | None, ...]
    constants: tuple[Value, ...]
    column_count: int

    def aggregator(self, properties: dict[str, Value] | None = None) -> Aggregator:
        """The Aggregator of the call."""
        types = [sql_type for sql_type in self.types if sql_type is not None]
        return self.overload.aggregator(types, self.constants, properties)


def scalar_call(call: nodes.FunctionCall, scope: Scope, type_of: TypeOf) -> ScalarCall:
    """Return what a call of a scalar function means; raises AnalysisError."""
    return _call(call, scope.function(call.name).scalars, scope, type_of)


def table_call(call: nodes.FunctionCall, scope: Scope, type_of: TypeOf) -> Call[TableOverload]:
    """Return what a call of a table function means; raises AnalysisError."""
    return _call(call, scope.function(call.name).tables, scope, type_of)


def _call(
    call: nodes.FunctionCall, overloads: Sequence[O], scope: Scope, type_of: TypeOf
) -> Call[O]:
    shapes = [_shape(argument, scope, type_of) for argument in call.arguments]
    choice = choose(scope.function(call.name).name, overloads, shapes)
    arguments, bindings = _bind(choice.parameters, call.arguments, shapes, scope, type_of)
    returns, told = choice.overload.returns, choice.signature.result
    if returns is not None:
        result = returns([argument.taken_type for argument in arguments])
    else:
        assert told is not None, "the signature of a function tells its result"
        result = substitute(told, bindings)
    return Call(choice.overload, arguments, result)


def aggregate_call(call: nodes.FunctionCall, scope: Scope, type_of: TypeOf) -> AggregateCall:
    """What a call of an aggregate means; raises AnalysisError. One without arguments, `COUNT(*)`,
    is taken as one of ROWTIME, which every record has."""
    function = scope.function(call.name)
    types = tuple(type_of(argument, scope) for argument in call.arguments) or (BIGINT,)
    choice = choose(function.name, function.aggregates, types, casts=False)
    constants: list[Value] = []
    for index, (parameter, argument) in enumerate(
        zip(choice.parameters, call.arguments, strict=False)
    ):
        if parameter.is_constant:
            constants.append(_constant(call, index, argument))
    return AggregateCall(choice.overload, types, tuple(constants), len(types) - len(constants))


def _constant(call: nodes.FunctionCall, index: int, argument: Expression) -> Value:
    if isinstance(argument, nodes.NullLiteral):
        return None
    if isinstance(argument, LITERALS):
        return argument.value
    raise AnalysisError(
        f"Parameter {index + 1} passed to function {call.name} must be a literal constant, "
        f"but was expression: '{message_text(argument)}'"
    )


def _shape(argument: Expression, scope: Scope, type_of: TypeOf) -> Argument:
    if isinstance(argument, nodes.Lambda):
        return LambdaShape(len(argument.parameters))
    return type_of(argument, scope)


def _bind(
    parameters: Sequence[Parameter],
    expressions: Sequence[Expression],
    shapes: Sequence[Argument],
    scope: Scope,
    type_of: TypeOf,
) -> tuple[tuple[TypedArgument, ...], dict[str, SqlType]]:
    """The arguments with their types, and what the type variables stand for."""
    bindings: dict[str, SqlType] = {}
    arguments: list[TypedArgument] = []
    for parameter, expression, shape in zip(parameters, expressions, shapes, strict=True):
        pattern, inner = parameter.pattern, None
        if isinstance(expression, nodes.Lambda) and isinstance(pattern, LambdaOf):
            inner = _lambda_scope(expression, pattern, bindings, scope)
            pattern, shape = pattern.result, type_of(expression.body, inner)
        assert not isinstance(shape, LambdaShape)
        if has_variables(parameter.pattern) and not bind(pattern, shape, bindings):
            raise AnalysisError(
                f"'{message_text(expression)}' gives {shape}, but other arguments call for "
                f"{pattern_text(pattern)}"
            )
        arguments.append(TypedArgument(expression, shape, _taken_type(pattern, shape), inner))
    return tuple(arguments), bindings


def _lambda_scope(
    function: nodes.Lambda, pattern: LambdaOf, bindings: dict[str, SqlType], scope: Scope
) -> Scope:
    inputs = [substitute(part, bindings) for part in pattern.inputs]
    variables = dict(zip(function.parameters, inputs, strict=True))
    for name, sql_type in variables.items():
        outer = scope.variables.get(name, sql_type)
        if outer != sql_type:
            raise AnalysisError(
                f"Could not map type {sql_type} to lambda variable {name}, "
                f"{name} was already mapped to {outer}"
            )
    return scope.with_variables(variables)


def _taken_type(pattern: Pattern, sql_type: SqlType | None) -> SqlType | None:
    """The type that an argument is cast to."""
    match pattern, sql_type:
        case (_, None) | (Variable() | LambdaOf(), _):
            return sql_type
        case ArrayOf(item), Array(own_item):
            return Array(_taken_type(item, own_item) or own_item)
        case MapOf(key, value), Map(own_key, own_value):
            return Map(
                _taken_type(key, own_key) or own_key, _taken_type(value, own_value) or own_value
            )
        case Wildcard.DECIMAL, _:
            return as_decimal_type(sql_type)
        case (Wildcard() | ArrayOf() | MapOf(), _):
            return sql_type
    return substitute(pattern, {})

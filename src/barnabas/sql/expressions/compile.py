"""Expressions as closures: from a row to a value.

    compiled = compile_expression(expression, columns, functions)
    compiled.evaluate(row)      `row` has the values of `columns`, in their order

A closure raises one of `errors.FAILURES` where there is no value. As in ksqlDB some parts stand for
themselves: a CAST, an item of ARRAY[…], MAP(…) or STRUCT(…), and an argument that is itself a call
or a field is NULL when it fails, and the rest goes on. `note` gets it. In the body of a lambda the
row is followed by the values of the lambda's parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from barnabas.sql import types
from barnabas.sql.decimals import as_decimal_type, cast_whole
from barnabas.sql.errors import AnalysisError
from barnabas.sql.expressions import conditions
from barnabas.sql.expressions.arithmetic import calculation, negation, signed
from barnabas.sql.expressions.calls import TypedArgument, scalar_call
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.expressions.closures import BatchedCall, Evaluate, constant, invocation, item_at
from barnabas.sql.expressions.compiling import Compilers, Compiling, Note
from barnabas.sql.expressions.scope import Scope
from barnabas.sql.expressions.typing import type_of
from barnabas.sql.functions.catalog import Function
from barnabas.sql.schema import Column
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.types import Map, SqlType


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression that can be evaluated; `type` is None for NULL alone."""

    type: SqlType | None
    evaluate: Evaluate
    batched: tuple[BatchedCall, ...] = ()
    """Calls in it that can be prepared for many rows at once, in this order."""


def ignore(what: str, error: Exception) -> None:
    """The Note that forgets."""


def compile_expression(
    expression: Expression,
    columns: Sequence[Column],
    functions: Mapping[str, Function],
    note: Note = ignore,
) -> Compiled:
    """The expression over rows of those columns; raises AnalysisError."""
    return ExpressionCompiler(functions, note).compile(expression, columns)


class ExpressionCompiler:
    """Compiles expressions one after another. Many that are over the same columns are common, and
    columns can be many: the names of the last ones are kept."""

    def __init__(self, functions: Mapping[str, Function], note: Note = ignore) -> None:
        self._functions = functions
        self._note = note
        self._columns: Sequence[Column] | None = None
        self._compiler = Compiling(Scope({}, functions), {}, {}, 0, note, [], _COMPILERS)

    def compile(self, expression: Expression, columns: Sequence[Column]) -> Compiled:
        """The expression over rows of those columns; raises AnalysisError."""
        sql_type = self.type_of(expression, columns)
        batched = self._compiler.batched
        batched.clear()
        try:
            return Compiled(sql_type, self._compiler.compile(expression), tuple(batched))
        except RecursionError:
            raise AnalysisError("The expression is nested too deeply.") from None

    def type_of(self, expression: Expression, columns: Sequence[Column]) -> SqlType | None:
        """The type of the expression over those columns; raises AnalysisError."""
        return type_of(expression, self.scope(columns))

    def scope(self, columns: Sequence[Column]) -> Scope:
        """Return what names stand for over those columns."""
        if self._columns is not columns:
            scope = Scope.of_columns(columns, self._functions)
            indexes: dict[str, int] = {}
            for index, column in enumerate(columns):
                indexes.setdefault(column.name, index)
            self._compiler = Compiling(scope, indexes, {}, len(columns), self._note, [], _COMPILERS)
            self._columns = columns
        return self._compiler.scope


def _literal(compiler: Compiling, node: Any) -> Evaluate:
    return constant(node.value)


def _null(compiler: Compiling, node: nodes.NullLiteral) -> Evaluate:
    return constant(None)


def _interval(compiler: Compiling, node: nodes.IntervalUnit) -> Evaluate:
    return constant(node.unit)


def _column(compiler: Compiling, node: nodes.ColumnReference) -> Evaluate:
    name = node.name if node.source is None else f"{node.source}.{node.name}"
    index = compiler.columns.get(name, compiler.columns.get(node.name))
    if index is None:
        raise AnalysisError(f"Unknown column {name}.")
    return itemgetter(index)


def _variable(compiler: Compiling, node: nodes.LambdaVariable) -> Evaluate:
    if node.name not in compiler.variables:
        raise AnalysisError(f"{node.name} is not a parameter of an enclosing lambda")
    return itemgetter(compiler.variables[node.name])


def _arithmetic(compiler: Compiling, node: nodes.Arithmetic) -> Evaluate:
    result = compiler.type_of(node)
    left_type, right_type = compiler.type_of(node.left), compiler.type_of(node.right)
    assert left_type is not None
    assert right_type is not None
    left, right = compiler.compile(node.left), compiler.compile(node.right)
    if isinstance(result, types.Decimal):
        left, left_type = _decimal_literal(compiler, node.left, left, left_type)
        right, right_type = _decimal_literal(compiler, node.right, right, right_type)
    calculate = calculation(node.operator, left_type, right_type)
    return lambda row: calculate(left(row), right(row))


def _decimal_literal(
    compiler: Compiling, expression: Expression, evaluate: Evaluate, sql_type: SqlType
) -> tuple[Evaluate, SqlType]:
    """A whole number in a calculation of DECIMALs, as one, so that no record has to cast it."""
    wide = as_decimal_type(sql_type)
    if isinstance(expression, nodes.IntegerLiteral | nodes.LongLiteral):
        return constant(cast_whole(expression.value, wide)), wide
    return evaluate, sql_type


def _sign(compiler: Compiling, node: nodes.Sign) -> Evaluate:
    make = negation if node.is_minus else signed
    calculate, operand = make(compiler.type_of(node.operand)), compiler.compile(node.operand)
    return lambda row: calculate(operand(row))


def _cast(compiler: Compiling, node: nodes.Cast) -> Evaluate:
    return compiler.cast(node.operand, node.type)


def _call(compiler: Compiling, node: nodes.FunctionCall) -> Evaluate:
    function = compiler.scope.function(node.name)
    if not function.scalars:
        raise AnalysisError(f"{node.name} is not a scalar function")
    call = scalar_call(node, compiler.scope, type_of)
    arguments = [_argument(compiler, given) for given in call.arguments]
    if BatchedCall.suits(call):
        batched = BatchedCall(call, arguments)
        compiler.batched.append(batched)
        return batched
    return invocation(call, arguments)


def _argument(compiler: Compiling, argument: TypedArgument) -> Evaluate:
    """Return what gives the function its argument."""
    expression = argument.expression
    if isinstance(expression, nodes.Lambda):
        assert argument.lambda_scope is not None
        return _lambda(compiler, expression, argument.lambda_scope)
    evaluate = compiler.compile(expression)
    if argument.taken_type is not None:
        cast = cast_maker(argument.type, argument.taken_type)
        if cast is not None:
            return compiler.forgiving(lambda row: cast(evaluate(row)), str(argument.taken_type))
    match expression:
        case nodes.FunctionCall(name) | nodes.Dereference(_, name):
            return compiler.forgiving(evaluate, name)
    return evaluate


def _lambda(compiler: Compiling, node: nodes.Lambda, scope: Scope) -> Evaluate:
    """Return what gives the Python function that stands for a lambda, for the row at hand."""
    places = {name: compiler.width + at for at, name in enumerate(node.parameters)}
    inner = replace(
        compiler,
        scope=scope,
        variables={**compiler.variables, **places},
        width=compiler.width + len(places),
    )
    body = inner.compile(node.body)
    return lambda row: lambda *values: body((*row, *values))


def _array(compiler: Compiling, node: nodes.ArrayConstructor) -> Evaluate:
    compiler.type_of(node)
    items = [compiler.forgiving(item, "array item") for item in compiler.common(node.items)]
    return lambda row: [item(row) for item in items]


def _map(compiler: Compiling, node: nodes.MapConstructor) -> Evaluate:
    compiler.type_of(node)
    keys = compiler.common([key for key, _ in node.entries])
    values = compiler.common([value for _, value in node.entries])
    entries = [
        (compiler.forgiving(key, "map key"), compiler.forgiving(value, "map value"))
        for key, value in zip(keys, values, strict=True)
    ]
    return lambda row: {key(row): value(row) for key, value in entries}


def _struct(compiler: Compiling, node: nodes.StructConstructor) -> Evaluate:
    compiler.type_of(node)
    fields = [
        (name, compiler.forgiving(compiler.compile(value), "struct field"))
        for name, value in node.fields
    ]
    return lambda row: {name: value(row) for name, value in fields}


def _subscript(compiler: Compiling, node: nodes.Subscript) -> Evaluate:
    compiler.type_of(node)
    base, index = compiler.compile(node.base), compiler.compile(node.index)
    if isinstance(compiler.type_of(node.base), Map):
        return lambda row: None if (entries := base(row)) is None else entries.get(index(row))
    return lambda row: None if (items := base(row)) is None else item_at(items, index(row))


def _dereference(compiler: Compiling, node: nodes.Dereference) -> Evaluate:
    compiler.type_of(node)
    base, name = compiler.compile(node.base), node.name
    return lambda row: None if (struct := base(row)) is None else struct.get(name)


_COMPILERS: Compilers = {
    **conditions.COMPILERS,
    nodes.ArrayConstructor: _array,
    nodes.MapConstructor: _map,
    nodes.StructConstructor: _struct,
    nodes.Subscript: _subscript,
    nodes.Dereference: _dereference,
    nodes.NullLiteral: _null,
    nodes.BooleanLiteral: _literal,
    nodes.IntegerLiteral: _literal,
    nodes.LongLiteral: _literal,
    nodes.DoubleLiteral: _literal,
    nodes.DecimalLiteral: _literal,
    nodes.StringLiteral: _literal,
    nodes.BytesLiteral: _literal,
    nodes.ColumnReference: _column,
    nodes.Arithmetic: _arithmetic,
    nodes.Sign: _sign,
    nodes.Cast: _cast,
    nodes.IntervalUnit: _interval,
    nodes.FunctionCall: _call,
    nodes.LambdaVariable: _variable,
}

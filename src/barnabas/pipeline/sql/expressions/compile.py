"""Expressions as closures: from a row to a value.

    compiled = compile_expression(expression, columns, functions)
    compiled.evaluate(row)      `row` has the values of `columns`, in their order

A closure raises one of `errors.FAILURES` where there is no value.
As in ksqlDB some parts stand for themselves: a CAST, an item of ARRAY[…], MAP(…) or STRUCT(…), and
an argument that is itself a call or a field is NULL when it fails, and the rest goes on. `note` is
told of it. In the body of a lambda the row is followed by the values of the lambda's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from barnabas.pipeline.sql import types
from barnabas.pipeline.sql.decimals import as_decimal_type, cast_whole
from barnabas.pipeline.sql.errors import FAILURES, AnalysisError, EvaluationError
from barnabas.pipeline.sql.expressions.arithmetic import calculation, negation, signed
from barnabas.pipeline.sql.expressions.calls import TypedArgument, scalar_call
from barnabas.pipeline.sql.expressions.casts import cast_maker
from barnabas.pipeline.sql.expressions.closures import (
    Evaluate,
    comparing,
    constant,
    invocation,
    item_at,
)
from barnabas.pipeline.sql.expressions.coercion import LITERALS, coerce_literal, common_type
from barnabas.pipeline.sql.expressions.comparisons import (
    Comparison,
    Convert,
    can_compare,
    comparison,
    refusal,
)
from barnabas.pipeline.sql.expressions.patterns import is_like, like_pattern
from barnabas.pipeline.sql.expressions.scope import Scope
from barnabas.pipeline.sql.expressions.typing import (
    between_as_comparisons,
    in_list_operands,
    simple_case_as_searched,
    type_of,
)
from barnabas.pipeline.sql.functions.catalog import Function
from barnabas.pipeline.sql.schema import Column
from barnabas.pipeline.sql.syntax import expressions as nodes
from barnabas.pipeline.sql.syntax.expressions import Expression
from barnabas.pipeline.sql.syntax.printer import message_text
from barnabas.pipeline.sql.types import Map, SqlType, Value

Note = Callable[[str, Exception], None]
"""Takes what was being made (`array item`) and why it failed."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression that can be evaluated; `type` is None for NULL alone."""

    type: SqlType | None
    evaluate: Evaluate


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
        self._compiler = _Compiler(Scope({}, functions), {}, {}, 0, note)

    def compile(self, expression: Expression, columns: Sequence[Column]) -> Compiled:
        """The expression over rows of those columns; raises AnalysisError."""
        sql_type = self.type_of(expression, columns)
        try:
            return Compiled(sql_type, self._compiler.compile(expression))
        except RecursionError:
            raise AnalysisError("The expression is nested too deeply.") from None

    def type_of(self, expression: Expression, columns: Sequence[Column]) -> SqlType | None:
        """The type of the expression over those columns; raises AnalysisError."""
        return type_of(expression, self.scope(columns))

    def scope(self, columns: Sequence[Column]) -> Scope:
        """What names stand for over those columns."""
        if self._columns is not columns:
            scope = Scope.of_columns(columns, self._functions)
            indexes: dict[str, int] = {}
            for index, column in enumerate(columns):
                indexes.setdefault(column.name, index)
            self._compiler = _Compiler(scope, indexes, {}, len(columns), self._note)
            self._columns = columns
        return self._compiler.scope


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles expressions within one scope. `width`: values in a row, with those of lambdas."""

    scope: Scope
    columns: Mapping[str, int]
    variables: Mapping[str, int]
    width: int
    note: Note

    def compile(self, expression: Expression) -> Evaluate:
        return _COMPILERS[type(expression)](self, expression)

    def type_of(self, expression: Expression) -> SqlType | None:
        return type_of(expression, self.scope)

    def forgiving(self, evaluate: Evaluate, what: str) -> Evaluate:
        """The same, but NULL where it fails."""
        note = self.note

        def attempt(row: Sequence[Value]) -> Value:
            try:
                return evaluate(row)
            except FAILURES as error:
                note(what, error)
                return None

        return attempt

    # --- names and literals ----------------------------------------------------------------------

    def literal(self, node: Any) -> Evaluate:
        return constant(node.value)

    def null(self, node: nodes.NullLiteral) -> Evaluate:
        return constant(None)

    def interval(self, node: nodes.IntervalUnit) -> Evaluate:
        return constant(node.unit)

    def column(self, node: nodes.ColumnReference) -> Evaluate:
        name = node.name if node.source is None else f"{node.source}.{node.name}"
        index = self.columns.get(name, self.columns.get(node.name))
        if index is None:
            raise AnalysisError(f"Unknown column {name}.")
        return itemgetter(index)

    def variable(self, node: nodes.LambdaVariable) -> Evaluate:
        if node.name not in self.variables:
            raise AnalysisError(f"{node.name} is not a parameter of an enclosing lambda")
        return itemgetter(self.variables[node.name])

    # --- calculation -----------------------------------------------------------------------------

    def arithmetic(self, node: nodes.Arithmetic) -> Evaluate:
        result = self.type_of(node)
        left_type, right_type = self.type_of(node.left), self.type_of(node.right)
        assert left_type is not None
        assert right_type is not None
        left, right = self.compile(node.left), self.compile(node.right)
        if isinstance(result, types.Decimal):
            left, left_type = self._decimal_literal(node.left, left, left_type)
            right, right_type = self._decimal_literal(node.right, right, right_type)
        calculate = calculation(node.operator, left_type, right_type)
        return lambda row: calculate(left(row), right(row))

    def _decimal_literal(
        self, expression: Expression, evaluate: Evaluate, sql_type: SqlType
    ) -> tuple[Evaluate, SqlType]:
        """A whole number in a calculation of DECIMALs, as one, so that no record has to cast it."""
        wide = as_decimal_type(sql_type)
        if isinstance(expression, nodes.IntegerLiteral | nodes.LongLiteral):
            return constant(cast_whole(expression.value, wide)), wide
        return evaluate, sql_type

    def sign(self, node: nodes.Sign) -> Evaluate:
        make = negation if node.is_minus else signed
        calculate, operand = make(self.type_of(node.operand)), self.compile(node.operand)
        return lambda row: calculate(operand(row))

    def cast(self, node: nodes.Cast) -> Evaluate:
        return self._cast(node.operand, node.type)

    def _cast(self, expression: Expression, target: SqlType) -> Evaluate:
        cast = cast_maker(self.type_of(expression), target)
        operand = self.compile(expression)
        if cast is None:
            return self.forgiving(operand, str(target))
        return self.forgiving(lambda row: cast(operand(row)), str(target))

    # --- conditions ------------------------------------------------------------------------------

    def comparison(self, node: nodes.Comparison) -> Evaluate:
        left_type, right_type = self.type_of(node.left), self.type_of(node.right)
        if not can_compare(node.operator, left_type, right_type):
            raise refusal(node, left_type, right_type)
        assert left_type is not None
        assert right_type is not None
        how = comparison(node.operator, left_type, right_type)
        left, convert_left = self._operand(node.left, how.convert_left)
        right, convert_right = self._operand(node.right, how.convert_right)
        return comparing(
            node.operator, left, right, Comparison(convert_left, convert_right, how.compare)
        )

    def _operand(
        self, expression: Expression, convert: Convert | None
    ) -> tuple[Evaluate, Convert | None]:
        """One side of a comparison and how it is still to be converted: a literal is right now,
        unless it cannot be, which is an error of every record."""
        if isinstance(expression, LITERALS) and convert is not None:
            try:
                return constant(convert(expression.value)), None
            except FAILURES:
                pass
        return self.compile(expression), convert

    def between(self, node: nodes.Between) -> Evaluate:
        lower, upper = map(self.comparison, between_as_comparisons(node))
        return lambda row: lower(row) and upper(row)

    def condition(self, expression: Expression) -> Evaluate:
        """An expression that must be true or false: NULL is no value."""
        sql_type = self.type_of(expression)
        if sql_type != types.BOOLEAN:
            text = message_text(expression)
            raise AnalysisError(f"Should evaluate to boolean but is {text} ({sql_type}) instead.")
        evaluate = self.compile(expression)
        if isinstance(expression, _NEVER_NULL):
            return evaluate

        def decide(row: Sequence[Value]) -> bool:
            value: bool | None = evaluate(row)
            if value is None:
                raise EvaluationError("a condition is NULL")
            return value

        return decide

    def logical(self, node: nodes.Logical) -> Evaluate:
        left, right = self.condition(node.left), self.condition(node.right)
        if node.operator is nodes.LogicalOperator.AND:
            return lambda row: left(row) and right(row)
        return lambda row: left(row) or right(row)

    def negated(self, node: nodes.Not) -> Evaluate:
        operand = self.condition(node.operand)
        return lambda row: not operand(row)

    def is_null(self, node: nodes.IsNull) -> Evaluate:
        operand = self.compile(node.operand)
        return lambda row: operand(row) is None

    def is_not_null(self, node: nodes.IsNotNull) -> Evaluate:
        operand = self.compile(node.operand)
        return lambda row: operand(row) is not None

    def in_list(self, node: nodes.InList) -> Evaluate:
        operands = in_list_operands(node)
        operand, *items = self.common(operands)
        if items and all(isinstance(item, LITERALS) for item in operands[1:]):
            values = frozenset(item(()) for item in items)
            return lambda row: operand(row) in values

        def is_in(row: Sequence[Value]) -> bool:
            value = operand(row)
            return value is not None and any(value == item(row) for item in items)

        return is_in

    def like(self, node: nodes.Like) -> Evaluate:
        self.type_of(node)
        operand, escape = self.compile(node.operand), node.escape
        if isinstance(node.pattern, nodes.StringLiteral):
            matches = like_pattern(node.pattern.value, escape).fullmatch
            return lambda row: matches(operand(row)) is not None
        pattern = self.compile(node.pattern)
        return lambda row: is_like(operand(row), pattern(row), escape)

    def searched_case(self, node: nodes.SearchedCase) -> Evaluate:
        self.type_of(node)
        whens = [(self.condition(w.condition), self.compile(w.result)) for w in node.whens]
        default = self.compile(node.default or nodes.NullLiteral())

        def choose(row: Sequence[Value]) -> Value:
            for condition, result in whens:
                if condition(row):
                    return result(row)
            return default(row)

        return choose

    def simple_case(self, node: nodes.SimpleCase) -> Evaluate:
        return self.searched_case(simple_case_as_searched(node))

    # --- arrays, maps, structs -------------------------------------------------------------------

    def common(self, expressions: Sequence[Expression]) -> list[Evaluate]:
        """The expressions, as values of their common type."""
        common = common_type(expressions, self.type_of)
        return [self._coerced(expression, common) for expression in expressions]

    def _coerced(self, expression: Expression, common: SqlType | None) -> Evaluate:
        own = self.type_of(expression)
        if common is None or own is None or own == common:
            return self.compile(expression)
        if isinstance(expression, LITERALS):
            try:
                return constant(coerce_literal(expression, own, common))
            except EvaluationError as error:
                text = message_text(expression)
                raise AnalysisError(f"{text} cannot stand for a {common}: {error}") from error
        return self._cast(expression, common)

    def array(self, node: nodes.ArrayConstructor) -> Evaluate:
        self.type_of(node)
        items = [self.forgiving(item, "array item") for item in self.common(node.items)]
        return lambda row: [item(row) for item in items]

    def map(self, node: nodes.MapConstructor) -> Evaluate:
        self.type_of(node)
        keys = self.common([key for key, _ in node.entries])
        values = self.common([value for _, value in node.entries])
        entries = [
            (self.forgiving(key, "map key"), self.forgiving(value, "map value"))
            for key, value in zip(keys, values, strict=True)
        ]
        return lambda row: {key(row): value(row) for key, value in entries}

    def struct(self, node: nodes.StructConstructor) -> Evaluate:
        self.type_of(node)
        fields = [
            (name, self.forgiving(self.compile(value), "struct field"))
            for name, value in node.fields
        ]
        return lambda row: {name: value(row) for name, value in fields}

    def subscript(self, node: nodes.Subscript) -> Evaluate:
        self.type_of(node)
        base, index = self.compile(node.base), self.compile(node.index)
        if isinstance(self.type_of(node.base), Map):
            return lambda row: None if (entries := base(row)) is None else entries.get(index(row))
        return lambda row: None if (items := base(row)) is None else item_at(items, index(row))

    def dereference(self, node: nodes.Dereference) -> Evaluate:
        self.type_of(node)
        base, name = self.compile(node.base), node.name
        return lambda row: None if (struct := base(row)) is None else struct.get(name)

    # --- functions -------------------------------------------------------------------------------

    def call(self, node: nodes.FunctionCall) -> Evaluate:
        function = self.scope.function(node.name)
        if not function.scalars:
            raise AnalysisError(f"{node.name} is not a scalar function")
        call = scalar_call(node, self.scope, type_of)
        arguments = [self.argument(argument) for argument in call.arguments]
        return invocation(call, arguments)

    def argument(self, argument: TypedArgument) -> Evaluate:
        """What gives the function its argument."""
        expression = argument.expression
        if isinstance(expression, nodes.Lambda):
            assert argument.lambda_scope is not None
            return self.lambda_(expression, argument.lambda_scope)
        evaluate = self.compile(expression)
        if argument.taken_type is not None:
            cast = cast_maker(argument.type, argument.taken_type)
            if cast is not None:
                return self.forgiving(lambda row: cast(evaluate(row)), str(argument.taken_type))
        match expression:
            case nodes.FunctionCall(name) | nodes.Dereference(_, name):
                return self.forgiving(evaluate, name)
        return evaluate

    def lambda_(self, node: nodes.Lambda, scope: Scope) -> Evaluate:
        """What gives the Python function that stands for a lambda, for the row at hand."""
        places = {name: self.width + at for at, name in enumerate(node.parameters)}
        inner = replace(
            self,
            scope=scope,
            variables={**self.variables, **places},
            width=self.width + len(places),
        )
        body = inner.compile(node.body)
        return lambda row: lambda *values: body((*row, *values))


_NEVER_NULL = (
    nodes.BooleanLiteral,
    nodes.Comparison,
    nodes.Logical,
    nodes.Not,
    nodes.IsNull,
    nodes.IsNotNull,
    nodes.Between,
    nodes.InList,
    nodes.Like,
)
"""Conditions that are true or false, or fail."""

_COMPILERS: dict[type[Any], Callable[[_Compiler, Any], Evaluate]] = {
    nodes.NullLiteral: _Compiler.null,
    nodes.BooleanLiteral: _Compiler.literal,
    nodes.IntegerLiteral: _Compiler.literal,
    nodes.LongLiteral: _Compiler.literal,
    nodes.DoubleLiteral: _Compiler.literal,
    nodes.DecimalLiteral: _Compiler.literal,
    nodes.StringLiteral: _Compiler.literal,
    nodes.BytesLiteral: _Compiler.literal,
    nodes.ColumnReference: _Compiler.column,
    nodes.Arithmetic: _Compiler.arithmetic,
    nodes.Sign: _Compiler.sign,
    nodes.Comparison: _Compiler.comparison,
    nodes.Logical: _Compiler.logical,
    nodes.Not: _Compiler.negated,
    nodes.IsNull: _Compiler.is_null,
    nodes.IsNotNull: _Compiler.is_not_null,
    nodes.Between: _Compiler.between,
    nodes.InList: _Compiler.in_list,
    nodes.Like: _Compiler.like,
    nodes.SearchedCase: _Compiler.searched_case,
    nodes.SimpleCase: _Compiler.simple_case,
    nodes.Cast: _Compiler.cast,
    nodes.Subscript: _Compiler.subscript,
    nodes.Dereference: _Compiler.dereference,
    nodes.ArrayConstructor: _Compiler.array,
    nodes.MapConstructor: _Compiler.map,
    nodes.StructConstructor: _Compiler.struct,
    nodes.IntervalUnit: _Compiler.interval,
    nodes.FunctionCall: _Compiler.call,
    nodes.LambdaVariable: _Compiler.variable,
}

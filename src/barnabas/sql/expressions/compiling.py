"""What compiles the expressions within an expression: its scope, and what all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barnabas.sql.errors import FAILURES, AnalysisError, EvaluationError
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.expressions.closures import BatchedCall, Evaluate, constant
from barnabas.sql.expressions.coercion import LITERALS, coerce_literal, common_type
from barnabas.sql.expressions.scope import Scope
from barnabas.sql.expressions.typing import held, type_of
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.types import SqlType, Value

Note = Callable[[str, Exception], None]
"""Takes what was being made (`array item`) and why it failed."""


@dataclass(frozen=True, slots=True)
class Compiling:
    """Compiles expressions within one scope. `width`: values in a row, with those of lambdas."""

    scope: Scope
    columns: Mapping[str, int]
    variables: Mapping[str, int]
    width: int
    note: Note
    batched: list[BatchedCall]
    """Takes the calls that can be prepared for many rows, those within others first."""
    compilers: Compilers
    """By kind of expression what compiles it."""

    def compile(self, expression: Expression) -> Evaluate:
        return self.compilers[type(expression)](self, expression)

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

    def cast(self, expression: Expression, target: SqlType) -> Evaluate:
        cast = cast_maker(self.type_of(expression), target)
        operand = self.compile(expression)
        if cast is None:
            return self.forgiving(operand, str(target))
        return self.forgiving(lambda row: cast(operand(row)), str(target))

    def holding(
        self, operand: Expression, make: Callable[[Compiling, Expression], Evaluate]
    ) -> Evaluate:
        """Return what `make` makes of the operand, or of a variable that holds its value."""
        variable, scope = held(operand, self.scope)
        if variable is operand:
            return make(self, operand)
        assert isinstance(variable, nodes.LambdaVariable)
        places = {**self.variables, variable.name: self.width}
        inner = replace(self, scope=scope, variables=places, width=self.width + 1)
        evaluate, body = self.compile(operand), make(inner, variable)
        return lambda row: body((*row, evaluate(row)))

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
                return constant(coerce_literal(expression.value, own, common))
            except EvaluationError as error:
                text = message_text(expression)
                raise AnalysisError(f"{text} cannot stand for a {common}: {error}") from error
        return self.cast(expression, common)


Compilers = Mapping[type[Any], Callable[[Compiling, Any], Evaluate]]

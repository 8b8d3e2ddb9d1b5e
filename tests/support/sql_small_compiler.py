"""A few expressions and functions for tests of processors, so that they need no others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import Aggregator
from barnabas.sql.runtime.evaluation import BatchedCall, Evaluator, TableFunction
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.types import BIGINT, BOOLEAN, STRING, SqlType, Value

_COMPARISONS: dict[nodes.ComparisonOperator, Callable[[Any, Any], bool]] = {
    nodes.ComparisonOperator.EQUAL: operator.eq,
    nodes.ComparisonOperator.NOT_EQUAL: operator.ne,
    nodes.ComparisonOperator.LESS_THAN: operator.lt,
    nodes.ComparisonOperator.GREATER_THAN: operator.gt,
}
_ARITHMETIC: dict[nodes.ArithmeticOperator, Callable[[Any, Any], Any]] = {
    nodes.ArithmeticOperator.ADD: operator.add,
    nodes.ArithmeticOperator.MULTIPLY: operator.mul,
    nodes.ArithmeticOperator.DIVIDE: operator.floordiv,
}


@dataclass
class Compiled:
    type: SqlType | None
    evaluate: Callable[[Row], Value]
    batched: Sequence[BatchedCall] = ()


class Total:
    """COUNT and SUM."""

    state_type: SqlType = BIGINT
    result_type: SqlType = BIGINT

    def __init__(self, *, counts: bool) -> None:
        self._counts = counts

    def _of(self, arguments: tuple[Value, ...]) -> int:
        if arguments and arguments[0] is None:
            return 0
        return 1 if self._counts else int(arguments[0])

    def initial(self) -> Value:
        return 0

    def add(self, state: Value, *arguments: Value) -> Value:
        return state + self._of(arguments)

    def remove(self, state: Value, *arguments: Value) -> Value:
        return state - self._of(arguments)

    def merge(self, left: Value, right: Value) -> Value:
        return left + right

    def result(self, state: Value) -> Value:
        return state


class Collect(Total):
    """COLLECT_LIST: shows in which order records came."""

    def __init__(self) -> None:
        super().__init__(counts=False)

    def initial(self) -> Value:
        return []

    def add(self, state: Value, *arguments: Value) -> Value:
        return [*state, arguments[0]]

    def remove(self, state: Value, *arguments: Value) -> Value:
        left = list(state)
        left.remove(arguments[0])
        return left


class SmallCompiler:
    """A Compiler of columns, literals, a few operators, COUNT, SUM, COLLECT_LIST and EXPLODE."""

    fails_on_timestamps = False

    def expression(self, expression: nodes.Expression, columns: Sequence[Column]) -> Evaluator:
        return self._compiled(expression, columns)

    def _compiled(self, node: nodes.Expression, columns: Sequence[Column]) -> Compiled:
        if isinstance(node, nodes.ColumnReference):
            place = [column.name for column in columns].index(node.name)
            return Compiled(columns[place].type, operator.itemgetter(place))
        if isinstance(node, nodes.Comparison):
            return Compiled(BOOLEAN, self._both(_COMPARISONS[node.operator], node, columns))
        if isinstance(node, nodes.Arithmetic):
            return Compiled(BIGINT, self._both(_ARITHMETIC[node.operator], node, columns))
        if isinstance(node, nodes.NullLiteral):
            return Compiled(None, lambda row: None)
        if isinstance(node, nodes.IntegerLiteral | nodes.StringLiteral):
            value = node.value
            return Compiled(STRING if isinstance(value, str) else BIGINT, lambda row: value)
        raise NotImplementedError(node)

    def _both(
        self,
        operate: Callable[[Any, Any], Any],
        node: nodes.Comparison | nodes.Arithmetic,
        columns: Sequence[Column],
    ) -> Callable[[Row], Value]:
        left, right = self._compiled(node.left, columns), self._compiled(node.right, columns)

        def evaluate(row: Row) -> Value:
            values = left.evaluate(row), right.evaluate(row)
            if None in values:
                return None
            try:
                return operate(*values)
            except TypeError as error:
                raise EvaluationError(str(error)) from error

        return evaluate

    def aggregate(
        self, call: nodes.FunctionCall, columns: Sequence[Column]
    ) -> tuple[Aggregator, tuple[Evaluator, ...]]:
        arguments = tuple(self.expression(argument, columns) for argument in call.arguments)
        if call.name == "COLLECT_LIST":
            return Collect(), arguments
        return Total(counts=call.name == "COUNT"), arguments

    def table_function(self, call: nodes.FunctionCall, columns: Sequence[Column]) -> TableFunction:
        evaluate = self._compiled(call.arguments[0], columns).evaluate
        return lambda row: evaluate(row) or ()

    def timestamp_parser(self, pattern: str) -> Callable[[str], int]:
        assert pattern == "epoch"
        return int

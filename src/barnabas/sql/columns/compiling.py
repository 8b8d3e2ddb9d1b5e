"""Compiles expressions to kernels: see kernels.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from barnabas.sql import types
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.vectors import Vector, vector_of
from barnabas.sql.errors import FAILURES
from barnabas.sql.expressions.calls import ScalarCall, scalar_call
from barnabas.sql.expressions.compile import ExpressionCompiler
from barnabas.sql.expressions.scope import Scope
from barnabas.sql.expressions.typing import type_of
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.evaluation import prepared_rows
from barnabas.sql.runtime.mentions import references
from barnabas.sql.schema import Column
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.types import SqlType, Value

Kernel = Callable[[Frame], Vector]
Make = Callable[[Any, Any], Kernel | None]
"""Takes what compiles, and an expression; None if the expression goes record by record."""


class Compiling:
    """Makes kernels of expressions over the same columns."""

    makers: ClassVar[Mapping[type[Any], Make]] = {}
    """The builder of an expression's kernel, by its kind."""

    def __init__(self, columns: Sequence[Column], functions: Mapping[str, Function]) -> None:
        self._columns = tuple(columns)
        self._functions = functions
        self._expressions = ExpressionCompiler(functions)
        self._places: dict[str, int] = {}
        for place, column in enumerate(columns):
            self._places.setdefault(column.name, place)

    def type_of(self, expression: Expression) -> SqlType | None:
        """The type of the expression; None for NULL."""
        return self._expressions.type_of(expression, self._columns)

    def place(self, expression: Expression) -> int | None:
        """Of a column its place."""
        if not isinstance(expression, nodes.ColumnReference):
            return None
        name = expression.name
        if expression.source is not None:
            name = f"{expression.source}.{name}"
        return self._places.get(name, self._places.get(expression.name))

    def kernel(self, expression: Expression) -> Kernel:
        """Return what evaluates the expression. Raises AnalysisError as the row compiler does."""
        make = self.makers.get(type(expression))
        made = make(self, expression) if make else None
        return made or self._by_rows(expression)

    def condition(self, expression: Expression) -> Kernel:
        """The same for an expression that must not be NULL: of those it doubts."""
        kernel = self.kernel(expression)

        def decide(frame: Frame) -> Vector:
            vector = kernel(frame)
            if vector.valid is not None:
                frame.doubt |= ~vector.valid
            return vector

        return decide

    def _by_rows(self, expression: Expression) -> Kernel:
        names = references(expression)
        listed = [c for place, c in enumerate(self._columns) if self._is_meant(place, names)]
        taken = [self._places[column.name] for column in listed]
        failed: list[str] = []
        evaluator = ExpressionCompiler(
            self._functions, lambda what, error: failed.append(what)
        ).compile(expression, tuple(listed))
        sql_type = evaluator.type or types.STRING
        evaluate = evaluator.evaluate

        def kernel(frame: Frame) -> Vector:
            columns = [frame.columns[place].to_list() for place in taken]
            size = len(frame)
            rows: list[tuple[Value, ...]] = (
                list(zip(*columns, strict=True)) if columns else [() for _ in range(size)]
            )
            values: list[Value] = []
            failed.clear()
            with prepared_rows(evaluator.batched, rows):
                for at, row in enumerate(rows):
                    try:
                        value = evaluate(row)
                    except FAILURES:
                        value = None
                        frame.doubt[at] = True
                    if failed:
                        failed.clear()
                        frame.doubt[at] = True
                    values.append(value)
            return vector_of(sql_type, values, frame.doubt)

        return kernel

    def _is_meant(self, place: int, names: set[str]) -> bool:
        name = self._columns[place].name
        if self._places[name] != place:
            return False
        return name in names or name.partition(".")[2] in names

    def scalar_call(self, node: nodes.FunctionCall) -> tuple[Function, ScalarCall]:
        """Resolve a call to its function and overload. Raises AnalysisError."""
        scope = Scope.of_columns(self._columns, self._functions)
        return scope.function(node.name), scalar_call(node, scope, type_of)

    def value_of(self, literal: Expression) -> Value:
        """The value of a literal."""
        value: Value = self._expressions.compile(literal, ()).evaluate(())
        return value

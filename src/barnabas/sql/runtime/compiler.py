"""The Compiler that product and tests use: expressions and functions of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from barnabas.java.time.texts import text_to_timestamp
from barnabas.sql.expressions.calls import aggregate_call, table_call
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.expressions.compile import Compiled, ExpressionCompiler
from barnabas.sql.expressions.typing import type_of
from barnabas.sql.functions.catalog import Aggregator, Function
from barnabas.sql.runtime.evaluation import EVALUATION_ERRORS, Evaluator, Log, TableFunction, no_log
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import Expression, FunctionCall
from barnabas.sql.types import BIGINT, SqlType, Value


class PlanCompiler:
    """`properties` are the statement's settings that aggregates look at."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        properties: Mapping[str, Value] | None = None,
        log: Log = no_log,
    ) -> None:
        self._expressions = ExpressionCompiler(functions, self._note)
        self._log = log
        self._properties = dict(properties or {})
        throws = str(self._properties.get("ksql.timestamp.throw.on.invalid", "false"))
        self.fails_on_timestamps = throws.lower() == "true"

    def expression(self, expression: Expression, columns: Sequence[Column]) -> Evaluator:
        return self._expressions.compile(expression, columns)

    def _note(self, what: str, error: Exception) -> None:
        self._log(f"Error computing {what}", None, error)

    def aggregate(
        self, call: FunctionCall, columns: Sequence[Column]
    ) -> tuple[Aggregator, tuple[Evaluator, ...]]:
        meant = aggregate_call(call, self._expressions.scope(columns), type_of)
        arguments: tuple[Evaluator, ...] = tuple(
            self.expression(argument, columns) for argument in call.arguments[: meant.column_count]
        )
        if not call.arguments:
            arguments = (Compiled(BIGINT, lambda row: 1),)
        return meant.aggregator(self._properties), arguments

    def table_function(self, call: FunctionCall, columns: Sequence[Column]) -> TableFunction:
        meant = table_call(call, self._expressions.scope(columns), type_of)
        arguments = [
            self._argument(argument.expression, argument.type, argument.taken_type, columns)
            for argument in meant.arguments
        ]
        implementation = meant.overload.implementation
        if meant.overload.takes_types:
            taken = tuple(argument.taken_type for argument in meant.arguments)
            implementation = partial(implementation, types=taken)
        return lambda row: implementation(*[argument(row) for argument in arguments])

    def _argument(
        self,
        expression: Expression,
        own: SqlType | None,
        taken: SqlType | None,
        columns: Sequence[Column],
    ) -> Callable[[Row], Value]:
        """Return what gives a table function its argument: NULL where there is no value."""
        evaluate = self.expression(expression, columns).evaluate
        cast = None if taken is None else cast_maker(own, taken)

        def argument(row: Row) -> Value:
            try:
                value = evaluate(row)
                return value if cast is None else cast(value)
            except EVALUATION_ERRORS as error:
                self._log("Failed to evaluate a table function's parameter", row, error)
                return None

        return argument

    def timestamp_parser(self, pattern: str) -> Callable[[str], int]:
        return partial(text_to_timestamp, pattern=pattern)

"""The interface of processors to expressions, functions and the processing log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from barnabas.sql.errors import FAILURES
from barnabas.sql.functions.catalog import Aggregator
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import Expression, FunctionCall
from barnabas.sql.types import SqlType, Value

EVALUATION_ERRORS = FAILURES
"""Exceptions of an expression or function that has no value for a record."""

Log = Callable[[str, Row | None, BaseException | None], None]
"""The processing log: what went wrong, the row if there is one, and why."""


class QueryFailedError(Exception):
    """A record stops its query: an aggregate cannot take it, or the query's settings ask for it."""


class BatchedCall(Protocol):
    """A call in an expression that can be made for many rows before they are evaluated."""

    def prepare(self, rows: Sequence[Row]) -> None: ...

    def forget(self) -> None: ...


class Evaluator(Protocol):
    """A compiled expression."""

    @property
    def batched(self) -> Sequence[BatchedCall]: ...

    @property
    def type(self) -> SqlType | None: ...

    def evaluate(self, row: Row) -> Value: ...


class TableFunction(Protocol):
    """A compiled call of a table function: the values it makes of a row."""

    def __call__(self, row: Row) -> Iterable[Value] | None: ...


class Compiler(Protocol):
    """Makes what processors run from what plans say."""

    fails_on_timestamps: bool
    """True if a source's record without a timestamp in its column stops the query, as
    `ksql.timestamp.throw.on.invalid` has it, and is not just left out."""

    def expression(self, expression: Expression, columns: Sequence[Column]) -> Evaluator: ...

    def aggregate(
        self, call: FunctionCall, columns: Sequence[Column]
    ) -> tuple[Aggregator, tuple[Evaluator, ...]]:
        """The aggregator of a call, and the arguments that it takes from each row."""
        ...

    def table_function(self, call: FunctionCall, columns: Sequence[Column]) -> TableFunction: ...

    def timestamp_parser(self, pattern: str) -> Callable[[str], int]:
        """Return what reads the text of a TIMESTAMP column as milliseconds."""
        ...


def no_log(_message: str, _row: Row | None, _cause: BaseException | None) -> None:
    """A processing log that keeps nothing."""


@contextmanager
def prepared(calls: Sequence[BatchedCall], records: Sequence[Record]) -> Iterator[None]:
    """Within it the calls are made for all of the records' rows, which it keeps alive."""
    rows = [record.value for record in records if record.value is not None]
    with prepared_rows(calls, rows):
        yield


@contextmanager
def prepared_rows(calls: Sequence[BatchedCall], rows: Sequence[Row]) -> Iterator[None]:
    """The same for rows, which the caller keeps alive."""
    for call in calls:
        call.prepare(rows)
    try:
        yield
    finally:
        for call in calls:
            call.forget()


def value_or_none(evaluator: Evaluator, message: str, log: Log) -> Callable[[Row], Value]:
    """The evaluator, giving NULL and a note to the log where there is no value."""
    evaluate = evaluator.evaluate

    def evaluated(row: Row) -> Value:
        try:
            return evaluate(row)
        except EVALUATION_ERRORS as error:
            log(message, row, error)
            return None

    return evaluated

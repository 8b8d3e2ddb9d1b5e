"""Errors of statements, with the place in the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token begins: line and column count from 1, as in ksqlDB's messages."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}"


TOO_LARGE = (
    "Error processing statement: Statement is too large to parse. This may be caused by having too "
    "many nested expressions in the statement."
)
"""The message for a statement that is nested too deeply."""


class SqlError(Exception):
    """A statement cannot be taken; `place` is where its text goes wrong, if one can be named.

    `statement` is the text of the statement, if it is known.
    """

    def __init__(self, message: str, place: Place | None = None, statement: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.statement = statement

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message

    def with_statement(self) -> str:
        """The text of the error, followed by that of the statement, as ksqlDB's server logs it."""
        return f"{self}\nStatement: {self.statement}" if self.statement else str(self)


class ParseError(SqlError):
    """The text is not a statement."""


class PrepareError(ParseError):
    """The text has the form of a statement, but one of its parts is not allowed there: a number out
    of range, an alias that names no source, a property that does not exist."""

    def __str__(self) -> str:
        return f"Failed to prepare statement: {super().__str__()}"


class AnalysisError(SqlError):
    """A statement says what cannot be: an unknown column, types that don't match, …"""

    def __str__(self) -> str:
        if self.place is None:
            return self.message
        return f"Line: {self.place.line}, Col: {self.place.column}: {self.message}"


@contextmanager
def text_in_errors(text: str) -> Iterator[None]:
    """Errors tell which statement they are about."""
    try:
        yield
    except SqlError as error:
        error.statement = error.statement or text
        raise


class EvaluationError(Exception):
    """An expression has no value for this record (overflow, a text that is not a number, …)."""


FAILURES = (EvaluationError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError)
"""What the evaluation of an expression may raise for a record: the caller of an evaluation catches
these.
The last three are what the operators of Python say to NULL and to what an index does not reach."""
